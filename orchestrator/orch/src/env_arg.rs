//! `--env NAME[=VALUE]`, `--env-file FILE` and `--label NAME=VALUE`.

use std::ffi::OsString;
use std::io::Read;
use std::path::Path;

use orch_policy::variable::{self, Variable};
use orch_policy::{Code, Error};

/// Largest `--env-file`, bytes: more than execve(2) takes in all.
const MAX_FILE: u64 = 4 << 20;

/// Reads an `--env-file`, as [`variable::lines`].
///
/// # Errors
/// [`Code::EnvInvalid`] with file and line, or where it cannot be read.
pub fn read_file(path: &Path) -> Result<Vec<Variable>, Error> {
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
    variable::lines(&bytes).map_err(|(line, error)| Error {
        message: format!("{shown}:{line}: {}", error.message),
        ..error
    })
}

/// What is asked for, with the caller's own values filled in.
///
/// # Errors
/// [`Code::EnvInvalid`] for a name that the caller has no value for: a task that
/// silently lacks a variable fails later and elsewhere.
pub fn settle(
    asked: impl IntoIterator<Item = Variable>,
    own: impl Fn(&str) -> Option<OsString>,
) -> Result<Vec<(OsString, OsString)>, Error> {
    asked
        .into_iter()
        .map(|arg| match arg {
            Variable::Set(name, value) => Ok((name.into(), value)),
            Variable::Copy(name) => match own(&name) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_name_takes_the_callers_value_or_is_refused() {
        let own = |name: &str| (name == "A").then(|| OsString::from("1"));
        let ask = |name: &str| settle([Variable::Copy(name.into())], own);
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
