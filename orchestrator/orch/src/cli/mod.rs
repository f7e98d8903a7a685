//! The command line: one file for each subcommand.

mod completions;
mod doctor;
mod output;
mod profile;
mod run;
mod spec;

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};
use orch_policy::Error;

use crate::refusal::{self, FAILED};

/// Run the work of agents in sandboxes of three tiers.
///
/// A profile says what a task may see, write, use and talk to. orch makes an OCI
/// container of it, runs the command, ends whatever it started, and says in a
/// receipt what happened.
#[derive(Debug, Parser)]
#[command(name = "orch", version, max_term_width = 100, after_help = EXAMPLES)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  orch run -- python3 --version               in the standard tier
  orch run --tier strict --mount job.sh -- sh job.sh
                                              untrusted work: nothing can be written but /tmp
  orch profile show strict                    every value, and where it comes from
  orch doctor                                 what this machine can keep

`orch run --help` says what can be mounted, limited and passed.";

#[derive(Debug, Subcommand)]
enum Command {
    // Described where their arguments are.
    Run(Box<run::RunArgs>),
    Profile(profile::ProfileArgs),
    Spec(Box<spec::SpecArgs>),
    Output(output::OutputArgs),
    Doctor(doctor::DoctorArgs),
    Completions(completions::CompletionsArgs),
}

/// Runs a command line and returns the exit code.
pub fn main(args: Vec<OsString>) -> u8 {
    let cli = match Cli::try_parse_from(&args) {
        Ok(cli) => cli,
        Err(error) => return complain(&error, &args),
    };
    let (result, as_json) = match cli.command {
        Command::Run(args) => {
            let as_json = args.json();
            (run::run(*args), as_json)
        }
        Command::Profile(args) => {
            let as_json = args.json();
            (profile::run(args), as_json)
        }
        Command::Spec(args) => (spec::run(&args), args.json()),
        Command::Output(args) => (output::run(&args), args.json()),
        Command::Doctor(args) => (doctor::run(&args), args.json()),
        Command::Completions(args) => (completions::run(&args), false),
    };
    result.unwrap_or_else(|error: Error| {
        refusal::report(&error, as_json);
        FAILED
    })
}

/// What does not parse; --help and --version come this way too.
fn complain(error: &clap::Error, args: &[OsString]) -> u8 {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // Clap writes it, with colours where the terminal and NO_COLOR allow.
            let _ = error.print();
            0
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            FAILED
        }
        _ => {
            refusal::report(&refusal::usage(error), refusal::asked_for_json(args));
            FAILED
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
