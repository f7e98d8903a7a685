//! Daemon ↔ launcher.

use serde::{Deserialize, Serialize};

use crate::rootfs::{Bytes, Entry};

/// Root of a container while it is being made, in the worker's own small world.
pub const ROOTFS: &str = "/rootfs";

/// Where the worker of a launcher that is not root has the user namespace of the
/// container, for the `path` of it in the runtime configuration.
pub const USER_NAMESPACE_FD: i32 = 99;

/// Ceilings that are set on a control group. Absent means: not limited here.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupLimits {
    /// Memory with swap, bytes.
    pub memory: Option<u64>,
    /// Processes and threads.
    pub pids: Option<u64>,
    /// CPU bandwidth, thousandths of one CPU.
    pub cpu_milli: Option<u64>,
    /// Reads, bytes a second, of every block device.
    pub read_bps: Option<u64>,
    /// Writes, bytes a second, of every block device.
    pub write_bps: Option<u64>,
    /// Whether a ceiling that the host cannot keep is told (`missing`) and not an
    /// error: only where orch is not root, and never in strict (H18, design §3.6).
    pub optional: bool,
}

/// Makes one container.
///
/// Descriptors: the guest's end of its control socket, the lock on the uid range,
/// the sealed guest, then the sources of the binds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Create {
    /// Unguessable id, `[0-9a-f]+`.
    pub id: String,
    /// Number of the range whose lock came with this, for the name of the group.
    pub number: u32,
    /// First id of the container's range, as the launcher sees ids.
    pub host_id: u32,
    /// How many ids.
    pub ids: u32,
    /// OCI runtime configuration (`config.json`) for the container itself.
    pub config: Bytes,
    /// What the root file system is put together from, in order.
    pub entries: Vec<Entry>,
    /// Bytes that the root file system itself may take.
    pub root_bytes: u64,
    /// Files and directories of the root file system itself.
    pub root_inodes: u64,
    /// System-call filter of the guest, as the kernel takes it (seccomp(2)).
    pub guest_filter: Bytes,
    /// First exec, whose control group is made while the container is: then
    /// [`Reply::Cgroup`] comes before [`Reply::Created`].
    pub first: Option<(u32, CgroupLimits)>,
}

/// What the daemon asks of the launcher.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// The ids of the launcher's user namespace are mapped, it may become root of
    /// it; answered by [`Reply::Entered`]. Only after [`Reply::Unshared`].
    Enter {
        /// File of the locks on ranges ([`crate::range`]).
        locks: Bytes,
    },
    /// Make a container.
    Create(Box<Create>),
    /// Make a control group for one exec; answered by [`Reply::Cgroup`].
    Cgroup {
        /// Container.
        id: String,
        /// Exec, unique within the container.
        exec: u32,
        /// Ceilings.
        limits: CgroupLimits,
    },
    /// Read the counters of an exec without ending it.
    Usage {
        /// Container.
        id: String,
        /// Exec.
        exec: u32,
    },
    /// Kill every process of an exec, read its counters, remove its group.
    End {
        /// Container.
        id: String,
        /// Exec.
        exec: u32,
    },
    /// Kill the container and everything of it, and remove what it had.
    Destroy {
        /// Container.
        id: String,
    },
}

/// Counters of one control group; absent where this kernel does not count.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupUsage {
    /// CPU time, microseconds.
    pub cpu_us: Option<u64>,
    /// Peak memory, bytes.
    pub memory_peak: Option<u64>,
    /// Times that an allocation hit the ceiling.
    pub memory_hits: Option<u64>,
    /// Processes killed for memory.
    pub oom_kills: Option<u64>,
    /// Peak number of processes and threads.
    pub pids_peak: Option<u64>,
    /// Forks refused by the ceiling.
    pub pids_hits: Option<u64>,
    /// Periods in which the CPU quota ran out.
    pub cpu_throttled: Option<u64>,
    /// Block-device bytes read.
    pub io_read: Option<u64>,
    /// Block-device bytes written.
    pub io_write: Option<u64>,
}

/// What went wrong, as far as the launcher can tell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What was being done.
    pub step: String,
    /// The kernel's or the runtime's words.
    pub cause: String,
    /// errno, where there is one.
    pub errno: Option<i32>,
}

/// What the launcher answers, in order: one reply to each request, and before that
/// of a [`Create`] with a first exec one for the control group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// The launcher is not root and has made a user namespace, whose ids somebody
    /// outside has to map (newuidmap(1)). Said once, unasked, before anything else.
    Unshared,
    /// It is root of that namespace.
    Entered,
    /// The container runs. Descriptor: pidfd of its guest.
    Created {
        /// Process id of the guest on the host.
        pid: i32,
        /// How long each stage took: name, microseconds.
        stages: Vec<(String, u64)>,
    },
    /// The control group is there. Descriptors: what a process writes `0` to in
    /// order to join (cgroup v1), or the directory (cgroup v2).
    Cgroup {
        /// Whether this is cgroup v2.
        unified: bool,
        /// Limits that this host cannot keep, by name.
        missing: Vec<String>,
    },
    /// Counters as they stand.
    Usage(CgroupUsage),
    /// Every process of the exec is gone.
    Ended {
        /// Counters at the end.
        usage: CgroupUsage,
        /// Whether the group could be removed.
        removed: bool,
    },
    /// Nothing of the container is left.
    Destroyed {
        /// Counters of each exec that had not ended, at its end.
        usage: Vec<(u32, CgroupUsage)>,
        /// What could not be removed, in words.
        left: Vec<String>,
    },
    /// The request failed; nothing of it is left behind.
    Failed(Failure),
}
