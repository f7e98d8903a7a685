//! Control groups: what is mounted, and what is there below it.

use std::path::{Path, PathBuf};

use orch_engine::{delegation, filesystem};
use rustix::fs::{Access, access};

/// Numbers of the two file systems (`linux/magic.h`).
const MAGIC: [u32; 2] = [0x0027_e0eb, 0x6367_7270];

/// The hierarchies of this machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Groups(pub Vec<Hierarchy>);

/// One mounted hierarchy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hierarchy {
    /// Where.
    pub point: String,
    /// Whether this is version 2. Then the place is the group below which orch makes
    /// its own (docs/decisions/0013-delegated-subtrees.md).
    pub unified: bool,
    /// Version 2: whether no group on the way up belongs to this user.
    pub nobodys: bool,
    /// Its controllers.
    pub controllers: Vec<String>,
    /// Whether it can be seen there, and nothing else has been mounted over it.
    pub seen: bool,
    /// Whether groups can be made in it.
    pub writable: bool,
    /// Version 2: controllers that are switched on for groups below.
    pub switched_on: Vec<String>,
    /// Version 2: whether this is somebody's group with processes in it, and not
    /// the machine's root.
    pub crowded: bool,
    /// Whether a group of it has `pids.peak`; `None` where there is no group to look at.
    pub peak: Option<bool>,
    /// The same for `cgroup.kill`.
    pub kill: Option<bool>,
    /// Version 1: whether memory and swap are counted together.
    pub swap: bool,
}

impl Groups {
    /// Reads proc_pid_mountinfo(5) and looks at each place.
    pub fn read(mountinfo: &str) -> Self {
        let mut found = Self::parse(mountinfo);
        let legacy = found.legacy();
        let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        for hierarchy in &mut found.0 {
            if hierarchy.unified && !legacy {
                // Where the launcher would make its groups, not where it could not.
                match delegation::group() {
                    Some(group) => hierarchy.point = group.display().to_string(),
                    None => hierarchy.nobodys = true,
                }
            }
            if !hierarchy.unified {
                hierarchy.enter(&own);
            }
            hierarchy.look();
        }
        found
    }

    /// What mountinfo says. Controllers of version 2 stand elsewhere.
    pub fn parse(mountinfo: &str) -> Self {
        let mut found = Vec::new();
        for line in mountinfo.lines() {
            let Some((place, kind)) = line.split_once(" - ") else {
                continue;
            };
            let Some(point) = place.split(' ').nth(4) else {
                continue;
            };
            let mut kind = kind.split(' ');
            let hierarchy = Hierarchy {
                point: point.to_owned(),
                ..Hierarchy::default()
            };
            match (kind.next(), kind.nth(1)) {
                (Some("cgroup2"), _) => found.push(Hierarchy {
                    unified: true,
                    ..hierarchy
                }),
                (Some("cgroup"), Some(options)) => found.push(Hierarchy {
                    controllers: options
                        .split(',')
                        .filter(|word| is_controller(word))
                        .map(str::to_owned)
                        .collect(),
                    ..hierarchy
                }),
                _ => {}
            }
        }
        Self(found)
    }

    /// Whether a controller is on version 1, which then decides how limits are set.
    pub fn legacy(&self) -> bool {
        self.0
            .iter()
            .any(|hierarchy| !hierarchy.unified && !hierarchy.controllers.is_empty())
    }

    /// The hierarchy that has a controller.
    pub fn with(&self, controller: &str) -> Option<&Hierarchy> {
        self.0.iter().find(|hierarchy| hierarchy.has(controller))
    }
}

impl Hierarchy {
    /// Whether it has a controller.
    pub fn has(&self, controller: &str) -> bool {
        self.controllers.iter().any(|name| name == controller)
    }

    /// Goes to this process's own group, below which orch makes its groups: in a
    /// subtree that somebody has given away that is not the root (proc_pid_cgroup(5)).
    fn enter(&mut self, own: &str) {
        let path = own.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let (names, path) = (fields.next()?, fields.next()?);
            let here = names.split(',').any(|name| self.has(name));
            here.then(|| path.trim_start_matches('/'))
        });
        // Inside a container the mount may show that group as its root.
        let group = path.map(|path| Path::new(&self.point).join(path));
        if let Some(group) = group.filter(|group| group.is_dir()) {
            self.point = group
                .components()
                .collect::<PathBuf>()
                .display()
                .to_string();
        }
    }

    fn look(&mut self) {
        let point = Path::new(&self.point);
        self.seen = filesystem::handle(point)
            .and_then(|handle| filesystem::kind(&handle))
            .is_ok_and(|kind| MAGIC.contains(&kind.magic));
        if !self.seen {
            return;
        }
        self.writable = !self.nobodys && access(point, Access::WRITE_OK).is_ok();
        let words = |name: &str| -> Vec<String> {
            std::fs::read_to_string(point.join(name))
                .unwrap_or_default()
                .split_whitespace()
                .map(str::to_owned)
                .collect()
        };
        if self.unified {
            self.controllers = words("cgroup.controllers");
            self.switched_on = words("cgroup.subtree_control");
            // Only the root of the machine has no type (cgroups(7)).
            self.crowded = point.join("cgroup.type").exists() && !words("cgroup.procs").is_empty();
        }
        self.swap = point.join("memory.memsw.limit_in_bytes").exists();
        // The root of the machine has neither file; any group below it does.
        let group = if point.join("cgroup.type").exists() {
            Some(point.to_owned())
        } else {
            first_group(point)
        };
        if let Some(group) = group {
            self.peak = self.has("pids").then(|| group.join("pids.peak").exists());
            self.kill = Some(group.join("cgroup.kill").exists());
            // A group that has no pids.max has the controller switched off.
            if !group.join("pids.max").exists() {
                self.peak = None;
            }
        }
    }
}

fn first_group(point: &Path) -> Option<PathBuf> {
    std::fs::read_dir(point)
        .ok()?
        .flatten()
        .find(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
}

/// Words among the options of a v1 hierarchy that are no mount options of their
/// own and no name.
fn is_controller(word: &str) -> bool {
    !matches!(word, "rw" | "ro" | "xattr" | "clone_children" | "noprefix") && !word.contains('=')
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";

    #[test]
    fn mounts_of_both_versions_are_found() {
        let groups = Groups::parse(HYBRID);
        assert!(groups.legacy());
        let cpu = groups.with("cpu").unwrap();
        assert_eq!(cpu.point, "/sys/fs/cgroup/cpu");
        assert_eq!(cpu.controllers, ["cpu", "cpuacct"]);
        assert_eq!(groups.0.len(), 4);
        assert!(groups.0[2].controllers.is_empty() && groups.0[3].unified);
        let v2 = Groups::parse("31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n");
        assert!(!v2.legacy() && v2.0[0].unified);
    }
}
