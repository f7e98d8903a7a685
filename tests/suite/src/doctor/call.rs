//! One call of `orch doctor`, in a mount namespace of its own.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

use crate::rig::{Result, at, ensure, place};

/// A call that can be changed.
#[derive(Debug)]
pub struct Doctor {
    command: Command,
    folder: PathBuf,
}

/// What it said.
#[derive(Debug, Clone)]
pub struct Said {
    /// Exit code.
    pub code: i32,
    /// The document.
    pub document: Value,
}

impl Doctor {
    /// On the machine as it is.
    ///
    /// # Errors
    /// There is no orch.
    pub fn new() -> Result<Self> {
        let mut command = Command::new(place::orch()?);
        command
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("ORCH_STATE_DIR", place::state())
            .args(["doctor", "--format", "json", "--folder"])
            .stdin(Stdio::null());
        // SAFETY: two calls with plain numbers and constant strings.
        unsafe {
            command.pre_exec(|| {
                check(libc::unshare(libc::CLONE_NEWNS))?;
                mount(None, c"/", None, libc::MS_REC | libc::MS_PRIVATE)
            });
        }
        Ok(Self {
            command,
            folder: "/usr".into(),
        })
    }

    /// What starts it, to be changed.
    pub fn command(&mut self) -> &mut Command {
        &mut self.command
    }

    /// Another folder to look at.
    pub fn folder(mut self, folder: &Path) -> Self {
        self.folder = folder.to_owned();
        self
    }

    /// With `source` shown in the place of `target`.
    ///
    /// # Errors
    /// A path with a NUL in it.
    pub fn cover(self, source: &Path, target: &Path) -> Result<Self> {
        let (source, target) = (c_path(source)?, c_path(target)?);
        Ok(self.after(move || mount(Some(&source), &target, None, libc::MS_BIND)))
    }

    /// With this done in its mount namespace before it starts.
    pub fn after(mut self, change: impl Fn() -> io::Result<()> + Send + Sync + 'static) -> Self {
        // SAFETY: what is passed here are system calls on strings that were made
        // before; nothing allocates.
        unsafe { self.command.pre_exec(change) };
        self
    }

    /// Runs it.
    ///
    /// # Errors
    /// It did not start, or what it wrote is no document.
    pub fn run(mut self) -> Result<Said> {
        let output = self
            .command
            .arg(&self.folder)
            .output()
            .map_err(at("start orch doctor"))?;
        let document = serde_json::from_slice(&output.stdout).map_err(|e| {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            format!("{e}; {:?}; {said}", output.status)
        })?;
        Ok(Said {
            code: output.status.code().unwrap_or(-1),
            document,
        })
    }
}

impl Said {
    /// A line by its name.
    ///
    /// # Errors
    /// There is none.
    pub fn check(&self, name: &str) -> Result<&Value> {
        self.document["checks"]
            .as_array()
            .and_then(|checks| checks.iter().find(|check| check["name"] == name))
            .ok_or_else(|| format!("there is no line {name}"))
    }

    /// Whether a tier is kept.
    pub fn kept(&self, tier: &str) -> bool {
        self.document["tiers"].as_array().is_some_and(|tiers| {
            tiers
                .iter()
                .any(|found| found["tier"] == tier && found["kept"] == true)
        })
    }
}

/// The machine as it is, asked once: the control of every test here.
///
/// # Errors
/// As [`Doctor::run`].
pub fn baseline() -> Result<&'static Said> {
    static SAID: OnceLock<Result<Said>> = OnceLock::new();
    SAID.get_or_init(|| Doctor::new()?.run())
        .as_ref()
        .map_err(Clone::clone)
}

/// Fails unless `said` has a line with this state and this word, and the machine as it
/// is has not.
///
/// # Errors
/// What is there instead.
pub fn differs(said: &Said, name: &str, state: &str, word: &str) -> Result<()> {
    ensure(has(baseline()?, name, state, word).is_err(), || {
        format!(
            "the control says the same: {:?}",
            baseline().map(|said| said.check(name))
        )
    })?;
    has(said, name, state, word)
}

/// The same without the control, for lines that say so on some machines anyway.
///
/// # Errors
/// What is there instead.
pub fn has(said: &Said, name: &str, state: &str, word: &str) -> Result<()> {
    let check = said.check(name)?;
    ensure(check["state"] == state, || format!("not {state}: {check}"))?;
    let text = ["found", "cost", "fix"].map(|key| check[key].as_str().unwrap_or_default());
    ensure(text.iter().any(|text| text.contains(word)), || {
        format!("no word of {word:?}: {check}")
    })?;
    ensure(
        state == "ok" || !text[1].is_empty() && !text[2].is_empty(),
        || format!("neither cost nor fix: {check}"),
    )
}

/// mount(2) with what is needed here.
///
/// # Errors
/// What the kernel says.
pub fn mount(
    source: Option<&CString>,
    target: &std::ffi::CStr,
    kind: Option<&std::ffi::CStr>,
    flags: libc::c_ulong,
) -> io::Result<()> {
    let null = std::ptr::null();
    // SAFETY: the strings outlive the call.
    check(unsafe {
        libc::mount(
            source.map_or(null, |text| text.as_ptr()),
            target.as_ptr(),
            kind.map_or(null, std::ffi::CStr::as_ptr),
            flags,
            std::ptr::null(),
        )
    })
}

/// The error of a call that answers with -1.
///
/// # Errors
/// That.
pub fn check(result: i32) -> io::Result<()> {
    if result == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// A path for the kernel.
///
/// # Errors
/// It has a NUL in it.
pub fn c_path(path: &Path) -> Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(at(path.display()))
}
