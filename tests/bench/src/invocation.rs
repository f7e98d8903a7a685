//! One whole process from start to reaped end, by the wall clock.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// A run that takes longer hangs; it is killed and counts as failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// This argument is replaced by a name that no earlier run had.
pub const FRESH_ID: &str = "{id}";

/// A command line that can be run again and again.
#[derive(Debug, Clone)]
pub struct Invocation {
    program: PathBuf,
    args: Vec<OsString>,
    /// What takes away the leftovers of a failed run, if anything does.
    rescue: Option<(PathBuf, Vec<OsString>)>,
    runs: u64,
}

impl Invocation {
    /// `program` is an absolute path: no search through `PATH` is timed.
    pub fn new<I, S>(program: impl Into<PathBuf>, args: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        Self {
            program: program.into(),
            args: args.into_iter().map(|arg| arg.as_ref().into()).collect(),
            rescue: None,
            runs: 0,
        }
    }

    /// The same, followed by `program args` after a run that failed.
    #[must_use]
    pub fn rescued_by<I, S>(mut self, args: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let args = args.into_iter().map(|arg| arg.as_ref().into()).collect();
        self.rescue = Some((self.program.clone(), args));
        self
    }

    /// The same command under another program, for example a tracer.
    #[must_use]
    pub fn wrapped_in<I, S>(&self, program: impl Into<PathBuf>, args: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let mut wrapped = Self::new(program, args);
        wrapped.args.push(self.program.clone().into());
        wrapped.args.extend(self.args.iter().cloned());
        wrapped.rescue.clone_from(&self.rescue);
        wrapped
    }

    /// Runs it once and returns the wall clock from before the spawn to after
    /// the reaping, in milliseconds. All three standard streams are `/dev/null`.
    ///
    /// # Errors
    /// When it cannot be started, ends with anything but 0, or hangs for a
    /// minute. A second run, not timed, then fetches its last words.
    pub fn time(&mut self) -> Result<f64> {
        let mut command = self.next_command();
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let before = Instant::now();
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot start {}", self.program.display()))?;
        let status = wait(&mut child)?;
        let elapsed = before.elapsed();
        if status.success() {
            return Ok(elapsed.as_secs_f64() * 1e3);
        }
        self.rescue();
        let words = self.last_words();
        self.rescue();
        bail!("{} failed ({status}): {words}", self.program.display());
    }

    fn next_command(&mut self) -> Command {
        self.runs += 1;
        self.command(&self.program, &self.args)
    }

    fn command(&self, program: &Path, args: &[OsString]) -> Command {
        let id = format!("orch-bench-{}-{}", std::process::id(), self.runs);
        let mut command = Command::new(program);
        for arg in args {
            command.arg(if arg == FRESH_ID {
                OsStr::new(&id)
            } else {
                arg
            });
        }
        command
    }

    fn rescue(&self) {
        if let Some((program, args)) = &self.rescue {
            // Nothing is left to save where this fails too: the failure that
            // made it necessary is reported.
            let _ = self
                .command(program, args)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
        }
    }

    fn last_words(&mut self) -> String {
        match self.next_command().stdin(Stdio::null()).output() {
            Ok(output) if output.status.success() => "it succeeded when run again".into(),
            Ok(output) => String::from_utf8_lossy(&output.stderr)
                .lines()
                .rfind(|line| !line.trim().is_empty())
                .map_or_else(|| "it said nothing".into(), |line| line.trim().to_owned()),
            Err(error) => format!("and could not be run again: {error}"),
        }
    }
}

/// Waits with an upper bound. The handle is opened before the child is reaped,
/// so it cannot name another process.
fn wait(child: &mut Child) -> Result<ExitStatus> {
    let pid = Pid::from_child(child);
    let handle = pidfd_open(pid, PidfdFlags::empty()).context("cannot watch a process")?;
    let patience = Timespec::try_from(PATIENCE).context("time-out out of range")?;
    let mut fds = [PollFd::new(&handle, PollFlags::IN)];
    if poll(&mut fds, Some(&patience)).context("cannot wait for a process")? == 0 {
        child.kill().context("cannot kill a hanging process")?;
        child.wait().context("cannot reap a hanging process")?;
        bail!("it hung for {} s and was killed", PATIENCE.as_secs());
    }
    child.wait().context("cannot reap a process")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_takes_at_least_as_long_as_it_sleeps() {
        let took = Invocation::new("/bin/sh", ["-c", "sleep 0.05"])
            .time()
            .unwrap();
        assert!(took >= 50.0, "{took} ms");
    }

    #[test]
    fn a_failing_run_is_an_error_with_its_last_words() {
        let error = Invocation::new("/bin/sh", ["-c", "echo no such luck >&2; exit 3"])
            .time()
            .unwrap_err();
        let text = format!("{error:#}");
        assert!(text.contains("exit status: 3"), "{text}");
        assert!(text.contains("no such luck"), "{text}");
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = Invocation::new("/no/such/program", [""; 0])
            .time()
            .unwrap_err();
        assert!(format!("{error:#}").contains("/no/such/program"));
    }

    #[test]
    fn every_run_gets_a_fresh_id() {
        let scratch = crate::scratch::Scratch::new().unwrap();
        let script = format!("mkdir '{}'/\"$0\"", scratch.path().display());
        let mut run = Invocation::new("/bin/sh", ["-c", script.as_str(), FRESH_ID]);
        for _ in 0..3 {
            run.time().unwrap();
        }
        assert_eq!(scratch.path().read_dir().unwrap().count(), 3);
    }
}
