//! Where the value of every field came from, for `profile show`.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;

use crate::fields::fields;
use crate::layer::Label;
use crate::load::Loaded;

/// Why a file's value counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Because {
    /// It is the profile that was asked for.
    Own,
    /// The profile extends it, directly or not.
    Extends,
    /// It is the shipped profile of the tier, and nobody else has the key.
    Tier,
}

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum From {
    /// A shipped profile.
    Builtin {
        /// Its name.
        profile: String,
        /// Line in its text.
        #[serde(skip_serializing_if = "Option::is_none")]
        line: Option<usize>,
        /// Why it counts.
        because: Because,
    },
    /// A file.
    File {
        /// Its name as it was given.
        file: String,
        /// Line.
        #[serde(skip_serializing_if = "Option::is_none")]
        line: Option<usize>,
        /// Column.
        #[serde(skip_serializing_if = "Option::is_none")]
        column: Option<usize>,
        /// Why it counts.
        because: Because,
    },
    /// No file has the key.
    Default,
}

impl std::fmt::Display for From {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            From::Builtin {
                profile, because, ..
            } => match because {
                Because::Own => write!(f, "builtin {profile}"),
                Because::Extends => write!(f, "extends {profile}"),
                Because::Tier => write!(f, "tier {profile}"),
            },
            From::File {
                file,
                line,
                because,
                ..
            } => {
                if *because == Because::Extends {
                    f.write_str("extends ")?;
                }
                f.write_str(file)?;
                line.map_or(Ok(()), |line| write!(f, ":{line}"))
            }
            From::Default => f.write_str("default"),
        }
    }
}

/// One field of the effective profile.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Key of the file.
    pub field: String,
    /// Value in the unit of the key; null where nothing is set.
    pub value: Value,
    /// Where it came from.
    pub from: From,
}

impl Loaded {
    /// Every field with its value and where that came from.
    #[must_use]
    pub fn provenance(&self) -> Vec<Row> {
        fields(&self.profile)
            .into_iter()
            .map(|(field, value)| {
                let from = self.from(&field);
                Row { field, value, from }
            })
            .collect()
    }

    fn from(&self, field: &str) -> From {
        let origin = self.origins.iter().find(|origin| origin.field == field);
        let Some((i, path)) = origin.and_then(|o| Some((o.layer?, &o.path))) else {
            return From::Default;
        };
        let layer = &self.chain.layers[i];
        let place = layer.place(path);
        let because = match i {
            0 => Because::Own,
            _ if self.chain.implied && i + 1 == self.chain.layers.len() => Because::Tier,
            _ => Because::Extends,
        };
        match &layer.label {
            Label::Builtin(name) => From::Builtin {
                profile: (*name).to_owned(),
                line: place.map(|at| at.line),
                because,
            },
            Label::File(_) => From::File {
                file: layer.label.to_string(),
                line: place.map(|at| at.line),
                column: place.map(|at| at.column),
                because,
            },
        }
    }
}

/// The rows as a table of plain text: field, value, where from.
///
/// Values are JSON with every control character escaped, so nothing in them can
/// move a terminal's cursor.
#[must_use]
pub fn table(rows: &[Row]) -> String {
    let cells: Vec<[String; 3]> = rows
        .iter()
        .map(|row| {
            let value = match &row.value {
                Value::Null => "-".to_owned(),
                Value::String(text) if plain(text) => text.clone(),
                value => escaped(&value.to_string()),
            };
            [row.field.clone(), value, row.from.to_string()]
        })
        .collect();
    // A long value pushes its own line out, not the whole column.
    let width = |column: usize, most: usize| {
        let widths = cells.iter().map(|row| row[column].chars().count());
        widths.filter(|w| *w <= most).max().unwrap_or(0)
    };
    let (first, second) = (width(0, 40), width(1, 44));
    let mut text = format!("{:first$}  {:second$}  FROM\n", "FIELD", "VALUE");
    for [field, value, from] in &cells {
        text += &format!("{field:first$}  {value:second$}  {from}\n");
    }
    text
}

/// JSON leaves DEL and U+0080 to U+009F as they are, and a terminal obeys those, too.
/// Only texts hold them, where JSON has `\uXXXX` for them.
fn escaped(json: &str) -> String {
    json.chars().fold(String::new(), |mut text, c| {
        if c.is_control() {
            // Writing to a String cannot fail.
            let _ = write!(text, "\\u{:04x}", u32::from(c));
        } else {
            text.push(c);
        }
        text
    })
}

