//! `orch run`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use orch_engine::audit::AuditLog;
use orch_engine::interrupt::Interrupts;
use orch_engine::request::{Outcome, Request};
use orch_engine::{Engine, StateDir};
use orch_policy::Error;
use serde_json::json;

use crate::artifacts_arg::ArtifactsArg;
use crate::audit_arg::{self, AuditArg};
use crate::document::Document;
use crate::embed;
use crate::prepare::Prepared;
use crate::print;
use crate::progress;
use crate::receipt_file::ReceiptFile;
use crate::refusal::{self, FAILED};
use crate::sandbox;
use crate::streams::{Wanted, streams};
use crate::task_args::{Cwd, TaskArgs};

/// Run a command in a sandbox and say what happened.
///
/// The command's standard output and standard error pass through untouched. One
/// line on standard error says how it ended; --receipt has the rest.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  orch run -- python3 -c 'print(6 * 7)'
  orch run --tier strict --mount data.csv --out results \\
      -- python3 -c 'import shutil; shutil.copy(\"/workspace/data.csv\", \"/tmp/out\")'
  orch run --folder . -- make                 this folder is /workspace, and can be written
  orch run --memory 512Mi --timeout 30s --json -- date | jq .receipt.usage
  tar c src | orch run -- tar t               a pipe is passed on
  orch run --artifacts kept -- make           all output stays: see orch output --help
  orch run -it -- bash                        a shell to look around in
  orch run --profile my.yaml --dry-run -- true   what would be in force

Exit codes: the command's own; 124 time-out; 125 orch failed or refused, and nothing
was run, or its results could not be kept; 126 the command cannot be executed; 127 it was
not found; 137 killed (memory, output); 152 CPU time. The receipt says which.")]
pub struct RunArgs {
    #[command(flatten)]
    task: TaskArgs,

    /// Directory that gets what the task leaves in /tmp/out; made if missing.
    #[arg(long, value_name = "DIR", help_heading = "Files")]
    out: Option<PathBuf>,

    #[command(flatten)]
    artifacts: ArtifactsArg,

    #[command(flatten)]
    audit: AuditArg,

    /// Pass standard input on even where it is a terminal.
    ///
    /// A pipe or a file is always passed on; otherwise the command reads nothing.
    #[arg(long, short = 'i', help_heading = "Input and output")]
    interactive: bool,

    /// Write the receipt to a file, or with - to standard output behind the command's own.
    #[arg(long, value_name = "FILE|-", help_heading = "Input and output")]
    receipt: Option<PathBuf>,

    /// Write one JSON document instead: receipt, stdout, stderr.
    ///
    /// Output that is not UTF-8 is also there exactly, as stdout_base64 and
    /// stderr_base64.
    #[arg(long, conflicts_with = "tty", help_heading = "Input and output")]
    json: bool,

    /// Leave out the line that says how it ended, and the progress.
    #[arg(long, short = 'q', help_heading = "Input and output")]
    quiet: bool,

    /// Print what would be in force as JSON, and start nothing.
    #[arg(long, help_heading = "Input and output")]
    dry_run: bool,
}

impl RunArgs {
    /// Whether standard output is one JSON document.
    pub fn json(&self) -> bool {
        self.json || self.dry_run
    }
}

/// Runs the command; the exit code is that of the receipt.
///
/// # Errors
/// Whatever kept the command from being started.
pub fn run(args: RunArgs) -> Result<u8, Error> {
    if args.dry_run {
        return dry_run(&args);
    }
    // First of all, because the launcher comes up while the profile is read.
    let state = StateDir::open(&StateDir::default_path())?;
    let engine = Engine::start(&state, embed::LAUNCHER, embed::GUEST)?;
    let cwd = Cwd::of_process();
    let audit = args.audit.open(&cwd)?;
    let (request, receipt) = request(&args, &cwd, &state, audit.clone()).inspect_err(|error| {
        // Nothing is run either way, and the error that came first is the news.
        let _ = audit.map_or(Ok(()), |audit| audit.refused(None, error));
    })?;
    let mut progress = progress::on_stderr(!args.quiet && !args.task.tty);

    // Held until the receipt is written: a second Ctrl-C in between would take it away.
    let _held = Interrupts::take().ok();
    let result = engine.run(request, &mut progress);
    progress.erase();
    finish(&args, result?, receipt)
}

