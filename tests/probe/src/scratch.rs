//! One private directory for what probes have to create.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// A directory of mode 0700, removed when dropped. `None` inside where nothing
/// that was tried is writable.
#[derive(Debug)]
pub struct Scratch(Option<PathBuf>);

impl Scratch {
    /// Makes one in the first writable of `/workspace`, `$TMPDIR`, `/tmp`, `/dev/shm`.
    #[must_use]
    pub fn create() -> Self {
        let own = std::env::var_os("TMPDIR").map(PathBuf::from);
        let places = [PathBuf::from("/workspace")]
            .into_iter()
            .chain(own)
            .chain(["/tmp", "/dev/shm"].map(PathBuf::from));
        Self(places.into_iter().find_map(|place| Self::under(&place)))
    }

    fn under(place: &Path) -> Option<PathBuf> {
        for attempt in 0..16 {
            let path = place.join(format!(".orch-probe-{}-{attempt}", std::process::id()));
            match std::fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Some(path),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(_) => return None,
            }
        }
        None
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.0.as_deref()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // Nothing could be done about a failure; the directory is empty or nearly so.
            let _ = std::fs::remove_dir_all(path);
        }
    }
}
