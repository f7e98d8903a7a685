//! The audit log: appended to outside every sandbox, each line bound to the one before
//! (AU-06, AU-14; the lines themselves are [`orch_policy::audit`]).
//!
//! Several processes may write one log: each takes a lock (flock(2)) for one record,
//! and looks at the end of the file for the record before. A line reaches the kernel
//! in one write(2) before anything goes on, so it outlives every process; it is not
//! forced to the disk, and the last ones may be lost with the power.
//!
//! - `lock`: one writer at a time.
//! - `tail`: the record that the next one is bound to.

mod lock;
mod tail;

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::SystemTime;

use orch_policy::audit::{Event, FIRST, Record, Shown, line};
use orch_policy::profile::Access;
use orch_policy::receipt::Receipt;
use orch_policy::spec::container::ContainerSpec;
use orch_policy::{Code, Error};
use rustix::fs::{Mode, OFlags, ResolveFlags, fstat, open, openat2};
use rustix::process::geteuid;

use crate::ancestry::lies_in;
use crate::request::Request;
use tail::Tail;

/// An audit log that is open for appending.
#[derive(Debug)]
pub struct AuditLog {
    /// Canonical.
    path: PathBuf,
    directory: OwnedFd,
    /// One record at a time also within this process: flock(2) belongs to the
    /// description that all of its threads share.
    file: Mutex<File>,
}

impl AuditLog {
    /// Opens the log, making it (0600) where it is missing; its directory has to be
    /// there. What is in it already is looked at with the first event.
    ///
    /// # Errors
    /// [`Code::AuditFailed`] where it cannot be opened, is no regular file of the
    /// caller's, is there under a second name, or where others can write the file or
    /// the directory, and so replace it.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let (directory, file) = open_both(path).map_err(|e| failed(path, e))?;
        let canonical = path
            .parent()
            .and_then(|parent| parent.canonicalize().ok())
            .zip(path.file_name())
            .map(|(parent, name)| parent.join(name));
        Ok(Self {
            path: canonical.ok_or_else(|| failed(path, io::ErrorKind::InvalidInput.into()))?,
            directory,
            file: Mutex::new(file),
        })
    }

    /// The file, canonical: no task may see it, since whoever reads a file can lock it.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends these events, in one piece.
    ///
    /// # Errors
    /// [`Code::AuditFailed`] where they cannot be written, or where what is there is no
    /// audit log or has been changed by somebody else. What depends on them must not go
    /// on then (AU-14).
    pub fn append(&self, events: &[Event]) -> Result<(), Error> {
        // A panic elsewhere has not changed the file, and its end is read again.
        let file = self
            .file
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let _held = lock::take(&file, lock::PATIENCE).map_err(|e| self.failed(e))?;
        self.append_locked(&file, events)
    }

    fn append_locked(&self, file: &File, events: &[Event]) -> Result<(), Error> {
        let (mut seq, mut prev, cut) = match tail::read(file).map_err(|e| self.failed(e))? {
            Tail::Empty => (0, FIRST.to_owned(), None),
            Tail::Whole { seq, hash } => (seq + 1, hash, None),
            Tail::Cut { seq, hash, bytes } => (seq, hash, Some(Event::LogRepaired { bytes })),
        };
        // Ends the line that was cut short.
        let mut text = String::from(if cut.is_some() { "\n" } else { "" });
        let time = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
        for event in cut.iter().chain(events) {
            let line = line::of(&Record {
                seq,
                prev: &prev,
                time: time.clone(),
                event,
            })?;
            (seq, prev) = (seq + 1, line::hash(line.as_bytes()));
            text += &line;
            text.push('\n');
        }
        match rustix::io::write(file, text.as_bytes()) {
            Ok(written) if written == text.len() => Ok(()),
            Ok(_) => Err(self.failed(io::Error::from_raw_os_error(libc::ENOSPC))),
            Err(e) => Err(self.failed(e)),
        }
    }

    /// Says that a task is about to be started.
    ///
    /// # Errors
    /// As [`AuditLog::append`].
    pub(crate) fn started(
        &self,
        task: &str,
        request: &Request,
        container: &ContainerSpec,
    ) -> Result<(), Error> {
        let lossy = |path: &Path| path.to_string_lossy().into_owned();
        let (profile, argv) = (&request.profile, &request.task.argv);
        self.append(&[Event::TaskStarted {
            task: task.to_owned(),
            caller: caller(),
            profile: profile.name.clone(),
            profile_sha256: request.profile_sha256.clone(),
            tier: profile.tier,
            argv: argv.iter().map(|a| a.to_string_lossy().into()).collect(),
            labels: request.task.labels.iter().cloned().collect(),
            mounts: container
                .binds
                .iter()
                .map(|bind| Shown {
                    source: lossy(&bind.source),
                    target: lossy(&bind.target),
                    writable: bind.mode == Access::Rw,
                })
                .collect(),
        }])
    }

    /// Says how a task went.
    ///
    /// # Errors
    /// As [`AuditLog::append`].
    pub(crate) fn ended(&self, receipt: &Receipt) -> Result<(), Error> {
        self.append(&Event::of_receipt(receipt))
    }

    /// Says that orch has failed or refused.
    ///
    /// # Errors
    /// As [`AuditLog::append`].
    pub fn refused(&self, task: Option<&str>, error: &Error) -> Result<(), Error> {
        self.append(&[Event::TaskRefused {
            task: task.map(str::to_owned),
            caller: caller(),
            error: error.clone(),
        }])
    }

    /// Refuses a directory that gets files with names of a task's choice where the log
    /// lies in it.
    ///
    /// # Errors
    /// [`Code::AuditFailed`].
    pub(crate) fn keep_out_of(&self, name: &Path, directory: &OwnedFd) -> Result<(), Error> {
        if !lies_in(&self.directory, directory).map_err(|e| self.failed(e))? {
            return Ok(());
        }
        Err(Error::new(
            Code::AuditFailed,
            format!(
                "the audit log {} lies in {}, where the task could replace it",
                self.path.display(),
                name.display()
            ),
            "name a log outside of every folder that a task's files get to",
        ))
    }

    fn failed(&self, e: impl Into<io::Error>) -> Error {
        failed(&self.path, e.into())
    }
}

