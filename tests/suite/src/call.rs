//! One call of `orch run`, and how it ended.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::left;
use crate::place::Place;
use crate::user::{self, User};

/// Longer than any call here may take, busy machines included.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Fails the test with these words unless it holds.
macro_rules! ensure {
    ($holds:expr, $($words:tt)+) => {
        if !$holds {
            return Err(format!($($words)+));
        }
    };
}
pub(crate) use ensure;

/// The program under test.
pub fn orch() -> OsString {
    std::env::var_os("ORCH_BIN").unwrap_or_else(|| "orch".into())
}

/// State of the process, in which the tiers were found to hold once.
fn attested() -> Result<&'static Path, String> {
    static STATE: OnceLock<Result<(Place, PathBuf), String>> = OnceLock::new();
    let made = STATE.get_or_init(|| {
        let place = Place::new()?;
        let state = place.join("state");
        for tier in ["standard", "strict"] {
            let done = Command::new(orch())
                .args(["run", "--profile", tier, "--", "true"])
                .env("ORCH_STATE_DIR", &state)
                .env("ORCH_UID_BLOCK", crate::left::uid_block(&state))
                .stdin(Stdio::null())
                .output()
                .map_err(|e| format!("start orch: {e}"))?;
            ensure!(
                done.status.success(),
                "the first run in {tier}: {} {}",
                done.status,
                String::from_utf8_lossy(&done.stderr)
            );
        }
        Ok((place, state))
    });
    match made {
        Ok((_, state)) => Ok(state),
        Err(why) => Err(why.clone()),
    }
}

/// What standard input is.
pub enum Input {
    /// `/dev/null`.
    Null,
    /// A pipe with these bytes, closed behind them.
    Bytes(Vec<u8>),
    /// This file.
    File(File),
}

/// A call that is being put together. Every call has a state directory of its
/// own, so that what it leaves can be told from what others do at the time.
pub struct Call {
    place: Place,
    args: Vec<OsString>,
    command: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    input: Input,
    cwd: Option<PathBuf>,
    receipt: bool,
    user: Option<User>,
}

impl Call {
    /// A call under this profile, with a receipt.
    pub fn new(profile: impl AsRef<OsStr>) -> Result<Self, String> {
        let place = Place::new()?;
        let state = place.join("state");
        let known = attested()?;
        copy_markers(known, &state).map_err(|e| format!("copy {}: {e}", known.display()))?;
        Ok(Self {
            place,
            args: vec!["--profile".into(), profile.as_ref().into()],
            command: Vec::new(),
            env: Vec::new(),
            input: Input::Null,
            cwd: None,
            receipt: true,
            user: None,
        })
    }

