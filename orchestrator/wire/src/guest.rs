//! Daemon ↔ guest (PID 1 of a container) and daemon ↔ lease (PID 1 of a lease).

use serde::{Deserialize, Serialize};

use crate::rootfs::Bytes;

/// An in-memory file system of a lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tmpfs {
    /// Where; the directory exists.
    pub path: Bytes,
    /// Bytes.
    pub size: u64,
    /// Files and directories.
    pub inodes: u64,
    /// Permission bits of its root.
    pub mode: u32,
    /// Whether programs can be run from it.
    pub exec: bool,
}

/// How a lease is staged.
///
/// Descriptor: the lease's end of its control socket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Host name.
    pub hostname: Bytes,
    /// In-memory file systems, in order.
    pub tmpfs: Vec<Tmpfs>,
    /// Directories made afterwards: path, mode, uid, gid.
    pub dirs: Vec<(Bytes, u32, u32, u32)>,
    /// Paths that become read-only; absent ones are skipped.
    pub readonly: Vec<Bytes>,
    /// Paths that are hidden, last of all; absent ones are skipped.
    pub masked: Vec<Bytes>,
    /// Where set, `/` is a writable in-memory file system of that many bytes and
    /// inodes into which the named top-level entries are mounted.
    pub writable_root: Option<(u64, u64)>,
    /// Filter of the lease's PID 1 (seccomp(2)).
    pub filter: Bytes,
    /// User and group id of the lease's PID 1, which no task has.
    pub id: u32,
    /// Group id that owns terminals (devpts `gid=`).
    pub tty_gid: u32,
}

/// One resource limit (getrlimit(2)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rlimit {
    /// `RLIMIT_*`.
    pub resource: u32,
    /// Soft limit.
    pub soft: u64,
    /// Hard limit.
    pub hard: u64,
}

/// One command.
///
/// Descriptors: standard input, output and error (or the terminal once), then
/// what `Reply::Cgroup` brought.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exec {
    /// Chosen by the daemon, unique within the lease.
    pub exec: u32,
    /// Program and arguments.
    pub argv: Vec<Bytes>,
    /// `NAME=value`.
    pub env: Vec<Bytes>,
    /// Working directory, absolute.
    pub cwd: Bytes,
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
    /// umask(2).
    pub umask: u32,
    /// Resource limits.
    pub rlimits: Vec<Rlimit>,
    /// Filter of the task (seccomp(2)).
    pub filter: Bytes,
    /// Whether that filter asks a listener before exec (seccomp_unotify(2)).
    pub asks: bool,
    /// Whether it gets a terminal, which the lease makes.
    pub tty: bool,
    /// Rows and columns of that terminal, where they are known.
    pub size: Option<(u16, u16)>,
    /// Whether the last descriptor is a cgroup v2 directory.
    pub unified: bool,
}

/// What the daemon says to a lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToLease {
    /// Start a command.
    Exec(Box<Exec>),
    /// Send a signal to the first process of a command.
    Signal {
        /// Which command.
        exec: u32,
        /// signal(7).
        signal: i32,
    },
}

/// Where starting a command failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u8)]
pub enum Step {
    /// fork(2) in the lease.
    Fork,
    /// Joining the control group.
    Cgroup,
    /// Session, terminal and standard streams.
    Streams,
    /// setrlimit(2).
    Rlimit,
    /// Ids, groups and capabilities.
    Privileges,
    /// chdir(2).
    Cwd,
    /// seccomp(2).
    Filter,
    /// execve(2).
    Exec,
}

/// What a lease says to the daemon. Untrusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromLease {
    /// Staged, waiting for a command. Descriptor: the root of its `/tmp`.
    Ready,
    /// Staging failed: what was being done, errno.
    Broken {
        /// What was being done.
        step: String,
        /// errno.
        errno: i32,
    },
    /// The command runs. Descriptor: its pidfd.
    Started {
        /// Which command.
        exec: u32,
    },
    /// The command could not be started.
    Failed {
        /// Which command.
        exec: u32,
        /// Where.
        step: Step,
        /// errno.
        errno: i32,
    },
    /// The first process of the command has ended and is reaped.
    Exited {
        /// Which command.
        exec: u32,
        /// Wait status (wait(2)).
        status: i32,
    },
}
