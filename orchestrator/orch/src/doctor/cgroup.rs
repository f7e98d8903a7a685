//! Control groups: which hierarchy, which controllers, and swap.

use std::fs::read_to_string;
use std::path::Path;

use super::{Check, State};

/// Controllers without which a limit could not be kept.
const NEEDED: [&str; 3] = ["cpu", "memory", "pids"];

/// Version, controllers and whether swap can be limited.
pub fn checks() -> Vec<Check> {
    let read = |path: &str| read_to_string(path).unwrap_or_default();
    let mounts = read("/proc/self/mountinfo");
    let layout = Layout::of(&mounts, read);
    vec![
        layout.check(),
        swap(&layout, read("/proc/swaps").lines().count() > 1, |path| {
            Path::new(path).exists()
        }),
    ]
}

/// How control groups are mounted.
#[derive(Debug, PartialEq, Eq)]
struct Layout {
    /// Whether v2 is there and has the memory controller: v2 beside v1 is often
    /// there with none, or with the ones that v1 does not know.
    unified: bool,
    /// Whether there are hierarchies of version 1.
    legacy: bool,
    controllers: Vec<String>,
}

impl Layout {
    /// Read from mountinfo (proc_pid_mountinfo(5)) and, on v2, from
    /// `cgroup.controllers`. Where both versions are there, controllers that have a
    /// v1 hierarchy are not in v2.
    fn of(mountinfo: &str, read: impl Fn(&str) -> String) -> Self {
        let mut layout = Self {
            unified: false,
            legacy: false,
            controllers: Vec::new(),
        };
        for line in mountinfo.lines() {
            let Some((place, kind)) = line.split_once(" - ") else {
                continue;
            };
            let Some(point) = place.split(' ').nth(4) else {
                continue;
            };
            let mut kind = kind.split(' ');
            match (kind.next(), kind.nth(1)) {
                (Some("cgroup2"), _) => {
                    let offered = read(&format!("{point}/cgroup.controllers"));
                    layout.unified |= offered.split_whitespace().any(|word| word == "memory");
                    layout.add(offered.split_whitespace());
                }
                (Some("cgroup"), Some(options)) => {
                    layout.legacy = true;
                    layout.add(options.split(',').filter(|word| is_controller(word)));
                }
                _ => {}
            }
        }
        layout
    }

    fn add<'a>(&mut self, names: impl Iterator<Item = &'a str>) {
        for name in names {
            if !self.controllers.iter().any(|there| there == name) {
                self.controllers.push(name.to_owned());
            }
        }
    }

    fn has(&self, name: &str) -> bool {
        self.controllers.iter().any(|there| there == name)
    }

    fn check(&self) -> Check {
        let name = "control groups";
        let version = match (self.unified, self.legacy) {
            (true, false) => "v2",
            (true, true) => "v1 and v2",
            (false, _) => "v1",
        };
        let found = format!("{version}: {}", self.controllers.join(" "));
        let lacking: Vec<&str> = NEEDED.into_iter().filter(|name| !self.has(name)).collect();
        if !lacking.is_empty() {
            return Check::worse(
                State::Missing,
                name,
                format!("{found}; not there: {}", lacking.join(" ")),
                "nothing can be run: a limit that cannot be set is an error",
                "mount cgroup v2 on /sys/fs/cgroup with these controllers enabled",
            );
        }
        let mut costs = Vec::new();
        if self.legacy {
            costs.push("buffered writes do not count as block-device traffic");
            costs.push("the kernel kills for memory process by process");
        }
        if !self.has("io") && !self.has("blkio") {
            costs.push("profiles that limit block-device traffic are refused");
        }
        if costs.is_empty() {
            return Check::ok(name, found);
        }
        Check::worse(
            State::Weaker,
            name,
            found,
            costs.join("; "),
            "boot with cgroup v2 alone (systemd.unified_cgroup_hierarchy=1) and the io controller",
        )
    }
}

/// Words among the options of a v1 hierarchy that are no mount options of their
/// own and no name.
fn is_controller(word: &str) -> bool {
    !matches!(word, "rw" | "ro" | "xattr" | "clone_children" | "noprefix") && !word.contains('=')
}

/// Whether swap counts as memory (PR-20).
fn swap(layout: &Layout, in_use: bool, exists: impl Fn(&str) -> bool) -> Check {
    let name = "swap";
    if !in_use {
        return Check::ok(name, "not in use");
    }
    let legacy = "/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes";
    if layout.unified || exists(legacy) {
        return Check::ok(name, "in use, and counted as memory");
    }
    Check::worse(
        State::Missing,
        name,
        "in use, and not counted by control groups",
        "a task could use more memory than its limit",
        "boot with swapaccount=1, or switch swap off (swapoff -a)",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const V2: &str = "31 23 0:28 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
    const HYBRID: &str = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";

    fn v2(controllers: &str) -> Check {
        Layout::of(V2, |_| controllers.to_owned()).check()
    }

    #[test]
    fn one_hierarchy_with_all_controllers_is_best() {
        let check = v2("cpuset cpu io memory pids\n");
        assert_eq!(check.state, State::Ok);
        assert_eq!(check.found, "v2: cpuset cpu io memory pids");
        assert_eq!(v2("cpu memory pids").state, State::Weaker);
        let check = v2("cpu io memory");
        assert_eq!(check.state, State::Missing);
        assert!(check.found.ends_with("not there: pids"));
    }

    #[test]
    fn hybrid_is_version_1_and_says_what_that_costs() {
        let layout = Layout::of(HYBRID, |_| "hugetlb\n".into());
        assert!(!layout.unified);
        assert_eq!(
            layout.controllers,
            ["cpu", "cpuacct", "memory", "pids", "hugetlb"]
        );
        let check = layout.check();
        assert_eq!(check.state, State::Weaker);
        let cost = check.cost.unwrap();
        assert!(cost.contains("buffered") && cost.contains("block-device traffic are refused"));
    }

    #[test]
    fn no_control_groups_is_the_end() {
        let check = Layout::of("", |_| String::new()).check();
        assert_eq!(check.state, State::Missing);
    }

    #[test]
    fn swap_that_is_not_counted_is_named() {
        let hybrid = Layout::of(HYBRID, |_| String::new());
        let unified = Layout::of(V2, |_| "memory".into());
        assert_eq!(swap(&hybrid, false, |_| false).state, State::Ok);
        assert_eq!(swap(&hybrid, true, |_| false).state, State::Missing);
        assert_eq!(swap(&hybrid, true, |_| true).state, State::Ok);
        assert_eq!(swap(&unified, true, |_| false).state, State::Ok);
    }
}
