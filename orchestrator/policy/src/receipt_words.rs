//! A receipt in one sentence, for people (EV-01, PX-15, design §8).

use crate::quantity::{show_bytes, show_duration};
use crate::receipt::{Bound, Cleanup, CopyOut, Reason, Receipt, State};

/// What happened, what it used, and, where a limit ended it, which one and how to
/// raise it.
///
/// Built from every field but `summary`. Names that a task chose (its command, the
/// files it left) are not made harmless for a terminal: whoever prints it does that.
#[must_use]
pub fn summary(receipt: &Receipt) -> String {
    let (what, limit) = ending(receipt);
    let mut sentence = what;
    if !matches!(receipt.reason, Reason::NotFound | Reason::NotExecutable) {
        sentence += &used(receipt);
    }
    if let Some(key) = limit {
        sentence += &raise(receipt, key);
    }
    if limit != Some("limits.processes")
        && let Some(hits) = hits(receipt, "limits.processes")
    {
        sentence += &format!("; it was refused a new process {hits}");
        sentence += &raise(receipt, "limits.processes");
    }
    let unkept = unkept(receipt);
    if !unkept.is_empty() {
        sentence += &format!("; this host did not limit {}", unkept.join(", "));
    }
    if receipt.denied == Some(true) {
        sentence += "; its output looks as if the sandbox refused something";
    }
    if let Some(out) = &receipt.out {
        sentence += &copied(out);
    }
    if let Some(artifacts) = &receipt.artifacts {
        let (bytes, path) = (size(artifacts.bytes), &artifacts.path);
        sentence += &format!("; {bytes} of output kept in {path}/{}", receipt.task);
    }
    if receipt.cleanup == Cleanup::Unconfirmed {
        sentence += "; something that it started could not be shown to be gone";
    }
    sentence
}

/// Ceilings of the profile without which a task could take the machine (H18).
fn unkept(receipt: &Receipt) -> Vec<&str> {
    let grave = ["memory", "processes", "cpus"];
    let missing = receipt.missing.iter().map(String::as_str);
    missing.filter(|name| grave.contains(name)).collect()
}

/// What ended it, and the key of the limit that did, where one did.
fn ending(receipt: &Receipt) -> (String, Option<&'static str>) {
    let command = receipt.argv.first().map_or("", String::as_str);
    let code = receipt
        .exit_code
        .map_or(String::new(), |code| format!(" (exit code {code})"));
    let by = |name: &str, key: &'static str, show: fn(&Bound) -> String| {
        let value = receipt
            .limits
            .get(key)
            .map_or(String::new(), |bound| format!(" of {}", show(bound)));
        (format!("ended by the {name}{value}{code}"), Some(key))
    };
    match (receipt.state, receipt.reason) {
        (State::Running, _) => ("still running".to_owned(), None),
        (_, Reason::RuntimeFailed) => {
            let why = receipt
                .error
                .as_ref()
                .map_or(String::new(), |error| format!(": {error}"));
            (format!("orch failed{why}{code}"), None)
        }
        (_, Reason::NotFound) => (format!("{command} was not found inside{code}"), None),
        (_, Reason::NotExecutable) => (format!("{command} cannot be executed{code}"), None),
        (State::Timeout, _) | (_, Reason::Timeout) => {
            let key = time_limit(receipt);
            by("time limit", key, |bound| show_duration(bound.value))
        }
        (State::OutputLimit, _) | (_, Reason::OutputLimit) => {
            by("output limit", "limits.output_mb", |bound| {
                show_bytes(bound.value)
            })
        }
        (_, Reason::Oom) => by("memory limit", "limits.memory_mb", |bound| {
            show_bytes(bound.value)
        }),
        (_, Reason::CpuLimit) => by("CPU time limit", "limits.cpu_seconds", |bound| {
            format!("{} s", bound.value)
        }),
        (State::SessionClosed, _) => (format!("ended with its session{code}"), None),
        (State::Cancelled, _) | (_, Reason::Cancelled) => (format!("cancelled{code}"), None),
        // setrlimit(2): a write beyond RLIMIT_FSIZE.
        (_, Reason::Signal) if receipt.signal == Some(25) => {
            by("file size limit", "limits.file_size_mb", |bound| {
                show_bytes(bound.value)
            })
        }
        (_, Reason::Signal) => {
            let signal = receipt.signal.map_or("a signal".to_owned(), signal);
            (format!("killed by {signal}{code}"), None)
        }
        (State::Exited, Reason::Exit) => {
            let code = receipt.exit_code.map_or(String::new(), exit);
            (format!("exited{code}"), None)
        }
    }
}

