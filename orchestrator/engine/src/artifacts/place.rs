//! The way to the folder of one task, past whatever a task may have put there.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use orch_policy::{Code, Error};
use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, ResolveFlags, fchmod, fstat, mkdirat, openat, openat2, statat,
    unlinkat,
};
use rustix::process::geteuid;

use super::{Folders, OUTPUT, PENDING, failed};
use crate::ancestry::lies_in;
use crate::destination;

/// The folder of one task, and how it was come to. Dropped while the log is empty, it
/// is removed again, with every directory that was made for it.
#[derive(Debug)]
pub(super) struct Place {
    parent: OwnedFd,
    id: String,
    /// The folder.
    pub folder: OwnedFd,
    /// Whether it stays although the log is empty.
    pub stays: bool,
    made: Made,
}

/// Directories that were made, innermost first.
#[derive(Debug)]
struct Made(Vec<PathBuf>);

impl Place {
    /// Makes a folder of this name, 0700, in a directory that is made where it is
    /// missing. Nothing of it is left where that fails.
    pub fn make(path: &Path, id: &str, folders: &Folders<'_>) -> Result<Self, Error> {
        let failed = |e: io::Error| failed(path, e);
        // Before anything is made there, and once more where the way has really led to.
        let above = path.ancestors().find(|above| above.exists());
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let nearest = openat(CWD, above.unwrap_or(Path::new("/")), flags, Mode::empty())
            .map_err(|e| failed(e.into()))?;
        check(path, &nearest, folders)?;
        let missing = path
            .ancestors()
            .take_while(|above| above.symlink_metadata().is_err());
        let made = Made(missing.map(Path::to_owned).collect());
        let parent = destination::open(path, folders.shown).map_err(failed)?;
        check(path, &parent, folders)?;
        Ok(Self {
            folder: enter(&parent, id).map_err(failed)?,
            parent,
            id: id.to_owned(),
            stays: false,
            made,
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let log = statat(&self.folder, OUTPUT, AtFlags::SYMLINK_NOFOLLOW);
        if self.stays || log.is_ok_and(|log| log.st_size > 0) {
            self.made.0.clear();
            return;
        }
        // Why nothing is kept is an error of its own; what cannot be removed is seen.
        let _ = unlinkat(&self.folder, OUTPUT, AtFlags::empty());
        let _ = unlinkat(&self.folder, PENDING, AtFlags::empty());
        let _ = unlinkat(&self.parent, self.id.as_str(), AtFlags::REMOVEDIR);
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        for directory in &self.0 {
            // It stays where somebody else has put something into it.
            if std::fs::remove_dir(directory).is_err() {
                return;
            }
        }
    }
}

fn enter(parent: &OwnedFd, id: &str) -> io::Result<OwnedFd> {
    let mode = Mode::from_raw_mode(0o700);
    mkdirat(parent, id, mode)?;
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let ours = || -> io::Result<OwnedFd> {
        let folder = openat2(parent, id, flags, Mode::empty(), resolve)?;
        if fstat(&folder)?.st_uid != geteuid().as_raw() {
            return Err(io::Error::other(
                "somebody has put another folder in its place",
            ));
        }
        // Whatever the umask is.
        fchmod(&folder, mode)?;
        Ok(folder)
    };
    ours().inspect_err(|_| {
        // The reason is the news; a folder that is somebody else's is not empty or stays.
        let _ = unlinkat(parent, id, AtFlags::REMOVEDIR);
    })
}

/// Evidence that a task could change would be none.
fn check(path: &Path, directory: &OwnedFd, folders: &Folders<'_>) -> Result<(), Error> {
    for (name, handle) in folders.writable {
        if lies_in(directory, handle).map_err(|e| failed(path, e))? {
            return Err(Error::new(
                Code::ArtifactsFailed,
                format!(
                    "artifacts in {} would lie in {}, which the task can write",
                    path.display(),
                    name.display()
                ),
                "name a directory outside of every writable folder: what a task can change is no evidence",
            ));
        }
    }
    Ok(())
}
