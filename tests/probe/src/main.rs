//! The probe program: one JSON line per attempt on standard output.

use std::io::{self, BufRead, Write};
use std::process::ExitCode;

use orch_probe::probes::{self, Place};
use orch_probe::{Line, Scratch, expected, judge, judge_control, modes, status};

const USAGE: &str = "usage:
  orch-probe list                     ids of all probes
  orch-probe run [ID|ROW|GROUP]...    attempt them; one JSON line each
  orch-probe judge TIER               judge the lines on standard input
  orch-probe judge-control TIER       the same for a run as root outside
  orch-probe status                   what this process is, as JSON
  orch-probe forkbomb N | memhog BYTES | cpuburn SECONDS | writer PATH BYTES
             inodes DIR N | fds N | flood BYTES
             setsid-daemon FILE|- | stop-self | ignore-term";

fn main() -> ExitCode {
    let args = std::env::args_os()
        .skip(1)
        .map(|arg| arg.to_string_lossy().into_owned())
        .collect::<Vec<_>>();
    let (mode, rest) = match args.split_first() {
        Some((mode, rest)) => (mode.as_str(), rest),
        None => ("", &[][..]),
    };
    let done = match mode {
        "list" => list(),
        "run" => run(rest),
        "judge" | "judge-control" => verdict(mode, rest),
        "status" => print(&status::document().to_string()).map(|()| ExitCode::SUCCESS),
        _ => match modes::run(mode, rest) {
            Some(status) => return ExitCode::from(status),
            None => return usage(""),
        },
    };
    done.unwrap_or_else(|error| usage(&error.to_string()))
}

fn usage(what: &str) -> ExitCode {
    // Nothing is left to do when even standard error is gone.
    let _ = writeln!(
        io::stderr(),
        "{what}{}{USAGE}",
        if what.is_empty() { "" } else { "\n" }
    );
    ExitCode::from(2)
}

fn print(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

fn list() -> io::Result<ExitCode> {
    for id in probes::ids() {
        print(&id)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn run(wanted: &[String]) -> io::Result<ExitCode> {
    let all = probes::all();
    if let Some(unknown) = wanted
        .iter()
        .find(|name| !all.iter().any(|p| p.is_named(name)))
    {
        return Err(io::Error::other(format!("no probe is named `{unknown}`")));
    }
    let scratch = Scratch::create();
    let place = Place {
        scratch: scratch.path(),
    };
    for probe in &all {
        if wanted.is_empty() || wanted.iter().any(|name| probe.is_named(name)) {
            let line = probe.run(&place);
            print(&serde_json::to_string(&line)?)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn verdict(mode: &str, args: &[String]) -> io::Result<ExitCode> {
    let [tier] = args else {
        return Err(io::Error::other("one tier is needed"));
    };
    let table = expected(tier).map_err(io::Error::other)?;
    let lines = io::stdin()
        .lock()
        .lines()
        .map(|line| Ok(serde_json::from_str::<Line>(&line?)?))
        .collect::<io::Result<Vec<_>>>()?;
    let findings = if mode == "judge" {
        judge(&lines, &table)
    } else {
        judge_control(&lines, &table)
    };
    for finding in &findings {
        print(&finding.to_string())?;
    }
    Ok(ExitCode::from(u8::from(!findings.is_empty())))
}
