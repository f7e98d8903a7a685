//! Namespaces, and the user ids that containers get.

use rustix::io::Errno;

use super::calls::word;
use super::{NOTHING, inside_or_not};
use crate::doctor::check::{By, Check, Subject};
use crate::doctor::facts::{Facts, File};

/// Ids of one container.
const IDS: u64 = 65_536;

pub fn checks(facts: &Facts) -> Vec<Check> {
    vec![namespaces(facts), ids(facts)]
}

/// Built in, allowed by the sysctls of user_namespaces(7), and made once.
fn namespaces(facts: &Facts) -> Check {
    let subject = Subject("namespaces", "OP-01, namespaces(7)");
    let mut bad = Vec::new();
    let mut forbidden = false;
    for (name, errno) in &facts.namespaces {
        if !facts.built_in.contains(name) {
            bad.push(format!("{name} (not built in)"));
        } else if facts.number(maximum(name)) == Some(0) {
            forbidden = true;
            bad.push(format!("{name} (user.max_{name}_namespaces is 0)"));
        } else if *errno != 0 {
            forbidden |= *errno == Errno::NOSPC.raw_os_error();
            bad.push(format!("{name} ({})", word(*errno)));
        }
    }
    if bad.is_empty() && !facts.namespaces.is_empty() {
        let names: Vec<&str> = facts.namespaces.iter().map(|(name, _)| *name).collect();
        let found = format!("{} (each made once)", names.join(" "));
        return Check::ok(subject, found).by(By::Tried);
    }
    let fix = if forbidden {
        "raise user.max_*_namespaces (sysctl)".to_owned()
    } else {
        inside_or_not(
            facts,
            "--cap-add SYS_ADMIN --security-opt seccomp=unconfined --security-opt \
             apparmor=unconfined",
            "boot a kernel with these namespaces, as root, and without a filter that forbids them",
        )
    };
    let found = format!("not there: {}", bad.join(", "));
    Check::missing(subject, found, NOTHING, fix).by(By::Tried)
}

/// File with the greatest number of namespaces of a kind.
pub fn maximum(name: &str) -> File {
    match name {
        "user" => File::MaxUser,
        "mnt" => File::MaxMnt,
        "pid" => File::MaxPid,
        "net" => File::MaxNet,
        "ipc" => File::MaxIpc,
        "uts" => File::MaxUts,
        _ => File::MaxCgroup,
    }
}

/// The block of ids for containers: there in this user namespace, and nobody else's.
fn ids(facts: &Facts) -> Check {
    let subject = Subject("user ids", "design 3.7, user_namespaces(7), subuid(5)");
    let Some((first, ranges)) = facts.ids else {
        return Check::missing(
            subject,
            "ORCH_UID_BLOCK is not a block of user ids",
            NOTHING,
            "write FIRST:RANGES, FIRST a multiple of 65536 and not 0",
        );
    };
    let (first, count) = (u64::from(first), u64::from(ranges) * IDS);
    let end = first + count;
    let found = format!("{first} to {} ({ranges} containers)", end - 1);
    if facts.in_user_namespace() && !mapped(facts, first, end) {
        return Check::missing(
            subject,
            format!("{found}: not all of them are there, ids are translated around orch"),
            format!("{NOTHING}: a container needs {IDS} ids of its own"),
            "start the container around orch in the machine's own user namespace \
             (--userns=host), or name ids that it has with ORCH_UID_BLOCK",
        );
    }
    if facts.id_map != 0 && facts.is_root() {
        return Check::missing(
            subject,
            format!(
                "{found}: cannot be given to a namespace ({})",
                word(facts.id_map)
            ),
            format!("{NOTHING}: a container needs {IDS} ids of its own"),
            inside_or_not(
                facts,
                "--cap-add SYS_ADMIN --cap-add SETUID --cap-add SETGID",
                "see namespaces and privileges above",
            ),
        )
        .by(By::Tried);
    }
    let others: Vec<&str> = [File::SubUid, File::SubGid]
        .into_iter()
        .filter_map(|file| facts.text(file))
        .flat_map(str::lines)
        .filter(|line| {
            let mut fields = line.split(':').skip(1);
            let mut number = || fields.next()?.trim().parse::<u64>().ok();
            match (number(), number()) {
                (Some(from), Some(length)) => from < end && from + length > first,
                _ => false,
            }
        })
        .collect();
    if others.is_empty() {
        return Check::ok(subject, found);
    }
    Check::warn(
        subject,
        format!("{found}: also given to {}", others.join(", ")),
        "what that user runs and a container of orch may be the same user to the kernel",
        "take the range out of /etc/subuid and /etc/subgid, or name another with ORCH_UID_BLOCK",
    )
}

/// Whether ids from `first` up to `end` are there in this user namespace.
fn mapped(facts: &Facts, first: u64, end: u64) -> bool {
    let map = facts.text(File::UidMap).unwrap_or_default();
    map.lines().any(|line| {
        let numbers: Vec<u64> = line
            .split_whitespace()
            .filter_map(|number| number.parse().ok())
            .collect();
        matches!(numbers[..], [inside, _, length] if inside <= first && end <= inside + length)
    })
}
