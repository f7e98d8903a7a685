//! What is kept on the host: a directory that only its owner can enter.

use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use orch_policy::{Code, Error};

/// The state directory.
#[derive(Debug, Clone)]
pub struct StateDir {
    path: PathBuf,
}

impl StateDir {
    /// `$ORCH_STATE_DIR`, else `/run/orch` for root, else below `$XDG_RUNTIME_DIR`.
    #[must_use]
    pub fn default_path() -> PathBuf {
        if let Some(path) = std::env::var_os("ORCH_STATE_DIR") {
            return path.into();
        }
        match std::env::var_os("XDG_RUNTIME_DIR") {
            Some(runtime) if !rustix::process::geteuid().is_root() => {
                Path::new(&runtime).join("orch")
            }
            _ => "/run/orch".into(),
        }
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
