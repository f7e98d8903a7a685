//! What is kept on the host: a directory that only its owner can enter.

use std::ffi::OsString;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use orch_policy::{Code, Error};

/// The state directory.
#[derive(Debug, Clone)]
pub struct StateDir {
    path: PathBuf,
}

impl StateDir {
    /// `$ORCH_STATE_DIR`, else `/run/orch` for root, and for others below
    /// `$XDG_RUNTIME_DIR`, `$XDG_STATE_HOME` or `~/.local/state`, whichever there is
    /// (XDG Base Directory Specification).
    #[must_use]
    pub fn default_path() -> PathBuf {
        if let Some(path) = std::env::var_os("ORCH_STATE_DIR") {
            return path.into();
        }
        if rustix::process::geteuid().is_root() {
            return "/run/orch".into();
        }
        of_a_user(|name| std::env::var_os(name)).unwrap_or_else(|| "/run/orch".into())
    }

    /// Opens the directory, making it where it is missing.
    ///
    /// # Errors
    /// [`Code::StateInvalid`] where it cannot be made, belongs to somebody else,
    /// or can be entered by others.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let invalid = |message: String| {
            Error::new(
                Code::StateInvalid,
                message,
                "name a directory of your own with ORCH_STATE_DIR, or remove this one",
            )
        };
        if !path.is_absolute() {
            return Err(invalid(format!(
                "state directory {} is not absolute",
                path.display()
            )));
        }
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(|e| invalid(format!("cannot make {}", path.display())).because(e))?;
        let found = std::fs::symlink_metadata(path)
            .map_err(|e| invalid(format!("cannot read {}", path.display())).because(e))?;
        let ours = found.uid() == rustix::process::geteuid().as_raw();
        if !found.is_dir() || !ours || found.mode() & 0o077 != 0 {
            return Err(invalid(format!(
                "state directory {} is not a directory that only you can enter",
                path.display()
            )));
        }
        Ok(Self {
            path: path.to_owned(),
        })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Without a session (cron, a service, a container) there is no runtime directory.
fn of_a_user(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name: &str| {
        let path = variable(name).map(PathBuf::from)?;
        path.is_absolute().then_some(path)
    };
    absolute("XDG_RUNTIME_DIR")
        .or_else(|| absolute("XDG_STATE_HOME"))
        .or_else(|| Some(absolute("HOME")?.join(".local/state")))
        .map(|directory| directory.join("orch"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_without_a_session_has_a_place_as_well() {
        let given = |have: &'static [(&str, &str)]| {
            of_a_user(move |name| {
                let found = have.iter().find(|(other, _)| *other == name)?;
                Some(OsString::from(found.1))
            })
        };
        let all = &[("XDG_RUNTIME_DIR", "/run/user/1"), ("HOME", "/home/me")];
        assert_eq!(given(all), Some("/run/user/1/orch".into()));
        let state = &[("XDG_STATE_HOME", "/s"), ("HOME", "/home/me")];
        assert_eq!(given(state), Some("/s/orch".into()));
        assert_eq!(
            given(&[("HOME", "/home/me")]),
            Some("/home/me/.local/state/orch".into())
        );
        assert_eq!(given(&[("XDG_RUNTIME_DIR", "relative")]), None);
        assert_eq!(given(&[]), None);
    }
}
