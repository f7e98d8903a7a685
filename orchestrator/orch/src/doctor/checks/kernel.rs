//! The kernel itself: its age, its filters, and what it lets this process do.

use super::{NOTHING, inside_or_not};
use crate::doctor::check::{Check, Subject};
use crate::doctor::facts::{Facts, File};

/// Oldest kernel that is supported.
const FLOOR: (u32, u32) = (5, 15);

/// Capabilities that making a sandbox takes: number (`linux/capability.h`) and name.
/// Those that a container's own user namespace gives are not among them.
pub const CAPABILITIES: [(u32, &str); 6] = [
    (0, "CHOWN"),
    (1, "DAC_OVERRIDE"),
    (5, "KILL"),
    (6, "SETGID"),
    (7, "SETUID"),
    (21, "SYS_ADMIN"),
];

pub fn checks(facts: &Facts) -> Vec<Check> {
    vec![
        version(facts),
        privileges(facts),
        filters(facts),
        sealed_memory(facts),
    ]
}

fn version(facts: &Facts) -> Check {
    let subject = Subject("kernel", "OP-01, uname(2)");
    let (major, minor) = FLOOR;
    let release = facts.text(File::Release).unwrap_or("of unknown version");
    let found = format!("Linux {release}");
    match facts.version() {
        Some(version) if version >= FLOOR => Check::ok(subject, found),
        _ => Check::missing(
            subject,
            found,
            format!("{NOTHING}: {major}.{minor} is the oldest kernel that is supported"),
            format!("boot Linux {major}.{minor} or newer"),
        ),
    }
}

fn privileges(facts: &Facts) -> Check {
    let subject = Subject("privileges", "OP-01, capabilities(7)");
    let lacking: Vec<&str> = CAPABILITIES
        .iter()
        .filter(|(number, _)| !facts.holds(*number))
        .map(|(_, name)| *name)
        .collect();
    if facts.is_root() && lacking.is_empty() {
        return Check::ok(subject, "root, with the capabilities that are needed");
    }
    if !facts.is_root() {
        let found = match facts.uid() {
            Some(uid) => format!("user {uid}"),
            None => "not known".to_owned(),
        };
        if super::rootless::ready(facts) {
            let found = format!("{found}, as root of a user namespace (docs/rootless.md)");
            return Check::ok(subject, found);
        }
        return Check::missing(
            subject,
            found,
            "nothing can be run: there is neither root nor a user namespace with ids of its own",
            "what `unprivileged user namespaces` and `rootless tools` name, or sudo orch doctor",
        );
    }
    let give: Vec<String> = lacking
        .iter()
        .map(|name| format!("--cap-add {name}"))
        .collect();
    Check::missing(
        subject,
        format!("root without {}", lacking.join(" ")),
        format!("{NOTHING}: namespaces, mounts and other users' ids take these"),
        inside_or_not(
            facts,
            &give.join(" "),
            "start orch where its bounding set has them (capsh --print; CapabilityBoundingSet= of \
             a systemd unit; --cap-add of a container)",
        ),
    )
}

fn filters(facts: &Facts) -> Check {
    let subject = Subject("system-call filters", "OP-01, H3, seccomp(2)");
    let actions = facts.text(File::Actions).unwrap_or_default();
    let has = |action: &str| actions.split_whitespace().any(|word| word == action);
    let lacking: Vec<&str> = ["errno", "kill_process"]
        .into_iter()
        .filter(|action| !has(action))
        .collect();
    if lacking.is_empty() {
        return Check::ok(subject, actions);
    }
    let found = if actions.is_empty() {
        "the kernel has none".to_owned()
    } else {
        format!("{actions}; not there: {}", lacking.join(" "))
    };
    Check::missing(
        subject,
        found,
        format!("{NOTHING}: every tier is kept by a filter"),
        "boot a kernel with CONFIG_SECCOMP_FILTER",
    )
}

/// memfd_create(2): with 2, nothing in memory can be executed. The file is not
/// there before Linux 6.3.
fn sealed_memory(facts: &Facts) -> Check {
    let subject = Subject("sealed memory", "A1, memfd_create(2)");
    match facts.text(File::MemfdNoexec) {
        Some("2") => Check::missing(
            subject,
            "vm.memfd_noexec is 2",
            format!("{NOTHING}: the launcher is executed from sealed memory"),
            "sysctl vm.memfd_noexec=1",
        ),
        Some(value) => Check::ok(
            subject,
            format!("can be executed (vm.memfd_noexec is {value})"),
        ),
        None => Check::ok(
            subject,
            "can be executed (no vm.memfd_noexec before Linux 6.3)",
        ),
    }
}
