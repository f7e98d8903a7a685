//! `--env NAME[=VALUE]`, `--env-file FILE` and `--label NAME=VALUE`.
//!
//! Names are text; values are bytes, since a value need not be UTF-8.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use orch_policy::variable::check_name;
use orch_policy::{Code, Error};

/// Largest `--env-file`, bytes: more than execve(2) takes in all.
const MAX_FILE: u64 = 4 << 20;

/// A variable as it was asked for.
#[derive(Clone, PartialEq, Eq)]
pub enum EnvArg {
    /// `NAME=VALUE`.
    Set(String, OsString),
    /// `NAME`: the caller's own value.
    Copy(String),
}

/// Without the value, which may be a secret.
impl std::fmt::Debug for EnvArg {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            EnvArg::Set(name, _) => write!(f, "Set({name:?}, …)"),
            EnvArg::Copy(name) => write!(f, "Copy({name:?})"),
        }
    }
}

/// Reads one `--env`.
///
/// # Errors
/// [`Code::EnvInvalid`] for a name that is not one, or a NUL.
pub fn parse(text: &OsStr) -> Result<EnvArg, Error> {
    let bytes = text.as_bytes();
    let (name, value) = match bytes.iter().position(|b| *b == b'=') {
        Some(at) => (&bytes[..at], Some(&bytes[at + 1..])),
        None => (bytes, None),
    };
    let name = String::from_utf8_lossy(name).into_owned();
    let refuse = |cause: &str, remedy: &str| {
        Error::new(
            Code::EnvInvalid,
            format!("variable {name:?} cannot be set"),
            remedy,
        )
        .because(cause)
    };
    check_name(&name).map_err(|(cause, remedy)| refuse(cause, remedy))?;
    if value.is_some_and(|value| value.contains(&0)) {
        return Err(refuse("the value contains a NUL byte", "remove it"));
    }
    Ok(match value {
        Some(value) => EnvArg::Set(name, OsString::from_vec(value.to_vec())),
        None => EnvArg::Copy(name),
    })
}

/// Reads an `--env-file`: one `NAME=VALUE` or `NAME` a line, taken literally
/// (no quotes, no substitution); empty lines and lines that begin with `#` are
/// skipped.
///
/// # Errors
/// [`Code::EnvInvalid`] with file and line, or where it cannot be read.
pub fn read_file(path: &Path) -> Result<Vec<EnvArg>, Error> {
    let unreadable = |message: String| {
        Error::new(
            Code::EnvInvalid,
            message,
            "name a readable file of NAME=VALUE lines",
        )
    };
    let shown = path.display();
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path)
        .map_err(|e| unreadable(format!("cannot read {shown}")).because(e))?;
    file.take(MAX_FILE + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| unreadable(format!("cannot read {shown}")).because(e))?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > MAX_FILE {
        return Err(unreadable(format!(
            "{shown} is larger than {MAX_FILE} bytes"
        )));
    }
    lines(&bytes).map_err(|(line, error)| Error {
        message: format!("{shown}:{line}: {}", error.message),
        ..error
    })
}

fn lines(bytes: &[u8]) -> Result<Vec<EnvArg>, (usize, Error)> {
    let mut list = Vec::new();
    for (index, line) in bytes.split(|b| *b == b'\n').enumerate() {
        // A carriage return at the end comes from an editor, not from a value.
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() || line[0] == b'#' {
            continue;
        }
        list.push(parse(OsStr::from_bytes(line)).map_err(|error| (index + 1, error))?);
    }
    Ok(list)
}

/// What is asked for, with the caller's own values filled in.
///
/// # Errors
/// [`Code::EnvInvalid`] for a name that the caller has no value for: a task that
/// silently lacks a variable fails later and elsewhere.
pub fn settle(
    asked: impl IntoIterator<Item = EnvArg>,
    own: impl Fn(&str) -> Option<OsString>,
) -> Result<Vec<(OsString, OsString)>, Error> {
    asked
        .into_iter()
        .map(|arg| match arg {
            EnvArg::Set(name, value) => Ok((name.into(), value)),
            EnvArg::Copy(name) => match own(&name) {
                Some(value) => Ok((name.into(), value)),
                None => Err(Error::new(
                    Code::EnvInvalid,
                    format!("variable {name:?} is not set here"),
                    format!("set it, or write {name}=VALUE"),
                )),
            },
        })
        .collect()
}

/// Reads one `--label`.
///
/// # Errors
/// [`Code::Usage`] where it has no name or no `=`.
pub fn label(text: &str) -> Result<(String, String), Error> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(Error::new(
            Code::Usage,
            format!("label {text:?} cannot be read"),
            "write NAME=VALUE",
        )),
    }
}

/// The clap parser of `--env`.
pub fn parser() -> impl clap::builder::TypedValueParser<Value = EnvArg> {
    use clap::builder::{OsStringValueParser, TypedValueParser as _};
    OsStringValueParser::new().try_map(|text| parse(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(name: &str, value: &[u8]) -> EnvArg {
        EnvArg::Set(name.into(), OsString::from_vec(value.to_vec()))
    }

    #[test]
    fn values_are_bytes_and_may_hold_equals_signs() {
        let read = |bytes: &[u8]| parse(OsStr::from_bytes(bytes)).unwrap();
        assert_eq!(read(b"A=b=c"), set("A", b"b=c"));
        assert_eq!(read(b"A="), set("A", b""));
        assert_eq!(read(b"A=\xff\n "), set("A", b"\xff\n "));
        assert_eq!(read(b"A"), EnvArg::Copy("A".into()));
        for bad in [&b""[..], b"=x", b"1A=x", b"\xff=x", b"A B=x", b"A=\0"] {
            assert_eq!(
                parse(OsStr::from_bytes(bad)).unwrap_err().code,
                Code::EnvInvalid
            );
        }
    }

    #[test]
    fn a_file_is_read_by_line_and_literally() {
        let list = lines(b"# comment\n\nA=1\r\nB='x y'\nC\n").unwrap();
        assert_eq!(
            list,
            [set("A", b"1"), set("B", b"'x y'"), EnvArg::Copy("C".into())]
        );
        assert_eq!(lines(b"A=1\n\nB-C=2").unwrap_err().0, 3);
    }

    #[test]
    fn no_value_is_in_the_debug_form_or_a_refusal() {
        assert!(!format!("{:?}", set("A", b"hunter2")).contains("hunter2"));
        let error = parse(OsStr::new("A-B=hunter2")).unwrap_err();
        assert!(!format!("{error:?}").contains("hunter2"));
    }

    #[test]
    fn a_bare_name_takes_the_callers_value_or_is_refused() {
        let own = |name: &str| (name == "A").then(|| OsString::from("1"));
        let ask = |name: &str| settle([EnvArg::Copy(name.into())], own);
        assert_eq!(ask("A").unwrap(), [("A".into(), "1".into())]);
        let error = ask("B").unwrap_err();
        assert_eq!(error.code, Code::EnvInvalid);
        assert_eq!(error.remediation, "set it, or write B=VALUE");
    }

    #[test]
    fn labels() {
        assert_eq!(label("a=b=c").unwrap(), ("a".into(), "b=c".into()));
        assert!(label("a").is_err() && label("=b").is_err());
    }
}
