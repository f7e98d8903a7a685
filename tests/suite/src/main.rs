//! The privileged suite: what users are promised, tried on a real kernel.
//!
//! Every test names its row. It runs the `orch` that `ORCH_BIN` names, as root.
//! A test that cannot run here says why and counts as ignored; with
//! `ORCH_MUST_RUN=1` it fails instead.
//!
//! Called as `orch-suite mode NAME ARG…` it is a mode of the probe program
//! instead: that is how it goes into a sandbox.

mod artifacts;
mod attacks;
mod audit;
mod bad_input;
mod call;
mod copy_out;
mod delegated;
mod doctor;
mod flags;
mod floods;
mod folders;
mod harness;
mod hazards;
mod hidden;
mod kills;
mod left;
mod limits;
mod one_program;
mod pace;
mod paths;
mod place;
mod probes;
mod rates;
mod receipts;
mod refusal;
mod rig;
mod rootless;
mod scratch;
mod spread;
mod streams;
mod survivors;
mod terminal;
mod unified;
mod user;

use std::process::ExitCode;

use libtest_mimic::Arguments;

/// First argument of a call as a mode of the probe program.
pub const MODE: &str = "mode";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args_os()
        .map(|arg| arg.to_string_lossy().into_owned())
        .collect();
    if let [_, first, name, rest @ ..] = args.as_slice()
        && first == MODE
    {
        return ExitCode::from(orch_probe::modes::run(name, rest).unwrap_or(2));
    }
    let arguments = Arguments::from_args();
    let tests = [
        attacks::tests(),
        limits::tests(),
        one_program::tests(),
        floods::tests(),
        kills::tests(),
        survivors::tests(),
        streams::tests(),
        terminal::tests(),
        bad_input::tests(),
        flags::tests(),
        paths::tests(),
        folders::tests(),
        hidden::tests(),
        spread::tests(),
        scratch::tests(),
        copy_out::tests(),
        artifacts::tests(),
        audit::tests(),
        receipts::tests(),
        rootless::tests(),
        hazards::tests(),
        doctor::tests(),
        unified::tests(),
        delegated::tests(),
        probes::tests(),
    ];
    let code = harness::run(&arguments, tests.into_iter().flatten().collect());
    place::sweep();
    rig::place::forget_state();
    code
}
