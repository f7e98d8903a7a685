//! Version 1: one hierarchy for each controller, or for a few together.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use orch_wire::launch::{CgroupLimits, CgroupUsage, Failure};
use rustix::fs::{Gid, Mode, OFlags, Uid, chown, open};

use super::{
    Joined, NAME, block_devices, keyed, kill, make, may_use, number, or_missing, remove,
    remove_tree, write,
};
use crate::failure::During;
use crate::rootless::Privilege;
use crate::syscall::check;

/// Controllers that are used where they are there.
const WANTED: &[&str] = &["memory", "pids", "cpu", "cpuacct", "blkio", "freezer"];
/// Length of one period of the CPU quota, microseconds.
const PERIOD_US: u64 = 100_000;

struct Hierarchy {
    controllers: Vec<String>,
    /// The launcher's own group, as a directory.
    own: PathBuf,
}

/// All hierarchies that are used.
pub struct Hierarchies {
    all: Vec<Hierarchy>,
    privilege: Privilege,
}

impl Hierarchies {
    /// Reads proc_pid_cgroup(5) and proc_pid_mountinfo(5); `None` where no
    /// controller is on version 1.
    pub fn parse(own: &str, mounts: &str) -> Option<Self> {
        let mut found = Vec::new();
        for line in own.lines() {
            let mut fields = line.splitn(3, ':').skip(1);
            let (Some(names), Some(path)) = (fields.next(), fields.next()) else {
                continue;
            };
            let controllers: Vec<String> = names
                .split(',')
                .filter(|name| WANTED.contains(name))
                .map(str::to_owned)
                .collect();
            let Some(first) = controllers.first() else {
                continue;
            };
            if let Some((point, root)) = mount_point(mounts, first) {
                // Inside a container the mount may start below the real root.
                let below = Path::new(path)
                    .strip_prefix(&root)
                    .unwrap_or_else(|_| Path::new(path.trim_start_matches('/')));
                found.push(Hierarchy {
                    controllers,
                    own: point.join(below),
                });
            }
        }
        (!found.is_empty()).then_some(Self {
            all: found,
            privilege: Privilege::Host,
        })
    }

    /// Those in which this user may make groups.
    pub fn delegated(mut self) -> Option<Self> {
        self.all.retain(|hierarchy| may_use(&hierarchy.own));
        self.privilege = Privilege::Namespace;
        (!self.all.is_empty()).then_some(self)
    }

    fn with(&self, controller: &str) -> Option<&Hierarchy> {
        self.all
            .iter()
            .find(|h| h.controllers.iter().any(|name| name == controller))
    }

    fn path(&self, controller: &str, id: &str, exec: u32, file: &str) -> Option<PathBuf> {
        Some(self.with(controller)?.group(id, exec).join(file))
    }

    /// Directory of all containers, in each hierarchy.
    pub fn bases(&self) -> Vec<PathBuf> {
        self.all.iter().map(|h| h.own.join(NAME)).collect()
    }

    /// The group in one hierarchy; a command joins all of them.
    pub fn first(&self, id: &str, exec: u32) -> Option<PathBuf> {
        self.all.first().map(|h| h.group(id, exec))
    }

    pub fn create(
        &self,
        id: &str,
        exec: u32,
        lease_uid: u32,
        limits: &CgroupLimits,
    ) -> Result<Joined, Failure> {
        let mut fds = Vec::new();
        for hierarchy in &self.all {
            let group = hierarchy.group(id, exec);
            make(&group).during(|| format!("make control group {}", group.display()))?;
            fds.push(
                tasks(&group, lease_uid, self.privilege)
                    .during(|| format!("open {}", group.display()))?,
            );
        }
        let missing = self.limit(id, exec, limits)?;
        Ok(Joined { fds, missing })
    }

