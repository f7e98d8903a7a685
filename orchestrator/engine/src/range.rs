//! User-id ranges: 65 536 ids for each container, never two with the same (§3.7).

use std::fs::{File, OpenOptions};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use orch_policy::{Code, Error};
pub use orch_wire::range::COUNT;
use orch_wire::range::{ALL, FIRST, RANGES};

use crate::failure;
use crate::launcher::Engine;

/// A range, held by a lock that the kernel releases with its last holder: the
/// launcher gets a copy and keeps it for as long as the container is there, so
/// that neither a crash frees it too early nor one keeps it for ever.
#[derive(Debug)]
pub struct Range {
    /// Which one.
    pub number: u32,
    /// First id, as the launcher sees ids.
    pub first: u32,
    /// The lock.
    pub lock: OwnedFd,
}

/// Variable that configures another block: its first id and the number of ranges,
/// `FIRST:RANGES`.
pub const BLOCK: &str = "ORCH_UID_BLOCK";

/// First id and number of ranges of the configured block.
///
/// # Errors
/// [`Code::StateInvalid`] where it makes no sense.
pub fn block() -> Result<(u32, u32), Error> {
    let (base, ranges) = parse(std::env::var(BLOCK).ok().as_deref())?;
    Ok((base * COUNT, ranges))
}

/// First range and number of ranges.
fn parse(configured: Option<&str>) -> Result<(u32, u32), Error> {
    let Some(text) = configured else {
        return Ok((FIRST, RANGES));
    };
    let parsed = text
        .split_once(':')
        .and_then(|(first, ranges)| Some((first.parse::<u32>().ok()?, ranges.parse().ok()?)));
    parsed
        .filter(|(first, ranges)| {
            // Range 0 is the host's own.
            let number = first / COUNT;
            first.is_multiple_of(COUNT) && number > 0 && *ranges > 0 && *ranges <= ALL - number
        })
        .map(|(first, ranges)| (first / COUNT, ranges))
        .ok_or_else(|| {
            Error::new(
                Code::StateInvalid,
                format!("{BLOCK}={text} is not a block of user ids"),
                format!("write FIRST:RANGES, FIRST a multiple of {COUNT} and not 0"),
            )
        })
}

/// Takes a free range of the configured block; where the launcher has ids of its
/// own, all of those and the number of a free range.
///
/// # Errors
/// [`Code::HostExhausted`] when every one is taken, [`Code::StateInvalid`] where
/// the block makes no sense.
pub fn take(engine: &Engine) -> Result<Range, Error> {
    let (base, ranges) = parse(std::env::var(BLOCK).ok().as_deref())?;
    let mut range = take_from(&engine.locks(), base, ranges)?;
    if engine.is_rootless() {
        range.first = 0;
    }
    Ok(range)
}

fn take_from(locks: &Path, base: u32, ranges: u32) -> Result<Range, Error> {
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW)
        .open(locks)
        .map_err(|e| failure::kernel(format_args!("open {}", locks.display()), e))?;
    // Different processes start at different places and rarely meet.
    let start = std::process::id().wrapping_mul(61) % ranges;
    for step in 0..ranges {
        let number = base + (start + step) % ranges;
        if lock(&file, number)? {
            return Ok(Range {
                number,
                first: number * COUNT,
                lock: file.into(),
            });
        }
    }
    Err(Error::new(
        Code::HostExhausted,
        format!("all {ranges} ranges of user ids are in use"),
        format!("wait for other sandboxes to end, or configure a larger block ({BLOCK})"),
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
        _ => Err(failure::kernel("lock a range of ids", error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_holders_never_have_the_same_range_and_a_released_one_comes_back() {
        let locks = std::env::temp_dir().join(format!("orch-range-{}", std::process::id()));
        let take = || take_from(&locks, 7, 2);
        let (a, b) = (take().unwrap(), take().unwrap());
        assert_ne!(a.first, b.first);
        assert_eq!(take().unwrap_err().code, Code::HostExhausted);
        let (copy, first) = (a.lock.try_clone().unwrap(), a.first);
        drop(a);
        assert!(take().is_err(), "a copy still holds it");
        drop(copy);
        assert_eq!(take().unwrap().first, first);
        std::fs::remove_file(&locks).unwrap();
    }

    #[test]
    fn a_block_starts_on_a_range_and_leaves_the_hosts_own_ids_alone() {
        assert_eq!(parse(None).unwrap(), (FIRST, RANGES));
        assert_eq!(parse(Some("131072:3")).unwrap(), (2, 3));
        for wrong in [
            "0:1",
            "1:1",
            "65536:0",
            "65536:65536",
            "x:1",
            "65536",
            "-65536:1",
        ] {
            assert_eq!(
                parse(Some(wrong)).unwrap_err().code,
                Code::StateInvalid,
                "{wrong}"
            );
        }
    }
}
