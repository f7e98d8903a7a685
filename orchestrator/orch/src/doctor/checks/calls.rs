//! System calls that making a sandbox takes, each asked.

use rustix::io::Errno;

use super::NOTHING;
use crate::doctor::check::{By, Check, Subject};
use crate::doctor::facts::Facts;

/// Calls that look at CAP_SYS_ADMIN before they look at their arguments.
const PRIVILEGED: [&str; 6] = [
    "mount",
    "umount2",
    "pivot_root",
    "move_mount",
    "mount_setattr",
    "fsopen",
];
/// Its number (`linux/capability.h`).
const SYS_ADMIN: u32 = 21;

pub fn check(facts: &Facts) -> Check {
    let subject = Subject("system calls", "OP-01, H3, syscalls(2)");
    // Without the capability `EPERM` says nothing, and that it is not held is said
    // elsewhere.
    let unknown = |name: &str, errno: i32| {
        PRIVILEGED.contains(&name) && errno == Errno::PERM.raw_os_error() && !facts.holds(SYS_ADMIN)
    };
    let lacking: Vec<String> = facts
        .calls
        .iter()
        .filter(|asked| !asked.there && !unknown(asked.name, asked.errno))
        .map(|asked| format!("{} ({})", asked.name, word(asked.errno)))
        .collect();
    if lacking.is_empty() && !facts.calls.is_empty() {
        let found = format!("{} asked, all there", facts.calls.len());
        return Check::ok(subject, found).by(By::Tried);
    }
    let filtered = facts.status("Seccomp").is_some_and(|mode| mode != "0");
    let fix = if filtered {
        "start the container or service around orch with --security-opt seccomp=unconfined, or \
         without SystemCallFilter="
    } else {
        "boot a kernel of a distribution that has them"
    };
    Check::missing(
        subject,
        format!("not there: {}", lacking.join(", ")),
        NOTHING,
        fix,
    )
    .by(By::Tried)
}

/// What a call answered, in the words of errno(3).
pub fn word(errno: i32) -> String {
    match Errno::from_raw_os_error(errno.max(1)) {
        _ if errno == 0 => "claims success".to_owned(),
        Errno::NOSYS => "ENOSYS".to_owned(),
        Errno::PERM => "EPERM".to_owned(),
        Errno::ACCESS => "EACCES".to_owned(),
        Errno::NOSPC => "ENOSPC".to_owned(),
        Errno::INVAL => "EINVAL".to_owned(),
        other => format!("errno {}", other.raw_os_error()),
    }
}
