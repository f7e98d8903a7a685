//! The engine's self-test, tier by tier.

use std::path::Path;

use orch_engine::selftest::{self, Finding};
use orch_engine::{Engine, StateDir};
use orch_policy::builtin::builtin;
use orch_policy::extends::tier_word;
use orch_policy::{Error, profile};
use serde::Serialize;

use crate::embed;

/// What one tier promises, tried on this machine.
#[derive(Debug, Serialize)]
pub struct Tier {
    /// Its name.
    pub tier: &'static str,
    /// Whether every control holds, and no check says that the tier is lost.
    pub kept: bool,
    /// Checks that say so.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lost_by: Vec<&'static str>,
    /// Every control that was tried.
    pub controls: Vec<Finding>,
    /// Why nothing could be tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Error>,
}

/// Tries the three tiers, each in a sandbox of its own.
pub fn tiers(state: Result<&StateDir, &Error>) -> Vec<Tier> {
    // A launcher that is broken is broken for all of them.
    let mut engine = state
        .map_err(Clone::clone)
        .and_then(|state| Engine::start(state, embed::LAUNCHER, embed::GUEST));
    let mut tried = Vec::new();
    for tier in [
        profile::Tier::Loose,
        profile::Tier::Standard,
        profile::Tier::Strict,
    ] {
        let name = tier_word(tier);
        let found = match &mut engine {
            Ok(engine) => check(engine, name),
            Err(error) => Err(error.clone()),
        };
        tried.push(verdict(name, found));
    }
    tried
}

fn check(engine: &mut Engine, name: &str) -> Result<Vec<Finding>, Error> {
    // Nobody's home: the self-test mounts nothing of the caller's.
    let loaded = builtin(name, Path::new("/nonexistent"))?;
    selftest::check(engine, &loaded.profile)
}

/// A self-test that looked at nothing proves nothing.
fn verdict(tier: &'static str, found: Result<Vec<Finding>, Error>) -> Tier {
    match found {
        Ok(controls) => Tier {
            tier,
            kept: !controls.is_empty() && controls.iter().all(|finding| finding.holds),
            lost_by: Vec::new(),
            controls,
            error: None,
        },
        Err(error) => Tier {
            tier,
            kept: false,
            lost_by: Vec::new(),
            controls: Vec::new(),
            error: Some(error),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(holds: bool) -> Finding {
        Finding {
            control: "c",
            holds,
            seen: String::new(),
        }
    }

    #[test]
    fn a_tier_is_kept_when_something_was_tried_and_all_of_it_holds() {
        assert!(verdict("strict", Ok(vec![finding(true)])).kept);
        assert!(!verdict("strict", Ok(vec![finding(true), finding(false)])).kept);
        assert!(!verdict("strict", Ok(Vec::new())).kept);
        let error = Error::new(orch_policy::Code::RuntimeFailed, "x", "y");
        assert!(!verdict("strict", Err(error)).kept);
    }
}
