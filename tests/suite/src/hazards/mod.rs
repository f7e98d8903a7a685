//! What embedding a runtime does that a caller would not expect, and past escapes:
//! hazards H1–H18 and the A rows that need something outside (the probe program
//! covers the others, see [`crate::probes`]).

mod ceilings;
mod crowd;
mod images;
mod inherited;
mod keyring;
mod mounts;
mod roots;
mod sealed;
mod selftest;
mod unfiltered;
pub mod waits;
mod workdir;

use crate::harness::Test;

/// The rooms' tests.
pub fn tests() -> Vec<Test> {
    [
        ceilings::tests(),
        crowd::tests(),
        images::tests(),
        inherited::tests(),
        keyring::tests(),
        mounts::tests(),
        roots::tests(),
        sealed::tests(),
        selftest::tests(),
        unfiltered::tests(),
        waits::tests(),
        workdir::tests(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Every tier.
const TIERS: [&str; 3] = ["loose", "standard", "strict"];
/// Where a test puts the probe program.
const PROGRAM: &str = "/workspace/orch-probe";

/// One test for each tier: `hazards::NAME::TIER`.
fn in_every_tier(
    name: &str,
    run: fn(&'static str) -> crate::rig::Result<crate::harness::Verdict>,
) -> Vec<Test> {
    TIERS
        .iter()
        .map(|&tier| crate::harness::test(format!("hazards::{name}::{tier}"), move || run(tier)))
        .collect()
}

/// The lines of the probe program, judged for a tier; only those of these rows.
fn judged(tier: &str, text: &str, rows: &[&str]) -> crate::rig::Result<()> {
    use orch_probe::{Line, expected, judge};
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<Line>(line).map_err(|e| format!("{e}: {line}")))
        .collect::<crate::rig::Result<Vec<_>>>()?;
    let mut table = expected(tier)?;
    table.retain(|id, _| rows.iter().any(|row| id.split('.').next() == Some(row)));
    let found = judge(&lines, &table)
        .iter()
        .filter(|finding| !matches!(finding, orch_probe::Finding::NotInTable { .. }))
        .map(ToString::to_string)
        .collect::<Vec<_>>();
    crate::rig::ensure(!lines.is_empty(), || "no line came".to_owned())?;
    crate::rig::ensure(found.is_empty(), || found.join("\n"))
}
