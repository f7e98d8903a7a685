//! Control groups of execs: `<group>/orch/<container>/<exec>`, where the group is the
//! launcher's own on version 1 and the one that is delegated to it on version 2.
//!
//! Made, limited, counted and removed here and not by libcontainer, and joined
//! without `cgroup.procs`, whose writes wait for a grace period (design §1, §4).

mod absent;
mod kill;
mod leaf;
mod v1;
mod v2;

use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use orch_wire::launch::{CgroupLimits, CgroupUsage, Failure};

use crate::failure::During;
use crate::rootless::Privilege;

/// fork(2) whose child starts in this group (version 2).
///
/// # Errors
/// What clone3(2) says.
pub fn clone_into(group: &OwnedFd) -> io::Result<i32> {
    v2::clone_into(group, 0)
}

/// Directory below which all groups of this program lie.
const NAME: &str = "orch";

/// The hierarchies of this host.
pub enum Cgroups {
    /// Version 1, also where version 2 is mounted beside it without controllers.
    V1(v1::Hierarchies),
    /// Version 2.
    V2(v2::Tree),
    /// None that this user may use. Only where orch is not root.
    Absent,
}

/// What a new group comes with.
pub struct Joined {
    /// What a command is given in order to get in.
    pub fds: Vec<OwnedFd>,
    /// Limits that this host cannot keep, by name.
    pub missing: Vec<String>,
}

impl Cgroups {
    /// Looks at what is mounted.
    ///
    /// # Errors
    /// No control groups at all.
    pub fn discover(privilege: Privilege) -> Result<Self, Failure> {
        let during = || "look for control groups".to_owned();
        let own = std::fs::read_to_string("/proc/self/cgroup").during(during)?;
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").during(during)?;
        if let Some(found) = v1::Hierarchies::parse(&own, &mounts) {
            return Ok(match privilege {
                Privilege::Host => Self::V1(found),
                Privilege::Namespace => found.delegated().map_or(Self::Absent, Self::V1),
            });
        }
        match (v2::Tree::find(&own, &mounts, privilege), privilege) {
            (Some(found), _) => Ok(Self::V2(found)),
            (None, Privilege::Namespace) => Ok(Self::Absent),
            (None, Privilege::Host) => Err(io::Error::from_raw_os_error(libc::EACCES))
                .during(|| "find a control group that this user may use".to_owned()),
        }
    }

    /// Whether version 2 is used.
    pub fn unified(&self) -> bool {
        matches!(self, Self::V2(_))
    }

    /// What a container needs before its first process is made (version 2 only).
    ///
    /// # Errors
    /// The step and errno.
    pub fn prepare(&self, id: &str, lease_uid: u32) -> Result<Option<v2::Nest>, Failure> {
        match self {
            Self::V1(_) | Self::Absent => Ok(None),
            Self::V2(tree) => tree.prepare(id, lease_uid).map(Some),
        }
    }

    /// Makes the group of one exec and sets its ceilings.
    ///
    /// # Errors
    /// The step and errno; nothing is left behind.
    pub fn create(
        &self,
        id: &str,
        exec: u32,
        lease_uid: u32,
        limits: &CgroupLimits,
    ) -> Result<Joined, Failure> {
        let made = match self {
            Self::V1(found) => found.create(id, exec, lease_uid, limits),
            Self::V2(tree) => tree.create(id, exec, lease_uid, limits),
            Self::Absent => absent::create(limits),
        };
        if made.is_err() {
            self.remove(id, exec);
        }
        made
    }

    /// Reads the counters of one exec.
    pub fn usage(&self, id: &str, exec: u32) -> CgroupUsage {
        match self {
            Self::V1(found) => found.usage(id, exec),
            Self::V2(tree) => tree.usage(id, exec),
            Self::Absent => CgroupUsage::default(),
        }
    }

    /// Kills every process of one exec; false when one is left at the deadline, or
    /// where no group tells which they are.
    pub fn kill(&self, id: &str, exec: u32) -> bool {
        match self {
            Self::V1(found) => found.kill(id, exec),
            Self::V2(tree) => tree.kill(id, exec),
            Self::Absent => false,
        }
    }

    /// Whether no process is left in the group of one exec, or below it.
    pub fn is_empty(&self, id: &str, exec: u32) -> bool {
        match self {
            Self::V1(found) => found
                .first(id, exec)
                .is_none_or(|group| kill::pids(&group).is_empty()),
            Self::V2(tree) => !tree.is_populated(id, exec),
            Self::Absent => true,
        }
    }