/// The code, and what it means where a shell passes on how its command ended
/// (POSIX, XCU 2.8.2): 128 and the number of the signal.
fn exit(code: i32) -> String {
    match signal_name(code - 128) {
        Some(name) => format!(" with code {code}, with which shells report {name}"),
        None => format!(" with code {code}"),
    }
}

/// Of the two clocks the one that runs out first; the task's where they are equal.
fn time_limit(receipt: &Receipt) -> &'static str {
    let of = |key: &str| receipt.limits.get(key).map(|bound| bound.value);
    match (of("command_timeout_seconds"), of("timeout_seconds")) {
        (Some(command), Some(task)) if command < task => "command_timeout_seconds",
        (Some(_), None) => "command_timeout_seconds",
        _ => "timeout_seconds",
    }
}

fn used(receipt: &Receipt) -> String {
    let usage = &receipt.usage;
    let mut parts = Vec::new();
    if let Some(wall) = usage.wall_us {
        parts.push(format!(" after {}", time(wall)));
    }
    if let Some(cpu) = usage.cpu_us {
        parts.push(format!("CPU time {}", time(cpu)));
    }
    if let Some(peak) = usage.memory_peak_bytes {
        parts.push(format!("peak memory {}", size(peak)));
    }
    match usage.wall_us {
        None if !parts.is_empty() => format!(" ({})", parts.join(", ")),
        _ => parts.join(", "),
    }
}

fn hits(receipt: &Receipt, key: &str) -> Option<String> {
    match receipt.limits.get(key)?.hits? {
        0 => None,
        1 => Some("once".to_owned()),
        hits => Some(format!("{hits} times")),
    }
}

/// How to raise a limit: by the flag where the task set it, else in a profile,
/// because a task may only tighten.
fn raise(receipt: &Receipt, key: &str) -> String {
    let flag = match key {
        "limits.memory_mb" => Some("--memory"),
        "limits.processes" => Some("--pids"),
        "limits.output_mb" => Some("--output-limit"),
        "timeout_seconds" | "command_timeout_seconds" => Some("--timeout"),
        _ => None,
    };
    let profile = &receipt.profile;
    match (receipt.limits.get(key).map(|bound| bound.source), flag) {
        (Some("task"), Some(flag)) => {
            format!("; to raise it, ask for more with {flag}, up to what profile {profile} allows")
        }
        (Some("host"), _) => "; this machine has no more".to_owned(),
        (Some("tool"), _) => "; to raise it, ask for more when calling the tool".to_owned(),
        _ => format!("; to raise it, set {key} in a profile that extends {profile}"),
    }
}

fn copied(out: &CopyOut) -> String {
    let files = match out.files {
        1 => "1 file".to_owned(),
        files => format!("{files} files"),
    };
    let left = match out.skipped.len() {
        0 => String::new(),
        left => format!(", {left} left behind"),
    };
    let (bytes, directory) = (size(out.bytes), &out.directory);
    format!("; {files} ({bytes}) copied to {directory}{left}")
}

/// Microseconds in the unit in which two digits say enough.
fn time(us: u64) -> String {
    match us {
        0..1_000 => format!("{us} µs"),
        1_000..1_000_000 => format!("{} ms", us / 1_000),
        1_000_000..60_000_000 => format!("{}.{} s", us / 1_000_000, us / 100_000 % 10),
        _ => format!("{} min {} s", us / 60_000_000, us / 1_000_000 % 60),
    }
}

fn size(bytes: u64) -> String {
    for (unit, name) in [(1_u64 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")] {
        if bytes >= unit {
            let tenths = bytes % unit * 10 / unit;
            return match bytes / unit {
                whole @ 0..10 => format!("{whole}.{tenths} {name}"),
                whole => format!("{whole} {name}"),
            };
        }
    }
    format!("{bytes} bytes")
}

/// Signal by its name, where people know it.
fn signal(number: i32) -> String {
    signal_name(number).map_or_else(|| format!("signal {number}"), str::to_owned)
}

/// signal(7), x86-64 numbers.
fn signal_name(number: i32) -> Option<&'static str> {
    Some(match number {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        10 => "SIGUSR1",
        11 => "SIGSEGV",
        12 => "SIGUSR2",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        _ => return None,
    })
}

#[cfg(test)]
#[path = "receipt_words_tests.rs"]
mod tests;
