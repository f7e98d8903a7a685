//! A directory of one test, gone with it.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// An owner that is neither root nor anybody's login.
pub const OWNER: u32 = 1234;

/// A new directory below the system's temporary one, removed when dropped.
#[derive(Debug)]
pub struct Place(PathBuf);

impl Place {
    /// Makes one that only root enters.
    pub fn new() -> Result<Self, String> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("orch-suite-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(|e| format!("make {}: {e}", path.display()))?;
        Ok(Self(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A path in it.
    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.join(name)
    }

    /// A file in it, readable for all.
    pub fn file(
        &self,
        name: impl AsRef<Path>,
        content: impl AsRef<[u8]>,
    ) -> Result<PathBuf, String> {
        let path = self.join(name);
        fs::write(&path, content).map_err(|e| format!("write {}: {e}", path.display()))?;
        Ok(path)
    }

    /// A directory in it that belongs to nobody but [`OWNER`].
    pub fn folder(&self, name: impl AsRef<Path>) -> Result<PathBuf, String> {
        let path = self.join(name);
        fs::create_dir(&path)
            .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o755)))
            .and_then(|()| chown(&path, Some(OWNER), Some(OWNER)))
            .map_err(|e| format!("make {}: {e}", path.display()))?;
        Ok(path)
    }

    /// A profile in it, of this text.
    pub fn profile(&self, text: &str) -> Result<PathBuf, String> {
        self.file("profile.yaml", text)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Somebody looking at what is left will find it; the test has its verdict.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Removes what every test of this process had, for those that were stopped early.
pub fn sweep() {
    let own = format!("orch-suite-{}-", std::process::id());
    for entry in fs::read_dir(std::env::temp_dir())
        .into_iter()
        .flatten()
        .flatten()
    {
        if entry.file_name().to_string_lossy().starts_with(&own) {
            // As in `drop`.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Names in a directory, sorted.
pub fn names(path: &Path) -> Result<Vec<String>, String> {
    let mut names = fs::read_dir(path)
        .map_err(|e| format!("list {}: {e}", path.display()))?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<std::io::Result<Vec<_>>>()
        .map_err(|e| format!("list {}: {e}", path.display()))?;
    names.sort();
    Ok(names)
}
