//! `orch doctor`.

use clap::Args;
use orch_policy::Error;

use crate::doctor::{Check, Report, State, Tier, examine};
use crate::print::{self, Format, harmless};

/// Say what this machine can keep of each tier, and how to fix the rest.
///
/// Each tier is tried once, in a sandbox of its own. Exits with 0 where every tier
/// can be kept, else with 1. `weaker` means: every tier is kept, and something
/// beside it is less good than on other machines.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sudo orch doctor
  sudo orch doctor --format json | jq '.tiers[] | select(.kept | not)'")]
pub struct DoctorArgs {
    /// How to write it.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl DoctorArgs {
    /// Whether errors are wanted as JSON.
    pub fn json(&self) -> bool {
        self.format == Format::Json
    }
}

/// Examines the machine and says what was found.
///
/// # Errors
/// Where standard output cannot be written.
pub fn run(args: &DoctorArgs) -> Result<u8, Error> {
    let report = examine();
    match args.format {
        Format::Json => print::json(&report)?,
        Format::Text => print::text(&text(&report))?,
    }
    Ok(u8::from(!report.ok))
}

fn text(report: &Report) -> String {
    let mut text = String::new();
    for check in &report.checks {
        text += &check_text(check);
    }
    for tier in &report.tiers {
        text += &tier_text(tier);
    }
    text += if report.ok {
        "\nEvery tier can be kept here.\n"
    } else {
        "\nNot every tier can be kept here.\n"
    };
    text
}

/// State first, so that the eye finds what is wrong without colour.
fn line(state: &str, name: &str, found: &str, cost: Option<&str>, fix: Option<&str>) -> String {
    let mut text = format!("{state:8} {name:20} {}\n", harmless(found));
    for (what, words) in [("costs", cost), ("fix", fix)] {
        if let Some(words) = words {
            text += &format!("{:29} {what}: {}\n", "", harmless(words));
        }
    }
    text
}

fn check_text(check: &Check) -> String {
    let Check {
        name, found, state, ..
    } = check;
    let state = match state {
        State::Ok => "ok",
        State::Weaker => "weaker",
        State::Missing => "MISSING",
    };
    line(
        state,
        name,
        found,
        check.cost.as_deref(),
        check.fix.as_deref(),
    )
}

fn tier_text(tier: &Tier) -> String {
    let name = format!("tier {}", tier.tier);
    if let Some(error) = &tier.error {
        let (found, fix) = (error.to_string(), &error.remediation);
        let cost = "the tier is not served";
        return line("MISSING", &name, &found, Some(cost), Some(fix));
    }
    let (held, all) = (
        tier.controls.iter().filter(|f| f.holds).count(),
        tier.controls.len(),
    );
    if tier.kept {
        return line("ok", &name, &format!("{held} controls hold"), None, None);
    }
    if all == 0 {
        let found = "nothing could be tried";
        return line(
            "MISSING",
            &name,
            found,
            Some("the tier is not served"),
            None,
        );
    }
    let broken: Vec<String> = tier
        .controls
        .iter()
        .filter(|finding| !finding.holds)
        .map(|finding| format!("{} ({})", finding.control, finding.seen))
        .collect();
    // Loose is served all the same; the engine refuses the other two.
    let cost = match tier.tier {
        "loose" => "the tier is weaker than it says",
        _ => "the tier is not served (control_missing)",
    };
    line(
        "MISSING",
        &name,
        &format!("{held} of {all} controls hold; not: {}", broken.join(", ")),
        Some(cost),
        Some("see what is missing above; if nothing is, report it with this text"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use orch_engine::selftest::Finding;

    #[test]
    fn a_control_that_does_not_hold_is_named_with_what_was_seen() {
        let finding = |control, holds| Finding {
            control,
            holds,
            seen: "CapEff: 1\u{1b}".into(),
        };
        let report = Report {
            ok: false,
            checks: Vec::new(),
            tiers: vec![Tier {
                tier: "strict",
                kept: false,
                controls: vec![finding("capabilities", false), finding("groups", true)],
                error: None,
            }],
        };
        let text = text(&report);
        assert!(text.starts_with("MISSING  tier strict"), "{text}");
        assert!(text.contains("1 of 2 controls hold; not: capabilities (CapEff: 1\\u{1b})"));
        assert!(text.contains("costs: the tier is not served"));
        assert!(text.ends_with("Not every tier can be kept here.\n"));
    }
}
