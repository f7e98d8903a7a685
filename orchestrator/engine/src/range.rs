//! User-id ranges: 65 536 ids for each container, never two with the same (§3.7).

use std::fs::{File, OpenOptions};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;

use orch_policy::{Code, Error};
use rustix::fs::{FlockOperation, flock};

use crate::failure;
use crate::state::StateDir;

/// First id of the block: above what subordinate ids and systemd hand out.
const FIRST: u32 = 0x7000_0000;
/// Ids of one container.
pub const COUNT: u32 = 65_536;
/// How many containers at once.
const RANGES: u32 = 4_095;

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
pub fn take(state: &StateDir) -> Result<Range, Error> {
    // Different processes start at different places and rarely meet.
    let start = std::process::id().wrapping_mul(61) % RANGES;
    for step in 0..RANGES {
        let number = (start + step) % RANGES;
        let path = state.ids().join(number.to_string());
        let file: File = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(|e| failure::kernel(format_args!("open {}", path.display()), e))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                return Ok(Range {
                    first: FIRST + number * COUNT,
                    lock: file.into(),
                });
            }
            Err(rustix::io::Errno::WOULDBLOCK) => {}
            Err(e) => return Err(failure::kernel(format_args!("lock {}", path.display()), e)),
        }
    }
    Err(Error::new(
        Code::HostExhausted,
        format!("all {RANGES} ranges of user ids are in use"),
        "wait for other sandboxes to end",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_holders_never_have_the_same_range_and_a_released_one_comes_back() {
        let dir = std::env::temp_dir().join(format!("orch-range-{}", std::process::id()));
        let state = StateDir::open(&dir).unwrap();
        let (a, b) = (take(&state).unwrap(), take(&state).unwrap());
        assert_ne!(a.first, b.first);
        let copy = a.lock.try_clone().unwrap();
        let first = a.first;
        drop(a);
        assert_ne!(take(&state).unwrap().first, first, "a copy still holds it");
        drop(copy);
        assert_eq!(take(&state).unwrap().first, first);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
