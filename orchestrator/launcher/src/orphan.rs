//! Control groups whose launcher was killed together with its daemon (§3.5).
//!
//! Their processes ended with the guest, which ends when its socket closes; what
//! is left are empty directories. The lock on the uid range, which the kernel has
//! released, tells them from those of containers that live.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

use orch_wire::range::ALL;

use crate::cgroup::Cgroups;

/// What a container's group is called by before its id: the number of its range and
/// the file in which that is locked. Only that file tells whether the container
/// lives, and who shares a control group need not share it: another state directory,
/// root in the shell of a user, another mount namespace.
///
/// # Errors
/// What fstat(2) says.
pub fn lock_name(locks: impl AsFd, number: u32) -> io::Result<String> {
    let file = rustix::fs::fstat(locks)?;
    Ok(format!("{number}.{:x}.{:x}", file.st_dev, file.st_ino))
}

/// Ends and removes every group that nobody owns. What cannot be removed now is
/// looked at again by the next launcher.
pub fn sweep(cgroups: &Cgroups, locks: &Path) {
    for name in cgroups.containers() {
        // The lock is held while its group is removed, and released with the file.
        if let Some(_held) = unowned(&name, locks) {
            // On version 2 the guest has a group here as well, and may be about to end.
            cgroups.kill_all(&name);
            cgroups.remove_all(&name, &[]);
        }
    }
}

/// The lock on the range of a group whose container is gone.
fn unowned(name: &str, locks: &Path) -> Option<File> {
    let (its, _) = name.split_once('-')?;
    let number = its.split('.').next()?.parse::<u32>().ok()?;
    let file = OpenOptions::new().read(true).write(true).open(locks).ok()?;
    let ours = number <= ALL && lock_name(&file, number).ok()? == its;
    if ours { lock(file, number) } else { None }
}

fn lock(file: File, number: u32) -> Option<File> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn locks(name: &str) -> (std::path::PathBuf, File) {
        let path = std::env::temp_dir().join(format!("orch-orphan-{name}-{}", std::process::id()));
        let options = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&path);
        (path, options.unwrap())
    }

    /// A free byte in one file says nothing about a range that is locked in another.
    #[test]
    fn only_the_file_that_has_the_lock_tells_who_is_gone() {
        let ((own, own_file), (other, other_file)) = (locks("own"), locks("other"));
        let name = format!("{}-abc", lock_name(&own_file, 7).unwrap());
        let foreign = format!("{}-abc", lock_name(&other_file, 7).unwrap());
        let free = unowned(&name, &own).is_some();
        let not_ours = unowned(&foreign, &own).is_none();
        let held = lock(own_file, 7).unwrap();
        let found =
            [&name, "7-abc", "7", "x-abc", "7.-abc"].map(|name| unowned(name, &own).is_some());
        drop(held);
        let again = unowned(&name, &own).is_some();
        std::fs::remove_file(own).unwrap();
        std::fs::remove_file(other).unwrap();
        assert!(free && again, "the control");
        assert!(not_ours);
        assert_eq!(found, [false; 5]);
    }
}
