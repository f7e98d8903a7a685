//! Design §4: nothing on the path of `orch run` writes `cgroup.procs`, whose
//! writes wait for an RCU grace period.

use std::process::Command;

use super::in_every_tier;
use crate::harness::{Test, Verdict};
use crate::rig::orch::Orch;
use crate::rig::place::{self, Place};
use crate::rig::{Result, at, ensure};

pub fn tests() -> Vec<Test> {
    in_every_tier("H18_no_write_to_cgroup.procs", writes)
}

/// A command under strace, and the opens of `cgroup.procs` for writing in its log.
pub fn opens(log: &std::path::Path) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(log).map_err(at(log.display()))?;
    Ok(text
        .lines()
        .filter(|line| line.contains("cgroup.procs"))
        .filter(|line| {
            ["O_WRONLY", "O_RDWR", "creat("]
                .iter()
                .any(|way| line.contains(way))
        })
        .map(str::to_owned)
        .collect())
}

pub fn strace(log: &std::path::Path) -> Command {
    let mut command = Command::new("strace");
    command
        .args(["-f", "-qq", "-s", "256", "-e", "signal=none"])
        .args(["-e", "trace=open,openat,openat2,creat,write,clone3", "-o"])
        .arg(log);
    command
}

fn writes(tier: &'static str) -> Result<Verdict> {
    if Command::new("strace").arg("-V").output().is_err() {
        return Ok(Verdict::Skipped("strace is not installed".to_owned()));
    }
    let place = Place::new("strace")?;
    // Twice: the first run of a tier also goes through the self-test.
    for name in ["first", "second"] {
        let log = place.path().join(name);
        let mut command = strace(&log);
        command.arg(place::orch()?);
        Orch::around(command, tier)?.run(&["/bin/true"])?.clean()?;
        let found = opens(&log)?;
        ensure(found.is_empty(), || found.join("\n"))?;
        // A command did get into its group, in the way that does not wait.
        let text = std::fs::read_to_string(&log).map_err(at(log.display()))?;
        let joined = text
            .lines()
            .any(|line| line.contains("write(") && line.contains("\"0\", 1"))
            || text.contains("CLONE_INTO_CGROUP");
        ensure(joined, || "nothing joined a control group".to_owned())?;
    }
    // Control: one that does is counted.
    let log = place.path().join("control");
    let file = place.file("cgroup.procs", "")?;
    let status = strace(&log)
        .args(["/bin/sh", "-c", "echo 0 > \"$1\"", "sh"])
        .arg(&file)
        .status()
        .map_err(at("strace"))?;
    let found = opens(&log)?;
    ensure(status.success() && found.len() == 1, || {
        format!("a write is not counted: {found:?}")
    })?;
    Ok(Verdict::Held)
}
