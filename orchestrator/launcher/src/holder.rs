//! Namespaces that are held by a descriptor and that nothing ever runs in: made by a
//! child that is ended as soon as the descriptor is there.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{CWD, Mode, OFlags, openat};

use crate::syscall::check;

/// The namespace of this kind (`user`, `cgroup`: namespaces(7)) of the child that
/// `fork` gives, after `prepare` has done from outside what is to be done.
///
/// # Errors
/// What fork, `prepare` and open(2) say.
pub fn hold(
    fork: impl FnOnce() -> io::Result<i32>,
    kind: &str,
    prepare: impl FnOnce(i32) -> io::Result<()>,
) -> io::Result<OwnedFd> {
    let pid = readable(fork)?;
    if pid == 0 {
        loop {
            // SAFETY: waits for the SIGKILL below, or for the death of the parent.
            unsafe {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
                libc::pause();
            }
        }
    }
    let opened = prepare(pid).and_then(|()| {
        Ok(openat(
            CWD,
            format!("/proc/{pid}/ns/{kind}"),
            OFlags::RDONLY | OFlags::CLOEXEC,
            Mode::empty(),
        )?)
    });
    // SAFETY: the child is ours and not reaped yet.
    unsafe {
        libc::kill(pid, libc::SIGKILL);
        libc::waitpid(pid, std::ptr::null_mut(), 0);
    }
    opened
}

/// fork(2) whose child can be dumped although this process cannot. The namespaces of
/// one that cannot are only for those with CAP_SYS_PTRACE (ptrace(2), "access mode
/// checking"), which a container or a unit around orch need not have.
fn readable(fork: impl FnOnce() -> io::Result<i32>) -> io::Result<i32> {
    // SAFETY: plain numbers.
    let set = |value: libc::c_long| unsafe {
        check(libc::prctl(libc::PR_SET_DUMPABLE, value, 0, 0, 0).into())
    };
    // SAFETY: plain numbers.
    let before = check(unsafe { libc::prctl(libc::PR_GET_DUMPABLE, 0, 0, 0, 0) }.into())?;
    set(1)?;
    let pid = fork();
    if !matches!(pid, Ok(0)) {
        set(before)?;
    }
    pid
}