    /// Removes the group of one exec; false when it is still there.
    pub fn remove(&self, id: &str, exec: u32) -> bool {
        match self {
            Self::V1(found) => found.remove(id, exec),
            Self::V2(tree) => tree.remove(id, exec),
            Self::Absent => true,
        }
    }

    /// Names of all containers that have groups here.
    pub fn containers(&self) -> Vec<String> {
        self.directories_below(None)
    }

    fn directories_below(&self, container: Option<&str>) -> Vec<String> {
        let bases = match self {
            Self::V1(found) => found.bases(),
            Self::V2(tree) => vec![tree.base()],
            Self::Absent => Vec::new(),
        };
        let mut names: Vec<String> = bases
            .iter()
            .flat_map(|base| directories(&base.join(container.unwrap_or_default())))
            .collect();
        names.sort();
        names.dedup();
        names
    }

    /// Kills every process of a container that nobody owns any more.
    pub fn kill_all(&self, id: &str) {
        if let Self::V2(tree) = self {
            tree.kill_all(id);
            return;
        }
        let names = self.directories_below(Some(id));
        for exec in names.iter().filter_map(|name| name.parse().ok()) {
            self.kill(id, exec);
        }
    }

    /// Removes what the container had; gives what is left, as paths.
    pub fn remove_all(&self, id: &str, execs: &[u32]) -> Vec<String> {
        match self {
            Self::V1(found) => found.remove_all(id, execs),
            Self::V2(tree) => tree.remove_all(id),
            Self::Absent => Vec::new(),
        }
    }
}

fn directories(path: &Path) -> Vec<String> {
    std::fs::read_dir(path)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
}

/// Writes a file of a group, and makes none: kernfs says EACCES to the attempt,
/// which would hide that the file is not there.
fn write(path: &Path, value: &str) -> io::Result<()> {
    let mut file = std::fs::OpenOptions::new().write(true).open(path)?;
    file.write_all(value.as_bytes())
}

/// Whether this user may make groups in a directory (for the caller's own id, which
/// the launcher has also where it is root of a namespace).
fn may_use(path: &Path) -> bool {
    rustix::fs::accessat(
        rustix::fs::CWD,
        path,
        rustix::fs::Access::WRITE_OK,
        rustix::fs::AtFlags::EACCESS,
    )
    .is_ok()
}

/// What an optional ceiling does where the host cannot keep it.
fn or_missing(
    set: Result<(), Failure>,
    name: &str,
    limits: &CgroupLimits,
    missing: &mut Vec<String>,
) -> Result<(), Failure> {
    match set {
        Err(e) if limits.optional && e.errno == Some(libc::ENODEV) => {
            missing.push(name.to_owned());
            Ok(())
        }
        other => other,
    }
}

/// Number in a file that holds nothing else.
fn number(path: &Path) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Number behind a key in a file of `key number` lines.
fn keyed(path: &Path, key: &str) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(' ')?;
        (name == key).then(|| value.trim().parse().ok()).flatten()
    })
}

/// `major:minor` of every whole block device of this host.
fn block_devices() -> Vec<String> {
    std::fs::read_dir("/sys/block")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| std::fs::read_to_string(entry.path().join("dev")).ok())
        .map(|dev| dev.trim().to_owned())
        .collect()
}

/// Removes one group's directory; it is gone already counts as removed.
fn remove(path: &Path) -> bool {
    match std::fs::remove_dir(path) {
        Ok(()) => true,
        Err(e) => e.kind() == io::ErrorKind::NotFound,
    }
}

/// Makes a group; its parents are made only where they are missing, which is
/// once in a long while for the upper ones.
fn make(path: &Path) -> io::Result<()> {
    match std::fs::create_dir(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            if let Some(parent) = path.parent() {
                make(parent)?;
            }
            // Another run may take the shared parent away in between.
            std::fs::create_dir_all(path)
        }
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

/// Removes every group below `path`, and `path`; gives what is left.
fn remove_tree(path: &Path) -> Vec<String> {
    let mut left = Vec::new();
    // Nearly always there is nothing below.
    if remove(path) {
        return left;
    }
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            left.extend(remove_tree(&entry.path()));
        }
    }
    if !remove(path) {
        left.push(path.display().to_string());
    }
    left
}
