//! What a table accepts as the outcome of a probe.

use std::fmt;

use crate::outcome::{Outcome, Verdict};

/// One acceptable outcome. Its text forms, as they stand in the tables:
///
/// - `refused` — the word, with any error number;
/// - `refused:ENOSYS` — the word with exactly this error number or signal;
/// - `value:1` — exactly this value; `value:*` — any value;
/// - `value<=1024` — a number, or the hard limit of a `soft:hard` pair, not above this;
/// - `value in a,b` — a comma-separated list of which every member is among these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pattern {
    /// The word alone.
    Word(Verdict),
    /// The word with an error number.
    WithErrno(Verdict, String),
    /// Any value.
    AnyValue,
    /// Exactly this value.
    Exactly(String),
    /// A number not above this.
    AtMost(u64),
    /// A list whose members are all among these.
    Among(Vec<String>),
}

impl Pattern {
    /// Reads the text form.
    ///
    /// # Errors
    /// The text itself, when it is no pattern.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no pattern");
        if let Some(bound) = text.strip_prefix("value<=") {
            return bound.parse().map(Self::AtMost).map_err(|_| wrong());
        }
        if let Some(list) = text.strip_prefix("value in ") {
            return Ok(Self::Among(members(list)));
        }
        let (word, rest) = match text.split_once(':') {
            Some((word, rest)) => (word, Some(rest)),
            None => (text, None),
        };
        let verdict = Verdict::of_word(word).ok_or_else(wrong)?;
        match (verdict, rest) {
            // An error of the probe proves nothing, so no table may accept one.
            (Verdict::Error, _) | (Verdict::Value, None) => Err(wrong()),
            (Verdict::Value, Some("*")) => Ok(Self::AnyValue),
            (Verdict::Value, Some(value)) => Ok(Self::Exactly(value.to_owned())),
            (verdict, None) => Ok(Self::Word(verdict)),
            (verdict, Some(errno)) => Ok(Self::WithErrno(verdict, errno.to_owned())),
        }
    }

    /// Whether an outcome is as the pattern says.
    #[must_use]
    pub fn accepts(&self, outcome: &Outcome) -> bool {
        let value = (outcome.result == Verdict::Value).then_some(outcome.detail.as_str());
        match self {
            Self::Word(verdict) => outcome.result == *verdict,
            Self::WithErrno(verdict, errno) => {
                outcome.result == *verdict && outcome.errno.as_deref() == Some(errno)
            }
            Self::AnyValue => value.is_some(),
            Self::Exactly(wanted) => value == Some(wanted),
            Self::AtMost(bound) => value
                .map(|value| value.rsplit(':').next().unwrap_or(value))
                .and_then(|value| value.parse::<u64>().ok())
                .is_some_and(|value| value <= *bound),
            Self::Among(wanted) => value
                .is_some_and(|value| members(value).iter().all(|member| wanted.contains(member))),
        }
    }
}

fn members(list: &str) -> Vec<String> {
    list.split(',')
        .map(str::trim)
        .filter(|member| !member.is_empty())
        .map(str::to_owned)
        .collect()
}

impl fmt::Display for Pattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(verdict) => out.write_str(verdict.word()),
            Self::WithErrno(verdict, errno) => write!(out, "{}:{errno}", verdict.word()),
            Self::AnyValue => out.write_str("value:*"),
            Self::Exactly(value) => write!(out, "value:{value}"),
            Self::AtMost(bound) => write!(out, "value<={bound}"),
            Self::Among(list) => write!(out, "value in {}", list.join(",")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Pattern;
    use crate::outcome::{Outcome, Verdict};

    fn accepts(pattern: &str, outcome: &Outcome) -> bool {
        Pattern::parse(pattern).unwrap().accepts(outcome)
    }

    #[test]
    fn words_and_error_numbers() {
        let refused = Outcome::with_errno(Verdict::Refused, libc::EPERM, "");
        assert!(accepts("refused", &refused));
        assert!(accepts("refused:EPERM", &refused));
        assert!(!accepts("refused:ENOSYS", &refused));
        assert!(!accepts("allowed", &refused));
    }

    #[test]
    fn values() {
        assert!(accepts("value:0", &Outcome::value("0")));
        assert!(!accepts("value:0", &Outcome::value("1")));
        assert!(!accepts("value:*", &Outcome::plain(Verdict::Hidden, "")));
        assert!(accepts("value<=64", &Outcome::value("32:64")));
        assert!(!accepts("value<=64", &Outcome::value("32:65")));
        assert!(!accepts("value<=64", &Outcome::value("32:unlimited")));
        assert!(accepts("value in null,zero", &Outcome::value("null")));
        assert!(accepts("value in null,zero", &Outcome::value("")));
        assert!(!accepts("value in null,zero", &Outcome::value("null,mem")));
    }

    #[test]
    fn nonsense_and_errors_are_no_patterns() {
        for text in ["", "fine", "error", "error:EPERM", "value", "value<=x"] {
            assert!(Pattern::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_text_form_reads_back() {
        for text in [
            "refused",
            "refused:EPERM",
            "value:*",
            "value:1:3",
            "value<=9",
            "value in a,b",
        ] {
            assert_eq!(Pattern::parse(text).unwrap().to_string(), text);
        }
    }
}
