//! Which bound is in force: the task's or the profile's, whichever is smaller.
//!
//! A task may only tighten. Asking for more is refused by name instead of being
//! cut down in silence, because a job that needs 4 GiB and gets 2 fails later
//! and elsewhere.

use std::collections::BTreeMap;

use crate::error::{Code, Error};
use crate::file::range::{self, Range};
use crate::profile::{Limits, Profile};
use crate::quantity::{MIB, show_bytes, show_cpus, show_duration};
use crate::receipt::Bound;
use crate::task::Task;

/// The ceilings of one task, and who set each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effective {
    /// Ceilings in force.
    pub limits: Limits,
    /// Wall clock of the whole task, milliseconds.
    pub timeout_ms: u64,
    /// Wall clock of one command, milliseconds; at most `timeout_ms` (PR-23).
    pub command_timeout_ms: u64,
    /// Every bound by the key of the profile, for the receipt.
    pub bounds: BTreeMap<String, Bound>,
}

/// One thing that a task may ask for.
struct Ask<'a> {
    profile: &'a Profile,
    key: &'static str,
    what: &'static str,
    min: u64,
    show: fn(u64) -> String,
}

impl Ask<'_> {
    /// The value in force and who set it.
    fn settle(&self, asked: Option<u64>, ceiling: u64) -> Result<(u64, &'static str), Error> {
        let Some(asked) = asked else {
            return Ok((ceiling, "profile"));
        };
        let Self { key, what, min, .. } = self;
        let show = self.show;
        if asked == 0 {
            return Err(Error::new(
                Code::LimitInvalid,
                format!("a {what} of 0 is not a limit"),
                format!(
                    "ask for {} to {}, or leave it out",
                    show(*min),
                    show(ceiling)
                ),
            ));
        }
        if asked < *min {
            return Err(Error::new(
                Code::LimitInvalid,
                format!("a {what} of {} is too small to be enforced", show(asked)),
                format!("ask for at least {}", show(*min)),
            ));
        }
        if asked > ceiling {
            let name = &self.profile.name;
            return Err(Error::new(
                Code::LimitInvalid,
                format!(
                    "a {what} of {} is more than the {} of profile {name}",
                    show(asked),
                    show(ceiling)
                ),
                format!(
                    "ask for at most {}, or raise {key} in a profile that extends {name}",
                    show(ceiling)
                ),
            ));
        }
        // Asking for exactly what is there changes nothing.
        let source = if asked < ceiling { "task" } else { "profile" };
        Ok((asked, source))
    }
}

fn least(range: Range) -> u64 {
    range.min.unsigned_abs()
}

fn show_count(value: u64) -> String {
    value.to_string()
}

/// The limits in force for `task` under `profile`.
///
/// # Errors
/// [`Code::LimitInvalid`] for a value of the task that is zero, too small to be
/// enforced, or above the profile's, with the key that raises it.
pub fn effective(profile: &Profile, task: &Task) -> Result<Effective, Error> {
    let ask = |key, what, min, show| Ask {
        profile,
        key,
        what,
        min,
        show,
    };
    let of = &profile.limits;
    let memory = ask(
        "limits.memory_mb",
        "memory limit",
        least(range::MEMORY_MB) * MIB,
        show_bytes,
    )
    .settle(task.memory_bytes, of.memory_bytes)?;
    let cpus = ask(
        "limits.cpus",
        "CPU limit",
        least(range::CPU_MILLI),
        show_cpus,
    )
    .settle(task.cpu_milli, of.cpu_milli)?;
    let processes = ask(
        "limits.processes",
        "process limit",
        least(range::PROCESSES),
        show_count,
    )
    .settle(task.processes, of.processes)?;
    let output = ask("limits.output_mb", "output limit", 1, show_bytes)
        .settle(task.output_bytes, of.output_bytes)?;
    let timeout = ask("timeout_seconds", "time-out", 1, show_duration)
        .settle(task.timeout_ms, profile.timeout_ms)?;
    let command_timeout = if timeout.0 < profile.command_timeout_ms {
        (timeout.0, timeout.1)
    } else {
        (profile.command_timeout_ms, "profile")
    };

    let limits = Limits {
        memory_bytes: memory.0,
        cpu_milli: cpus.0,
        processes: processes.0,
        output_bytes: output.0,
        ..of.clone()
    };
    let sources = Sources {
        memory: memory.1,
        cpus: cpus.1,
        processes: processes.1,
        output: output.1,
    };
    let mut bounds = bounds(&limits, &sources);
    for (key, (value, source)) in [
        ("timeout_seconds", timeout),
        ("command_timeout_seconds", command_timeout),
    ] {
        bounds.insert(key.to_owned(), bound(value, "milliseconds", source));
    }
    Ok(Effective {
        limits,
        timeout_ms: timeout.0,
        command_timeout_ms: command_timeout.0,
        bounds,
    })
}

struct Sources {
    memory: &'static str,
    cpus: &'static str,
    processes: &'static str,
    output: &'static str,
}

fn bound(value: u64, unit: &'static str, source: &'static str) -> Bound {
    Bound {
        value,
        unit,
        source,
        hits: None,
    }
}

