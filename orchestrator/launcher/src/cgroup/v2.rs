//! Version 2: one tree, of which only what is delegated to orch is used.
//!
//! A process may only be cloned into a group (`CLONE_INTO_CGROUP`) by somebody
//! who may write to it and to the common ancestor, and who sees both from its
//! cgroup namespace. So the guest lives in `orch/<container>/guest`, sees
//! `orch/<container>` as its root, and the lease's PID 1 owns the two
//! `cgroup.procs` files. No task ever sees them: nothing mounts the tree inside.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use orch_wire::delegation::{self, MARKS, Seen};
use orch_wire::launch::{CgroupLimits, CgroupUsage, Failure};
use rustix::fs::{Gid, Mode, OFlags, Uid, chown, getxattr, open};

use super::{
    Joined, NAME, block_devices, keyed, kill, leaf, make, may_use, number, or_missing, remove,
    remove_tree, write,
};
use crate::failure::During;
use crate::holder;
use crate::rootless::Privilege;
use crate::syscall::check;

const CONTROLLERS: &[&str] = &["memory", "pids", "cpu", "io"];
/// `CLONE_INTO_CGROUP`, clone(2).
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// The part of the host's tree that is used.
pub struct Tree {
    /// Highest group that is touched.
    root: PathBuf,
}

/// What the first process of a container is put into.
pub struct Nest {
    /// Directory of the group.
    pub group: OwnedFd,
    /// Cgroup namespace whose root is the container's group.
    pub namespace: OwnedFd,
}

impl Tree {
    /// Finds the group that is delegated to this process, or the highest that it
    /// may use where nothing is marked as delegated.
    pub fn find(own: &str, mounts: &str, privilege: Privilege) -> Option<Self> {
        delegation::choose(own, mounts, |group| look(group, privilege)).map(|root| Self { root })
    }

    pub fn base(&self) -> PathBuf {
        self.root.join(NAME)
    }

    pub fn group(&self, id: &str, exec: u32) -> PathBuf {
        self.base().join(id).join(exec.to_string())
    }

    pub fn prepare(&self, id: &str, lease_uid: u32) -> Result<Nest, Failure> {
        let container = self.base().join(id);
        let guest = container.join("guest");
        make(&guest).during(|| format!("make control group {}", guest.display()))?;
        let namespace = namespace(&container)
            .during(|| format!("make a cgroup namespace at {}", container.display()))?;
        self.hand_on()?;
        for parent in [&self.base(), &container] {
            enable(parent)?;
        }
        give(&container, lease_uid)?;
        let group = directory(&guest).during(|| format!("open {}", guest.display()))?;
        Ok(Nest { group, namespace })
    }

    /// Hands the controllers of the delegated group on, and has it empty for that.
    fn hand_on(&self) -> Result<(), Failure> {
        match enable(&self.root) {
            // The latter where somebody has made it the root of a threaded subtree.
            Err(e) if matches!(e.errno, Some(libc::EBUSY | libc::EOPNOTSUPP)) => {
                leaf::evacuate(&self.root)
                    .during(|| format!("empty control group {}", self.root.display()))?;
                enable(&self.root)
            }
            other => other,
        }
    }

    pub fn create(
        &self,
        id: &str,
        exec: u32,
        lease_uid: u32,
        limits: &CgroupLimits,
    ) -> Result<Joined, Failure> {
        let group = self.group(id, exec);
        make(&group).during(|| format!("make control group {}", group.display()))?;
        give(&group, lease_uid)?;
        let missing = limit(&group, limits)?;
        let fd = directory(&group).during(|| format!("open {}", group.display()))?;
        Ok(Joined {
            fds: vec![fd],
            missing,
        })
    }

    pub fn usage(&self, id: &str, exec: u32) -> CgroupUsage {
        let group = self.group(id, exec);
        let file = |name: &str| group.join(name);
        let io = std::fs::read_to_string(file("io.stat")).ok();
        let sum = |key: &str| io.as_deref().map(|text| io_sum(text, key));
        CgroupUsage {
            cpu_us: keyed(&file("cpu.stat"), "usage_usec"),
            memory_peak: number(&file("memory.peak")),
            memory_hits: keyed(&file("memory.events"), "max"),
            oom_kills: keyed(&file("memory.events"), "oom_kill"),
            pids_peak: number(&file("pids.peak")),
            pids_hits: keyed(&file("pids.events"), "max"),
            cpu_throttled: keyed(&file("cpu.stat"), "nr_throttled"),
            io_read: sum("rbytes"),
            io_write: sum("wbytes"),
        }
    }

