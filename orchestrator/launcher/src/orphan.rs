//! Control groups whose launcher was killed together with its daemon (§3.5).
//!
//! Their processes ended with the guest, which ends when its socket closes; what
//! is left are empty directories. The lock on the uid range, which the kernel has
//! released, tells them from those of containers that live.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::path::Path;

use orch_wire::range::ALL;

use crate::cgroup::Cgroups;

/// Ends and removes every group that nobody owns. What cannot be removed now is
/// looked at again by the next launcher.
pub fn sweep(cgroups: &Cgroups, locks: &Path) {
    let found = cgroups.containers();
    if found.is_empty() {
        return;
    }
    for name in found {
        let number = name.split('-').next().and_then(|n| n.parse::<u32>().ok());
        let Some(number) = number.filter(|number| *number <= ALL) else {
            continue;
        };
        // The lock is held while its group is removed, and released with the file.
        if let Some(_held) = lock(locks, number) {
            // On version 2 the guest has a group here as well, and may be about to end.
            cgroups.kill_all(&name);
            cgroups.remove_all(&name, &[]);
        }
    }
}

fn lock(locks: &Path, number: u32) -> Option<File> {
    let file = OpenOptions::new().read(true).write(true).open(locks).ok()?;
    // SAFETY: all zeroes is a valid `flock`, and what is not set must be zero.
    let mut range: libc::flock = unsafe { std::mem::zeroed() };
    range.l_type = libc::c_short::try_from(libc::F_WRLCK).ok()?;
    range.l_whence = libc::c_short::try_from(libc::SEEK_SET).ok()?;
    range.l_start = i64::from(number);
    range.l_len = 1;
    // SAFETY: the structure outlives the call, and the descriptor is open.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const range) };
    (result == 0).then_some(file)
}
