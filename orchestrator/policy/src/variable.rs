//! Environment variables: names, values, and `NAME=VALUE` as people type it.

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

/// What `--env` asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Assignment<'a> {
    /// `NAME=VALUE`.
    Set(&'a str, &'a str),
    /// `NAME`: the caller's own value.
    Copy(&'a str),
}

/// `NAME=VALUE` or `NAME`.
///
/// # Errors
/// [`Code::EnvInvalid`] for a name that is not one, or a NUL.
pub fn assignment(text: &str) -> Result<Assignment<'_>, Error> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (text, None),
    };
    check_name(name)
        .and_then(|()| check_value(value.unwrap_or_default()))
        .map_err(|(cause, remedy)| {
            // The value may be a secret, so only the name is repeated.
            Error::new(
                Code::EnvInvalid,
                format!("variable {name:?} cannot be set"),
                remedy,
            )
            .because(cause)
        })?;
    Ok(match value {
        Some(value) => Assignment::Set(name, value),
        None => Assignment::Copy(name),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assignments() {
        assert_eq!(assignment("A=b=c").unwrap(), Assignment::Set("A", "b=c"));
        assert_eq!(assignment("A=").unwrap(), Assignment::Set("A", ""));
        assert_eq!(assignment("_A1").unwrap(), Assignment::Copy("_A1"));
        for text in ["", "=x", "1A=x", "A-B=x", "A B=x", "LC_*", "A=\0", "Ä=x"] {
            assert_eq!(
                assignment(text).unwrap_err().code,
                Code::EnvInvalid,
                "{text:?}"
            );
        }
    }

    #[test]
    fn a_refusal_does_not_repeat_the_value() {
        let error = assignment("MY-TOKEN=hunter2").unwrap_err();
        assert!(!format!("{error:?}").contains("hunter2"));
    }
}
