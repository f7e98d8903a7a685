//! Judges the lines of a run against a table. Pure: values in, findings out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;

use crate::outcome::Line;
use crate::pattern::Pattern;
use crate::table::{Control, Table};

/// One reason why a run does not pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "finding", rename_all = "snake_case")]
pub enum Finding {
    /// The outcome is none of the acceptable ones.
    Unexpected {
        /// What the probe said.
        line: Line,
        /// What would have been acceptable.
        accept: Vec<String>,
        /// The reason in the table.
        why: String,
    },
    /// The table expects a probe of which no line came: a run that was cut short.
    Missing {
        /// Its id.
        id: String,
    },
    /// A line came more than once, so which one counts is open.
    Repeated {
        /// Its id.
        id: String,
    },
    /// A line, or a probe of this program, that the table says nothing about.
    NotInTable {
        /// Its id.
        id: String,
    },
    /// The table names a probe that this program does not have.
    NoSuchProbe {
        /// Its id.
        id: String,
    },
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unexpected { line, accept, why } => write!(
                out,
                "{}: {} {} {} (accepted: {}; {why})",
                line.id,
                line.outcome.result.word(),
                line.outcome.errno.as_deref().unwrap_or("-"),
                line.outcome.detail,
                accept.join(" | "),
            ),
            Self::Missing { id } => write!(out, "{id}: no line came from this probe"),
            Self::Repeated { id } => write!(out, "{id}: more than one line"),
            Self::NotInTable { id } => write!(out, "{id}: the table does not mention it"),
            Self::NoSuchProbe { id } => write!(out, "{id}: in the table, but no such probe"),
        }
    }
}

/// Judges a run inside a sandbox. No finding means that it holds.
#[must_use]
pub fn judge(lines: &[Line], table: &Table) -> Vec<Finding> {
    compare(lines, table, &crate::ids(), |id| {
        table.get(id).map(|entry| entry.accept.as_slice())
    })
}

/// Judges a run as root outside: every probe with a control must come out as it
/// says, or what it proves inside is worth nothing (PB-11).
#[must_use]
pub fn judge_control(lines: &[Line], table: &Table) -> Vec<Finding> {
    compare(lines, table, &crate::ids(), |id| {
        match &table.get(id)?.control {
            Control::Expect(patterns) => Some(patterns.as_slice()),
            Control::None(_) => None,
        }
    })
}

fn compare<'a>(
    lines: &[Line],
    table: &Table,
    probes: &[String],
    patterns: impl Fn(&str) -> Option<&'a [Pattern]>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut by_id: BTreeMap<&str, &Line> = BTreeMap::new();
    for line in lines {
        if by_id.insert(&line.id, line).is_some() {
            findings.push(Finding::Repeated {
                id: line.id.clone(),
            });
        }
    }
    for (id, entry) in table {
        if !probes.contains(id) {
            findings.push(Finding::NoSuchProbe { id: id.clone() });
        }
        match by_id.get(id.as_str()) {
            None => findings.push(Finding::Missing { id: id.clone() }),
            Some(line) => {
                let accept = patterns(id).unwrap_or_default();
                if !accept.is_empty() && !accept.iter().any(|p| p.accepts(&line.outcome)) {
                    findings.push(Finding::Unexpected {
                        line: (*line).clone(),
                        accept: accept.iter().map(ToString::to_string).collect(),
                        why: entry.why.clone(),
                    });
                }
            }
        }
    }
    let known = by_id
        .keys()
        .copied()
        .chain(probes.iter().map(String::as_str));
    for id in known.collect::<BTreeSet<_>>() {
        if !table.contains_key(id) {
            findings.push(Finding::NotInTable { id: id.to_owned() });
        }
    }
    findings
}

#[cfg(test)]
mod tests;
