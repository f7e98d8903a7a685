//! The end of a container's first process that nobody starts.
//!
//! libcontainer makes it and has it wait for a word of the worker's. Where the worker
//! was killed together with launcher and orch, that never comes, and the process would
//! keep the lock on its ids for ever. So it ends itself when the other end of its
//! control socket is closed, which the kernel does for whoever was killed.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::syscall::check;

/// For the handler, which gets no argument of ours.
static CONTROL: AtomicI32 = AtomicI32::new(-1);

/// From here on this process ends with the other end of the socket (signal(7), SIGIO).
///
/// # Errors
/// What the kernel says.
pub fn end_with(control: RawFd) -> io::Result<()> {
    CONTROL.store(control, Ordering::Relaxed);
    // SAFETY: all zeroes is a valid `sigaction`.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = look as *const () as usize;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: the handler only makes system calls, and the structure outlives the call.
    unsafe {
        check(libc::sigaction(libc::SIGIO, &raw const action, std::ptr::null_mut()).into())?;
        check(libc::fcntl(control, libc::F_SETOWN, libc::getpid()).into())?;
    }
    told(control, true)?;
    // It may be closed already.
    look(libc::SIGIO);
    Ok(())
}

/// The guest watches the socket itself.
///
/// # Errors
/// What fcntl(2) says.
pub fn started(control: RawFd) -> io::Result<()> {
    told(control, false)
}

fn told(control: RawFd, wanted: bool) -> io::Result<()> {
    // SAFETY: plain numbers.
    unsafe {
        let flags = libc::fcntl(control, libc::F_GETFL);
        check(flags.into())?;
        let flags = match wanted {
            true => flags | libc::O_ASYNC,
            false => flags & !libc::O_ASYNC,
        };
        check(libc::fcntl(control, libc::F_SETFL, flags).into()).map(drop)
    }
}

extern "C" fn look(_: libc::c_int) {
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: open as long as this process waits (`end_with`).
    let control = unsafe { BorrowedFd::borrow_raw(CONTROL.load(Ordering::Relaxed)) };
    // No events are asked for: what comes early is for the guest.
    let mut ready = [PollFd::from_borrowed_fd(
        control.as_fd(),
        PollFlags::empty(),
    )];
    if poll(&mut ready, Some(&now)).is_ok() && ready[0].revents().contains(PollFlags::HUP) {
        // SAFETY: ends this process.
        unsafe { libc::_exit(1) }
    }
}