/// Exhaustive, so that no ceiling is missing from a receipt.
fn bounds(limits: &Limits, sources: &Sources) -> BTreeMap<String, Bound> {
    let Limits {
        cpu_seconds,
        cpu_milli,
        memory_bytes,
        processes,
        open_files,
        file_size_bytes,
        stack_bytes,
        tmp_bytes,
        tmp_inodes,
        output_bytes,
        out_bytes,
        io_read_bytes_per_second,
        io_write_bytes_per_second,
    } = limits;
    let always = [
        ("cpu_seconds", *cpu_seconds, "seconds", "profile"),
        ("cpus", *cpu_milli, "millicpus", sources.cpus),
        ("memory_mb", *memory_bytes, "bytes", sources.memory),
        ("processes", *processes, "count", sources.processes),
        ("open_files", *open_files, "count", "profile"),
        ("file_size_mb", *file_size_bytes, "bytes", "profile"),
        ("stack_mb", *stack_bytes, "bytes", "profile"),
        ("tmp_mb", *tmp_bytes, "bytes", "profile"),
        ("tmp_inodes", *tmp_inodes, "count", "profile"),
        ("output_mb", *output_bytes, "bytes", sources.output),
        ("out_mb", *out_bytes, "bytes", "profile"),
    ];
    let rates = [
        ("io_read_mb_per_second", io_read_bytes_per_second),
        ("io_write_mb_per_second", io_write_bytes_per_second),
    ];
    let always = always
        .into_iter()
        .map(|(key, value, unit, source)| (key, bound(value, unit, source)));
    let set = rates
        .into_iter()
        .filter_map(|(key, rate)| Some((key, bound((*rate)?, "bytes", "profile"))));
    always
        .chain(set)
        .map(|(key, bound)| (format!("limits.{key}"), bound))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn standard() -> Profile {
        crate::builtin::builtin("standard", Path::new("/home/me"))
            .unwrap()
            .profile
    }

    #[test]
    fn nothing_asked_is_the_profile() {
        let profile = standard();
        let effective = effective(&profile, &Task::default()).unwrap();
        assert_eq!(effective.limits, profile.limits);
        assert_eq!(effective.timeout_ms, 600_000);
        assert_eq!(effective.bounds.len(), 13);
        assert!(effective.bounds.values().all(|b| b.source == "profile"));
    }

    #[test]
    fn the_smaller_one_wins_and_says_so() {
        let mut profile = standard();
        profile.command_timeout_ms = 60_000;
        profile.limits.io_read_bytes_per_second = Some(MIB);
        let task = Task {
            memory_bytes: Some(64 * MIB),
            cpu_milli: Some(500),
            processes: Some(64),
            output_bytes: Some(100),
            timeout_ms: Some(30_000),
            ..Task::default()
        };
        let effective = effective(&profile, &task).unwrap();
        assert_eq!(effective.limits.memory_bytes, 64 * MIB);
        assert_eq!(effective.limits.cpu_milli, 500);
        assert_eq!(effective.limits.output_bytes, 100);
        assert_eq!(effective.command_timeout_ms, 30_000, "PR-23");
        let source = |key: &str| (effective.bounds[key].source, effective.bounds[key].unit);
        assert_eq!(source("limits.memory_mb"), ("task", "bytes"));
        assert_eq!(source("limits.cpus"), ("task", "millicpus"));
        assert_eq!(source("limits.processes"), ("profile", "count"));
        assert_eq!(source("timeout_seconds"), ("task", "milliseconds"));
        assert_eq!(source("command_timeout_seconds"), ("task", "milliseconds"));
        assert_eq!(source("limits.io_read_mb_per_second"), ("profile", "bytes"));

        let later = Task {
            timeout_ms: Some(120_000),
            ..Task::default()
        };
        let effective = super::effective(&profile, &later).unwrap();
        assert_eq!(effective.command_timeout_ms, 60_000);
        assert_eq!(
            effective.bounds["command_timeout_seconds"].source,
            "profile"
        );
    }

    /// H13: 0 is refused; more than the profile is refused by name.
    #[test]
    fn zero_and_more_are_refused_by_name() {
        type Set = fn(&mut Task, u64);
        let asks: [(&str, &str, Set); 5] = [
            ("memory", "limits.memory_mb", |t, v| {
                t.memory_bytes = Some(v)
            }),
            ("CPU", "limits.cpus", |t, v| t.cpu_milli = Some(v)),
            ("process", "limits.processes", |t, v| t.processes = Some(v)),
            ("output", "limits.output_mb", |t, v| {
                t.output_bytes = Some(v)
            }),
            ("time-out", "timeout_seconds", |t, v| t.timeout_ms = Some(v)),
        ];
        let profile = standard();
        for (what, key, set) in asks {
            for value in [0, u64::MAX] {
                let mut task = Task::default();
                set(&mut task, value);
                let error = effective(&profile, &task).unwrap_err();
                assert_eq!(error.code, Code::LimitInvalid);
                assert!(error.message.contains(what), "{error:?}");
                if value > 0 {
                    assert!(error.remediation.contains(key), "{error:?}");
                }
            }
        }
        // The edge itself is allowed, one more is not.
        for (asked, allowed) in [(64, true), (65, false)] {
            let task = Task {
                processes: Some(asked),
                ..Task::default()
            };
            assert_eq!(effective(&profile, &task).is_ok(), allowed, "{asked}");
        }
        let small = Task {
            memory_bytes: Some(1),
            ..Task::default()
        };
        let error = effective(&profile, &small).unwrap_err();
        assert!(error.remediation.contains("at least 4Mi"), "{error:?}");
    }
}
