//! The receipt of a task.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use orch_policy::Error;
use orch_policy::profile::Image;
use orch_policy::receipt::{
    Artifacts, Bound, Cleanup, CopyOut, ExitSource, RECEIPT_VERSION, Reason, Receipt, State,
    Stream, Usage,
};
use orch_policy::receipt_words::summary;
use orch_wire::launch::CgroupUsage;

use crate::ending::Ending;
use crate::request::Request;
use crate::stream::Output;
use crate::supervise::Stop;

/// Phrases that programs use when the system has refused them something (PX-18).
const REFUSALS: &[&str] = &[
    "Read-only file system",
    "Permission denied",
    "Operation not permitted",
    "Function not implemented",
    "Network is unreachable",
];

/// How a command was brought to its end, or did not begin.
#[derive(Debug)]
pub enum Fate {
    /// It ran.
    Ran {
        /// Why it is not waited for any longer.
        stop: Stop,
        /// How its first process ended, and who says so; unknown where it was
        /// ended by force.
        ending: Option<(Ending, ExitSource)>,
    },
    /// It was not found.
    NotFound,
    /// It was found and cannot be executed.
    NotExecutable,
    /// orch failed.
    Failed(Error),
    /// It ran, and what it wrote could not be kept (EV-05).
    Unkept(Error),
}

/// Everything that a receipt is made from.
#[derive(Debug)]
pub struct Facts<'a> {
    /// Id of the task.
    pub task: &'a str,
    /// What was asked.
    pub request: &'a Request,
    /// How it ended.
    pub fate: Fate,
    /// Start.
    pub started: SystemTime,
    /// From exec to end.
    pub wall: Option<Duration>,
    /// Counters.
    pub usage: CgroupUsage,
    /// Output streams: standard output, then standard error.
    pub outputs: &'a [Output],
    /// The last bytes of both.
    pub merged: &'a [u8],
    /// Copied results.
    pub out: Option<CopyOut>,
    /// Where its output is kept.
    pub artifacts: Option<Artifacts>,
    /// Limits that the host cannot keep.
    pub missing: Vec<String>,
    /// What could not be removed.
    pub left: Vec<String>,
    /// Duration of each stage.
    pub stages: Vec<(String, u64)>,
}

struct Verdict {
    state: State,
    reason: Reason,
    exit_code: i32,
    signal: Option<i32>,
    source: ExitSource,
    error: Option<Error>,
}

/// Makes the receipt.
#[must_use]
pub fn receipt(facts: Facts<'_>) -> Receipt {
    let verdict = verdict(facts.fate, &facts.usage);
    let stream = |index: usize| facts.outputs.get(index).map(stream).unwrap_or_default();
    let profile = &facts.request.profile;
    let mut receipt = Receipt {
        version: RECEIPT_VERSION,
        task: facts.task.to_owned(),
        state: verdict.state,
        reason: verdict.reason,
        summary: String::new(),
        exit_code: Some(verdict.exit_code),
        signal: verdict.signal,
        exit_source: Some(verdict.source),
        denied: denied(verdict.exit_code, facts.outputs),
        argv: facts
            .request
            .task
            .argv
            .iter()
            .map(|arg| arg.to_string_lossy().into_owned())
            .collect(),
        labels: facts.request.task.labels.iter().cloned().collect(),
        started: humantime::format_rfc3339_millis(facts.started).to_string(),
        usage: Usage {
            wall_us: facts.wall.map(micros),
            cpu_us: facts.usage.cpu_us,
            memory_peak_bytes: facts.usage.memory_peak,
            pids_peak: facts.usage.pids_peak,
            io_read_bytes: facts.usage.io_read,
            io_write_bytes: facts.usage.io_write,
        },
        stdout: stream(0),
        stderr: stream(1),
        output: preview(facts.merged),
        limits: hits(facts.request.effective.bounds.clone(), &facts.usage),
        profile: profile.name.clone(),
        tier: profile.tier,
        profile_sha256: facts.request.profile_sha256.clone(),
        image: match &profile.image {
            Image::Host => "host".to_owned(),
            Image::Dir(path) => path.display().to_string(),
        },
        network: None,
        denials: None,
        files_changed: None,
        out: facts.out,
        artifacts: facts.artifacts,
        scrub: None,
        missing: facts.missing,
        cleanup: if facts.left.is_empty() {
            Cleanup::Confirmed
        } else {
            Cleanup::Unconfirmed
        },
        stages_us: facts.stages.into_iter().collect(),
        error: verdict.error,
    };
    receipt.summary = summary(&receipt);
    receipt
}

