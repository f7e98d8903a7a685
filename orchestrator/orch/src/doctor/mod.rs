//! What this machine can keep: one check for each thing that a sandbox needs.
//!
//! - [`host`]: the kernel's own words, read.
//! - [`cgroup`]: the same for control groups.
//! - [`tier`]: the engine's self-test.

mod cgroup;
mod host;
mod tier;

use orch_engine::StateDir;
use serde::Serialize;

pub use tier::Tier;

/// How one thing stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// All there.
    Ok,
    /// Every tier can be kept, and something is less good than elsewhere.
    Weaker,
    /// Without it no sandbox can be made.
    Missing,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What it is.
    pub name: &'static str,
    /// How it stands.
    pub state: State,
    /// What was found.
    pub found: String,
    /// What that costs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<String>,
    /// How to fix it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Check {
    fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self {
            name,
            state: State::Ok,
            found: found.into(),
            cost: None,
            fix: None,
        }
    }

    fn worse(
        state: State,
        name: &'static str,
        found: impl Into<String>,
        cost: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            state,
            cost: Some(cost.into()),
            fix: Some(fix.into()),
            ..Self::ok(name, found)
        }
    }
}

/// Everything that was found out.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Whether every tier can be kept.
    pub ok: bool,
    /// What a sandbox needs of the host.
    pub checks: Vec<Check>,
    /// What each tier promises, tried.
    pub tiers: Vec<Tier>,
}

/// Looks at the machine, and tries each tier once.
pub fn examine() -> Report {
    let path = StateDir::default_path();
    let state = StateDir::open(&path);
    let mut checks = host::checks();
    checks.extend(cgroup::checks());
    checks.push(match &state {
        Ok(state) => Check::ok("state directory", state.path().to_string_lossy()),
        Err(error) => Check::worse(
            State::Missing,
            "state directory",
            error.to_string(),
            "nothing can be run",
            error.remediation.clone(),
        ),
    });
    let tiers = tier::tiers(state.as_ref());
    let ok = checks.iter().all(|check| check.state != State::Missing)
        && tiers.iter().all(|tier| tier.kept);
    Report { ok, checks, tiers }
}
