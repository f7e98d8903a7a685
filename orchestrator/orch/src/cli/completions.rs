//! `orch completions`.

use clap::{Args, CommandFactory, ValueEnum};
use clap_complete::{Shell, generate};
use orch_policy::Error;

use crate::print;

/// Print the completion script of a shell.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  orch completions bash > /etc/bash_completion.d/orch
  orch completions zsh > \"${fpath[1]}/_orch\"
  orch completions fish > ~/.config/fish/completions/orch.fish")]
pub struct CompletionsArgs {
    /// The shell.
    shell: ShellArg,
}

/// The shells that are offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ShellArg {
    Bash,
    Zsh,
    Fish,
}

/// Prints the script.
///
/// # Errors
/// Where standard output cannot be written.
pub fn run(args: &CompletionsArgs) -> Result<u8, Error> {
    print::bytes(&script(args.shell))?;
    Ok(0)
}

/// The script of a shell.
pub fn script(shell: ShellArg) -> Vec<u8> {
    let shell = match shell {
        ShellArg::Bash => Shell::Bash,
        ShellArg::Zsh => Shell::Zsh,
        ShellArg::Fish => Shell::Fish,
    };
    let mut script = Vec::new();
    generate(shell, &mut super::Cli::command(), "orch", &mut script);
    script
}
