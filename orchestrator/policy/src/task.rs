//! What somebody asks to be run, on top of a profile.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::profile::Access;

/// A host path asked for by the caller (`--mount SRC[:DST][:rw]`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountRequest {
    /// Path on the host, absolute.
    pub source: PathBuf,
    /// Path inside, absolute; absent means `/workspace/<name of the source>` (FS-10).
    pub target: Option<PathBuf>,
    /// Read-only unless asked otherwise (FS-14).
    pub mode: Access,
}

/// One task, before it is measured against its profile. What is absent comes
/// from the profile; what is present may only tighten it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Task {
    /// Program and arguments; bytes as they came, not necessarily UTF-8.
    pub argv: Vec<OsString>,
    /// Folder that becomes `/workspace`, absolute.
    pub folder: Option<PathBuf>,
    /// Folder that becomes `/scratch`, absolute; it need not be there yet (FS-07).
    pub scratch: Option<PathBuf>,
    /// Working directory inside, absolute or relative to `/workspace`.
    pub workdir: Option<PathBuf>,
    /// Further mounts, in order.
    pub mounts: Vec<MountRequest>,
    /// Variables on top of the profile's, in order.
    pub env: Vec<(OsString, OsString)>,
    /// User inside: `uid[:gid]`.
    pub user: Option<(u32, Option<u32>)>,
    /// Labels, copied to the receipt.
    pub labels: Vec<(String, String)>,
    /// Wall clock, milliseconds.
    pub timeout_ms: Option<u64>,
    /// Memory, bytes.
    pub memory_bytes: Option<u64>,
    /// CPU bandwidth, thousandths of one CPU.
    pub cpu_milli: Option<u64>,
    /// Processes and threads.
    pub processes: Option<u64>,
    /// Merged output, bytes.
    pub output_bytes: Option<u64>,
    /// Whether a read-write folder may belong to root.
    pub allow_root_owned: bool,
    /// Whether the task gets a terminal.
    pub tty: bool,
}
