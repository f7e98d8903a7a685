//! The command line: started, spoken to, ended.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;

use super::host::{self, PATIENCE, Process, eventually};
use super::place::{self, Place};
use super::{Result, at, ensure};
use crate::pace;

/// One call of `orch run`.
#[derive(Debug)]
pub struct Orch {
    command: Command,
    place: Place,
}

/// What it came to.
#[derive(Debug)]
pub struct Ended {
    /// Exit code; 128 + signal.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// The receipt, where there is one.
    pub receipt: Option<Value>,
}

/// One that runs.
#[derive(Debug)]
pub struct Live {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    errors: Option<std::thread::JoinHandle<String>>,
    place: Place,
}

impl Orch {
    /// `orch run` in a tier; without a network where the tier has one.
    ///
    /// # Errors
    /// There is no orch.
    pub fn new(tier: &str) -> Result<Self> {
        Self::around(Command::new(place::orch()?), tier)
    }

    /// The same, where something else starts it.
    ///
    /// # Errors
    /// There is no room for its receipt.
    pub fn around(mut command: Command, tier: &str) -> Result<Self> {
        let place = Place::new("run")?;
        command
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("HOME", "/root")
            .env("ORCH_STATE_DIR", place::state())
            .args(["run", "--quiet", "--profile", tier, "--receipt"])
            .arg(place.path().join("receipt.json"));
        if tier == "loose" {
            command.args(["--network", "none"]);
        }
        Ok(Self { command, place })
    }

    /// A flag with its value.
    pub fn flag(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.arg(name).arg(value);
        self
    }

    /// A flag without one.
    pub fn switch(mut self, name: &str) -> Self {
        self.command.arg(name);
        self
    }

    /// A read-only mount.
    pub fn mount(self, source: &Path, target: &str) -> Self {
        let mut value = source.as_os_str().to_owned();
        value.push(":");
        value.push(target);
        self.flag("--mount", value)
    }

    /// The probe program at `/workspace/orch-probe`.
    ///
    /// # Errors
    /// It is not there.
    pub fn probe(self) -> Result<Self> {
        Ok(self.mount(&place::probe()?, "/workspace/orch-probe"))
    }

    /// What starts it, to be changed.
    pub fn command(&mut self) -> &mut Command {
        &mut self.command
    }

    /// Runs a command to its end.
    ///
    /// # Errors
    /// It could not be started, or did not end.
    pub fn run<S: AsRef<OsStr>>(self, argv: &[S]) -> Result<Ended> {
        self.start(argv)?.end(Duration::from_secs(120))
    }

    /// Starts a command.
    ///
    /// # Errors
    /// orch itself could not be started.
    pub fn start<S: AsRef<OsStr>>(mut self, argv: &[S]) -> Result<Live> {
        let mut child = self
            .command
            .arg("--")
            .args(argv)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(at("start orch"))?;
        let (send, lines) = channel();
        if let Some(stdout) = child.stdout.take() {
            std::thread::spawn(move || {
                let mut from = BufReader::new(stdout);
                let mut line = Vec::new();
                while from
                    .read_until(b'\n', &mut line)
                    .is_ok_and(|count| count > 0)
                {
                    if send
                        .send(String::from_utf8_lossy(&line).into_owned())
                        .is_err()
                    {
                        return;
                    }
                    line.clear();
                }
            });
        }
        let errors = child.stderr.take().map(|mut stderr| {
            std::thread::spawn(move || {
                let mut text = Vec::new();
                // What could be read until it broke is all there is.
                let _ = stderr.read_to_end(&mut text);
                String::from_utf8_lossy(&text).into_owned()
            })
        });
        Ok(Live {
            stdin: child.stdin.take(),
            child,
            lines,
            errors,
            place: self.place,
        })
    }
}

