//! Environment variables: names, values, and `NAME=VALUE` as people type it.
//!
//! Names are text; values are bytes, since a value need not be UTF-8.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::error::{Code, Error};

/// Why a name or value is refused: cause and remedy.
pub type Refusal = (&'static str, &'static str);

/// A name made of letters, digits and `_`, not beginning with a digit (POSIX,
/// XBD 8.1). Anything else cannot be read by a shell, so it is a slip.
///
/// # Errors
/// Cause and remedy.
pub fn check_name(name: &str) -> Result<(), Refusal> {
    let good = !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if good {
        return Ok(());
    }
    Err((
        "the name of a variable is made of letters, digits and _",
        if name.contains('*') {
            "name each variable; there are no patterns here"
        } else {
            "write a name such as LC_ALL"
        },
    ))
}

/// A value without NUL, which the kernel would cut it at.
///
/// # Errors
/// Cause and remedy.
pub fn check_value(value: &str) -> Result<(), Refusal> {
    if value.contains('\0') {
        return Err(("the value contains a NUL byte", "remove it"));
    }
    Ok(())
}

/// A variable as it was asked for.
#[derive(Clone, PartialEq, Eq)]
pub enum Variable {
    /// `NAME=VALUE`.
    Set(String, OsString),
    /// `NAME`: the caller's own value.
    Copy(String),
}

/// Without the value, which may be a secret.
impl std::fmt::Debug for Variable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Variable::Set(name, _) => write!(f, "Set({name:?}, …)"),
            Variable::Copy(name) => write!(f, "Copy({name:?})"),
        }
    }
}

/// Reads `NAME=VALUE` or `NAME`.
///
/// # Errors
/// [`Code::EnvInvalid`] for a name that is not one, or a NUL.
pub fn parse(text: &OsStr) -> Result<Variable, Error> {
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
        Some(value) => Variable::Set(name, OsString::from_vec(value.to_vec())),
        None => Variable::Copy(name),
    })
}

/// The refusal of a line whose text is not repeated.
pub const NO_NAME: &str = "the line does not begin with the name of a variable";

/// Reads lines of `NAME=VALUE` or `NAME`, taken literally (no quotes, no
/// substitution); empty lines and lines that begin with `#` are skipped.
///
/// # Errors
/// The first line that is wrong, counted from 1, with [`Code::EnvInvalid`].
pub fn lines(bytes: &[u8]) -> Result<Vec<Variable>, (usize, Error)> {
    let mut list = Vec::new();
    for (index, line) in bytes.split(|b| *b == b'\n').enumerate() {
        // A carriage return at the end comes from an editor, not from a value.
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() || line[0] == b'#' {
            continue;
        }
        list.push(
            parse(OsStr::from_bytes(line)).map_err(|error| (index + 1, unsaid(line, error)))?,
        );
    }
    Ok(list)
}

/// The refusal of a line without its text where that is no name: the lines of a value
/// that goes on, such as a key in PEM, look like that, and nobody wants to see them.
fn unsaid(line: &[u8], error: Error) -> Error {
    let name = line.split(|byte| *byte == b'=').next().unwrap_or_default();
    let good = std::str::from_utf8(name).is_ok_and(|name| check_name(name).is_ok());
    if good {
        return error;
    }
    Error {
        message: NO_NAME.to_owned(),
        ..error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(name: &str, value: &[u8]) -> Variable {
        Variable::Set(name.into(), OsString::from_vec(value.to_vec()))
    }

    #[test]
    fn values_are_bytes_and_may_hold_equals_signs() {
        let read = |bytes: &[u8]| parse(OsStr::from_bytes(bytes)).unwrap();
        assert_eq!(read(b"A=b=c"), set("A", b"b=c"));
        assert_eq!(read(b"A="), set("A", b""));
        assert_eq!(read(b"A=\xff\n "), set("A", b"\xff\n "));
        assert_eq!(read(b"A"), Variable::Copy("A".into()));
        assert_eq!(read(b"_A1"), Variable::Copy("_A1".into()));
        for bad in [
            &b""[..],
            b"=x",
            b"1A=x",
            b"\xff=x",
            b"A B=x",
            b"A-B=x",
            b"LC_*",
            b"\xc3\x84=x",
            b"A=\0",
        ] {
            let error = parse(OsStr::from_bytes(bad)).unwrap_err();
            assert_eq!(error.code, Code::EnvInvalid, "{bad:?}");
        }
    }

    /// A value of several lines cannot be written in such a file, and is a secret
    /// more often than not.
    #[test]
    fn a_line_that_is_no_variable_is_not_repeated() {
        for text in [
            "KEY=-----BEGIN-----\nMIIEsecret/+\n",
            "KEY=x\nsecret word=1\n",
            "KEY=x\n\u{fffd}secret\n",
        ] {
            let (line, error) = lines(text.as_bytes()).unwrap_err();
            let said = format!("{error} {error:?}");
            assert!(line == 2 && !said.contains("secret"), "{said}");
        }
        // The control: a name that is one is what helps.
        let (_, error) = lines(b"TOKEN=a\0b").unwrap_err();
        assert!(error.message.contains("TOKEN"), "{error}");
    }

    #[test]
    fn a_file_is_read_by_line_and_literally() {
        let list = lines(b"# comment\n\nA=1\r\nB='x y'\nC\n").unwrap();
        assert_eq!(
            list,
            [
                set("A", b"1"),
                set("B", b"'x y'"),
                Variable::Copy("C".into())
            ]
        );
        assert_eq!(lines(b"A=1\n\nB-C=2").unwrap_err().0, 3);
    }

    #[test]
    fn no_value_is_in_the_debug_form_or_a_refusal() {
        assert!(!format!("{:?}", set("A", b"hunter2")).contains("hunter2"));
        let error = parse(OsStr::new("A-B=hunter2")).unwrap_err();
        assert!(!format!("{error:?}").contains("hunter2"));
    }
}
