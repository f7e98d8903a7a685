//! The effective profile: every field resolved, nothing optional that the
//! schema gives a default.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::paths::json;

/// The three tiers, from the one that allows most to the one that allows least.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// Trusted local work (PR-03, PR-05).
    Loose,
    /// Routine automation (PR-06, PR-08).
    Standard,
    /// Untrusted input, public exposure (PR-09, PR-11).
    Strict,
}

/// The tables of system calls, from the one that allows most to the one that
/// allows least; each takes away from the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SyscallTable {
    /// What every tier refuses.
    Loose,
    /// A tighter deny list.
    Standard,
    /// An allow list.
    Strict,
    /// As strict, for one program that starts no other: no process creation, no
    /// second program, no signals, links or sockets (PX-11).
    Python,
}

impl SyscallTable {
    /// The loosest tier that has the table as its own; what starts a task under
    /// the table runs under this tier's.
    #[must_use]
    pub const fn tier(self) -> Tier {
        match self {
            Self::Loose => Tier::Loose,
            Self::Standard => Tier::Standard,
            Self::Strict | Self::Python => Tier::Strict,
        }
    }

    /// As in a profile.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Loose => "loose",
            Self::Standard => "standard",
            Self::Strict => "strict",
            Self::Python => "python",
        }
    }
}

impl From<Tier> for SyscallTable {
    fn from(tier: Tier) -> Self {
        match tier {
            Tier::Loose => Self::Loose,
            Tier::Standard => Self::Standard,
            Tier::Strict => Self::Strict,
        }
    }
}

/// Whether something may be written.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Read and execute only.
    Ro,
    /// Read, write, create, delete.
    Rw,
}

/// Where the root file system comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Image {
    /// Named read-only binds of the host (`/usr`, `/bin`, `/lib*`) and a synthesised `/etc`.
    Host,
    /// A directory of the host that holds a root file system.
    Dir(#[serde(serialize_with = "json::path")] PathBuf),
}

/// Who may get a container that has been used (PR-32, PO-07).
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Reuse {
    /// Anybody, after scrub and proof.
    Pool,
    /// The same tenant, after scrub and proof.
    Tenant,
    /// Nobody: one lease, then destroyed.
    Never,
}

/// What happens to a destination that no rule names (PR-17).
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum NetworkDefault {
    /// Recorded and let through, private ranges excepted (PR-04).
    Allow,
    /// Refused.
    Deny,
}

/// A host path given to the sandbox (PR-15).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mount {
    /// Path inside the sandbox, absolute.
    #[serde(serialize_with = "json::path")]
    pub path: PathBuf,
    /// Path on the host, absolute; absent where `path` means the image's own tree.
    #[serde(serialize_with = "json::option")]
    pub source: Option<PathBuf>,
    /// Read-only unless said otherwise.
    pub mode: Access,
}

/// Who a task may talk to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Network {
    /// Verdict where no rule matches.
    pub default: NetworkDefault,
    /// Destinations let through, in the text form of the profile (checked at load).
    pub allow: Vec<String>,
    /// Destinations refused at once, beating `allow` (NW-08).
    pub deny: Vec<String>,
}

impl Network {
    /// Whether a task needs the egress gateway at all.
    #[must_use]
    pub fn needs_egress(&self) -> bool {
        self.default == NetworkDefault::Allow || !self.allow.is_empty()
    }
}

/// Ceilings of one task. All are enforced; `None` means that nothing is set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// CPU time of one command's whole tree, seconds, ≥ 1 (PR-19).
    pub cpu_seconds: u64,
    /// CPU bandwidth, thousandths of one CPU, ≥ 10.
    pub cpu_milli: u64,
    /// Memory including swap and tmpfs contents, bytes (PR-20).
    pub memory_bytes: u64,
    /// Processes and threads at the same time (PR-22).
    pub processes: u64,
    /// Open files of one process (PR-21).
    pub open_files: u64,
    /// Largest file a process may write, bytes.
    pub file_size_bytes: u64,
    /// Stack of one process, bytes.
    pub stack_bytes: u64,
    /// Bytes of each writable in-memory file system (`/tmp`, `/dev/shm`, `/run`).
    pub tmp_bytes: u64,
    /// Files and directories in each of those file systems.
    pub tmp_inodes: u64,
    /// Merged standard output and standard error kept and passed on, bytes (EV-08).
    pub output_bytes: u64,
    /// Bytes that copy-out may take from `/tmp/out`.
    pub out_bytes: u64,
    /// Block-device reads, bytes a second.
    pub io_read_bytes_per_second: Option<u64>,
    /// Block-device writes, bytes a second.
    pub io_write_bytes_per_second: Option<u64>,
}

/// The environment of a task; it starts empty (PX-03).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Env {
    /// Names that may be taken from the caller's environment.
    pub allow: Vec<String>,
    /// Variables that are set, in order.
    pub set: Vec<(String, String)>,
}

/// A profile with every field resolved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Profile {
    /// Name it was loaded by.
    pub name: String,
    /// What it is for, in one sentence (PR-05, PR-08, PR-11).
    pub description: String,
    /// The tier whose bounds it keeps.
    pub tier: Tier,
    /// Root file system.
    pub image: Image,
    /// Whether `/` can be written (thrown away afterwards) or only read (PR-03, PR-06).
    pub root: Access,
    /// Host folder that becomes the workspace where the caller names none (PR-13).
    #[serde(serialize_with = "json::option")]
    pub workspace: Option<PathBuf>,
    /// Whether the workspace can be written (PR-06, PR-09).
    pub workspace_mode: Access,
    /// Host directory for which the in-memory `/tmp` stands in (PR-14); never shown.
    #[serde(serialize_with = "json::option")]
    pub tmpdir: Option<PathBuf>,
    /// Further host paths, in order; a later one shadows an earlier one (FS-06).
    pub mounts: Vec<Mount>,
    /// Host paths that are never mounted and are masked inside (PR-16); `~` resolved.
    #[serde(serialize_with = "json::list")]
    pub deny_paths: Vec<PathBuf>,
    /// Who a task may talk to.
    pub network: Network,
    /// Ceilings.
    pub limits: Limits,
    /// Wall clock of one command, milliseconds.
    pub command_timeout_ms: u64,
    /// Wall clock of the whole task, milliseconds (PR-23).
    pub timeout_ms: u64,
    /// Environment.
    pub env: Env,
    /// Which table of system calls tasks run under.
    pub syscalls: SyscallTable,
    /// User id inside the sandbox, 0–65533.
    pub uid: u32,
    /// Group id inside the sandbox, 0–65533.
    pub gid: u32,
    /// Host name inside the sandbox.
    pub hostname: String,
    /// Who may get a used container.
    pub reuse: Reuse,
}
