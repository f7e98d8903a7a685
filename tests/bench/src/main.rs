//! `orch-bench`: measures what the project promises.
#![forbid(unsafe_code)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use orch_bench::cases::{self, Stand};
use orch_bench::measure::measure;
use orch_bench::options::{HELP, Options};
use orch_bench::record::{write_results, write_samples};
use orch_bench::table::table;
use orch_bench::{machine, program};

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            // Nobody is left to tell where stderr is closed.
            let _ = writeln!(std::io::stderr(), "orch-bench: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<ExitCode> {
    let mut out = std::io::stdout();
    let mut log = std::io::stderr();
    let options = Options::parse(std::env::args_os().skip(1))?;
    if options.help {
        out.write_all(HELP.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let built = built_directory()?;
    let orch = options.orch.clone().unwrap_or_else(|| built.join("orch"));
    let into = options.into.clone().map_or_else(
        || target_directory(&built).map(|target| results(&target, options.smoke)),
        Ok,
    )?;
    let stand = Stand::new(orch.clone());
    let cases = cases::all(&stand, &|name| options.wants(name));
    if options.list {
        for case in &cases {
            writeln!(out, "{}", case.name)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    ensure!(
        !cases.is_empty(),
        "no case has that in its name; see --list"
    );
    ensure!(
        program::version(&orch).is_some(),
        "no orch at {}; build it with `make build` or name it with --orch",
        orch.display()
    );

    let mut rows = Vec::new();
    for case in cases {
        writeln!(log, "{}", case.name)?;
        for (mut row, samples) in measure(case, options.effort) {
            if options.smoke {
                // Three runs beside a build are no ground for a verdict.
                row.met = None;
            }
            if !samples.subject.is_empty() {
                write_samples(&into, &row.name, &row.unit, &samples)?;
            }
            rows.push(row);
        }
    }
    write_results(&into, &rows)?;
    writeln!(out, "\n{}\n\n{}", machine::description(&orch), table(&rows))?;
    writeln!(out, "Results and samples: {}", into.display())?;
    if options.smoke {
        writeln!(out, "This was a smoke run: its times mean nothing.")?;
    }
    let failed = rows.iter().filter(|row| row.failed.is_some()).count();
    if failed > 0 {
        writeln!(log, "orch-bench: {failed} of {} rows failed", rows.len())?;
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// The directory of this program, where Cargo puts `orch` too.
fn built_directory() -> Result<PathBuf> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let directory = program.parent().context("this program has no directory")?;
    Ok(directory.to_owned())
}

/// The topmost directory above `built` that Cargo marks as its own: with an
/// explicit target the directory of that target carries the mark too.
fn target_directory(built: &Path) -> Result<PathBuf> {
    built
        .ancestors()
        .filter(|directory| directory.join("CACHEDIR.TAG").is_file())
        .last()
        .map(Path::to_owned)
        .context("no target directory above this program; say --into DIR")
}

/// Smoke runs go elsewhere: nobody shall take their numbers for a measurement.
fn results(target: &Path, smoke: bool) -> PathBuf {
    let bench = target.join("bench");
    if smoke { bench.join("smoke") } else { bench }
}
