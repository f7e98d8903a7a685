//! SIGCHLD as a descriptor.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::syscall::check;

/// Blocks SIGCHLD and gives a descriptor that is readable when a child has ended.
pub fn child_ended() -> io::Result<OwnedFd> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the set is initialised by sigemptyset before anything reads it, and
    // signalfd gives a descriptor that nobody else owns.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD);
        let set = set.assume_init();
        check(libc::c_long::from(libc::sigprocmask(
            libc::SIG_BLOCK,
            &raw const set,
            std::ptr::null_mut(),
        )))?;
        let fd = libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        check(libc::c_long::from(fd))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Empties the descriptor; several children may stand behind one signal.
pub fn drain(fd: &OwnedFd) {
    let mut info = [0_u8; 128 * 8];
    // SAFETY: the buffer is as long as it says; the descriptor does not block.
    while unsafe { libc::read(fd.as_raw_fd(), info.as_mut_ptr().cast(), info.len()) } > 0 {}
}

/// Reaps one child that has ended: its process id and wait status.
pub fn reap() -> Option<(libc::pid_t, i32)> {
    let mut status = 0;
    // SAFETY: the status is a valid place to write to.
    let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
    (pid > 0).then_some((pid, status))
}

/// Unblocks every signal and resets what this program has changed (the runtime of
/// its language ignores SIGPIPE), as a command expects it.
pub fn reset() {
    // SAFETY: the set is initialised by sigemptyset; SIG_DFL is always valid.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, set.as_ptr(), std::ptr::null_mut());
    }
}
