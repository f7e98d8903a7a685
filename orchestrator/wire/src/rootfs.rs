//! What a container's root file system is put together from.

use serde::{Deserialize, Serialize};

/// A path or string as bytes; Linux does not promise UTF-8.
pub type Bytes = Vec<u8>;

/// How a mount looks from inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountFlags {
    /// Nothing can be written through it.
    pub readonly: bool,
    /// Nothing can be executed from it.
    pub noexec: bool,
}

/// Ids as they stand on disk that become the ids of the container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdMap {
    /// First user id on disk.
    pub disk_uid: u32,
    /// First group id on disk.
    pub disk_gid: u32,
    /// First user id on the host that it becomes.
    pub host_uid: u32,
    /// First group id on the host that it becomes.
    pub host_gid: u32,
    /// How many ids follow each other.
    pub count: u32,
}

/// One step, done in order by the launcher's worker, beneath an empty root.
/// Targets are absolute, without `.`, `..` or links.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Entry {
    /// A directory of root of the container, 0755; parents are made, too.
    Dir {
        /// Where.
        path: Bytes,
    },
    /// A regular file of root of the container, 0644.
    File {
        /// Where.
        path: Bytes,
        /// What it holds.
        content: Bytes,
    },
    /// A symbolic link, never followed by any later step.
    Symlink {
        /// Where.
        path: Bytes,
        /// What it says.
        target: Bytes,
    },
    /// A bind mount (not recursive) of a host path, always nosuid and nodev.
    Bind {
        /// Index of the descriptor (`O_PATH`) that came with the request.
        source: u32,
        /// Where; made as directory or file, like the source.
        path: Bytes,
        /// Flags.
        flags: MountFlags,
        /// Ids, where those on disk are not those of the host.
        idmap: Option<IdMap>,
    },
    /// An in-memory file system.
    Tmpfs {
        /// Where.
        path: Bytes,
        /// Bytes.
        size: u64,
        /// Files and directories.
        inodes: u64,
        /// Permission bits of its root.
        mode: u32,
        /// Owner inside the container.
        uid: u32,
        /// Group inside the container.
        gid: u32,
    },
}
