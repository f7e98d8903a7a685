//! What kernels newer than the oldest supported one add, and what is done without.

use crate::doctor::check::{By, Check, Subject};
use crate::doctor::facts::Facts;

/// One of them.
struct Feature {
    subject: Subject,
    /// First version of Linux that has it.
    since: (u32, u32),
    /// What was found by trying or looking; `None` where neither could be done.
    tried: Option<bool>,
    /// What is done without it.
    cost: &'static str,
}

pub fn checks(facts: &Facts) -> Vec<Check> {
    let mut checks = vec![clone_into_group(facts), kill(facts)];
    let pids = facts.groups.with("pids");
    checks.extend(
        [
            Feature {
                subject: Subject("id-mapped overlay layers", "PR-06, mount_setattr(2)"),
                since: (5, 19),
                tried: facts.overlay,
                cost: "folders cannot become layers of an overlay: they are bound directly",
            },
            Feature {
                subject: Subject("id-mapped tmpfs", "FS-02, mount_setattr(2)"),
                since: (6, 3),
                tried: facts.tmpfs,
                cost: "what lies on a tmpfs cannot be mounted: it is refused (host_unsupported)",
            },
            Feature {
                subject: Subject("peak of processes", "PX-13, cgroups(7)"),
                since: (6, 11),
                tried: pids.and_then(|hierarchy| hierarchy.peak),
                cost: "receipts do not say how many processes there were at most",
            },
            Feature {
                subject: Subject("exit code from the kernel", "ioctl_pidfd(2)"),
                since: (6, 15),
                tried: facts.exit_code,
                cost: "the exit code is the guest's word, which is inside (exit_source: guest)",
            },
        ]
        .iter()
        .map(|feature| feature.check(facts)),
    );
    checks
}

impl Feature {
    fn check(&self, facts: &Facts) -> Check {
        let (major, minor) = self.since;
        let by_version = facts.version().is_some_and(|version| version >= self.since);
        let (there, by) = match self.tried {
            Some(there) => (there, By::Tried),
            None => (by_version, By::Version),
        };
        let how = match by {
            By::Version => format!("by version: Linux has it since {major}.{minor}"),
            _ => "tried".to_owned(),
        };
        if there {
            return Check::ok(self.subject, format!("there ({how})")).by(by);
        }
        Check::warn(
            self.subject,
            format!("not there ({how})"),
            self.cost,
            format!("boot Linux {major}.{minor} or newer"),
        )
        .by(by)
    }
}

/// Version 1 is joined in another way.
fn clone_into_group(facts: &Facts) -> Check {
    let subject = Subject("clone into a group", "design 4, clone(2)");
    if facts.clone_into_cgroup {
        return Check::ok(subject, "there (tried)").by(By::Tried);
    }
    let fix = "boot Linux 5.7 or newer, or take the filter for clone3 away";
    if facts.groups.legacy() {
        let cost = "nothing on control groups of version 1; version 2 could not be used";
        return Check::warn(subject, "not there (tried)", cost, fix).by(By::Tried);
    }
    let cost = "nothing can be run: on version 2 every process is cloned into its group";
    Check::missing(subject, "not there (tried)", cost, fix).by(By::Tried)
}

/// `cgroup.kill`, Linux 5.14: older than the floor, and taken away by nobody but a
/// runtime that shows only some files.
fn kill(facts: &Facts) -> Check {
    let subject = Subject("kill of a whole group", "E1, cgroups(7)");
    if facts.groups.legacy() {
        return Check::ok(
            subject,
            "version 1 has none: a group is frozen, killed and thawed",
        );
    }
    let seen = facts.groups.0.iter().find_map(|hierarchy| hierarchy.kill);
    let by_version = facts.version().is_some_and(|version| version >= (5, 14));
    match (seen, by_version) {
        (Some(true), _) => Check::ok(subject, "there (tried: cgroup.kill)").by(By::Tried),
        (None, true) => {
            Check::ok(subject, "there (by version: Linux has it since 5.14)").by(By::Version)
        }
        (seen, _) => Check::warn(
            subject,
            "not there (cgroup.kill)",
            "processes are killed one by one until none is left: a fork bomb ends more slowly",
            "boot Linux 5.14 or newer, with the control groups not covered",
        )
        .by(if seen.is_some() {
            By::Tried
        } else {
            By::Version
        }),
    }
}