    /// Adds flags.
    pub fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args
            .extend(args.into_iter().map(|a| a.as_ref().into()));
        self
    }

    /// `--mount`, with a backslash before every colon and backslash of the source.
    pub fn mount(self, source: &Path, rest: &str) -> Self {
        use std::os::unix::ffi::{OsStrExt, OsStringExt};
        let mut text = Vec::new();
        for byte in source.as_os_str().as_bytes() {
            if matches!(byte, b':' | b'\\') {
                text.push(b'\\');
            }
            text.push(*byte);
        }
        text.extend(rest.as_bytes());
        self.args(["--mount".into(), OsString::from_vec(text)])
    }

    /// The command.
    pub fn cmd<A: AsRef<OsStr>>(mut self, command: impl IntoIterator<Item = A>) -> Self {
        self.command = command.into_iter().map(|a| a.as_ref().into()).collect();
        self
    }

    /// A shell script as the command.
    pub fn sh(self, script: &str) -> Self {
        self.cmd(["/bin/sh", "-c", script])
    }

    /// A mode of the probe program as the command (see [`crate::main`]).
    pub fn mode(self, args: &[&str]) -> Result<Self, String> {
        let args: Vec<&str> = [MODE_PATH, crate::MODE]
            .iter()
            .chain(args)
            .copied()
            .collect();
        Ok(self.with_mode()?.cmd(args))
    }

    /// The probe program's modes at [`MODE_PATH`], for scripts.
    pub fn with_mode(self) -> Result<Self, String> {
        let own = std::env::current_exe().map_err(|e| format!("find this program: {e}"))?;
        Ok(self.mount(&own, &format!(":{MODE_PATH}")))
    }

    /// A variable of orch's own environment.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.as_ref().into(), value.as_ref().into()));
        self
    }

    /// Standard input.
    pub fn input(mut self, input: Input) -> Self {
        self.input = input;
        self
    }

    /// Where orch is started.
    pub fn cwd(mut self, cwd: &Path) -> Self {
        self.cwd = Some(cwd.to_owned());
        self
    }

    /// Started by somebody who is not root, after `change` has said what else is
    /// different on its host.
    pub fn by_user(mut self, change: impl FnOnce(User) -> User) -> Self {
        let first = left::first_id(&self.state());
        // What was found to hold for root need not hold for others.
        let _ = std::fs::remove_dir_all(self.state());
        self.user = Some(change(User::new(first)));
        self
    }

    /// Where the files of this call are.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Without `--receipt`.
    pub fn no_receipt(mut self) -> Self {
        self.receipt = false;
        self
    }

    /// The state directory.
    pub fn state(&self) -> PathBuf {
        self.place.join("state")
    }

    /// The command line, for tests that start it in a way of their own.
    pub fn command(&self) -> Command {
        let mut command = match &self.user {
            None => Command::new(orch()),
            Some(_) => Command::new(user::program().unwrap_or_default()),
        };
        command.arg("run").args(&self.args);
        if self.receipt {
            command
                .arg("--receipt")
                .arg(self.place.join("receipt.json"));
        }
        command.arg("--").args(&self.command);
        command
            .env("ORCH_STATE_DIR", self.state())
            .env("ORCH_UID_BLOCK", crate::left::uid_block(&self.state()));
        // Whoever runs this may have their own.
        command.env_remove("ORCH_ARTIFACTS");
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        if let Some(cwd) = &self.cwd {
            command.current_dir(cwd);
        }
        if let Some(user) = &self.user
            && let Err(e) = user.starts(&mut command, &self.place)
        {
            // It says so when it is started.
            // SAFETY: nothing is called.
            unsafe {
                std::os::unix::process::CommandExt::pre_exec(&mut command, move || {
                    Err(std::io::Error::from(e.kind()))
                })
            };
        }
        command
    }

    /// Starts it with pipes, both read by threads.
    pub fn start(mut self) -> Result<Running, String> {
        let mut command = self.command();
        let mut write = None;
        match std::mem::replace(&mut self.input, Input::Null) {
            Input::Null => command.stdin(Stdio::null()),
            Input::File(file) => command.stdin(file),
            Input::Bytes(bytes) => {
                write = Some(bytes);
                command.stdin(Stdio::piped())
            }
        };
        let started = Instant::now();
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| format!("start orch: {e}"))?;
        if let (Some(bytes), Some(mut stdin)) = (write, child.stdin.take()) {
            // A command that does not read all of it is part of some tests.
            std::thread::spawn(move || drop(stdin.write_all(&bytes)));
        }
        let (stdout, stderr) = (read(child.stdout.take()), read(child.stderr.take()));
        Ok(Running {
            place: self.place,
            child: Owned(child),
            stdout,
            stderr,
            started,
        })
    }

    /// Runs it to its end, and makes sure that nothing is left.
    pub fn run(self) -> Result<Ended, String> {
        let running = self.start()?;
        let state = running.state();
        let ended = running.wait(PATIENCE)?;
        match left::left(&state, ended.id()).or_else(|| left::noted(&state)) {
            None => Ok(ended),
            Some(what) => Err(format!("{what} after {ended:?}")),
        }
    }
}

/// Where the modes of the probe program are inside.
pub const MODE_PATH: &str = "/opt/mode";

fn copy_markers(from: &Path, to: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().mode(0o700).create(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with("held-") {
            std::fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

fn read(stream: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            // What came before an error is what there is.
            let _ = stream.read_to_end(&mut bytes);
        }
        bytes
    })
}

/// A child that does not outlive its owner.
pub struct Owned(pub Child);

impl Drop for Owned {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            // Whatever state it is in, it ends here.
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}

/// A call on its way. Dropped before its end, it is killed.
pub struct Running {
    place: Place,
    child: Owned,
    stdout: JoinHandle<Vec<u8>>,
    stderr: JoinHandle<Vec<u8>>,
    started: Instant,
}

