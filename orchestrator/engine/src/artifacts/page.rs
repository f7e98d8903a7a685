//! What is kept of a task, read piece by piece, also while it still runs (EV-05).

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use orch_policy::{Code, Error};
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2, statat,
};
use rustix::io::Errno;

use super::{OUTPUT, RECEIPT};

/// Bytes of a page where nobody asks for another number.
pub const DEFAULT: u64 = 12_000;
/// Most bytes of a page.
pub const MOST: u64 = 64_000;

/// Hexadecimal digits of an id.
const DIGITS: usize = 32;

/// A piece of the output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Where it begins, bytes from the start.
    pub offset: u64,
    /// What is there; less than was asked for only at the end.
    pub data: Vec<u8>,
    /// Bytes of the whole output by now.
    pub total: u64,
    /// Whether the task has ended and its receipt is there: `total` is final then.
    /// Of a task that runs, or whose orch was killed, it is not.
    pub complete: bool,
}

impl Page {
    /// Where the next page begins: `total` behind the last one.
    #[must_use]
    pub fn next_offset(&self) -> u64 {
        self.offset + u64::try_from(self.data.len()).unwrap_or(u64::MAX)
    }
}

/// Reads at most `limit` bytes (1–[`MOST`]) from `offset` of what is kept in `dir`
/// under an id.
///
/// # Errors
/// [`Code::Usage`] for an id that is none and an offset beyond the end,
/// [`Code::LimitInvalid`] for a limit out of range, [`Code::ArtifactsUnknown`] where
/// nothing is kept under the id, [`Code::ArtifactsFailed`] where it cannot be read or
/// has links in it.
pub fn read(dir: &Path, id: &str, offset: u64, limit: u64) -> Result<Page, Error> {
    check_id(id)?;
    if !(1..=MOST).contains(&limit) {
        return Err(Error::new(
            Code::LimitInvalid,
            format!("a page of {limit} bytes cannot be read"),
            format!("ask for 1 to {MOST} bytes and go on at next_offset"),
        ));
    }
    let failed = |e: io::Error| unreadable(dir, id, e);
    let folder = folder(dir, id)?;
    // In this order: a log grows no more when the receipt is there.
    let complete = statat(&folder, RECEIPT, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
    let (log, total) = log(&folder).map_err(failed)?;
    if offset > total {
        return Err(Error::new(
            Code::Usage,
            format!("offset {offset} lies beyond the end of the output, which has {total} bytes"),
            format!("name an offset from 0 to {total}"),
        ));
    }
    let room = limit.min(total - offset);
    let mut data = vec![0; usize::try_from(room).unwrap_or(0)];
    log.read_exact_at(&mut data, offset).map_err(failed)?;
    Ok(Page {
        offset,
        data,
        total,
        complete,
    })
}

/// What cannot be a name of anything else: no slash, no dots.
fn check_id(id: &str) -> Result<(), Error> {
    let digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    if id.len() == DIGITS && id.bytes().all(digit) {
        return Ok(());
    }
    Err(Error::new(
        Code::Usage,
        format!("{id:?} is not the id of a task"),
        format!("write the {DIGITS} digits (0-9, a-f) that `task` of its receipt has"),
    ))
}

fn folder(dir: &Path, id: &str) -> Result<OwnedFd, Error> {
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    // Links in the caller's own path are the caller's.
    let parent =
        openat(CWD, dir, flags, Mode::empty()).map_err(|e| unreadable(dir, id, e.into()))?;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let flags = flags | OFlags::NOFOLLOW;
    openat2(&parent, id, flags, Mode::empty(), resolve).map_err(|e| match e {
        Errno::NOENT => Error::new(
            Code::ArtifactsUnknown,
            format!("no output of task {id} is kept in {}", dir.display()),
            "name the directory that --artifacts of its run named, and the task of its receipt",
        ),
        e => unreadable(dir, id, e.into()),
    })
}

/// The log and its size; whatever else has its name is refused, and waits for nobody.
fn log(folder: &OwnedFd) -> io::Result<(File, u64)> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let log = openat(folder, OUTPUT, flags, Mode::empty())?;
    let stat = fstat(&log)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(io::Error::other("output.log is not a regular file"));
    }
    Ok((log.into(), u64::try_from(stat.st_size).unwrap_or(0)))
}

fn unreadable(dir: &Path, id: &str, e: io::Error) -> Error {
    Error::new(
        Code::ArtifactsFailed,
        format!("what {} holds of task {id} cannot be read", dir.display()),
        "check that it is the directory of --artifacts, and that you may read it",
    )
    .because(e)
}
