//! Control groups: which version, which controllers, whether groups can be made and
//! limits set in them, and swap.

use super::{NOTHING, inside_or_not};
use crate::doctor::check::{By, Check, Subject};
use crate::doctor::facts::{Facts, File, Hierarchy};

/// Controllers without which a limit could not be kept.
const NEEDED: [&str; 3] = ["cpu", "memory", "pids"];

pub fn checks(facts: &Facts) -> Vec<Check> {
    vec![controllers(facts), delegation(facts), swap(facts)]
}

fn controllers(facts: &Facts) -> Check {
    let subject = Subject("control groups", "PR-19 to PR-22, H18, cgroups(7)");
    let groups = &facts.groups;
    let unified = groups.0.iter().any(|hierarchy| hierarchy.unified);
    let version = match (groups.legacy(), unified) {
        (false, true) => "v2",
        (true, true) => "v1, with v2 beside it",
        (true, false) => "v1",
        (false, false) => "none",
    };
    let mut names: Vec<&str> = Vec::new();
    for name in groups.0.iter().flat_map(|hierarchy| &hierarchy.controllers) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let found = format!("{version}: {}", names.join(" "));
    let lacking: Vec<&str> = NEEDED
        .into_iter()
        .filter(|name| groups.with(name).is_none())
        .collect();
    if !lacking.is_empty() {
        return Check::missing(
            subject,
            format!("{found}; not there: {}", lacking.join(" ")),
            format!("{NOTHING}: a limit that cannot be set is an error"),
            inside_or_not(
                facts,
                "--cgroupns=private and a /sys/fs/cgroup that can be written (--privileged)",
                "mount -t cgroup2 cgroup2 /sys/fs/cgroup, on a kernel started without \
                 cgroup_disable=",
            ),
        );
    }
    let mut costs = Vec::new();
    if groups.legacy() {
        costs.push("buffered writes do not count as block-device traffic");
        costs.push("the kernel kills for memory process by process");
    }
    if groups.with("io").is_none() && groups.with("blkio").is_none() {
        costs.push("profiles that limit block-device traffic are refused");
    }
    if costs.is_empty() {
        return Check::ok(subject, found);
    }
    Check::warn(
        subject,
        found,
        costs.join("; "),
        "boot with cgroup v2 alone (systemd.unified_cgroup_hierarchy=1) and the io controller",
    )
}

/// Whether groups can be made where orch makes them.
fn delegation(facts: &Facts) -> Check {
    let subject = Subject("groups can be made", "H18, cgroups(7)");
    let used: Vec<&Hierarchy> = facts
        .groups
        .0
        .iter()
        .filter(|hierarchy| NEEDED.iter().any(|name| hierarchy.has(name)))
        .collect();
    let places = |bad: fn(&Hierarchy) -> bool| {
        let points: Vec<&str> = used
            .iter()
            .filter(|hierarchy| bad(hierarchy))
            .map(|hierarchy| hierarchy.point.as_str())
            .collect();
        points.join(" ")
    };
    let refused = |found: String, machine: &str| {
        let fix = inside_or_not(
            facts,
            "--privileged, or as root inside: mount -o remount,rw,bind /sys/fs/cgroup",
            machine,
        );
        let cost = format!("{NOTHING}: every command gets a group of its own, with its limits");
        Check::missing(subject, found, cost, fix).by(By::Tried)
    };
    let covered = places(|hierarchy| !hierarchy.seen);
    if used.is_empty() || !covered.is_empty() {
        let found = format!(
            "cannot be seen: {}",
            if used.is_empty() { "any" } else { &covered }
        );
        return refused(
            found,
            "take away what is mounted over /sys/fs/cgroup (umount)",
        );
    }
    let closed = places(|hierarchy| !hierarchy.writable);
    if !closed.is_empty() && !facts.is_root() {
        return Check::missing(
            subject,
            format!("not delegated to this user: {closed}"),
            "strict is refused; loose and standard do not limit memory, processes and CPU, and \
             say so",
            "systemd-run --user --scope -p Delegate=yes -- orch run ..., or what docs/rootless.md \
             says for hosts without systemd",
        )
        .losing(vec!["strict"])
        .by(By::Tried);
    }
    if !closed.is_empty() {
        return refused(
            format!("cannot be written: {closed}"),
            "mount -o remount,rw on them, as root",
        );
    }
    let stuck: Vec<&str> = used
        .iter()
        .filter(|hierarchy| hierarchy.unified && hierarchy.crowded)
        .flat_map(|hierarchy| {
            NEEDED
                .into_iter()
                .filter(|name| !hierarchy.switched_on.iter().any(|on| on == name))
        })
        .collect();
    if !stuck.is_empty() {
        return Check::warn(
            subject,
            format!(
                "not switched on below a group that has processes: {}",
                stuck.join(" ")
            ),
            "orch moves its processes into a leaf (main) so that the kernel lets it switch them on; \
             where it may not, nothing can be run, and the tiers below say whether that is so",
            "start orch in a group of its own: systemd-run --scope -p Delegate=yes (with --user \
             for others than root)",
        );
    }
    Check::ok(subject, "yes, where they are needed").by(By::Tried)
}

/// Whether swap counts as memory (PR-20).
fn swap(facts: &Facts) -> Check {
    let subject = Subject("swap", "PR-20, swapon(8)");
    let swaps = facts.text(File::Swaps).unwrap_or_default();
    if swaps.lines().count() < 2 {
        return Check::ok(subject, "not in use");
    }
    let counted = facts
        .groups
        .with("memory")
        .is_some_and(|hierarchy| hierarchy.unified || hierarchy.swap);
    if counted {
        return Check::ok(subject, "in use, and counted as memory");
    }
    Check::missing(
        subject,
        "in use, and not counted by control groups",
        "a task could use more memory than its limit, and leave what it held on the disk",
        "boot with swapaccount=1, or switch swap off (swapoff -a)",
    )
}
