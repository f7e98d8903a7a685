//! What this machine can keep: one check for each thing that a sandbox needs.
//!
//! - [`facts`]: everything that is read or tried, as values.
//! - [`checks`]: pure functions from those values to lines, by theme.
//! - [`tier`]: the engine's self-test.

mod check;
mod checks;
mod facts;
mod tier;

#[cfg(test)]
mod cases;
#[cfg(test)]
mod platforms;

use std::path::Path;

use orch_engine::StateDir;
use serde::Serialize;

pub use check::{By, Check, State};
pub use tier::Tier;

/// The tiers, loosest first.
pub const TIERS: [&str; 3] = ["loose", "standard", "strict"];

/// Everything that was found out.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Whether every tier can be kept.
    pub ok: bool,
    /// What the exit code is: how many tiers are lost, counted from the strictest.
    pub exit_code: u8,
    /// What a sandbox needs of the host.
    pub checks: Vec<Check>,
    /// What each tier promises, tried.
    pub tiers: Vec<Tier>,
}

/// Looks at the machine, and tries each tier once.
pub fn examine(folder: &Path) -> Report {
    // Before anything is started: what is read is the machine without orch's own.
    let facts = facts::read(folder);
    let checks = checks::all(&facts);
    let state = StateDir::open(&StateDir::default_path());
    Report::new(checks, tier::tiers(state.as_ref()))
}

impl Report {
    /// A tier is kept where its self-test holds and no check says that it is lost.
    pub fn new(checks: Vec<Check>, mut tiers: Vec<Tier>) -> Self {
        for tier in &mut tiers {
            tier.lost_by = checks
                .iter()
                .filter(|check| check.loses.contains(&tier.tier))
                .map(|check| check.name)
                .collect();
            tier.kept &= tier.lost_by.is_empty();
        }
        let exit_code = exit_code(&tiers);
        Self {
            ok: exit_code == 0,
            exit_code,
            checks,
            tiers,
        }
    }
}

/// 0 where every tier is kept, 1 without strict, 2 where loose alone is, 3 where none
/// is. A tier counts only with every looser one: it promises all that they do.
fn exit_code(tiers: &[Tier]) -> u8 {
    let kept = TIERS
        .iter()
        .take_while(|name| tiers.iter().any(|tier| tier.tier == **name && tier.kept))
        .count();
    match kept {
        3.. => 0,
        2 => 1,
        1 => 2,
        0 => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tier(tier: &'static str, kept: bool) -> Tier {
        Tier {
            tier,
            kept,
            lost_by: Vec::new(),
            controls: Vec::new(),
            error: None,
        }
    }

    fn tiers(kept: [bool; 3]) -> Vec<Tier> {
        TIERS
            .into_iter()
            .zip(kept)
            .map(|(name, kept)| tier(name, kept))
            .collect()
    }

    #[test]
    fn the_exit_code_says_which_tiers_are_kept() {
        for (kept, code) in [
            ([true, true, true], 0),
            ([true, true, false], 1),
            ([true, false, false], 2),
            ([true, false, true], 2),
            ([false, false, false], 3),
            ([false, true, true], 3),
        ] {
            assert_eq!(exit_code(&tiers(kept)), code, "{kept:?}");
        }
        assert_eq!(exit_code(&[]), 3);
    }

    #[test]
    fn a_check_that_loses_a_tier_wins_over_its_self_test() {
        let subject = check::Subject("x", "OP-01");
        let lost = Check::missing(subject, "f", "c", "x").losing(vec!["strict"]);
        let report = Report::new(vec![lost], tiers([true; 3]));
        assert!(!report.ok && report.exit_code == 1);
        assert_eq!(report.tiers[2].lost_by, ["x"]);
        let report = Report::new(Vec::new(), tiers([true; 3]));
        assert!(report.ok && report.exit_code == 0);
    }
}