    /// Sets every ceiling; one whose controller is missing is an error, never
    /// "unlimited" (H18).
    fn limit(&self, id: &str, exec: u32, limits: &CgroupLimits) -> Result<Vec<String>, Failure> {
        let set = |controller: &str, file: &str, value: String| {
            let path = self
                .path(controller, id, exec, file)
                .ok_or(io::Error::from_raw_os_error(libc::ENODEV))
                .during(|| format!("find the {controller} controller"))?;
            write(&path, &value).during(|| format!("write {value} to {}", path.display()))
        };
        let mut missing = Vec::new();
        if let Some(bytes) = limits.memory {
            let done = set("memory", "memory.limit_in_bytes", bytes.to_string());
            or_missing(done, "memory", limits, &mut missing)?;
            match set("memory", "memory.memsw.limit_in_bytes", bytes.to_string()) {
                // A kernel without swap accounting; harmless where there is no swap.
                Err(e) if e.errno == Some(libc::ENOENT) => missing.push("swap".to_owned()),
                _ if missing.iter().any(|name| name == "memory") => {}
                other => other?,
            }
        }
        if let Some(count) = limits.pids {
            let done = set("pids", "pids.max", count.to_string());
            or_missing(done, "processes", limits, &mut missing)?;
        }
        if let Some(milli) = limits.cpu_milli {
            let quota = (milli * PERIOD_US / 1000).to_string();
            let done = set("cpu", "cpu.cfs_period_us", PERIOD_US.to_string())
                .and_then(|()| set("cpu", "cpu.cfs_quota_us", quota));
            or_missing(done, "cpus", limits, &mut missing)?;
        }
        for (rate, file) in [
            (limits.read_bps, "blkio.throttle.read_bps_device"),
            (limits.write_bps, "blkio.throttle.write_bps_device"),
        ] {
            let Some(rate) = rate else { continue };
            let devices = block_devices();
            if devices.is_empty() {
                missing.push("io (no block device to be seen)".to_owned());
            }
            for device in devices {
                let done = set("blkio", file, format!("{device} {rate}"));
                or_missing(done, "io", limits, &mut missing)?;
            }
        }
        if limits.write_bps.is_some() {
            // Buffered writes are not charged to their group (design §1).
            missing.push("io_write of buffered writes".to_owned());
        }
        Ok(missing)
    }

    pub fn usage(&self, id: &str, exec: u32) -> CgroupUsage {
        let file = |controller: &str, name: &str| self.path(controller, id, exec, name);
        let plain = |controller: &str, name: &str| number(&file(controller, name)?);
        let under = |controller: &str, name: &str, key: &str| keyed(&file(controller, name)?, key);
        let (io_read, io_write) = file("blkio", "blkio.throttle.io_service_bytes_recursive")
            .and_then(|path| std::fs::read_to_string(path).ok())
            .map_or((None, None), |text| {
                (Some(io(&text, "Read")), Some(io(&text, "Write")))
            });
        CgroupUsage {
            cpu_us: plain("cpuacct", "cpuacct.usage").map(|ns| ns / 1000),
            memory_peak: plain("memory", "memory.memsw.max_usage_in_bytes")
                .or_else(|| plain("memory", "memory.max_usage_in_bytes")),
            // Recent kernels leave `failcnt` at 0 where a process was killed for it.
            memory_hits: plain("memory", "memory.memsw.failcnt")
                .max(plain("memory", "memory.failcnt"))
                .max(under("memory", "memory.oom_control", "oom_kill")),
            oom_kills: under("memory", "memory.oom_control", "oom_kill"),
            pids_peak: plain("pids", "pids.peak"),
            pids_hits: under("pids", "pids.events", "max"),
            cpu_throttled: under("cpu", "cpu.stat", "nr_throttled"),
            io_read,
            io_write,
        }
    }

    /// Freezes the group so that nothing in it can fork while it is killed, and
    /// always thaws it again, also after an error (H11).
    pub fn kill(&self, id: &str, exec: u32) -> bool {
        let freezer = self.path("freezer", id, exec, "freezer.state");
        if let Some(pids) = self.path("pids", id, exec, "pids.max") {
            let _ = std::fs::write(pids, "0");
        }
        let Some(group) = self.first(id, exec) else {
            return true;
        };
        if let Some(state) = &freezer {
            let _ = std::fs::write(state, "FROZEN");
            kill::signal_all(&group);
            let _ = std::fs::write(state, "THAWED");
        }
        kill::until_empty(&group)
    }