fn plain(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| !c.is_control() && c != '"')
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::layer::Source;
    use crate::load::{Context, load};

    fn rows(text: &str) -> Vec<Row> {
        let open = |_: &str, _: &str| {
            let text = b"extends: offline\nlimits:\n  processes: 7\n".to_vec();
            Source::file("base.yaml", text)
        };
        let mut cx = Context::new(Path::new("/home/me")).with_open(open);
        load(Source::file("p.yaml", text.into()).unwrap(), &mut cx)
            .unwrap()
            .provenance()
    }

    fn from(rows: &[Row], field: &str) -> String {
        let row = rows.iter().find(|row| row.field == field);
        row.unwrap_or_else(|| panic!("{field}")).from.to_string()
    }

    #[test]
    fn every_field_says_where_it_came_from() {
        let rows = rows(
            "extends: ./base.yaml\nsandbox:\n  limits: {memory_mb: 64}\n  workspace: /w/x\n  mounts:\n    - path: /w/x\n      mode: ro\nenv:\n  set:\n    A: b\n",
        );
        for (field, want) in [
            ("name", "default"),
            ("tier", "extends standard"),
            ("limits.memory_mb", "p.yaml:3"),
            ("limits.processes", "extends base.yaml:3"),
            ("reuse", "extends offline"),
            ("limits.cpus", "extends standard"),
            ("sandbox.tmpdir", "default"),
            ("sandbox.workspace_mode", "p.yaml:7"),
            ("env.set.A", "p.yaml:10"),
            ("env.set.PATH", "extends standard"),
        ] {
            assert_eq!(from(&rows, field), want, "{field}");
        }
    }

    #[test]
    fn an_unnamed_parent_is_the_tier_and_its_network_does_not_count() {
        let rows = rows("tier: loose\n");
        assert_eq!(from(&rows, "sandbox.root"), "tier loose");
        assert_eq!(from(&rows, "sandbox.network.default"), "default");
        assert_eq!(from(&rows, "tier"), "p.yaml:1");
    }

    /// Every field that `compare` orders is shown, by the same key.
    #[test]
    fn shows_what_compare_orders() {
        let strict = crate::builtin::builtin("strict", Path::new("/")).unwrap();
        let shown = strict.provenance();
        for order in crate::compare::compare(&strict.profile, &strict.profile) {
            let known = shown.iter().any(|row| {
                row.field == order.field
                    || (order.field == "env.set" && row.field.starts_with("env.set."))
            });
            assert!(known, "{}", order.field);
        }
        let builtin = shown
            .iter()
            .filter(|row| matches!(row.from, From::Builtin { .. }));
        assert!(builtin.count() > 25);
    }

    /// Both halves of the control characters, in a text, a key's value and a list.
    #[test]
    fn no_control_character_reaches_a_terminal() {
        let controls = (0..=0x9f_u8).map(char::from).filter(|c| c.is_control());
        for c in controls.filter(|c| *c != '\0') {
            let code = u32::from(c);
            let text = table(&rows(&format!(
                "name: \"a\\U{code:08x}b\"\nenv: {{set: {{A: \"\\U{code:08x}\"}}}}\nsandbox: {{deny_paths: [\"/a\\U{code:08x}\"]}}\n"
            )));
            assert!(
                !text.contains(|c: char| c.is_control() && c != '\n'),
                "{text:?}"
            );
            assert_eq!(
                text.lines().count(),
                rows("name: x\nenv: {set: {A: x}}\n").len() + 1
            );
        }
        let text = table(&rows("name: \"\\u009b2J\"\n"));
        assert!(text.contains(r#""\u009b2J""#), "{text:?}");
    }

    #[test]
    fn the_table_is_plain_and_aligned() {
        let rows = rows("name: \"a\\e[31m\"\n");
        let text = table(&rows);
        assert!(!text.contains('\u{1b}'), "{text:?}");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), rows.len() + 1);
        let column = lines[0].find("FROM").unwrap();
        let root = lines
            .iter()
            .find(|l| l.starts_with("sandbox.root"))
            .unwrap();
        assert_eq!(&root[column..], "tier standard");
    }
}
