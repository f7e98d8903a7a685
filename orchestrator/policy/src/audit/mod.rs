//! What the audit log holds: one event a line, each line bound to the one before
//! (AU-04…AU-06, design §8).
//!
//! - [`mod@line`]: a record as the one line that it is in the file.

pub mod line;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::error::Error;
use crate::profile::Tier;
use crate::receipt::{Bound, Cleanup, Reason, Receipt, State, Usage};

/// Hash that stands before the first record.
pub const FIRST: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// One line of the log. `seq` comes first in it, so that a line that was cut short
/// can still be told from one of another file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Record<'a> {
    /// Number of the record, from 0.
    pub seq: u64,
    /// SHA-256 of the line before, without its newline, 64 hexadecimal digits;
    /// [`FIRST`] for the first one.
    pub prev: &'a str,
    /// When it was written, RFC 3339 in UTC.
    pub time: String,
    /// What happened.
    #[serde(flatten)]
    pub event: &'a Event,
}

/// A host path that a task was shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Shown {
    /// On the host, lossy where not UTF-8.
    pub source: String,
    /// Inside, lossy where not UTF-8.
    pub target: String,
    /// Whether the task could write there.
    pub writable: bool,
}

/// Something that happened.
///
/// Values of variables and what a task reads or prints are in none of them: a log is
/// kept for long and read by many.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A task is about to be started; written before anything of it is.
    TaskStarted {
        /// Id of the task.
        task: String,
        /// User of the host that asked for it.
        caller: u32,
        /// Name of the profile.
        profile: String,
        /// SHA-256 of the effective profile.
        profile_sha256: String,
        /// Its tier.
        tier: Tier,
        /// Program and arguments, lossy where not UTF-8.
        argv: Vec<String>,
        /// Labels of the caller.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        labels: BTreeMap<String, String>,
        /// What it is shown of the host, besides the image.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        mounts: Vec<Shown>,
    },
    /// A task ran into a limit, as far as the kernel counts that (AU-04, PX-15).
    LimitHit {
        /// Id of the task.
        task: String,
        /// Key of the profile.
        limit: String,
        /// The limit.
        #[serde(flatten)]
        bound: Bound,
    },
    /// A task has ended (AU-05).
    TaskEnded {
        /// Id of the task.
        task: String,
        /// How far it got.
        state: State,
        /// Why it ended.
        reason: Reason,
        /// Exit code, or 128 + signal.
        #[serde(skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
        /// Signal that ended it.
        #[serde(skip_serializing_if = "Option::is_none")]
        signal: Option<i32>,
        /// What it used.
        usage: Usage,
        /// Limits and controls that this host could not keep.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        missing: Vec<String>,
        /// Whether everything of it is gone.
        cleanup: Cleanup,
    },
    /// orch failed or refused; nothing ran, or it is not known how it went.
    TaskRefused {
        /// Id of the task, where it had been started.
        #[serde(skip_serializing_if = "Option::is_none")]
        task: Option<String>,
        /// User of the host that asked for it.
        caller: u32,
        /// Why.
        error: Error,
    },
    /// The line before this one is not whole: whoever wrote it was ended in the middle,
    /// or had no room. It stays as it is.
    LogRepaired {
        /// Length of what is there of it, bytes.
        bytes: u64,
    },
}

impl Event {
    /// What a receipt has to tell: every limit that was hit, then the end.
    #[must_use]
    pub fn of_receipt(receipt: &Receipt) -> Vec<Self> {
        let hit = receipt.limits.iter().filter(|(_, bound)| {
            // Absent: not counted here. Then the reason alone says it.
            bound.hits.is_some_and(|hits| hits > 0)
        });
        let mut events: Vec<Self> = hit
            .map(|(limit, bound)| Self::LimitHit {
                task: receipt.task.clone(),
                limit: limit.clone(),
                bound: bound.clone(),
            })
            .collect();
        events.push(Self::TaskEnded {
            task: receipt.task.clone(),
            state: receipt.state,
            reason: receipt.reason,
            exit_code: receipt.exit_code,
            signal: receipt.signal,
            usage: receipt.usage.clone(),
            missing: receipt.missing.clone(),
            cleanup: receipt.cleanup,
        });
        events
    }
}
