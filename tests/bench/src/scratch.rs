//! A directory of this run alone, taken away at its end.

use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A fresh directory under the system's temporary directory, removed on drop.
///
/// Not under `target/`: the root of a user namespace has to walk there, and a
/// home directory seldom lets it.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// # Errors
    /// When the directory exists already or cannot be made.
    pub fn new() -> Result<Self> {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("orch-bench-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::DirBuilder::new()
            .mode(0o755)
            .create(&path)
            .with_context(|| format!("cannot create {}", path.display()))?;
        // The mode above is cut by the caller's umask.
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))
            .with_context(|| format!("cannot open up {}", path.display()))?;
        Ok(Self(path))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A runtime that failed may have left a mount here; what cannot be
        // removed stays visible under the temporary directory.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
