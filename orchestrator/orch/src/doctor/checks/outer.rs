//! A container or a service around orch, and what it keeps away.

use super::NOTHING;
use super::kernel::CAPABILITIES;
use crate::doctor::check::{Check, State, Subject};
use crate::doctor::facts::{Facts, File};

/// What Docker and podman keep away by default and orch needs; each line says what of it
/// is missing. With this a container of runc keeps every tier (`tests/suite`).
const OPEN: &str = "--cap-add SYS_ADMIN --security-opt seccomp=unconfined \
                    --security-opt apparmor=unconfined --ulimit nofile=8192 and a /sys/fs/cgroup \
                    that can be written; or --privileged";

pub fn checks(facts: &Facts) -> Vec<Check> {
    vec![
        container(facts),
        filter(facts),
        label(facts),
        covered(facts),
    ]
}

fn container(facts: &Facts) -> Check {
    let subject = Subject("outer container", "OP-01");
    let found = match facts.outer() {
        None if !facts.in_user_namespace() => return Check::ok(subject, "none"),
        None => "a user namespace that is not the machine's own".to_owned(),
        // Also a virtual machine whose root was made from an image.
        Some(runtime) if !keeps_away(facts) => {
            let found =
                format!("signs of one ({runtime}), which keeps nothing away that orch needs");
            return Check::ok(subject, found);
        }
        Some(runtime) => format!("orch runs inside one ({runtime})"),
    };
    Check::warn(
        subject,
        found,
        "its limits, its filter and its masks hold for every sandbox too; what it keeps away is \
         named in the other lines",
        OPEN,
    )
}

/// Whether something around orch takes away what the machine has.
fn keeps_away(facts: &Facts) -> bool {
    let kept = [filter(facts), label(facts), covered(facts)];
    facts.in_user_namespace()
        || CAPABILITIES.iter().any(|(number, _)| !facts.holds(*number))
        || facts.groups.0.iter().any(|hierarchy| !hierarchy.writable)
        || kept.iter().any(|check| check.state != State::Ok)
}

fn filter(facts: &Facts) -> Check {
    let subject = Subject("outer filter", "H3, seccomp(2)");
    if facts.status("Seccomp").unwrap_or("0") == "0" {
        return Check::ok(subject, "none");
    }
    let count = facts.status("Seccomp_filters").unwrap_or("some");
    Check::warn(
        subject,
        format!("{count} around orch"),
        "every system call of a task passes it as well, and what it refuses is refused in every \
         tier; those that orch needs are asked above",
        "--security-opt seccomp=unconfined, or no SystemCallFilter= in the unit",
    )
}

/// AppArmor's `name (mode)`, or a context of SELinux.
fn label(facts: &Facts) -> Check {
    let subject = Subject("outer security module", "proc_pid_attr(5)");
    let label = facts
        .text(File::Label)
        .unwrap_or_default()
        .trim_end_matches('\0');
    if label.is_empty() || label.starts_with("unconfined") || label == "kernel" {
        return Check::ok(subject, if label.is_empty() { "none" } else { label });
    }
    if label.ends_with("(complain)") {
        return Check::ok(subject, label);
    }
    if label.starts_with("docker-default") || label.starts_with("containers-default") {
        return Check::missing(
            subject,
            label,
            format!("{NOTHING}: this profile refuses mount(2)"),
            "--security-opt apparmor=unconfined",
        );
    }
    if label.contains(":container_t:") {
        return Check::missing(
            subject,
            label,
            format!("{NOTHING}: this domain may not mount"),
            "--security-opt label=disable",
        );
    }
    // Domains of a distribution's own policy that are no confinement.
    if label.contains(":unconfined_t:") || label.contains(":initrc_t:") {
        return Check::ok(subject, label);
    }
    Check::warn(
        subject,
        label,
        "what this profile refuses is refused in every tier",
        "start orch unconfined, or let the profile mount, make namespaces and write control groups",
    )
}

/// Mounts over parts of `/proc`. A `/proc` of one's own can be made in spite of them
/// by root of the machine; in a user namespace only where all of one is seen
/// (mount_namespaces(7)).
fn covered(facts: &Facts) -> Check {
    let subject = Subject("outer masks", "A17, mount_namespaces(7)");
    let mounts = facts.text(File::Mounts).unwrap_or_default();
    let mut covered: Vec<&str> = mounts
        .lines()
        .filter_map(|line| line.split(' ').nth(4))
        // That directory is made for being mounted on.
        .filter(|point| point.starts_with("/proc/") && *point != "/proc/sys/fs/binfmt_misc")
        .collect();
    covered.dedup();
    if covered.is_empty() {
        return Check::ok(subject, "nothing of /proc is covered");
    }
    let found = format!("covered: {}", covered.join(" "));
    let fix = "--security-opt systempaths=unconfined";
    if facts.in_user_namespace() {
        let cost = "no lease can have a /proc of its own: the kernel refuses to show more than can \
                    be seen here";
        return Check::missing(subject, found, cost, fix);
    }
    Check::warn(
        subject,
        found,
        "sandboxes have a /proc of their own all the same; what this page says of those parts is \
         what the mask shows",
        fix,
    )
}
