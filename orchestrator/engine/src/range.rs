//! User-id ranges: 65 536 ids for each container, never two with the same (§3.7).

use std::fs::{File, OpenOptions};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use orch_policy::{Code, Error};
pub use orch_wire::range::COUNT;
use orch_wire::range::{FIRST, LOCKS, RANGES};

use crate::failure;

/// A range, held by a lock that the kernel releases with its last holder: the
/// launcher gets a copy and keeps it for as long as the container is there, so
/// that neither a crash frees it too early nor one keeps it for ever.
#[derive(Debug)]
pub struct Range {
    /// First id on the host.
    pub first: u32,
    /// The lock.
    pub lock: OwnedFd,
}

/// Takes a free range.
///
/// # Errors
/// [`Code::HostExhausted`] when every one is taken.
pub fn take() -> Result<Range, Error> {
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW)
        .open(LOCKS)
        .map_err(|e| failure::kernel(format_args!("open {LOCKS}"), e))?;
    // Different processes start at different places and rarely meet.
    let start = std::process::id().wrapping_mul(61) % RANGES;
    for step in 0..RANGES {
        let number = (start + step) % RANGES;
        if lock(&file, number)? {
            return Ok(Range {
                first: FIRST + number * COUNT,
                lock: file.into(),
            });
        }
    }
    Err(Error::new(
        Code::HostExhausted,
        format!("all {RANGES} ranges of user ids are in use"),
        "wait for other sandboxes to end",
    ))
}

/// Locks one byte; false where somebody else has it.
fn lock(file: &File, number: u32) -> Result<bool, Error> {
    // SAFETY: all zeroes is a valid `flock`, and what is not set must be zero.
    let mut range: libc::flock = unsafe { std::mem::zeroed() };
    range.l_type = libc::c_short::try_from(libc::F_WRLCK).unwrap_or_default();
    range.l_whence = libc::c_short::try_from(libc::SEEK_SET).unwrap_or_default();
    range.l_start = i64::from(number);
    range.l_len = 1;
    // SAFETY: the structure outlives the call, and the descriptor is open.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const range) };
    if result == 0 {
        return Ok(true);
    }
    let error = std::io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EAGAIN | libc::EACCES) => Ok(false),
        _ => Err(failure::kernel(format_args!("lock {LOCKS}"), error)),
    }
}
