use clap::CommandFactory;

use super::completions::{ShellArg, script};
use super::*;

#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn every_shell_gets_a_script_that_knows_the_flags() {
    for shell in [ShellArg::Bash, ShellArg::Zsh, ShellArg::Fish] {
        let script = String::from_utf8(script(shell)).unwrap();
        for word in ["run", "output-limit", "dry-run", "compare", "artifacts"] {
            assert!(script.contains(word), "{shell:?}: {word}");
        }
    }
}

/// `--help` of every subcommand shows how it is used, and fits a terminal.
#[test]
fn help_has_examples_and_fits() {
    let mut cli = Cli::command().term_width(100);
    cli.build();
    for name in ["run", "profile", "spec", "output", "doctor", "completions"] {
        let command = cli.find_subcommand_mut(name).unwrap();
        let help = command.render_help().to_string();
        assert!(help.contains("Examples:"), "{name}");
        for line in help.lines() {
            assert!(line.chars().count() <= 100, "{name}: {line}");
        }
    }
}

fn refused(args: &[&str]) -> Error {
    let args = std::iter::once("orch").chain(args.iter().copied());
    refusal::usage(&Cli::try_parse_from(args).unwrap_err())
}

#[test]
fn a_misspelt_word_gets_a_suggestion() {
    let error = refused(&["run", "--memroy", "1G", "--", "x"]);
    assert!(error.message.contains("--memroy"), "{error:?}");
    assert!(error.remediation.contains("--memory"), "{error:?}");
    let error = refused(&["profil"]);
    assert!(error.remediation.contains("profile"), "{error:?}");
}

#[test]
fn json_and_a_terminal_exclude_each_other() {
    let error = refused(&["run", "--json", "-t", "--", "x"]);
    assert!(error.message.contains("--json"), "{error:?}");
}
