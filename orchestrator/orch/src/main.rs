//! `orch`: runs the work of agents in containers of three tiers.
//!
//! - [`cli`]: one file for each subcommand.
//! - [`task_args`], [`env_arg`], [`user_arg`]: the command line of a task, parsed.
//! - [`artifacts_arg`], [`audit_arg`], [`flag_or_variable`]: where output and the audit
//!   log are kept.
//! - [`profile_arg`], [`home`]: a profile by name or file.
//! - [`prepare`], [`sandbox`], [`bundle`]: all of that against its profile, what
//!   would be made of it, and the same on disk for another runtime.
//! - [`streams`], [`progress`], [`document`], [`receipt_file`]: what goes in and
//!   comes out.
//! - [`doctor`], [`doctor_text`]: what this machine can keep.
//! - [`refusal`], [`mod@print`]: errors and listings.
//! - [`embed`]: the executables that are carried inside.
#![forbid(unsafe_code)]

mod artifacts_arg;
mod audit_arg;
mod base64;
mod bundle;
mod cli;
mod doctor;
mod doctor_text;
mod document;
mod embed;
mod env_arg;
mod flag_or_variable;
mod home;
mod prepare;
mod print;
mod profile_arg;
mod progress;
mod receipt_file;
mod refusal;
mod sandbox;
mod streams;
mod task_args;
mod user_arg;

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(cli::main(std::env::args_os().collect()))
}