    pub fn remove(&self, id: &str, exec: u32) -> bool {
        self.all.iter().fold(true, |all, h| {
            let left = remove_tree(&h.group(id, exec));
            all & left.is_empty()
        })
    }

    pub fn remove_all(&self, id: &str, execs: &[u32]) -> Vec<String> {
        let mut left = Vec::new();
        for hierarchy in &self.all {
            let base = hierarchy.own.join(NAME);
            let container = base.join(id);
            for exec in execs {
                remove(&container.join(exec.to_string()));
            }
            left.extend(remove_tree(&container));
            // Not empty where another container is there; then it stays.
            remove(&base);
        }
        left
    }
}

impl Hierarchy {
    fn group(&self, id: &str, exec: u32) -> PathBuf {
        self.own.join(NAME).join(id).join(exec.to_string())
    }
}

/// Where writing `0` moves the writing thread alone; a process that has only one
/// does not wait for a grace period there, as it would in `cgroup.procs`.
///
/// Whoever opened the file must be root of the host, or have the user id of whom it
/// moves: here that of the lease's PID 1, whose child a command is at that moment.
fn tasks(group: &Path, lease_uid: u32, privilege: Privilege) -> io::Result<OwnedFd> {
    let file = group.join("tasks");
    let opened = || open(&file, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty());
    if privilege == Privilege::Host {
        return Ok(opened()?);
    }
    chown(&file, Some(Uid::from_raw(lease_uid)), None::<Gid>)?;
    // SAFETY: plain numbers; the saved id stays 0, so that the way back is open.
    unsafe {
        check(libc::syscall(libc::SYS_setresuid, -1, lease_uid, -1))?;
        let opened = opened();
        check(libc::syscall(libc::SYS_setresuid, -1, 0, -1))?;
        Ok(opened?)
    }
}

/// Mount point of the hierarchy with this controller, and its root.
fn mount_point(mounts: &str, controller: &str) -> Option<(PathBuf, PathBuf)> {
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut after = after.split(' ');
        let (kind, options) = (after.next()?, after.nth(1)?);
        let here = kind == "cgroup" && options.split(',').any(|option| option == controller);
        let mut before = before.split(' ').skip(3);
        let (root, point) = (before.next()?, before.next()?);
        here.then(|| (PathBuf::from(point), PathBuf::from(root)))
    })
}

/// Sum of `<device> Read|Write <bytes>` lines.
fn io(text: &str, direction: &str) -> u64 {
    text.lines()
        .filter_map(|line| {
            let mut fields = line.split(' ').skip(1);
            (fields.next()? == direction)
                .then(|| fields.next()?.parse::<u64>().ok())
                .flatten()
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
30 23 0:26 / /sys/fs/cgroup ro - tmpfs tmpfs ro
31 30 0:27 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct
32 30 0:28 /docker/x /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
33 30 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw";

    #[test]
    fn hierarchies_are_found_with_the_own_group_below_their_root() {
        let own = "4:memory:/docker/x/y\n3:cpu,cpuacct:/\n2:devices:/\n0::/\n";
        let found = Hierarchies::parse(own, MOUNTS).unwrap();
        let own_of = |name| found.with(name).map(|h| h.own.clone());
        assert_eq!(own_of("memory"), Some("/sys/fs/cgroup/memory/y".into()));
        assert_eq!(
            own_of("cpuacct"),
            Some("/sys/fs/cgroup/cpu,cpuacct/".into())
        );
        assert_eq!(own_of("devices"), None);
        assert!(Hierarchies::parse("0::/a\n", MOUNTS).is_none());
    }

    #[test]
    fn io_counters_are_summed_over_devices() {
        let text = "8:0 Read 10\n8:0 Write 3\n8:16 Read 5\n8:16 Total 9\nTotal 18\n";
        assert_eq!((io(text, "Read"), io(text, "Write")), (15, 3));
    }
}