/// Everything that is known before anything is started.
fn request(
    args: &RunArgs,
    cwd: &Cwd,
    state: &StateDir,
    audit: Option<Arc<AuditLog>>,
) -> Result<(Request, Option<ReceiptFile>), Error> {
    let prepared = Prepared::new(&args.task, cwd, state.path())?;
    prepared.check_egress()?;
    let out = args
        .out
        .as_deref()
        .map(|dir| cwd.absolute(dir))
        .transpose()?;
    let artifacts = args.artifacts.path(cwd)?;
    let streams = streams(Wanted {
        interactive: args.interactive,
        tty: args.task.tty,
        keep: args.json,
    })?;
    audit_arg::apart(audit.as_deref(), args.receipt.as_deref(), cwd)?;
    let receipt = args.receipt.as_deref().map(ReceiptFile::open).transpose()?;
    let request = Request {
        profile: prepared.profile,
        profile_sha256: prepared.sha256,
        task: prepared.task,
        effective: prepared.effective,
        inherited: prepared.inherited,
        streams,
        out,
        artifacts,
        audit,
        reserved: vec![state.path().to_owned()],
    };
    Ok((request, receipt))
}

/// Says how it ended, everywhere it was asked for.
fn finish(args: &RunArgs, outcome: Outcome, receipt: Option<ReceiptFile>) -> Result<u8, Error> {
    let written = receipt.map_or(Ok(()), |file| file.write(&outcome.receipt));
    let late = outcome.late.first().or(written.as_ref().err());
    if args.json {
        print::json(&Document::new(&outcome, late))?;
    }
    if !args.quiet {
        let summary = print::harmless(&outcome.receipt.summary);
        refusal::say(&format!("orch: {summary}\n"));
    }
    for error in outcome.late.iter().chain(written.as_ref().err()) {
        refusal::report(error, false);
    }
    Ok(exit_code(outcome.receipt.exit_code, late.is_some()))
}

/// The command's own code. Where it says that all is well and its results are
/// not where they should be, all is not well.
fn exit_code(code: Option<i32>, late: bool) -> u8 {
    match code.and_then(|code| u8::try_from(code).ok()) {
        None => FAILED,
        Some(0) if late => FAILED,
        Some(code) => code,
    }
}

fn dry_run(args: &RunArgs) -> Result<u8, Error> {
    let cwd = Cwd::of_process();
    let state = StateDir::default_path();
    let prepared = Prepared::new(&args.task, &cwd, &state)?;
    prepared.check_egress()?;
    let (container, command) = sandbox::specs(&prepared, &state)?;
    let out = args
        .out
        .as_deref()
        .map(|dir| cwd.absolute(dir))
        .transpose()?;
    let artifacts = args.artifacts.path(&cwd)?;
    print::json(&json!({
        "profile": prepared.profile.name,
        "tier": prepared.profile.tier,
        "profile_sha256": prepared.sha256,
        "limits": prepared.effective.bounds,
        "out": out.as_deref().map(Path::to_string_lossy),
        "artifacts": artifacts.as_deref().map(Path::to_string_lossy),
        "container": shown(&container)?,
        "task": shown(&command)?,
    }))?;
    Ok(0)
}

/// A value as JSON; a path that is not UTF-8 is refused by serde.
fn shown(value: &impl serde::Serialize) -> Result<serde_json::Value, Error> {
    serde_json::to_value(value).map_err(|e| {
        Error::new(
            orch_policy::Code::FormatImpossible,
            "a path of this task is not UTF-8, which JSON cannot hold",
            "run it without --dry-run: it works there",
        )
        .because(e)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PX-17: orch's failure is told from the command's.
    #[test]
    fn the_exit_code_is_the_commands_unless_its_results_are_lost() {
        assert_eq!(exit_code(Some(0), false), 0);
        assert_eq!(exit_code(Some(3), false), 3);
        assert_eq!(exit_code(Some(3), true), 3);
        assert_eq!(exit_code(Some(0), true), 125);
        assert_eq!(exit_code(None, false), 125);
        assert_eq!(exit_code(Some(-1), false), 125);
    }
}