fn caller() -> u32 {
    rustix::process::getuid().as_raw()
}

fn failed(path: &Path, e: io::Error) -> Error {
    Error::new(
        Code::AuditFailed,
        format!("the audit log {} cannot be written", path.display()),
        "name a file that orch has made, in a directory that only you can write and that has room",
    )
    .because(e)
}

fn open_both(path: &Path) -> io::Result<(OwnedFd, File)> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = open(parent, flags, Mode::empty())?;
    check_owner(&directory, "the directory", parent)?;
    let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = openat2(
        &directory,
        name,
        // A pipe must not hold this up.
        flags | OFlags::NONBLOCK,
        Mode::from_raw_mode(0o600),
        ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH,
    )?;
    let stat = fstat(&file)?;
    if stat.st_mode & libc::S_IFMT != libc::S_IFREG {
        return Err(io::Error::other("it is no regular file"));
    }
    if stat.st_nlink != 1 {
        return Err(io::Error::other("it is there under a second name"));
    }
    check_owner(&file, "the file", path)?;
    Ok((directory, file.into()))
}

/// What others can write, they can replace.
fn check_owner(fd: &OwnedFd, what: &str, path: &Path) -> io::Result<()> {
    let stat = fstat(fd)?;
    let trusted = stat.st_uid == geteuid().as_raw() || stat.st_uid == 0;
    // In a directory with the sticky bit nobody replaces the files of others.
    let sticky = stat.st_mode & libc::S_ISVTX != 0;
    if trusted && (stat.st_mode & 0o022 == 0 || sticky) {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "{what} {} can be written by others",
        path.display()
    )))
}
