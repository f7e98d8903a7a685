//! One line: what was looked at, how it stands, what that costs, how to fix it.

use serde::Serialize;

use super::TIERS;

/// How one thing stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// All there.
    Ok,
    /// It works, and something is less good than elsewhere, or soon used up.
    Warn,
    /// What needs it is refused.
    Missing,
}

/// How it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// The kernel or the system says so in a file.
    Read,
    /// It was tried.
    Tried,
    /// Linux has it since a version; nothing else was asked.
    Version,
}

/// Name of a check, and where what it wants is written down: rows and man pages.
#[derive(Debug, Clone, Copy)]
pub struct Subject(pub &'static str, pub &'static str);

/// How many sandboxes of each tier a pool of the host has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Sandboxes {
    /// Tier loose.
    pub loose: u64,
    /// Tier standard.
    pub standard: u64,
    /// Tier strict.
    pub strict: u64,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Theme that it belongs to.
    pub group: &'static str,
    /// What it is.
    pub name: &'static str,
    /// How it stands.
    pub state: State,
    /// What was found.
    pub found: String,
    /// How that is known.
    pub by: By,
    /// For how many sandboxes there is room.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandboxes: Option<Sandboxes>,
    /// What it costs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<String>,
    /// Tiers that are lost.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub loses: Vec<&'static str>,
    /// How to fix it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
    /// Rows and man pages.
    pub source: &'static str,
}

impl Check {
    /// Nothing to say.
    pub fn ok(subject: Subject, found: impl Into<String>) -> Self {
        Self {
            group: "",
            name: subject.0,
            state: State::Ok,
            found: found.into(),
            by: By::Read,
            sandboxes: None,
            cost: None,
            loses: Vec::new(),
            fix: None,
            source: subject.1,
        }
    }

    /// Less good than elsewhere.
    pub fn warn(
        subject: Subject,
        found: impl Into<String>,
        cost: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            state: State::Warn,
            cost: Some(cost.into()),
            fix: Some(fix.into()),
            ..Self::ok(subject, found)
        }
    }

    /// Every tier is lost, unless [`Self::losing`] says fewer.
    pub fn missing(
        subject: Subject,
        found: impl Into<String>,
        cost: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            state: State::Missing,
            loses: TIERS.to_vec(),
            ..Self::warn(subject, found, cost, fix)
        }
    }

    /// Exactly these tiers are lost.
    pub fn losing(self, tiers: Vec<&'static str>) -> Self {
        Self {
            loses: tiers,
            ..self
        }
    }

    /// How it is known.
    pub fn by(self, by: By) -> Self {
        Self { by, ..self }
    }

    /// For how many sandboxes there is room.
    pub fn room(self, sandboxes: Sandboxes) -> Self {
        Self {
            sandboxes: Some(sandboxes),
            ..self
        }
    }
}
