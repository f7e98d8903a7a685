//! The privileged suite: what users are promised, tried on a real kernel.
//!
//! Every test names its row. It runs the `orch` that `ORCH_BIN` names, as root.
//! A test that cannot run here says why and counts as ignored; with
//! `ORCH_MUST_RUN=1` it fails instead.

#[allow(dead_code, reason = "used as soon as the first room is there")]
mod harness;

use std::process::ExitCode;

use libtest_mimic::Arguments;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let tests: Vec<harness::Test> = Vec::new();
    harness::run(&arguments, tests)
}