    /// Whether a process is in the group or in one below it.
    pub fn is_populated(&self, id: &str, exec: u32) -> bool {
        keyed(&self.group(id, exec).join("cgroup.events"), "populated") == Some(1)
    }

    pub fn kill(&self, id: &str, exec: u32) -> bool {
        kill_tree(&self.group(id, exec))
    }

    /// The execs of a container and its guest.
    pub fn kill_all(&self, id: &str) -> bool {
        kill_tree(&self.base().join(id))
    }

    pub fn remove(&self, id: &str, exec: u32) -> bool {
        remove_tree(&self.group(id, exec)).is_empty()
    }

    pub fn remove_all(&self, id: &str) -> Vec<String> {
        let left = remove_tree(&self.base().join(id));
        // Not empty where another container is there; then it stays.
        remove(&self.base());
        left
    }
}

/// Takes the whole tree at once (Linux 5.14); what is left is waited for.
fn kill_tree(group: &Path) -> bool {
    let _ = std::fs::write(group.join("cgroup.kill"), "1");
    kill::until_empty(group)
}

/// A cgroup namespace whose root is `container`: made by a child that is cloned
/// into that group and gone again before any controller is switched on in it.
fn namespace(container: &Path) -> io::Result<OwnedFd> {
    let group = directory(container)?;
    holder::hold(|| fork_into(&group), "cgroup", |_| Ok(()))
}

/// fork(2) whose child starts in this group and in a cgroup namespace that has
/// the group as its root.
fn fork_into(group: &OwnedFd) -> io::Result<i32> {
    clone_into(group, u64::try_from(libc::CLONE_NEWCGROUP).unwrap_or(0))
}

/// fork(2) whose child starts in this group.
pub fn clone_into(group: &OwnedFd, flags: u64) -> io::Result<i32> {
    // SAFETY: `clone_args` is plain numbers, for which zero means "not given".
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.flags = flags | CLONE_INTO_CGROUP;
    args.exit_signal = u64::try_from(libc::SIGCHLD).unwrap_or(0);
    args.cgroup = u64::try_from(group.as_raw_fd()).unwrap_or(0);
    // SAFETY: without CLONE_VM and with no stack this is a plain fork of a
    // single-threaded process.
    let pid = check(unsafe {
        libc::syscall(
            libc::SYS_clone3,
            &raw const args,
            size_of::<libc::clone_args>(),
        )
    })?;
    i32::try_from(pid).map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))
}

