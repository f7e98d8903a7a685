//! Tests with a reason to be skipped, and what makes a skip a failure.

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};

/// What a test came to, besides a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It held.
    Held,
    /// It could not be tried here, for this reason.
    Skipped(String),
}

/// Gives a verdict, or what is wrong.
type Body = Box<dyn FnOnce() -> Result<Verdict, String> + Send>;

/// One test: `group::name`, with its row in the name of the group or in a comment.
pub struct Test {
    /// Name.
    pub name: String,
    /// What it does.
    pub run: Body,
}

impl std::fmt::Debug for Test {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Test({})", self.name)
    }
}

/// A test by function.
#[must_use]
pub fn test(
    name: impl Into<String>,
    run: impl FnOnce() -> Result<Verdict, String> + Send + 'static,
) -> Test {
    Test {
        name: name.into(),
        run: Box::new(run),
    }
}

/// Runs them, as `cargo test` would show it.
pub fn run(arguments: &Arguments, tests: Vec<Test>) -> ExitCode {
    let must_run = std::env::var("ORCH_MUST_RUN").is_ok_and(|value| value == "1");
    let trials = tests
        .into_iter()
        .filter(|test| chosen(&test.name))
        .map(|test| {
            Trial::test(test.name, move || match (test.run)() {
                Ok(Verdict::Held) => Ok(()),
                Ok(Verdict::Skipped(reason)) if must_run => Err(Failed::from(format!(
                    "skipped, and ORCH_MUST_RUN is set: {reason}"
                ))),
                Ok(Verdict::Skipped(reason)) => {
                    note(&reason);
                    Ok(())
                }
                Err(why) => Err(Failed::from(why)),
            })
        })
        .collect();
    libtest_mimic::run(arguments, trials).exit_code()
}

/// `ORCH_ONLY` holds the beginnings of the names that are wanted, with spaces between;
/// a single filter as an argument may be anywhere in a name.
fn chosen(name: &str) -> bool {
    std::env::var("ORCH_ONLY").map_or(true, |only| {
        let mut starts = only.split_whitespace().peekable();
        starts.peek().is_none() || starts.any(|start| name.starts_with(start))
    })
}

/// The reason of a skip is for whoever reads the output.
#[allow(clippy::print_stderr)]
fn note(reason: &str) {
    eprintln!("skipped: {reason}");
}
