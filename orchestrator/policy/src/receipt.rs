//! What is known about a task afterwards (EV-01…EV-05, PX-15, PX-17, PX-18).
//!
//! What is not known is absent from the JSON, never 0.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::error::{Code, Error};
use crate::profile::Tier;

/// Version of this document's shape. Fields are added, never renamed or removed.
pub const RECEIPT_VERSION: u32 = 1;

/// How far the task got (EV-01).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Still running.
    Running,
    /// The command ended by itself or by a limit; see `reason`.
    Exited,
    /// Somebody asked for the end (Ctrl-C, SIGTERM, an API call).
    Cancelled,
    /// The wall clock ran out.
    Timeout,
    /// The session it belonged to was closed.
    SessionClosed,
    /// It wrote more than it may.
    OutputLimit,
}

/// Why it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The command exited by itself.
    Exit,
    /// The command was killed by a signal from inside.
    Signal,
    /// The kernel killed it for memory.
    Oom,
    /// It used up its CPU seconds.
    CpuLimit,
    /// The wall clock of the task or command ran out.
    Timeout,
    /// It wrote more than it may.
    OutputLimit,
    /// It was cancelled.
    Cancelled,
    /// It was not found.
    NotFound,
    /// It was found and could not be executed.
    NotExecutable,
    /// orch failed; the command is not to blame (PX-17).
    RuntimeFailed,
}

/// Who says what the exit code was (design §3.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitSource {
    /// The kernel, through the host's own handle on the process.
    Kernel,
    /// The guest, which is inside; its word is not proof.
    Guest,
    /// orch itself decided it (time-out, failure).
    Orch,
}

/// A bound that was in force, and who set it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Bound {
    /// The value in `unit`.
    pub value: u64,
    /// `bytes`, `seconds`, `milliseconds`, `count`, `millicpus`.
    pub unit: &'static str,
    /// Which bound won: `profile`, `task`, `tool`, `host`.
    pub source: &'static str,
    /// How often the task ran into it, where the kernel counts that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hits: Option<u64>,
}

/// One output stream.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Stream {
    /// Bytes that the task wrote and orch read.
    pub bytes: u64,
    /// Whether anything was left out.
    pub truncated: bool,
}

/// What the task used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// Wall clock from the request to start the command to its end, microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall_us: Option<u64>,
    /// CPU time of the whole tree, microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_us: Option<u64>,
    /// Peak memory of the whole tree, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_peak_bytes: Option<u64>,
    /// Peak number of processes and threads (null before Linux 6.11).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pids_peak: Option<u64>,
    /// Block-device bytes read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io_read_bytes: Option<u64>,
    /// Block-device bytes written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io_write_bytes: Option<u64>,
}

/// What was copied out, and what was left behind with the reason.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CopyOut {
    /// Host directory.
    pub directory: String,
    /// Regular files copied.
    pub files: u64,
    /// Bytes copied.
    pub bytes: u64,
    /// Entries left behind: path inside and reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<(String, String)>,
}

/// Where the whole output and this receipt are kept (EV-05).
///
/// There is no word for a log that was cut short: output beyond its limit ends the
/// task, and so does a log that cannot be written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Artifacts {
    /// Host directory that the caller named; what is kept is in the folder `task`
    /// below it.
    pub path: String,
    /// Bytes of `output.log`.
    pub bytes: u64,
    /// SHA-256 of `output.log`, 64 hexadecimal digits.
    pub sha256: String,
}

/// Whether everything that was started is known to be gone (EV-20).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cleanup {
    /// No process, mount, cgroup or directory of it is left.
    Confirmed,
    /// Something could not be shown to be gone.
    Unconfirmed,
}

/// The receipt of one task.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Receipt {
    /// [`RECEIPT_VERSION`].
    pub version: u32,
    /// Unguessable id of the task.
    pub task: String,
    /// How far it got.
    pub state: State,
    /// Why it ended.
    pub reason: Reason,
    /// One sentence for a person: what ended it and how to raise that limit.
    pub summary: String,
    /// Exit code of `orch run`; 128 + signal where a signal ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Signal that ended the command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Who says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_source: Option<ExitSource>,
    /// Advisory: the output looks as if something was refused (PX-18).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub denied: Option<bool>,
    /// Program and arguments, lossy where not UTF-8.
    pub argv: Vec<String>,
    /// Labels of the caller.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Start, RFC 3339 in UTC.
    pub started: String,
    /// What it used.
    pub usage: Usage,
    /// Standard output.
    pub stdout: Stream,
    /// Standard error.
    pub stderr: Stream,
    /// The last 6 000 bytes of both, in the order in which they were read; lossy where
    /// not UTF-8 (EV-04).
    pub output: String,
    /// Every bound in force, by name of the profile key.
    pub limits: BTreeMap<String, Bound>,
    /// Name of the profile.
    pub profile: String,
    /// Tier that was attested.
    pub tier: Tier,
    /// SHA-256 of the effective profile.
    pub profile_sha256: String,
    /// `host`, or the directory; a digest where the image has one.
    pub image: String,
    /// Bytes by destination; absent where the task had no network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<BTreeMap<String, u64>>,
    /// Number of refused operations by kind, where they were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub denials: Option<BTreeMap<String, u64>>,
    /// Workspace files changed, where they were compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files_changed: Option<Vec<String>>,
    /// What was copied out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub out: Option<CopyOut>,
    /// Where the whole output is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifacts: Option<Artifacts>,
    /// Id of the scrub that the container had before this task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scrub: Option<String>,
    /// Limits or controls that this host cannot keep, in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// Whether everything is gone.
    pub cleanup: Cleanup,
    /// Duration of each stage, microseconds.
    pub stages_us: BTreeMap<String, u64>,
    /// Why orch failed, where it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Error>,
}

impl Receipt {
    /// The receipt as the one document that is written wherever it is kept: JSON and
    /// a newline.
    ///
    /// # Errors
    /// [`Code::ReceiptFailed`] for a receipt that JSON cannot hold, which none is.
    pub fn document(&self) -> Result<String, Error> {
        let mut text = serde_json::to_string_pretty(self).map_err(|e| {
            Error::new(
                Code::ReceiptFailed,
                "the receipt cannot be written as JSON",
                "report this as a bug",
            )
            .because(e)
        })?;
        text.push('\n');
        Ok(text)
    }
}
