//! H6: every lease has a session keyring of its own. A task cannot ask (B4), so
//! the system calls of the lease are watched from outside.

use std::collections::BTreeSet;
use std::process::Command;

use super::in_every_tier;
use crate::harness::{Test, Verdict};
use crate::rig::host::{PATIENCE, eventually};
use crate::rig::orch::{Live, Orch};
use crate::rig::place::{self, Place};
use crate::rig::{Result, at, ensure};

pub fn tests() -> Vec<Test> {
    in_every_tier("H6_session_keyrings", keyrings)
}

/// A run under strace that waits for a line, and where strace writes.
fn traced(tier: &str, place: &Place, name: &str) -> Result<(Live, std::path::PathBuf)> {
    let log = place.path().join(name);
    let mut command = Command::new("strace");
    command
        .args(["-f", "-qq", "-e", "trace=keyctl", "-e", "signal=none", "-o"])
        .arg(&log)
        .arg(place::orch()?);
    let mut live =
        Orch::around(command, tier)?.start(&["/bin/sh", "-c", "echo ready; read -r line"])?;
    live.expect("ready")?;
    Ok((live, log))
}

/// Serial numbers that joining a session keyring gave.
fn joined(log: &std::path::Path) -> Result<Vec<i64>> {
    let text = std::fs::read_to_string(log).map_err(at(log.display()))?;
    Ok(text
        .lines()
        .filter(|line| line.contains("KEYCTL_JOIN_SESSION_KEYRING"))
        .filter_map(|line| line.rsplit("= ").next()?.trim().parse().ok())
        .collect())
}

fn keyrings(tier: &'static str) -> Result<Verdict> {
    if Command::new("strace").arg("-V").output().is_err() {
        return Ok(Verdict::Skipped("strace is not installed".to_owned()));
    }
    // The caller's own, which everything that it starts would share.
    let get: libc::c_long = 0;
    let session: libc::c_long = -3;
    // SAFETY: plain numbers.
    let own = unsafe { libc::syscall(libc::SYS_keyctl, get, session, 0) };
    ensure(own > 0, || {
        format!("this process has no session keyring: {own}")
    })?;

    let place = Place::new("keyring")?;
    let (mut first, first_log) = traced(tier, &place, "first")?;
    let (mut second, second_log) = traced(tier, &place, "second")?;
    let mut seen = BTreeSet::from([own]);
    for (live, log) in [(&first, &first_log), (&second, &second_log)] {
        let serials = joined(log)?;
        let last = *serials.last().ok_or("no lease joined a session keyring")?;
        ensure(last > 0, || format!("joining failed: {serials:?}"))?;
        ensure(seen.insert(last), || {
            format!("keyring {last} is shared: caller's {own}, so far {seen:?}")
        })?;
        // It belongs to the container's own range: its root made it.
        let (_, task) = live.task()?;
        let root = task.first().ok_or("no task")?.uid() & !0xffff;
        eventually("a key of the container's root", PATIENCE, || {
            let users = std::fs::read_to_string("/proc/key-users").ok()?;
            users
                .lines()
                .find(|line| line.trim_start().starts_with(&format!("{root}:")))
                .map(|_| ())
        })?;
    }
    for live in [&mut first, &mut second] {
        live.say("")?;
    }
    first.end(PATIENCE)?.clean()?;
    second.end(PATIENCE)?.clean()?;
    Ok(Verdict::Held)
}
