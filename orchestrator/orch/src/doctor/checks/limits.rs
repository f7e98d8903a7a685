//! Hard limits of whoever starts orch: a tier that asks for more is refused.

use crate::doctor::check::{Check, Subject};
use crate::doctor::facts::{Facts, Hard, Need};

/// One of them.
struct Limit {
    /// What it limits.
    what: &'static str,
    /// How a shell raises it.
    flag: &'static str,
    /// Key of the profile.
    key: &'static str,
    hard: fn(&Hard) -> Option<u64>,
    need: fn(&Need) -> u64,
}

/// All of those that orch sets for a task (getrlimit(2)).
const LIMITS: [Limit; 4] = [
    Limit {
        what: "open files",
        flag: "-n",
        key: "open_files",
        hard: |hard| hard.open_files,
        need: |need| need.open_files,
    },
    Limit {
        what: "bytes of a file",
        flag: "-f",
        key: "file_size_mb",
        hard: |hard| hard.file_size,
        need: |need| need.file_size,
    },
    Limit {
        what: "bytes of stack",
        flag: "-s",
        key: "stack_mb",
        hard: |hard| hard.stack,
        need: |need| need.stack,
    },
    Limit {
        what: "seconds of CPU time",
        flag: "-t",
        key: "cpu_seconds",
        hard: |hard| hard.cpu,
        need: |need| need.cpu,
    },
];

pub fn checks(facts: &Facts) -> Vec<Check> {
    let [files, others @ ..] = &LIMITS;
    vec![
        check(
            Subject("open files", "PR-21, getrlimit(2)"),
            std::slice::from_ref(files),
            facts,
        ),
        check(
            Subject("limits of one process", "PR-19, getrlimit(2)"),
            others,
            facts,
        ),
    ]
}

fn check(subject: Subject, limits: &[Limit], facts: &Facts) -> Check {
    let mut found = Vec::new();
    let mut asked = Vec::new();
    let mut fixes = Vec::new();
    let mut lost = Vec::new();
    for limit in limits {
        let Some(hard) = (limit.hard)(&facts.hard) else {
            found.push(format!("any number of {}", limit.what));
            continue;
        };
        found.push(format!("up to {hard} {}", limit.what));
        for need in &facts.needs {
            let wanted = (limit.need)(need);
            if wanted > hard {
                asked.push(format!("{} asks for {wanted} {}", need.tier, limit.what));
                lost.push(need.tier);
                fixes.push(format!("ulimit -H {} (limits.{})", limit.flag, limit.key));
            }
        }
    }
    let found = found.join(", ");
    if lost.is_empty() && !facts.needs.is_empty() {
        return Check::ok(subject, found);
    }
    lost.sort_unstable();
    lost.dedup();
    fixes.dedup();
    Check::missing(
        subject,
        found,
        format!("refused (limit_unavailable): {}", asked.join(", ")),
        format!(
            "raise the hard limit of whatever starts orch, or ask for less in a profile of your \
             own: {}",
            fixes.join("; ")
        ),
    )
    .losing(lost)
}