fn directory(path: &Path) -> io::Result<OwnedFd> {
    Ok(open(
        path,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?)
}

fn look(group: &Path, privilege: Privilege) -> Seen {
    let ours = match privilege {
        Privilege::Host => {
            let us = rustix::process::geteuid().as_raw();
            std::fs::metadata(group).is_ok_and(|meta| meta.uid() == us)
        }
        // What belongs to the caller has the id of the task here, and what does not
        // has an id that root of this namespace is no root for.
        Privilege::Namespace => may_use(group) && may_use(&group.join("cgroup.procs")),
    };
    let marked = MARKS.iter().any(|mark| {
        let mut value = [0; 2];
        // Not there, not to be read, or longer: none of them is a mark.
        getxattr(group, *mark, &mut value).is_ok_and(|length| value[..length] == *b"1")
    });
    Seen { ours, marked }
}

/// Switches on what there is. What there is not is missed by the limit that needs
/// it, and by nothing else.
fn enable(group: &Path) -> Result<(), Failure> {
    let read = |name: &str| {
        let file = group.join(name);
        std::fs::read_to_string(&file).during(|| format!("read {}", file.display()))
    };
    let on = read("cgroup.subtree_control")?;
    if wanted(CONTROLLERS.join(" ").as_str(), &on).next().is_none() {
        return Ok(());
    }
    let there = read("cgroup.controllers")?;
    let more: Vec<&str> = wanted(&there, &on).collect();
    if more.is_empty() {
        return Ok(());
    }
    // All in one write: with only `cpu` or `pids` on, a group that has processes
    // becomes the root of a threaded subtree, which is of no use here.
    let value: Vec<String> = more.iter().map(|name| format!("+{name}")).collect();
    let file = group.join("cgroup.subtree_control");
    write(&file, &value.join(" ")).during(|| {
        let (more, group) = (more.join(", "), group.display());
        format!("switch on {more} in control group {group}")
    })
}

/// Controllers that are used, are there and are not on yet.
fn wanted<'a>(there: &'a str, on: &'a str) -> impl Iterator<Item = &'a str> {
    there
        .split_whitespace()
        .filter(|name| CONTROLLERS.contains(name))
        .filter(|name| !on.split_whitespace().any(|other| other == *name))
}

fn give(group: &Path, uid: u32) -> Result<(), Failure> {
    let file = group.join("cgroup.procs");
    chown(&file, Some(Uid::from_raw(uid)), None::<Gid>)
        .during(|| format!("hand over {}", file.display()))
}

/// Sets every ceiling; one whose controller is missing is an error, never
/// "unlimited" (H18).
fn limit(group: &Path, limits: &CgroupLimits) -> Result<Vec<String>, Failure> {
    let set = |controller: &str, key: &str, value: String| {
        let path = group.join(format!("{controller}.{key}"));
        match write(&path, &value) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                Err(io::Error::from_raw_os_error(libc::ENODEV))
                    .during(|| format!("find the {controller} controller"))
            }
            other => other.during(|| format!("write {value} to {}", path.display())),
        }
    };
    let mut missing = Vec::new();
    if let Some(bytes) = limits.memory {
        let done = set("memory", "max", bytes.to_string())
            .and_then(|()| set("memory", "oom.group", "1".to_owned()));
        or_missing(done, "memory", limits, &mut missing)?;
        match set("memory", "swap.max", "0".to_owned()) {
            // A kernel without swap accounting; harmless where there is no swap.
            Err(e) if e.errno == Some(libc::ENODEV) => {
                if !missing.iter().any(|name| name == "memory") {
                    missing.push("swap".to_owned());
                }
            }
            other => other?,
        }
    }
    if let Some(count) = limits.pids {
        let done = set("pids", "max", count.to_string());
        or_missing(done, "processes", limits, &mut missing)?;
    }
    if let Some(milli) = limits.cpu_milli {
        let done = set("cpu", "max", format!("{} 100000", milli * 100));
        or_missing(done, "cpus", limits, &mut missing)?;
    }
    for (rate, key) in [(limits.read_bps, "rbps"), (limits.write_bps, "wbps")] {
        let Some(rate) = rate else { continue };
        let devices = block_devices();
        if devices.is_empty() {
            missing.push("io (no block device to be seen)".to_owned());
        }
        for device in devices {
            let done = set("io", "max", format!("{device} {key}={rate}"));
            or_missing(done, "io", limits, &mut missing)?;
        }
    }
    Ok(missing)
}

/// Sum of one key over the `major:minor key=value…` lines of `io.stat`.
fn io_sum(text: &str, key: &str) -> u64 {
    text.split_whitespace()
        .filter_map(|field| field.strip_prefix(key)?.strip_prefix('='))
        .filter_map(|value| value.parse::<u64>().ok())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_controller_that_is_not_there_is_not_switched_on() {
        let there = "cpuset cpu memory hugetlb pids";
        let to_do: Vec<_> = wanted(there, "cpu").collect();
        assert_eq!(to_do, ["memory", "pids"]);
    }

    #[test]
    fn a_limit_without_its_controller_is_an_error_by_name_h18() {
        let group = std::env::temp_dir();
        let limits = CgroupLimits {
            memory: None,
            pids: Some(1),
            cpu_milli: None,
            read_bps: None,
            write_bps: None,
            optional: false,
        };
        let failure = limit(&group, &limits).unwrap_err();
        assert_eq!(failure.step, "find the pids controller");
        assert_eq!(failure.errno, Some(libc::ENODEV));
        assert!(!group.join("pids.max").exists());
    }

    #[test]
    fn io_counters_are_summed_over_devices() {
        let text = "8:0 rbytes=5 wbytes=7 rios=1\n8:16 rbytes=1 wbytes=0 rios=1\n";
        assert_eq!((io_sum(text, "rbytes"), io_sum(text, "wbytes")), (6, 7));
    }
}
