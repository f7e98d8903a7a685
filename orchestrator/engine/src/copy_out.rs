//! Results of a task, taken without trusting whoever left them (D11, D12).
//!
//! Every process of the task is gone by now, so nothing changes under these
//! hands; what is there may still be anything.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use orch_policy::receipt::CopyOut;
use orch_policy::{Code, Error};
use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, fchmod, fstat, mkdirat, openat, openat2,
    renameat, statat, unlinkat,
};
use rustix::io::Errno;

use crate::{destination, random};

/// Deepest directory that is followed.
const DEPTH: usize = 64;
/// Most entries that are looked at.
const ENTRIES: u64 = 100_000;
/// Most entries left behind that are named one by one.
const NAMED: usize = 100;

/// Stays on the same file system, beneath the same directory, and follows nothing.
const RESOLVE: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_XDEV);

struct Copier {
    room: u64,
    entries: u64,
    done: CopyOut,
    /// Name of a file that is not complete yet; no task can guess it.
    aside: PathBuf,
}

/// Where results go.
#[derive(Debug)]
pub struct Destination {
    path: PathBuf,
    directory: OwnedFd,
}

impl Destination {
    /// Opens the directory, which is made where it is missing. This happens before
    /// the task starts, since the way there may lead through a folder that it can
    /// write; `shown` are the folders that it, or one before it, could fill with
    /// links (canonical paths).
    ///
    /// # Errors
    /// [`Code::CopyOutFailed`] where it cannot be opened or made, or where the way
    /// leads through a link in a shown folder.
    pub fn open(path: &Path, shown: &[PathBuf]) -> Result<Self, Error> {
        let directory = destination::open(path, shown).map_err(|e| failed(path, e))?;
        Ok(Self {
            path: path.to_owned(),
            directory,
        })
    }

    /// The path as it was named, and the handle.
    pub(crate) fn place(&self) -> (&Path, &OwnedFd) {
        (&self.path, &self.directory)
    }
}

fn failed(to: &Path, e: io::Error) -> Error {
    Error::new(
        Code::CopyOutFailed,
        format!("results cannot be copied to {}", to.display()),
        "check that the directory can be written and has room",
    )
    .because(e)
}

/// Copies `out` below `temporary` to a directory of the host. At most `limit`
/// bytes; a file that does not fit is left behind whole. No links, pipes, sockets,
/// devices, setuid or setgid bits come along.
///
/// # Errors
/// [`Code::CopyOutFailed`] for the directory of the host, or its file system.
pub fn copy(temporary: &OwnedFd, to: &Destination, limit: u64) -> Result<CopyOut, Error> {
    let failed = |e: io::Error| failed(&to.path, e);
    let mut copier = Copier {
        room: limit,
        entries: 0,
        aside: PathBuf::from(format!(".orch-out-{}", random::id()?)),
        done: CopyOut {
            directory: to.path.display().to_string(),
            ..CopyOut::default()
        },
    };
    match directory(temporary, "out".as_ref()) {
        Ok(source) => copier
            .tree(&source, &to.directory, Path::new(""), 0)
            .map_err(failed)?,
        Err(Errno::NOENT) => {}
        Err(e) => copier.skip(Path::new("out"), &io::Error::from(e).to_string()),
    }
    Ok(copier.done)
}

fn directory(parent: &OwnedFd, name: &OsStr) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat2(parent, name, flags, Mode::empty(), RESOLVE)
}

impl Copier {
    fn skip(&mut self, path: &Path, reason: &str) {
        match self.done.skipped.len() {
            n if n < NAMED => self
                .done
                .skipped
                .push((path.display().to_string(), reason.to_owned())),
            NAMED => self
                .done
                .skipped
                .push(("…".to_owned(), "and more".to_owned())),
            _ => {}
        }
    }

