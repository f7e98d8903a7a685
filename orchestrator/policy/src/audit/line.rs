//! A record as one line of ASCII.

use std::io;

use serde::{Deserialize, Serialize};
use serde_json::ser::{CompactFormatter, Formatter, Serializer};

use super::Record;
use crate::digest;
use crate::error::{Code, Error};

/// How every line begins.
const BEGINNING: &[u8] = b"{\"seq\":";

/// The record as JSON without a newline, in ASCII: nothing that a task chose ends a
/// line, for no reader of lines (U+2028, U+0085), and does nothing to a terminal.
///
/// # Errors
/// [`Code::AuditFailed`] where JSON cannot hold it, which is no record of ours.
pub fn of(record: &Record<'_>) -> Result<String, Error> {
    let mut bytes = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut bytes, Ascii);
    let written = record
        .serialize(&mut serializer)
        .map_err(|e| e.to_string())
        .and_then(|()| String::from_utf8(bytes).map_err(|e| e.to_string()));
    written.map_err(|e| {
        Error::new(
            Code::AuditFailed,
            "an event cannot be written as JSON",
            "report this as a bug",
        )
        .because(e)
    })
}

/// Name of a line for the `prev` of the next one. `line` is without its newline.
#[must_use]
pub fn hash(line: &[u8]) -> String {
    let mut digest = digest::Running::default();
    digest.add(line);
    digest.end()
}

/// Number of the record on this line; none where it is no whole line of a log.
#[must_use]
pub fn seq(line: &[u8]) -> Option<u64> {
    #[derive(Deserialize)]
    struct Head {
        seq: u64,
        prev: String,
        #[serde(rename = "time")]
        _time: String,
        #[serde(rename = "event")]
        _event: String,
    }
    if !line.starts_with(BEGINNING) {
        return None;
    }
    let head: Head = serde_json::from_slice(line).ok()?;
    let digits = head.prev.bytes().all(|b| b.is_ascii_hexdigit());
    (head.prev.len() == super::FIRST.len() && digits).then_some(head.seq)
}

/// Whether these bytes may be the beginning of a line that was cut short.
#[must_use]
pub fn may_be_cut(bytes: &[u8]) -> bool {
    let common = bytes.len().min(BEGINNING.len());
    bytes[..common] == BEGINNING[..common]
}

/// JSON whose strings are ASCII without control characters (RFC 8259 §7).
struct Ascii;

impl Formatter for Ascii {
    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut units = [0; 2];
        let mut rest = fragment;
        while let Some(at) = rest.find(|c: char| !c.is_ascii() || c.is_ascii_control()) {
            let (plain, special) = rest.split_at(at);
            CompactFormatter.write_string_fragment(writer, plain)?;
            let mut chars = special.chars();
            for unit in chars.next().unwrap_or_default().encode_utf16(&mut units) {
                write!(writer, "\\u{unit:04x}")?;
            }
            rest = chars.as_str();
        }
        CompactFormatter.write_string_fragment(writer, rest)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Event, FIRST};
    use super::*;

    fn refused(message: &str) -> Event {
        Event::TaskRefused {
            task: None,
            caller: 0,
            error: Error::new(Code::Usage, message, "try again"),
        }
    }

    fn line(message: &str) -> String {
        let record = Record {
            seq: 7,
            prev: FIRST,
            time: "2026-01-01T00:00:00.000Z".into(),
            event: &refused(message),
        };
        of(&record).unwrap()
    }

    /// AU-06: one line per event, whatever a task put into it.
    #[test]
    fn whatever_it_holds_it_is_one_line_of_ascii() {
        for text in [
            "a\nb",
            "a\r\nb",
            "\u{2028}",
            "\u{85}",
            "\u{1b}[2J",
            "\u{7f}",
            "\0",
            "\u{1f600}",
            "é\"\\/",
            "\u{fffd}\n{\"seq\":8,\"prev\":\"\"}",
            "",
        ] {
            let line = line(text);
            assert!(line.bytes().all(|b| (0x20..0x7f).contains(&b)), "{line}");
            let read: serde_json::Value = serde_json::from_str(&line).unwrap();
            assert_eq!(read["error"]["message"], text, "{line}");
            assert_eq!(seq(line.as_bytes()), Some(7));
        }
    }

    #[test]
    fn a_line_of_another_file_is_none_of_ours() {
        let whole = line("x");
        for cut in 0..whole.len() {
            assert_eq!(seq(&whole.as_bytes()[..cut]), None, "{cut}");
            assert!(may_be_cut(&whole.as_bytes()[..cut]), "{cut}");
        }
        for other in [
            "{}",
            "export PATH",
            "{\"seq\":1}",
            " {\"seq\":1",
            "{\"level\":1",
        ] {
            assert_eq!(seq(other.as_bytes()), None, "{other}");
        }
        assert!(!may_be_cut(b"export") && !may_be_cut(b"{\"level\""));
        let short = whole.replace(FIRST, "00");
        assert_eq!(seq(short.as_bytes()), None);
    }

    #[test]
    fn a_changed_byte_is_another_hash() {
        let (one, other) = (line("a"), line("b"));
        assert_ne!(hash(one.as_bytes()), hash(other.as_bytes()));
        assert_eq!(hash(b"").len(), FIRST.len());
    }
}
