//! What one probe found, and the line it is reported on.

use serde::{Deserialize, Serialize};

use crate::errno;

/// The word of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The attempt was turned away before it reached what it was after.
    Refused,
    /// The attempt succeeded, or failed only after the kernel had begun on it.
    Allowed,
    /// What was looked for is absent or empty.
    Hidden,
    /// What was looked for can be seen.
    Visible,
    /// A measured value, in `detail`.
    Value,
    /// The probe itself failed: neither good nor bad news, so never accepted silently.
    Error,
    /// Not attempted, because here it could do harm or leave the machine.
    SkippedUnsafe,
}

impl Verdict {
    /// The word used in JSON and in the tables.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Allowed => "allowed",
            Self::Hidden => "hidden",
            Self::Visible => "visible",
            Self::Value => "value",
            Self::Error => "error",
            Self::SkippedUnsafe => "skipped_unsafe",
        }
    }

    /// The verdict a word stands for.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        [
            Self::Refused,
            Self::Allowed,
            Self::Hidden,
            Self::Visible,
            Self::Value,
            Self::Error,
            Self::SkippedUnsafe,
        ]
        .into_iter()
        .find(|verdict| verdict.word() == word)
    }
}

/// What one probe found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The word.
    pub result: Verdict,
    /// Name of the error number or of the signal, where there was one.
    pub errno: Option<String>,
    /// The value, or what was found where; may be empty.
    pub detail: String,
}

/// One line of output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// Id of the probe.
    pub id: String,
    /// What it found.
    #[serde(flatten)]
    pub outcome: Outcome,
}

impl Outcome {
    /// An outcome without an error number.
    #[must_use]
    pub fn plain(result: Verdict, detail: impl Into<String>) -> Self {
        Self {
            result,
            errno: None,
            detail: detail.into(),
        }
    }

    /// An outcome with an error number.
    #[must_use]
    pub fn with_errno(result: Verdict, number: i32, detail: impl Into<String>) -> Self {
        Self {
            result,
            errno: Some(errno::name(number)),
            detail: detail.into(),
        }
    }

    /// A measured value.
    #[must_use]
    pub fn value(detail: impl Into<String>) -> Self {
        Self::plain(Verdict::Value, detail)
    }

    /// A failure of the probe itself.
    #[must_use]
    pub fn error(detail: impl Into<String>) -> Self {
        Self::plain(Verdict::Error, detail)
    }

    /// `visible` when anything was found, else `hidden`; lists the first eight.
    #[must_use]
    pub fn found(things: &[String]) -> Self {
        if things.is_empty() {
            return Self::plain(Verdict::Hidden, "");
        }
        let shown = things.iter().take(8).cloned().collect::<Vec<_>>();
        Self::plain(
            Verdict::Visible,
            format!("{}: {}", things.len(), shown.join(" ")),
        )
    }

    /// Judges a raw system call: only `EPERM`, `ENOSYS` and `EACCES` are a refusal,
    /// every other error number means that the kernel was reached.
    #[must_use]
    pub fn of_call(answer: Result<i64, i32>) -> Self {
        match answer {
            Ok(value) => Self::plain(Verdict::Allowed, format!("returned {value}")),
            Err(number @ (libc::EPERM | libc::ENOSYS | libc::EACCES)) => {
                Self::with_errno(Verdict::Refused, number, "")
            }
            Err(number) => Self::with_errno(Verdict::Allowed, number, "the kernel was reached"),
        }
    }

    /// Judges an access to a path: also a read-only file system refuses, and an
    /// absent path is hidden.
    #[must_use]
    pub fn of_path(answer: Result<i64, i32>) -> Self {
        match answer {
            Err(libc::EROFS) => Self::with_errno(Verdict::Refused, libc::EROFS, ""),
            Err(number @ (libc::ENOENT | libc::ENOTDIR)) => {
                Self::with_errno(Verdict::Hidden, number, "")
            }
            other => Self::of_call(other),
        }
    }

    /// The same outcome with another detail.
    #[must_use]
    pub fn detailed(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }
}

#[cfg(test)]
mod tests {
    use super::{Line, Outcome, Verdict};

    #[test]
    fn only_three_error_numbers_refuse_a_call() {
        for number in [libc::EPERM, libc::ENOSYS, libc::EACCES] {
            assert_eq!(Outcome::of_call(Err(number)).result, Verdict::Refused);
        }
        for number in [
            libc::EFAULT,
            libc::EINVAL,
            libc::EBADF,
            libc::EROFS,
            libc::ENOENT,
        ] {
            assert_eq!(Outcome::of_call(Err(number)).result, Verdict::Allowed);
        }
    }

    #[test]
    fn a_path_is_also_refused_by_a_read_only_file_system() {
        assert_eq!(Outcome::of_path(Err(libc::EROFS)).result, Verdict::Refused);
        assert_eq!(Outcome::of_path(Err(libc::ENOENT)).result, Verdict::Hidden);
        assert_eq!(
            Outcome::of_path(Err(libc::ETXTBSY)).result,
            Verdict::Allowed
        );
    }

    #[test]
    fn a_line_is_flat_and_reads_back() {
        let line = Line {
            id: "B1.bpf".to_owned(),
            outcome: Outcome::of_call(Err(libc::EPERM)),
        };
        let text = serde_json::to_string(&line).unwrap();
        assert_eq!(
            text,
            r#"{"id":"B1.bpf","result":"refused","errno":"EPERM","detail":""}"#
        );
        assert_eq!(serde_json::from_str::<Line>(&text).unwrap(), line);
    }
}
