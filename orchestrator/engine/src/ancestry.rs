//! Where one directory lies, seen from another.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags, fstat, openat};

/// Whether a directory is this one or below it, by what they are and not by name: a
/// folder may be mounted in two places.
///
/// # Errors
/// What openat(2) and fstat(2) say.
pub fn lies_in(directory: &OwnedFd, folder: &OwnedFd) -> io::Result<bool> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let wanted = fstat(folder)?;
    let mut here = openat(directory, ".", flags, Mode::empty())?;
    let mut stat = fstat(&here)?;
    loop {
        if (stat.st_dev, stat.st_ino) == (wanted.st_dev, wanted.st_ino) {
            return Ok(true);
        }
        here = openat(&here, "..", flags, Mode::empty())?;
        let above = fstat(&here)?;
        // The root is its own parent.
        if (above.st_dev, above.st_ino) == (stat.st_dev, stat.st_ino) {
            return Ok(false);
        }
        stat = above;
    }
}
