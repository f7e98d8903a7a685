//! Becoming root where orch is not (design §3.6).
//!
//! The launcher makes a user namespace; the daemon, which stayed outside, has
//! newuidmap(1) map its ids: the caller's own id becomes that of the task, and the
//! caller's subordinate ids become all others. A container gets these ids one to
//! one, so that nothing else needs to know of it but what stands below.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;

use orch_wire::Channel;
use orch_wire::launch::{Failure, Reply, Request};
use rustix::fs::{CWD, Mode, OFlags, fstat, openat};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::failure::During;
use crate::syscall::check;

/// Whose privileges the launcher has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Privilege {
    /// Root of the host.
    Host,
    /// Root of a user namespace: mounts that were there are locked together, and
    /// handles of the host's own mount namespace cannot be copied.
    Namespace,
}

/// Makes the namespace and waits until it is mapped; gives the file of the locks.
/// Nothing where this process is root anyway.
///
/// # Errors
/// The daemon has been told, or is gone.
pub fn enter(control: &Channel) -> io::Result<Option<PathBuf>> {
    if rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let gone = |_| io::Error::from_raw_os_error(libc::EPIPE);
    // SAFETY: this process has a single thread.
    let made = unsafe { unshare_unsafe(UnshareFlags::NEWUSER) }
        .during(|| "make a user namespace".to_owned());
    if let Err(failure) = made {
        control.send(&Reply::Failed(failure), &[]).map_err(gone)?;
        return Err(io::Error::from_raw_os_error(libc::EPERM));
    }
    control.send(&Reply::Unshared, &[]).map_err(gone)?;
    let (Request::Enter { locks }, _) = control.recv().map_err(gone)? else {
        return Err(io::Error::from_raw_os_error(libc::EPROTO));
    };
    match become_root() {
        Ok(()) => control.send(&Reply::Entered, &[]).map_err(gone)?,
        Err(failure) => {
            control.send(&Reply::Failed(failure), &[]).map_err(gone)?;
            return Err(io::Error::from_raw_os_error(libc::EPERM));
        }
    }
    use std::os::unix::ffi::OsStringExt;
    Ok(Some(std::ffi::OsString::from_vec(locks).into()))
}

fn become_root() -> Result<(), Failure> {
    // SAFETY: plain numbers.
    unsafe {
        check(libc::syscall(libc::SYS_setresgid, 0, 0, 0))
            .and_then(|_| check(libc::syscall(libc::SYS_setresuid, 0, 0, 0)))
            .during(|| "become root of the user namespace".to_owned())?;
    }
    // SAFETY: this process has a single thread.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }.during(|| "make a mount namespace".to_owned())
}

/// The same file or directory as a handle of this mount namespace, where the
/// handle comes from the host's own: only such mounts can be copied.
pub fn reopen(handle: &OwnedFd) -> io::Result<OwnedFd> {
    let path = std::fs::read_link(format!("/proc/self/fd/{}", handle.as_raw_fd()))?;
    let again = openat(
        CWD,
        &path,
        OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let (was, is) = (fstat(handle)?, fstat(&again)?);
    // What was checked is what will be mounted, or nothing is.
    if (was.st_dev, was.st_ino) != (is.st_dev, is.st_ino) {
        return Err(io::Error::from_raw_os_error(libc::ESTALE));
    }
    Ok(again)
}
