//! H3: where a filter cannot be loaded, or is said to be loaded and is not,
//! nothing runs. A filter around orch itself plays the kernel without one.

use super::in_every_tier;
use crate::harness::{Test, Verdict};
use crate::rig::orch::Orch;
use crate::rig::place::Place;
use crate::rig::{Result, ensure, filter};

pub fn tests() -> Vec<Test> {
    let mut tests = in_every_tier("H3_seccomp_refused", refused);
    // Only `standard` and `strict` promise to find out (item 8 of the issue).
    let checked = |test: &Test| !test.name.ends_with("loose");
    tests.extend(
        in_every_tier("H3_seccomp_pretended", pretended)
            .into_iter()
            .filter(checked),
    );
    tests.extend(
        in_every_tier("H3_no_new_privileges_pretended", privileges)
            .into_iter()
            .filter(checked),
    );
    tests
}

/// A state directory of its own: nothing is known yet about this machine.
fn fresh(tier: &str) -> Result<(Orch, Place)> {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new("fresh")?;
    let state = place.dir("state")?;
    std::fs::set_permissions(&state, std::fs::Permissions::from_mode(0o700))
        .map_err(|e| e.to_string())?;
    let mut orch = Orch::new(tier)?;
    orch.command().env("ORCH_STATE_DIR", &state);
    Ok((orch, place))
}

fn attempt(tier: &str, number: i64, errno: u16) -> Result<()> {
    // Control: without the filter around it the same call runs.
    let (orch, _place) = fresh(tier)?;
    let ended = orch.run(&["/bin/echo", "ran"])?.clean()?;
    ensure(ended.stdout == "ran\n", || format!("{ended:?}"))?;
    let (mut orch, _place) = fresh(tier)?;
    filter::answer(orch.command(), number, errno);
    let ended = orch.run(&["/bin/echo", "ran"])?;
    ensure(ended.code == 125 && ended.stdout.is_empty(), || {
        format!("it ran without its filter: {ended:?}")
    })?;
    ensure(ended.stderr.contains("code: "), || {
        format!("no reason is given: {ended:?}")
    })
}

fn refused(tier: &'static str) -> Result<Verdict> {
    attempt(tier, libc::SYS_seccomp, 1)?;
    Ok(Verdict::Held)
}

/// seccomp(2) that claims success and does nothing.
fn pretended(tier: &'static str) -> Result<Verdict> {
    attempt(tier, libc::SYS_seccomp, 0)?;
    Ok(Verdict::Held)
}

/// The same with prctl(2), which sets no_new_privs and drops capabilities.
fn privileges(tier: &'static str) -> Result<Verdict> {
    attempt(tier, libc::SYS_prctl, 0)?;
    Ok(Verdict::Held)
}
