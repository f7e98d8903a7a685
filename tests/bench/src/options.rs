//! The command line of the harness.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::measure::Effort;

/// What `--help` prints.
pub const HELP: &str = "\
Measure orch against its peers, print one table and keep every sample.

Usage: orch-bench [OPTIONS]

  --runs N       samples of each side back to back (default 100)
  --gap-runs N   samples of each side with a second of rest before each (default 15)
  --filter TEXT  only cases whose name contains TEXT
  --smoke        few runs: proves that the harness works, says nothing about time
  --list         print the names of the cases and stop
  --orch FILE    the orch to measure (default: the one built beside this program)
  --into DIR     where results go (default: target/bench, with --smoke target/bench/smoke)
  --help         print this
";

/// What the caller asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Number of samples.
    pub effort: Effort,
    /// Part of the names of the wanted cases.
    pub filter: Option<String>,
    /// Whether this only proves that the harness works.
    pub smoke: bool,
    /// Whether only the names are wanted.
    pub list: bool,
    /// Whether only the help text is wanted.
    pub help: bool,
    /// The binary under test.
    pub orch: Option<PathBuf>,
    /// Where results go.
    pub into: Option<PathBuf>,
}

impl Options {
    /// Reads the arguments after the program's name.
    ///
    /// # Errors
    /// On an unknown option, a missing value or a number that is not positive.
    pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Self> {
        let mut options = Self {
            effort: Effort {
                runs: 100,
                gap_runs: 15,
            },
            filter: None,
            smoke: false,
            list: false,
            help: false,
            orch: None,
            into: None,
        };
        let (mut runs, mut gap_runs) = (None, None);
        let mut args = args.into_iter();
        while let Some(arg) = args.next() {
            let mut value = || {
                args.next()
                    .with_context(|| format!("{arg:?} needs a value"))
            };
            match arg.to_str() {
                Some("--runs") => runs = Some(number(&value()?)?),
                Some("--gap-runs") => gap_runs = Some(number(&value()?)?),
                Some("--filter") => {
                    options.filter = Some(value()?.to_string_lossy().into_owned());
                }
                Some("--smoke") => options.smoke = true,
                Some("--list") => options.list = true,
                Some("--orch") => options.orch = Some(value()?.into()),
                Some("--into") => options.into = Some(value()?.into()),
                Some("--help" | "-h") => options.help = true,
                _ => bail!("unknown option {arg:?}; try --help"),
            }
        }
        if options.smoke {
            options.effort = Effort {
                runs: 3,
                gap_runs: 1,
            };
        }
        options.effort.runs = runs.unwrap_or(options.effort.runs);
        options.effort.gap_runs = gap_runs.unwrap_or(options.effort.gap_runs);
        Ok(options)
    }

    /// Whether a case of that name is wanted.
    #[must_use]
    pub fn wants(&self, name: &str) -> bool {
        self.filter
            .as_deref()
            .is_none_or(|part| name.contains(part))
    }
}

fn number(text: &OsString) -> Result<usize> {
    match text.to_str().map(str::parse) {
        Some(Ok(number @ 1..)) => Ok(number),
        _ => bail!("{text:?} is not a positive number"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Options> {
        Options::parse(args.iter().map(OsString::from))
    }

    #[test]
    fn smoke_takes_few_runs_unless_told_otherwise() {
        assert_eq!(parse(&["--smoke"]).unwrap().effort.runs, 3);
        let options = parse(&["--runs", "7", "--smoke"]).unwrap();
        assert_eq!((options.effort.runs, options.effort.gap_runs), (7, 1));
    }

    #[test]
    fn nonsense_is_refused_by_name() {
        for (args, word) in [
            (&["--runs", "0"][..], "\"0\""),
            (&["--runs", "many"], "\"many\""),
            (&["--runs"], "\"--runs\""),
            (&["--fast"], "\"--fast\""),
        ] {
            let error = format!("{:#}", parse(args).unwrap_err());
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn a_filter_is_part_of_a_name() {
        let options = parse(&["--filter", "runc"]).unwrap();
        assert!(options.wants("run.strict.gap.runc") && !options.wants("stages.strict"));
        assert!(parse(&[]).unwrap().wants("anything"));
    }
}
