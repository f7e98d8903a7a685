//! What a clock cannot blur: how many system calls one run makes.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::{Stand, run};
use crate::case::{Case, Kind, Pace, Peer, Sampler};
use crate::invocation::Invocation;
use crate::program::{answers, find};
use crate::scratch::Scratch;

/// All system calls of the whole tree, next to those of runc.
pub fn cases(stand: &Stand, wants: &dyn Fn(&str) -> bool) -> Vec<Case> {
    let name = "syscalls.strict";
    if !wants(name) {
        return vec![];
    }
    let kind = find("strace")
        .filter(|strace| answers(strace, &["-f", "-qq", "-o", "/dev/null", "/bin/true"]))
        .map_or_else(
            || Kind::Absent {
                peer: None,
                reason: "no strace that may trace on this machine".into(),
            },
            |strace| counted(stand, &strace),
        );
    vec![Case {
        name: name.into(),
        unit: "calls",
        pace: Pace::BackToBack,
        bar: None,
        kind,
    }]
}

fn counted(stand: &Stand, strace: &Path) -> Kind {
    let orch = run::orch(stand);
    let able = |runc: &PathBuf| run::able(runc).is_ok();
    let peer = find("runc").filter(able).map(|runc| {
        let stand = stand.clone();
        let sampler = counter(strace.into(), move || run::runtime(&runc, &stand));
        Peer {
            name: "runc".into(),
            sampler,
        }
    });
    Kind::Value {
        subject: counter(strace.into(), move || Ok(orch.clone())),
        peer,
    }
}

fn counter(strace: PathBuf, command: impl Fn() -> Result<Invocation> + 'static) -> Sampler {
    let mut ready = None;
    Box::new(move || {
        let (scratch, traced) = match &mut ready {
            Some(ready) => ready,
            empty => {
                let scratch = Scratch::new()?;
                let summary = scratch.path().join("summary");
                let flags = ["-f", "-c", "-U", "calls,name", "-o"].map(AsRef::as_ref);
                let args = flags.into_iter().chain([summary.as_os_str()]);
                let traced = command()?.wrapped_in(&strace, args);
                empty.insert((scratch, traced))
            }
        };
        traced.time()?;
        let summary = scratch.path().join("summary");
        let text = fs::read_to_string(&summary).context("strace left no summary")?;
        total(&text).context("the summary of strace has no total")
    })
}

/// The number in front of `total`.
fn total(summary: &str) -> Option<f64> {
    let line = summary
        .lines()
        .rfind(|line| line.trim_end().ends_with(" total"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_read_from_the_summary() {
        let summary = "    calls syscall\n--------- ----------------\n        \
                       3 mmap\n        1 execve\n--------- ----------------\n        4 total\n";
        assert_eq!(total(summary), Some(4.0));
        assert_eq!(total("nothing"), None);
    }

    #[test]
    fn one_more_call_is_one_more() {
        let Some(strace) = find("strace") else {
            assert!(std::env::var_os("ORCH_MUST_RUN").is_none(), "no strace");
            return;
        };
        let count = |script: &'static str| {
            let command = move || Ok(Invocation::new("/bin/sh", ["-c", script]));
            counter(strace.clone(), command)().unwrap()
        };
        // `cd` of the shell is one chdir and a fixed number of look-ups.
        let (one, two, three) = (
            count("umask 022"),
            count("umask 022; umask 022"),
            count("umask 022; umask 022; umask 022"),
        );
        assert!(one > 10.0 && two > one, "{one} {two} {three}");
        assert!((three - two - (two - one)).abs() < f64::EPSILON);
    }
}
