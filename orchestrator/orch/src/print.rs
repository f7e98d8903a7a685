//! Listings on standard output.

use std::io::{ErrorKind, IsTerminal, Write};

use clap::ValueEnum;
use orch_policy::{Code, Error};
use serde::Serialize;

/// How a listing is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

/// Writes bytes to standard output. Somebody who stops reading (`orch … | head`)
/// has what they wanted.
///
/// # Errors
/// [`Code::HostExhausted`] where they cannot be written.
pub fn bytes(bytes: &[u8]) -> Result<(), Error> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(Error::new(
            Code::HostExhausted,
            "cannot write to standard output",
            "make room where it is redirected to",
        )
        .because(e)),
        _ => Ok(()),
    }
}

/// Writes text to standard output.
///
/// # Errors
/// As [`bytes`].
pub fn text(text: &str) -> Result<(), Error> {
    bytes(text.as_bytes())
}

/// Writes one JSON document and a newline to standard output.
///
/// # Errors
/// As [`bytes`].
pub fn json(value: &impl Serialize) -> Result<(), Error> {
    text(&to_json(value)?)
}

/// One JSON document and a newline.
///
/// # Errors
/// [`Code::RuntimeFailed`] for a value that JSON cannot hold.
pub fn to_json(value: &impl Serialize) -> Result<String, Error> {
    let mut text = serde_json::to_string_pretty(value).map_err(|e| {
        Error::new(
            Code::RuntimeFailed,
            "cannot write this as JSON",
            "report this as a bug",
        )
        .because(e)
    })?;
    text.push('\n');
    Ok(text)
}

/// A unit variant by its name in JSON, so that text and JSON say the same word.
pub fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        Ok(other) => other.to_string(),
        Err(e) => e.to_string(),
    }
}

/// Text in which nothing can move a terminal's cursor or forge a line.
pub fn harmless(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            clean.extend(c.escape_default());
        } else {
            clean.push(c);
        }
    }
    clean
}

/// Whether standard output shows colour: a terminal that has it, and nobody who said
/// no (NO_COLOR, no-color.org).
pub fn colour() -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    std::io::stdout().is_terminal() && !set("NO_COLOR") && !dumb
}

/// Rows as columns, each as wide as its widest cell; the last one is ragged.
pub fn columns<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    for row in rows {
        let cells: Vec<String> = row
            .iter()
            .zip(widths)
            .map(|(cell, width)| format!("{:width$}", harmless(cell)))
            .collect();
        text += cells.join("  ").trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_not_sent() {
        assert_eq!(harmless("a\x1b[2Jb\nc é"), "a\\u{1b}[2Jb\\nc é");
    }

    #[test]
    fn columns_line_up() {
        let rows = [["a".into(), "bb".into()], ["ccc".into(), String::new()]];
        assert_eq!(columns(&rows), "a    bb\nccc\n");
    }
}