/// Microseconds of a duration.
#[must_use]
pub fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Text where it is text; a character that was cut in two at the front is left out.
fn preview(merged: &[u8]) -> String {
    let start = merged
        .iter()
        .position(|byte| byte & 0b1100_0000 != 0b1000_0000)
        .unwrap_or(0);
    // In front of a whole character there are at most three bytes of another.
    let merged = if start <= 3 { &merged[start..] } else { merged };
    String::from_utf8_lossy(merged).into_owned()
}

fn stream(output: &Output) -> Stream {
    Stream {
        bytes: output.bytes,
        truncated: output.truncated,
    }
}

fn verdict(fate: Fate, usage: &CgroupUsage) -> Verdict {
    let orch = |state, reason, exit_code| Verdict {
        state,
        reason,
        exit_code,
        signal: None,
        source: ExitSource::Orch,
        error: None,
    };
    match fate {
        Fate::NotFound => orch(State::Exited, Reason::NotFound, 127),
        Fate::NotExecutable => orch(State::Exited, Reason::NotExecutable, 126),
        Fate::Failed(error) | Fate::Unkept(error) => Verdict {
            error: Some(error),
            ..orch(State::Exited, Reason::RuntimeFailed, 125)
        },
        Fate::Ran { stop, ending } => match stop {
            Stop::Timeout => orch(State::Timeout, Reason::Timeout, 124),
            Stop::CpuLimit => orch(State::Exited, Reason::CpuLimit, 152),
            Stop::OutputLimit => orch(State::OutputLimit, Reason::OutputLimit, 137),
            Stop::Cancelled(signal) => orch(State::Cancelled, Reason::Cancelled, 128 + signal),
            Stop::Unkept => orch(State::Exited, Reason::RuntimeFailed, 125),
            Stop::Ended => match ending {
                Some((ending, source)) => ended(ending, source, usage),
                None => orch(State::Exited, Reason::RuntimeFailed, 125),
            },
        },
    }
}

fn ended(ending: Ending, source: ExitSource, usage: &CgroupUsage) -> Verdict {
    let (reason, exit_code, signal) = match ending {
        // A shell says so of a child of its own that was killed (E6).
        Ending::Exited(137) if usage.oom_kills > Some(0) => (Reason::Oom, 137, None),
        Ending::Exited(code) => (Reason::Exit, code, None),
        Ending::Signalled(signal) => {
            let reason = match signal {
                libc::SIGXCPU => Reason::CpuLimit,
                libc::SIGKILL if usage.oom_kills > Some(0) => Reason::Oom,
                _ => Reason::Signal,
            };
            (reason, 128 + signal, Some(signal))
        }
    };
    Verdict {
        state: State::Exited,
        reason,
        exit_code,
        signal,
        source,
        error: None,
    }
}

fn denied(exit_code: i32, outputs: &[Output]) -> Option<bool> {
    let seen = outputs.iter().any(|output| {
        let tail = String::from_utf8_lossy(output.tail());
        REFUSALS.iter().any(|phrase| tail.contains(phrase))
    });
    (exit_code != 0 && seen).then_some(true)
}

fn hits(mut bounds: BTreeMap<String, Bound>, usage: &CgroupUsage) -> BTreeMap<String, Bound> {
    for (key, hits) in [
        ("limits.memory_mb", usage.memory_hits),
        ("limits.processes", usage.pids_hits),
        ("limits.cpus", usage.cpu_throttled),
    ] {
        if let Some(bound) = bounds.get_mut(key) {
            bound.hits = hits;
        }
    }
    bounds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preview_does_not_begin_in_the_middle_of_a_character() {
        assert_eq!(preview(b""), "");
        assert_eq!(preview("\u{e9}a".as_bytes()), "\u{e9}a");
        assert_eq!(preview(&"\u{e9}a".as_bytes()[1..]), "a");
        assert_eq!(preview(b"a\xff"), "a\u{fffd}");
    }
}