impl Live {
    /// orch's own process id.
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap_or(-1)
    }

    /// The next line of the command, without its end.
    ///
    /// # Errors
    /// None came.
    pub fn line(&mut self) -> Result<String> {
        self.lines
            .recv_timeout(pace::here(PATIENCE))
            .map(|line| line.trim_end_matches('\n').to_owned())
            .map_err(|e| format!("no line from the task: {e}; {}", self.give_up()))
    }

    /// Waits for a line that the command prints when it is where a test wants it.
    ///
    /// # Errors
    /// Another line or none came.
    pub fn expect(&mut self, wanted: &str) -> Result<()> {
        let line = self.line()?;
        ensure(line == wanted, || format!("{line:?} instead of {wanted:?}"))
    }

    /// Gives the command a line.
    ///
    /// # Errors
    /// It does not read any more.
    pub fn say(&mut self, line: &str) -> Result<()> {
        let stdin = self.stdin.as_mut().ok_or("its input is closed")?;
        writeln!(stdin, "{line}").map_err(at("write to the task"))
    }

    /// Sends orch a signal.
    pub fn signal(&self, signal: i32) {
        // SAFETY: plain numbers; the child is not reaped before `end`.
        unsafe { libc::kill(self.pid(), signal) };
    }

    /// Everything below orch.
    pub fn processes(&self) -> Vec<Process> {
        host::descendants(self.pid())
    }

    /// Processes of the command: those in the control group of an exec, and the
    /// container that they belong to.
    ///
    /// # Errors
    /// There are none.
    pub fn task(&self) -> Result<(String, Vec<Process>)> {
        eventually("a process of the task", PATIENCE, || {
            let found = self
                .processes()
                .into_iter()
                .filter_map(|process| Some((process.exec()?, process)))
                .filter(|((_, exec), _)| *exec == 0)
                .collect::<Vec<_>>();
            let id = found.first()?.0.0.clone();
            Some((id, found.into_iter().map(|(_, process)| process).collect()))
        })
    }

    /// Closes the command's input and waits for the end.
    ///
    /// # Errors
    /// orch did not end in time; it has been killed then.
    pub fn end(mut self, limit: Duration) -> Result<Ended> {
        drop(self.stdin.take());
        let status = eventually("the end of orch", limit, || {
            self.child.try_wait().ok().flatten()
        })
        .map_err(|why| format!("{why}; {}", self.give_up()))?;
        use std::os::unix::process::ExitStatusExt;
        let code = status
            .code()
            .or(status.signal().map(|signal| 128 + signal))
            .unwrap_or(-1);
        let mut stdout = String::new();
        while let Ok(line) = self.lines.recv_timeout(pace::here(PATIENCE)) {
            stdout.push_str(&line);
        }
        let stderr = self
            .errors
            .take()
            .and_then(|thread| thread.join().ok())
            .unwrap_or_default();
        let receipt = std::fs::read(self.place.path().join("receipt.json"))
            .ok()
            .and_then(|text| serde_json::from_slice(&text).ok());
        Ok(Ended {
            code,
            stdout,
            stderr,
            receipt,
        })
    }

    /// Ends orch for good, and says what it said.
    fn give_up(&mut self) -> String {
        let _ = self.child.kill();
        let status = self.child.wait();
        let stderr = self
            .errors
            .take()
            .and_then(|thread| thread.join().ok())
            .unwrap_or_default();
        format!("orch ended with {status:?}, saying: {stderr}")
    }
}

impl Drop for Live {
    /// A test that gives up leaves nothing running: orch gets the chance to clean up.
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|status| status.is_some()) {
            return;
        }
        drop(self.stdin.take());
        self.signal(libc::SIGTERM);
        let ended = eventually("the end of orch", Duration::from_secs(10), || {
            self.child.try_wait().ok().flatten()
        });
        if ended.is_err() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

impl Ended {
    /// The container's id, from the receipt.
    pub fn id(&self) -> Option<String> {
        Some(self.receipt.as_ref()?["task"].as_str()?.to_owned())
    }

    /// Fails unless the command ended well and nothing of it is left.
    ///
    /// # Errors
    /// How it ended, or what is left.
    pub fn clean(self) -> Result<Self> {
        ensure(self.code == 0, || {
            format!("exit code {}: {self:?}", self.code)
        })?;
        self.gone()
    }

    /// Fails unless nothing of it is left.
    ///
    /// # Errors
    /// What is left.
    pub fn gone(self) -> Result<Self> {
        let id = self.id().ok_or_else(|| format!("no receipt: {self:?}"))?;
        host::nothing_left(&id)?;
        let cleanup = &self
            .receipt
            .as_ref()
            .map_or(&Value::Null, |receipt| &receipt["cleanup"])
            .clone();
        ensure(cleanup == "confirmed", || {
            format!("cleanup {cleanup}: {self:?}")
        })?;
        Ok(self)
    }

    /// Fails unless orch refused with one of these codes and nothing was started.
    ///
    /// # Errors
    /// What happened instead.
    pub fn refused(&self, codes: &[&str]) -> Result<()> {
        ensure(self.code == 125, || {
            format!("exit code {} instead of 125: {self:?}", self.code)
        })?;
        ensure(self.stdout.is_empty(), || {
            format!("something ran: {:?}", self.stdout)
        })?;
        ensure(codes.iter().any(|code| self.stderr.contains(code)), || {
            format!("none of {codes:?} in: {}", self.stderr)
        })
    }
}