    fn tree(
        &mut self,
        source: &OwnedFd,
        target: &OwnedFd,
        path: &Path,
        depth: usize,
    ) -> io::Result<()> {
        for entry in Dir::read_from(source)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let here = path.join(name);
            self.entries += 1;
            if self.entries > ENTRIES {
                self.skip(&here, "too many entries");
                return Ok(());
            }
            let stat = statat(source, name, AtFlags::SYMLINK_NOFOLLOW)?;
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory if depth >= DEPTH => self.skip(&here, "too deep"),
                FileType::Directory => {
                    let below = match directory(source, name) {
                        Ok(below) => below,
                        Err(e) => {
                            self.skip(&here, &io::Error::from(e).to_string());
                            continue;
                        }
                    };
                    match make(target, name) {
                        Ok(into) => self.tree(&below, &into, &here, depth + 1)?,
                        Err(e) => self.skip(&here, &e.to_string()),
                    }
                }
                FileType::RegularFile => self.file(source, target, name, &here)?,
                FileType::Symlink => self.skip(&here, "a symbolic link"),
                FileType::Fifo => self.skip(&here, "a pipe"),
                FileType::Socket => self.skip(&here, "a socket"),
                _ => self.skip(&here, "a device"),
            }
        }
        Ok(())
    }

    fn file(
        &mut self,
        source: &OwnedFd,
        target: &OwnedFd,
        name: &OsStr,
        path: &Path,
    ) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let from = match openat2(source, name, flags, Mode::empty(), RESOLVE) {
            Ok(from) => from,
            Err(e) => {
                self.skip(path, &io::Error::from(e).to_string());
                return Ok(());
            }
        };
        let stat = fstat(&from)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            self.skip(path, "not a regular file");
            return Ok(());
        }
        // The apparent size: holes are copied as what they read as.
        let size = u64::try_from(stat.st_size).unwrap_or(u64::MAX);
        if size > self.room {
            self.skip(
                path,
                &format!("{size} bytes, and {} are left of limits.out_mb", self.room),
            );
            return Ok(());
        }
        let executable = stat.st_mode & 0o100 != 0;
        match write(&from, target, (&self.aside, name), size, executable) {
            Ok(bytes) => {
                self.room -= bytes;
                self.done.bytes += bytes;
                self.done.files += 1;
                Ok(())
            }
            // A directory of the host stands where the file should go.
            Err(e) if e.raw_os_error() == Some(libc::EISDIR) => {
                self.skip(path, "a directory of that name is there already");
                Ok(())
            }
            Err(e) => Err(e),
        }
    }
}

fn make(parent: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    match mkdirat(parent, name, Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(e) => return Err(e.into()),
    }
    Ok(openat(
        parent,
        name,
        OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )?)
}

/// Writes beside the final name and renames, so that an interrupted copy leaves
/// no half file and a link of that name is replaced, not followed.
fn write(
    from: &OwnedFd,
    target: &OwnedFd,
    (aside, name): (&Path, &OsStr),
    size: u64,
    executable: bool,
) -> io::Result<u64> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let to = openat(target, aside, flags, Mode::from_raw_mode(0o600))?;
    let written = transfer(from, &to, size).and_then(|bytes| {
        let mode = if executable { 0o755 } else { 0o644 };
        fchmod(&to, Mode::from_raw_mode(mode))?;
        renameat(target, aside, target, name)?;
        Ok(bytes)
    });
    if written.is_err() {
        // The error that matters is the first one.
        let _ = unlinkat(target, aside, AtFlags::empty());
    }
    written
}

fn transfer(from: &OwnedFd, to: &OwnedFd, size: u64) -> io::Result<u64> {
    let mut chunk = vec![0_u8; 128 << 10];
    let mut copied = 0;
    while copied < size {
        let want = usize::try_from(size - copied).unwrap_or(usize::MAX);
        let want = want.min(chunk.len());
        let read = rustix::io::read(from, &mut chunk[..want])?;
        if read == 0 {
            break;
        }
        let mut rest = &chunk[..read];
        while !rest.is_empty() {
            rest = &rest[rustix::io::write(to, rest)?..];
        }
        copied += u64::try_from(read).unwrap_or(u64::MAX);
    }
    Ok(copied)
}
