//! Becoming root where orch is not (design §3.6).
//!
//! The launcher makes a user namespace; the daemon, which stayed outside, has
//! newuidmap(1) map its ids: the caller's own id becomes that of the task, and the
//! caller's subordinate ids become all others. A container gets these ids one to
//! one, so that nothing else needs to know of it but what stands below.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use orch_wire::Channel;
use orch_wire::launch::{Failure, Reply, Request, USER_NAMESPACE_FD};
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
    Ok(Some(OsString::from_vec(locks).into()))
}

fn become_root() -> Result<(), Failure> {
    // Nothing that comes with a request may get this number: a container can have more
    // mounts than there are below it.
    // SAFETY: standard input is open, and this number is not.
    check(unsafe { libc::dup3(0, USER_NAMESPACE_FD, libc::O_CLOEXEC) }.into())
        .during(|| "reserve a descriptor".to_owned())?;
    // SAFETY: plain numbers.
    unsafe {
        check(libc::syscall(libc::SYS_setresgid, 0, 0, 0))
            .and_then(|_| check(libc::syscall(libc::SYS_setresuid, 0, 0, 0)))
            .during(|| "become root of the user namespace".to_owned())?;
    }
    // SAFETY: this process has a single thread.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }.during(|| "make a mount namespace".to_owned())
}

/// File systems in which the kernel shows the host: its processes, devices, groups.
const KERNEL: &[&str] = &[
    "proc",
    "sysfs",
    "cgroup",
    "cgroup2",
    "devtmpfs",
    "devpts",
    "debugfs",
    "tracefs",
    "securityfs",
    "configfs",
    "bpf",
    "pstore",
    "efivarfs",
    "binfmt_misc",
    "mqueue",
    "nsfs",
    "rpc_pipefs",
    "selinuxfs",
];

/// Whether what is mounted below this path may be shown with it: a `/proc` in a tree
/// for chroot(2) would tell a task of every process of the host (PX-08).
///
/// # Errors
/// EOPNOTSUPP where one of [`KERNEL`] is mounted there.
pub fn check_below(handle: &OwnedFd) -> io::Result<()> {
    let path = std::fs::read_link(format!("/proc/self/fd/{}", handle.as_raw_fd()))?;
    let mounts = std::fs::read("/proc/self/mountinfo")?;
    if kernel_below(&mounts, &path) {
        return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
    }
    Ok(())
}

/// From proc_pid_mountinfo(5).
fn kernel_below(mounts: &[u8], path: &Path) -> bool {
    mounts.split(|byte| *byte == b'\n').any(|line| {
        let mut fields = line.split(|byte| *byte == b' ');
        let point = fields.nth(4).map(plain);
        // Any number of optional fields, then a dash, then the kind.
        let kind = fields.skip_while(|field| *field != b"-").nth(1);
        let kernel = kind.is_some_and(|kind| KERNEL.iter().any(|k| k.as_bytes() == kind));
        kernel && point.is_some_and(|point| point.starts_with(path))
    })
}

/// A path without the octal escapes of its blanks and backslashes.
fn plain(field: &[u8]) -> PathBuf {
    let digits = |code: &[u8]| {
        let text = std::str::from_utf8(code).ok()?;
        u8::from_str_radix(text, 8).ok()
    };
    let (mut path, mut rest) = (Vec::new(), field);
    while let Some((&first, more)) = rest.split_first() {
        let escaped = (first == b'\\')
            .then(|| more.get(..3).and_then(digits))
            .flatten();
        path.push(escaped.unwrap_or(first));
        rest = if escaped.is_some() { &more[3..] } else { more };
    }
    OsString::from_vec(path).into()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_file_system_below_a_path_is_found() {
        let mounts = b"\
22 1 0:5 / /proc rw - proc proc rw
23 1 8:1 / /srv rw shared:1 - ext4 /dev/sda rw
24 23 0:5 / /srv/a\\040b/proc rw shared:2 master:3 - proc proc rw
25 23 0:6 / /srv/data rw - tmpfs tmpfs rw
26 23 0:7 / /srv/\\134x rw - cgroup2 none rw
";
        let below = |path: &str| kernel_below(mounts, Path::new(path));
        assert!(below("/srv") && below("/srv/a b") && below("/srv/a b/proc") && below("/"));
        assert!(below("/srv/\\x") && below("/proc"));
        assert!(!below("/srv/data") && !below("/srv/a") && !below("/home"));
    }
}
