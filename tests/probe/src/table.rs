//! The expected outcomes of a tier, as data in `expected/`.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::pattern::Pattern;

/// The expected outcomes of one tier, by probe id.
pub type Table = BTreeMap<String, Entry>;

/// What a tier expects of one probe.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Outcomes that are acceptable inside the sandbox; at least one.
    #[serde(deserialize_with = "patterns")]
    pub accept: Vec<Pattern>,
    /// The row or the reason.
    pub why: String,
    /// How the probe comes out as root outside.
    pub control: Control,
}

/// The positive control: a probe that cannot fail proves nothing.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Control {
    /// One of these outcomes.
    Expect(#[serde(deserialize_with = "patterns")] Vec<Pattern>),
    /// No control outside, for this reason.
    None(String),
}

fn patterns<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<Pattern>, D::Error> {
    let texts = Vec::<String>::deserialize(from)?;
    if texts.is_empty() {
        return Err(serde::de::Error::custom("an entry accepts nothing"));
    }
    texts
        .iter()
        .map(|text| Pattern::parse(text).map_err(serde::de::Error::custom))
        .collect()
}

/// The table of `loose`, `standard` or `strict`.
///
/// # Errors
/// A message, when there is no such tier or its table does not read.
pub fn expected(tier: &str) -> Result<Table, String> {
    let text = match tier {
        "loose" => include_str!("../expected/loose.json"),
        "standard" => include_str!("../expected/standard.json"),
        "strict" => include_str!("../expected/strict.json"),
        _ => return Err(format!("no expected table for tier `{tier}`")),
    };
    serde_json::from_str(text).map_err(|error| format!("expected table of `{tier}`: {error}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{Control, Table, expected};
    use crate::outcome::{Outcome, Verdict};
    use crate::pattern::Pattern;

    const TIERS: [&str; 3] = ["loose", "standard", "strict"];

    fn keys(table: &Table) -> BTreeSet<&str> {
        table.keys().map(String::as_str).collect()
    }

    #[test]
    fn every_table_names_exactly_the_probes_that_exist() {
        let ids = crate::ids();
        let ids: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
        for tier in TIERS {
            assert_eq!(keys(&expected(tier).unwrap()), ids, "{tier}");
        }
    }

    /// JSON lets a later entry of the same name win in silence.
    #[test]
    fn no_entry_stands_twice_in_a_table() {
        for (tier, text) in [
            ("loose", include_str!("../expected/loose.json")),
            ("standard", include_str!("../expected/standard.json")),
            ("strict", include_str!("../expected/strict.json")),
        ] {
            let written = text.matches("\"accept\":").count();
            assert_eq!(written, expected(tier).unwrap().len(), "{tier}");
        }
    }

    #[test]
    fn every_entry_gives_a_reason() {
        for tier in TIERS {
            for (id, entry) in expected(tier).unwrap() {
                assert!(!entry.why.is_empty(), "{tier} {id}");
                if let Control::None(reason) = entry.control {
                    assert!(reason.len() > 10, "{tier} {id}: {reason}");
                }
            }
        }
    }

    #[test]
    fn controls_do_not_depend_on_the_tier() {
        let [loose, standard, strict] = TIERS.map(|tier| expected(tier).unwrap());
        for (id, entry) in &loose {
            assert_eq!(entry.control, standard[id].control, "{id}");
            assert_eq!(entry.control, strict[id].control, "{id}");
        }
    }

    /// What a tier accepts as reached or seen, every looser one accepts too.
    #[test]
    fn no_tier_lets_through_what_a_looser_one_refuses() {
        for (looser, tighter) in [("loose", "standard"), ("standard", "strict")] {
            let (looser_table, tighter_table) =
                (expected(looser).unwrap(), expected(tighter).unwrap());
            for (id, entry) in &tighter_table {
                for verdict in [Verdict::Allowed, Verdict::Visible] {
                    let outcome = Outcome::plain(verdict, "");
                    let takes = |patterns: &[Pattern]| patterns.iter().any(|p| p.accepts(&outcome));
                    assert!(
                        !takes(&entry.accept) || takes(&looser_table[id].accept),
                        "{id}: {tighter} accepts {} and {looser} does not",
                        verdict.word()
                    );
                }
            }
        }
    }

    #[test]
    fn an_unknown_tier_has_no_table() {
        assert!(expected("paranoid").is_err());
    }

    #[test]
    fn an_entry_must_accept_something() {
        let text = r#"{"B1.bpf":{"accept":[],"why":"x","control":{"none":"because"}}}"#;
        assert!(serde_json::from_str::<Table>(text).is_err());
    }
}
