//! The whole output of a task and its receipt, kept on the host (EV-05).
//!
//! One folder for each task, named by its id: `output.log` holds both streams in the
//! order in which they were read, and `receipt.json` takes its place when the task
//! has ended. Room for both is taken before anything starts (EV-09): evidence that
//! cannot be kept is a reason not to begin, and to stop.
//!
//! - [`log`]: the output while it is written.
//! - `place`: the way to the folder, past whatever a task may have put there.
//! - [`page`]: what is kept, read piece by piece.

pub mod log;
pub mod page;

mod place;

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use orch_policy::receipt::Receipt;
use orch_policy::{Code, Error};
use rustix::fs::{FallocateFlags, Mode, OFlags, fallocate, fchmod, ftruncate, openat, renameat};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

pub use log::Log;
use place::Place;

/// Both streams, in the order in which they were read.
const OUTPUT: &str = "output.log";
/// The final receipt; there only when it is complete.
const RECEIPT: &str = "receipt.json";
/// The receipt until then.
const PENDING: &str = "receipt.json.part";

/// Room for a receipt besides what the caller puts into it, bytes: its last 6 000
/// bytes of output, each of which JSON may write as six, and all of its numbers.
const RECEIPT_ROOM: u64 = 128 << 10;

/// What is to be kept, and where.
#[derive(Debug)]
pub struct Wanted<'a> {
    /// Directory that gets the folder, absolute; made where it is missing.
    pub path: &'a Path,
    /// Name of the folder: the id of the task.
    pub id: &'a str,
    /// Most output, bytes.
    pub output_bytes: u64,
    /// Arguments and labels, which the receipt repeats, bytes.
    pub repeated: u64,
}

/// Host folders of a task.
#[derive(Debug)]
pub struct Folders<'a> {
    /// All that it sees, canonical: no link in one of them is followed.
    pub shown: &'a [PathBuf],
    /// Those that it can write, with their handles: nothing is kept in one of them.
    pub writable: &'a [(&'a Path, &'a OwnedFd)],
}

/// The folder of one task. Dropped before anything was written, it is removed again.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    place: Place,
    receipt: File,
}

fn failed(path: &Path, e: impl Into<io::Error>) -> Error {
    Error::new(
        Code::ArtifactsFailed,
        format!("artifacts cannot be kept in {}", path.display()),
        "name a directory that can be written, has room, and is no folder of the task",
    )
    .because(e.into())
}

impl Folder {
    /// Makes the folder (0700) with an empty log (0600) and takes the room for log and
    /// receipt, where the file system can do that (fallocate(2)). All of this is done
    /// before the task starts, and by descriptors from here on, so that a task does
    /// not change where it leads to.
    ///
    /// # Errors
    /// [`Code::HostExhausted`] where there is no room; [`Code::ArtifactsFailed`] where
    /// the directory cannot be opened, made or written, where the way there leads
    /// through a link of the task, or where the task could write it. Nothing of it is
    /// left then.
    pub fn make(wanted: &Wanted<'_>, folders: &Folders<'_>) -> Result<(Self, Log), Error> {
        let path = wanted.path;
        check_file_size(path, wanted.output_bytes)?;
        let place = Place::make(path, wanted.id, folders)?;
        let file = |name| file(&place.folder, name).map_err(|e| failed(path, e));
        let (log, receipt) = (file(OUTPUT)?, file(PENDING)?);
        // A character of the caller's becomes six at most (`\u001b`).
        let room = RECEIPT_ROOM.saturating_add(wanted.repeated.saturating_mul(6));
        reserve(&log, wanted.output_bytes)
            .and_then(|()| reserve(&receipt, room))
            .map_err(|e| no_room(path, wanted.output_bytes.saturating_add(room), e))?;
        let folder = Self {
            path: path.to_owned(),
            place,
            receipt,
        };
        Ok((folder, Log::new(log)))
    }

    /// The directory as the caller named it.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the receipt, which says by being there that everything is.
    ///
    /// # Errors
    /// [`Code::ArtifactsFailed`] where it cannot be written.
    pub fn finish(mut self, receipt: &Receipt) -> Result<(), Error> {
        let text = receipt.document()?;
        self.place.stays = true;
        self.write(&text).map_err(|e| failed(&self.path, e))
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        self.receipt.write_all(text.as_bytes())?;
        // Gives back the room that was not needed.
        ftruncate(&self.receipt, u64::try_from(text.len()).unwrap_or(u64::MAX))?;
        Ok(renameat(
            &self.place.folder,
            PENDING,
            &self.place.folder,
            RECEIPT,
        )?)
    }
}

/// A new file of this name, 0600 whatever the umask is.
fn file(folder: &OwnedFd, name: &str) -> rustix::io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(0o600);
    let file = openat(folder, name, flags, mode)?;
    fchmod(&file, mode)?;
    Ok(file.into())
}

/// Takes room behind the end of a file without changing its size.
fn reserve(file: &File, bytes: u64) -> rustix::io::Result<()> {
    match fallocate(file, FallocateFlags::KEEP_SIZE, 0, bytes) {
        // Not every file system can; the log is watched while it is written anyway.
        Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        Err(Errno::INTR) => reserve(file, bytes),
        Err(e) => Err(e),
    }
}

fn no_room(path: &Path, bytes: u64, e: Errno) -> Error {
    if !matches!(e, Errno::NOSPC | Errno::DQUOT | Errno::FBIG) {
        return failed(path, e);
    }
    Error::new(
        Code::HostExhausted,
        format!(
            "there is no room in {} for {bytes} bytes, the most that a task may write and its receipt",
            path.display()
        ),
        "make room there, name another directory with --artifacts, or ask for less with --output-limit",
    )
    .because(io::Error::from(e))
}

/// A file beyond RLIMIT_FSIZE would end this process by SIGXFSZ (setrlimit(2)).
fn check_file_size(path: &Path, bytes: u64) -> Result<(), Error> {
    match getrlimit(Resource::Fsize).current {
        Some(most) if most < bytes.max(RECEIPT_ROOM) => Err(Error::new(
            Code::LimitUnavailable,
            format!(
                "artifacts in {} may need a file of {bytes} bytes, and this shell allows {most}",
                path.display()
            ),
            "raise the limit of the shell that starts orch (ulimit -f), or ask for less with --output-limit",
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
