//! What `orch doctor` found, for a person: by theme, what is wrong first on its line.

use crate::doctor::{By, Check, Report, State, Tier};
use crate::print::harmless;

/// Width of the column of names.
const NAME: usize = 30;

/// The whole report.
pub fn text(report: &Report, colour: bool) -> String {
    let mut text = String::new();
    let mut group = "";
    for check in &report.checks {
        if check.group != group {
            group = check.group;
            text += &heading(group, text.is_empty());
        }
        text += &line(&Line::of(check), colour);
    }
    text += &heading("tiers, each tried in a sandbox", text.is_empty());
    for tier in &report.tiers {
        text += &line(&tier_line(tier), colour);
    }
    text += &format!("\n{}\n", verdict(report));
    text
}

fn heading(name: &str, first: bool) -> String {
    format!("{}{name}\n", if first { "" } else { "\n" })
}

/// One line, and what belongs to it.
struct Line {
    state: State,
    name: String,
    found: String,
    more: Vec<(&'static str, String)>,
}

impl Line {
    fn of(check: &Check) -> Self {
        let mut more = Vec::new();
        let said = [("costs", &check.cost), ("fix", &check.fix)];
        for (what, words) in said {
            if let Some(words) = words {
                more.push((what, words.clone()));
            }
        }
        if check.state != State::Ok {
            more.push(("see", check.source.to_owned()));
        }
        let found = match check.by {
            By::Version if !check.found.contains("version") => {
                format!("{} (by version)", check.found)
            }
            _ => check.found.clone(),
        };
        Self {
            state: check.state,
            name: check.name.to_owned(),
            found,
            more,
        }
    }
}

/// State first, so that the eye finds what is wrong without colour.
fn line(line: &Line, colour: bool) -> String {
    let (word, code) = match line.state {
        State::Ok => ("ok", "32"),
        State::Warn => ("WARN", "33"),
        State::Missing => ("MISSING", "31;1"),
    };
    let word = format!("{word:8}");
    let word = if colour {
        format!("\u{1b}[{code}m{word}\u{1b}[0m")
    } else {
        word
    };
    let mut text = format!("  {word} {:NAME$} {}\n", line.name, harmless(&line.found));
    for (what, words) in &line.more {
        text += &format!("             {what:6} {}\n", harmless(words));
    }
    text
}

fn tier_line(tier: &Tier) -> Line {
    let mut made = Line {
        state: State::Missing,
        name: tier.tier.to_owned(),
        found: String::new(),
        more: Vec::new(),
    };
    let held = tier.controls.iter().filter(|f| f.holds).count();
    let all = tier.controls.len();
    let fix = if let Some(error) = &tier.error {
        made.found = error.to_string();
        error.remediation.clone()
    } else if all == 0 {
        made.found = "nothing could be tried".to_owned();
        "see what is missing above".to_owned()
    } else if held < all {
        let broken: Vec<String> = tier
            .controls
            .iter()
            .filter(|finding| !finding.holds)
            .map(|finding| format!("{} ({})", finding.control, finding.seen))
            .collect();
        made.found = format!("{held} of {all} controls hold; not: {}", broken.join(", "));
        "see what is missing above; if nothing is, report it with this text".to_owned()
    } else if tier.kept {
        made.state = State::Ok;
        made.found = format!("{held} controls hold");
        return made;
    } else {
        made.found = format!("{held} controls hold; lost by: {}", tier.lost_by.join(", "));
        "see these lines above".to_owned()
    };
    // Loose is served all the same where a control does not hold; the engine refuses
    // the other two.
    let cost = if tier.tier == "loose" && tier.error.is_none() {
        "the tier is weaker than it says"
    } else {
        "the tier cannot be kept"
    };
    made.more = vec![("costs", cost.to_owned()), ("fix", fix)];
    made
}

/// The last line: which tiers, and whether to scroll back.
fn verdict(report: &Report) -> String {
    let count = |state| report.checks.iter().filter(|c| c.state == state).count();
    let (warn, missing) = (count(State::Warn), count(State::Missing));
    let tiers = match report.exit_code {
        0 => "Every tier can be kept here",
        1 => "Not every tier can be kept here: loose and standard can, strict cannot",
        2 => "Not every tier can be kept here: loose alone can",
        _ => "No tier can be kept here",
    };
    let mut also = Vec::new();
    for (count, word) in [(missing, "MISSING"), (warn, "WARN")] {
        if count > 0 {
            also.push(format!("{count} × {word}"));
        }
    }
    if also.is_empty() {
        format!("{tiers}.")
    } else {
        format!("{tiers}. Above: {}.", also.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use orch_engine::selftest::Finding;

    fn tier(controls: Vec<Finding>, kept: bool) -> Tier {
        Tier {
            tier: "strict",
            kept,
            lost_by: Vec::new(),
            controls,
            error: None,
        }
    }

    fn finding(control: &'static str, holds: bool) -> Finding {
        Finding {
            control,
            holds,
            seen: "CapEff: 1\u{1b}".into(),
        }
    }

    #[test]
    fn a_control_that_does_not_hold_is_named_with_what_was_seen() {
        let controls = vec![finding("capabilities", false), finding("groups", true)];
        let report = Report::new(Vec::new(), vec![tier(controls, false)]);
        let text = text(&report, false);
        assert!(text.contains("  MISSING  strict"), "{text}");
        assert!(text.contains("1 of 2 controls hold; not: capabilities (CapEff: 1\\u{1b})"));
        assert!(text.contains("costs  the tier cannot be kept"), "{text}");
        assert!(text.ends_with("No tier can be kept here.\n"), "{text}");
    }

    #[test]
    fn colour_is_the_state_alone_and_only_when_asked_for() {
        let report = Report::new(Vec::new(), vec![tier(vec![finding("groups", true)], true)]);
        assert!(text(&report, true).contains("\u{1b}[32mok      \u{1b}[0m strict"));
        assert!(!text(&report, false).contains('\u{1b}'));
    }
}
