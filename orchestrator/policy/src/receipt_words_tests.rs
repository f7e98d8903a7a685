use std::path::Path;

use super::*;
use crate::error::{Code, Error};
use crate::limits::effective;
use crate::receipt::{RECEIPT_VERSION, Stream, Usage};
use crate::task::Task;

/// A task of tier strict that exited with 0.
fn receipt(task: &Task) -> Receipt {
    let profile = crate::builtin::builtin("strict", Path::new("/home/me"))
        .unwrap()
        .profile;
    Receipt {
        version: RECEIPT_VERSION,
        task: "t".into(),
        state: State::Exited,
        reason: Reason::Exit,
        summary: String::new(),
        exit_code: Some(0),
        signal: None,
        exit_source: None,
        denied: None,
        argv: vec!["job".into()],
        labels: Default::default(),
        started: "2026-01-01T00:00:00Z".into(),
        usage: Usage {
            wall_us: Some(1_234_567),
            cpu_us: Some(830_000),
            memory_peak_bytes: Some(45 << 20),
            ..Usage::default()
        },
        stdout: Stream::default(),
        stderr: Stream::default(),
        output: String::new(),
        limits: effective(&profile, task).unwrap().bounds,
        profile: profile.name,
        tier: profile.tier,
        profile_sha256: String::new(),
        image: "host".into(),
        network: None,
        denials: None,
        files_changed: None,
        out: None,
        artifacts: None,
        scrub: None,
        missing: Vec::new(),
        cleanup: Cleanup::Confirmed,
        stages_us: Default::default(),
        error: None,
    }
}

fn ended(state: State, reason: Reason, code: i32) -> Receipt {
    Receipt {
        state,
        reason,
        exit_code: Some(code),
        ..receipt(&Task::default())
    }
}

/// EV-02, EV-03: a code that is not zero is a normal result.
#[test]
fn an_exit_says_code_time_and_memory() {
    assert_eq!(
        summary(&ended(State::Exited, Reason::Exit, 3)),
        "exited with code 3 after 1.2 s, CPU time 830 ms, peak memory 45 MiB"
    );
}

/// What is not known is left out, never 0.
#[test]
fn what_is_not_known_is_not_said() {
    let mut receipt = receipt(&Task::default());
    receipt.usage = Usage::default();
    assert_eq!(summary(&receipt), "exited with code 0");
    receipt.usage.cpu_us = Some(5);
    assert_eq!(summary(&receipt), "exited with code 0 (CPU time 5 µs)");
}

/// PX-15, PR-20, PR-23: which limit, and how to raise it where it was set.
#[test]
fn a_limit_is_named_with_the_way_to_raise_it() {
    let used = " after 1.2 s, CPU time 830 ms, peak memory 45 MiB";
    for (state, reason, code, sentence, how) in [
        (
            State::Exited,
            Reason::Oom,
            137,
            "ended by the memory limit of 1Gi (exit code 137)",
            "set limits.memory_mb in a profile that extends strict",
        ),
        (
            State::Exited,
            Reason::CpuLimit,
            152,
            "ended by the CPU time limit of 60 s (exit code 152)",
            "set limits.cpu_seconds in a profile that extends strict",
        ),
        (
            State::OutputLimit,
            Reason::OutputLimit,
            137,
            "ended by the output limit of 16Mi (exit code 137)",
            "set limits.output_mb in a profile that extends strict",
        ),
        (
            State::Timeout,
            Reason::Timeout,
            124,
            "ended by the time limit of 5m (exit code 124)",
            "set timeout_seconds in a profile that extends strict",
        ),
    ] {
        assert_eq!(
            summary(&ended(state, reason, code)),
            format!("{sentence}{used}; to raise it, {how}")
        );
    }
}

#[test]
fn a_limit_that_the_task_set_is_raised_by_its_flag() {
    let task = Task {
        memory_bytes: Some(64 << 20),
        timeout_ms: Some(1500),
        ..Task::default()
    };
    let of = |state, reason| {
        summary(&Receipt {
            state,
            reason,
            ..receipt(&task)
        })
    };
    let memory = of(State::Exited, Reason::Oom);
    assert!(memory.contains("limit of 64Mi"), "{memory}");
    assert!(memory.contains("with --memory"), "{memory}");
    let time = of(State::Timeout, Reason::Timeout);
    assert!(time.contains("limit of 1500ms"), "{time}");
    assert!(time.contains("with --timeout"), "{time}");
}

