//! What is asked of the engine, and what comes back.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use orch_policy::limits::Effective;
use orch_policy::receipt::Receipt;
use orch_policy::task::Task;
use orch_policy::{Error, Profile};

use crate::audit::AuditLog;

/// What a command reads.
#[derive(Debug)]
pub enum Input {
    /// Nothing: end of file at once.
    Null,
    /// What this descriptor gives, copied through a pipe: the task never holds a
    /// descriptor of the host.
    Relay(OwnedFd),
}

/// Where one output stream goes.
#[derive(Debug)]
pub enum Sink {
    /// Untouched to this descriptor.
    Pass(OwnedFd),
    /// Into memory, up to the output limit.
    Keep,
}

/// The caller's terminal, where the command gets one (`-t`).
#[derive(Debug)]
pub struct Terminal {
    /// Read from and, for its size, asked.
    pub input: OwnedFd,
    /// Written to.
    pub output: OwnedFd,
}

/// How the command is connected to its caller.
#[derive(Debug)]
pub enum Streams {
    /// Three pipes.
    Pipes {
        /// Standard input.
        stdin: Input,
        /// Standard output.
        stdout: Sink,
        /// Standard error.
        stderr: Sink,
    },
    /// One terminal.
    Terminal(Terminal),
}

impl Streams {
    /// Nothing to read, and what is written is kept.
    #[must_use]
    pub fn nothing() -> Self {
        Self::Pipes {
            stdin: Input::Null,
            stdout: Sink::Keep,
            stderr: Sink::Keep,
        }
    }
}

/// One task, ready to be run.
#[derive(Debug)]
pub struct Request {
    /// Effective profile.
    pub profile: Profile,
    /// SHA-256 of it.
    pub profile_sha256: String,
    /// What is asked, with sources of mounts as the caller wrote them, absolute.
    pub task: Task,
    /// Limits in force.
    pub effective: Effective,
    /// What the profile lets through of the caller's environment.
    pub inherited: Vec<(OsString, OsString)>,
    /// Streams.
    pub streams: Streams,
    /// Host directory for copy-out; made where it is missing.
    pub out: Option<PathBuf>,
    /// Host directory below which the whole output and the receipt are kept (EV-05);
    /// made where it is missing.
    pub artifacts: Option<PathBuf>,
    /// Log that says what is done, where there is one; no task sees it.
    pub audit: Option<Arc<AuditLog>>,
    /// Host paths that must not be shown, besides those of the profile.
    pub reserved: Vec<PathBuf>,
}

/// What a finished task left.
#[derive(Debug)]
pub struct Outcome {
    /// The receipt.
    pub receipt: Receipt,
    /// Standard output, where it was kept.
    pub stdout: Option<Vec<u8>>,
    /// Standard error, where it was kept.
    pub stderr: Option<Vec<u8>>,
    /// What failed while the command ran or after it had ended, and is no matter of
    /// the command (copy-out, artifacts).
    pub late: Vec<Error>,
}

/// Told while a task runs, for whoever is watching.
pub trait Observer {
    /// About every second.
    fn tick(&mut self, running: Duration) {
        let _ = running;
    }
    /// Output is about to be written.
    fn before_output(&mut self) {}
}

/// Nobody is watching.
#[derive(Debug)]
pub struct Silent;

impl Observer for Silent {}