impl Running {
    /// Its state directory.
    pub fn state(&self) -> PathBuf {
        self.place.join("state")
    }

    /// Process id of orch.
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.0.id()).unwrap_or(-1)
    }

    /// Sends orch a signal.
    pub fn signal(&self, signal: i32) {
        // SAFETY: a plain call; the child is ours and not reaped yet.
        unsafe { libc::kill(self.pid(), signal) };
    }

    /// Waits until a process of the task is there whose command line begins with this.
    pub fn until(&self, words: &str) -> Result<(), String> {
        let state = self.state();
        left::eventually(Duration::from_secs(20), || {
            let there = left::processes_of(&state).into_iter().any(|pid| {
                std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| {
                    String::from_utf8_lossy(&line)
                        .replace('\0', " ")
                        .starts_with(words)
                })
            });
            Ok((!there).then(|| format!("no process `{words}`")))
        })
    }

    /// Waits for its end.
    pub fn wait(self, patience: Duration) -> Result<Ended, String> {
        let Self {
            place,
            mut child,
            stdout,
            stderr,
            started,
        } = self;
        let mut status = None;
        let waited = left::eventually(patience, || {
            status = child.0.try_wait().map_err(|e| format!("wait: {e}"))?;
            Ok(status.is_none().then(|| "orch has not ended".to_owned()))
        });
        let elapsed = started.elapsed();
        waited?;
        let join = |handle: JoinHandle<Vec<u8>>| handle.join().unwrap_or_default();
        let receipt = std::fs::read(place.join("receipt.json"))
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Ok(Ended {
            status: status.ok_or("no status")?,
            stdout: join(stdout),
            stderr: String::from_utf8_lossy(&join(stderr)).into_owned(),
            receipt,
            elapsed,
            _place: place,
        })
    }
}

/// How a call ended.
pub struct Ended {
    /// Status of orch itself.
    pub status: ExitStatus,
    /// What came out.
    pub stdout: Vec<u8>,
    /// The same on standard error, orch's own words included.
    pub stderr: String,
    /// The receipt, where one was written.
    pub receipt: Option<Value>,
    /// From start to end.
    pub elapsed: Duration,
    _place: Place,
}

impl std::fmt::Debug for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let out = String::from_utf8_lossy(&self.stdout);
        let out: String = out.chars().take(400).collect();
        write!(
            f,
            "{} in {:?}, stdout {out:?}, stderr {:?}, state {} reason {}",
            self.status,
            self.elapsed,
            self.stderr,
            self.fact("state"),
            self.fact("reason"),
        )
    }
}

impl Ended {
    /// Exit code; −1 where a signal ended orch.
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or(-1)
    }

    /// The signal that ended orch.
    pub fn signal(&self) -> Option<i32> {
        self.status.signal()
    }

    /// Standard output as text, without the last line end.
    pub fn out(&self) -> String {
        String::from_utf8_lossy(&self.stdout).trim_end().to_owned()
    }

    /// A fact of the receipt, by key or JSON pointer; null where absent.
    pub fn fact(&self, name: &str) -> &Value {
        let receipt = self.receipt.as_ref();
        let found = if name.starts_with('/') {
            receipt.and_then(|receipt| receipt.pointer(name))
        } else {
            receipt.and_then(|receipt| receipt.get(name))
        };
        found.unwrap_or(&Value::Null)
    }

    /// Id of the task.
    pub fn id(&self) -> Option<&str> {
        self.fact("task").as_str()
    }

    /// Ended by itself with 0 and these words.
    pub fn says(self, words: &str) -> Result<Self, String> {
        ensure!(
            self.code() == 0 && self.out() == words,
            "expected {words:?}: {self:?}"
        );
        Ok(self)
    }

    /// Ended with this exit code, state and reason.
    pub fn is(self, code: i32, state: &str, reason: &str) -> Result<Self, String> {
        ensure!(
            self.code() == code
                && self.fact("state") == state
                && self.fact("reason") == reason
                && self.fact("cleanup") == "confirmed",
            "expected {code} {state} {reason}: {self:?} {:?}",
            self.receipt
        );
        Ok(self)
    }

    /// What orch said is in its words.
    pub fn mentions(self, words: &str) -> Result<Self, String> {
        ensure!(
            self.stderr.contains(words),
            "nothing said about {words:?}: {self:?}"
        );
        Ok(self)
    }
}