#[test]
fn the_shorter_clock_is_the_one_that_ran_out() {
    let mut receipt = ended(State::Timeout, Reason::Timeout, 124);
    if let Some(bound) = receipt.limits.get_mut("command_timeout_seconds") {
        bound.value = 10_000;
    }
    let sentence = summary(&receipt);
    assert!(sentence.contains("of 10s"), "{sentence}");
    assert!(
        sentence.contains("set command_timeout_seconds"),
        "{sentence}"
    );
}

#[test]
fn a_signal_has_its_name_and_a_full_file_its_limit() {
    let of = |number| {
        summary(&Receipt {
            signal: Some(number),
            ..ended(State::Exited, Reason::Signal, 128 + number)
        })
    };
    assert!(of(11).starts_with("killed by SIGSEGV (exit code 139)"));
    assert!(of(40).starts_with("killed by signal 40 (exit code 168)"));
    assert!(of(25).starts_with("ended by the file size limit of 256Mi"));
    assert!(of(25).contains("limits.file_size_mb"));
}

#[test]
fn a_shell_says_of_its_command_what_killed_it() {
    let of = |code| summary(&ended(State::Exited, Reason::Exit, code));
    assert!(of(153).starts_with("exited with code 153, with which shells report SIGXFSZ after"));
    assert!(of(128).starts_with("exited with code 128 after"));
    assert!(of(255).starts_with("exited with code 255 after"));
}

/// EV-05: where the rest of the output is, with the id that `orch output` wants.
#[test]
fn kept_output_is_named_with_its_folder() {
    let receipt = Receipt {
        artifacts: Some(crate::receipt::Artifacts {
            path: "/var/kept".into(),
            bytes: 2048,
            sha256: String::new(),
        }),
        ..receipt(&Task::default())
    };
    let sentence = summary(&receipt);
    assert!(
        sentence.ends_with("; 2.0 KiB of output kept in /var/kept/t"),
        "{sentence}"
    );
}

/// PX-17: orch's failure is never the command's.
#[test]
fn failures_of_orch_are_told_from_failures_of_the_command() {
    let error = Error::new(Code::RuntimeFailed, "the launcher is gone", "run it again");
    let receipt = Receipt {
        error: Some(error),
        usage: Usage::default(),
        ..ended(State::Exited, Reason::RuntimeFailed, 125)
    };
    assert_eq!(
        summary(&receipt),
        "orch failed: the launcher is gone (exit code 125)"
    );
    assert_eq!(
        summary(&ended(State::Exited, Reason::NotFound, 127)),
        "job was not found inside (exit code 127)"
    );
}

#[test]
fn refusals_results_and_leftovers_are_mentioned() {
    let mut receipt = receipt(&Task::default());
    receipt.usage = Usage::default();
    receipt.denied = Some(true);
    receipt.cleanup = Cleanup::Unconfirmed;
    receipt.out = Some(CopyOut {
        directory: "/r".into(),
        files: 1,
        bytes: 2048,
        skipped: vec![("x".into(), "a link".into())],
    });
    if let Some(bound) = receipt.limits.get_mut("limits.processes") {
        bound.hits = Some(4);
    }
    assert_eq!(
        summary(&receipt),
        "exited with code 0; it was refused a new process 4 times; to raise it, set \
         limits.processes in a profile that extends strict; its output looks as if the \
         sandbox refused something; 1 file (2.0 KiB) copied to /r, 1 left behind; something \
         that it started could not be shown to be gone"
    );
}

#[test]
fn amounts_are_short() {
    for (us, text) in [
        (999, "999 µs"),
        (1_999, "1 ms"),
        (59_990_000, "59.9 s"),
        (125_000_000, "2 min 5 s"),
    ] {
        assert_eq!(time(us), text);
    }
    for (bytes, text) in [
        (1023, "1023 bytes"),
        (1536, "1.5 KiB"),
        (10 << 20, "10 MiB"),
        (3 << 30, "3.0 GiB"),
    ] {
        assert_eq!(size(bytes), text);
    }
}
