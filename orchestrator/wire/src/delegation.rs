//! Where control groups of version 2 may be made: the rule that the launcher keeps
//! and that `orch doctor` tells (docs/decisions/0013-delegated-subtrees.md).

use std::path::{Path, PathBuf};

/// Group for the processes that were in the chosen group itself, since a group with
/// processes cannot hand controllers on (cgroups(7), "no internal processes").
pub const LEAF: &str = "main";

/// Attributes that systemd gives to the group of a unit with `Delegate=`; others than
/// the superuser can read the second one, which came with systemd 251.
pub const MARKS: [&str; 2] = ["trusted.delegate", "user.delegate"];

/// What has been seen of a group's directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// It belongs to the user who asks.
    pub ours: bool,
    /// One of [`MARKS`] is `1`.
    pub marked: bool,
}

/// The group below which groups may be made: the nearest at or above the own one that
/// is marked as delegated and ours; where none is marked, the highest that is ours.
/// Nothing above it is ever touched.
///
/// `own` is proc_pid_cgroup(5), `mounts` is proc_pid_mountinfo(5). `None` where version
/// 2 is not mounted or no group on the way up is ours.
pub fn choose(own: &str, mounts: &str, look: impl Fn(&Path) -> Seen) -> Option<PathBuf> {
    let (point, root) = mount_point(mounts)?;
    let own = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    // A group that the mount does not show is as good as the top of what it shows.
    let below = Path::new(own)
        .strip_prefix(&root)
        .unwrap_or_else(|_| Path::new(""));
    let group = point.join(below);
    let way_up: Vec<(&Path, Seen)> = group
        .ancestors()
        .take_while(|path| path.starts_with(&point))
        .map(|path| (path, look(path)))
        .filter(|(_, seen)| seen.ours)
        .collect();
    way_up
        .iter()
        .find(|(_, seen)| seen.marked)
        .or(way_up.last())
        .map(|(path, _)| path.components().collect())
}

/// Where version 2 is mounted, and which of its groups the mount shows as its root.
fn mount_point(mounts: &str) -> Option<(PathBuf, PathBuf)> {
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut fields = before.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        after
            .starts_with("cgroup2 ")
            .then(|| (PathBuf::from(point), PathBuf::from(root)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "22 1 0:20 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate";

    /// `(path below the mount, ours, marked)`; what is not listed is not ours.
    fn chosen(own: &str, mounts: &str, groups: &[(&str, bool, bool)]) -> Option<String> {
        let look = |path: &Path| {
            let path = path.to_str().unwrap().trim_end_matches('/');
            let below = path.strip_prefix("/sys/fs/cgroup").unwrap();
            let known = groups.iter().find(|(name, ..)| *name == below);
            let (_, ours, marked) = known.copied().unwrap_or_default();
            Seen { ours, marked }
        };
        let found = choose(own, mounts, look)?;
        Some(found.to_str().unwrap().to_owned())
    }

    #[test]
    fn the_nearest_delegated_group_is_taken() {
        let groups = [
            ("", true, false),
            ("/system.slice", true, false),
            ("/system.slice/a.service", true, true),
            ("/system.slice/a.service/main", true, false),
        ];
        let wanted = Some("/sys/fs/cgroup/system.slice/a.service".to_owned());
        assert_eq!(
            chosen("0::/system.slice/a.service/main\n", MOUNTS, &groups),
            wanted
        );
        assert_eq!(
            chosen("0::/system.slice/a.service\n", MOUNTS, &groups),
            wanted
        );
        // Another service of the same machine is not delegated.
        let top = Some("/sys/fs/cgroup".to_owned());
        assert_eq!(chosen("0::/system.slice/b.service\n", MOUNTS, &groups), top);
        assert_eq!(chosen("0::/\n", MOUNTS, &groups), top);
    }

    #[test]
    fn what_is_delegated_to_somebody_else_is_not() {
        // Root below the manager of a user.
        let groups = [
            ("", true, false),
            ("/user.slice", true, false),
            ("/user.slice/u", false, true),
        ];
        let found = chosen("0::/user.slice/u\n", MOUNTS, &groups);
        assert_eq!(found.as_deref(), Some("/sys/fs/cgroup"));
    }

    #[test]
    fn without_marks_it_is_the_highest_that_is_ours() {
        let groups = [
            ("", false, false),
            ("/u", false, false),
            ("/u/m", true, false),
            ("/u/m/s", true, false),
        ];
        let found = chosen("0::/u/m/s\n", MOUNTS, &groups);
        assert_eq!(found.as_deref(), Some("/sys/fs/cgroup/u/m"));
        assert_eq!(chosen("0::/u\n", MOUNTS, &groups), None);
    }

    #[test]
    fn a_mount_may_begin_below_the_root() {
        let mounts = "22 1 0:20 /docker/x /sys/fs/cgroup rw - cgroup2 cgroup2 rw";
        let groups = [("", true, false), ("/y", true, true)];
        let at = |own| chosen(own, mounts, &groups);
        assert_eq!(at("0::/docker/x\n").as_deref(), Some("/sys/fs/cgroup"));
        assert_eq!(at("0::/docker/x/y\n").as_deref(), Some("/sys/fs/cgroup/y"));
        assert_eq!(at("0::/elsewhere\n").as_deref(), Some("/sys/fs/cgroup"));
        assert_eq!(at("4:memory:/docker/x\n"), None);
        assert_eq!(chosen("0::/\n", "22 1 0:20 / / rw - ext4 d rw", &[]), None);
    }
}
