//! A terminal for a command.

use std::io;
use std::os::fd::OwnedFd;

use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};

use crate::syscall::check;

/// Opens a new terminal of this lease: the daemon's side and the command's.
pub fn open() -> io::Result<(OwnedFd, OwnedFd)> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let slave = ioctl_tiocgptpeer(
        &master,
        OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC,
    )?;
    Ok((master, slave))
}

/// Makes the terminal the controlling one of this new session.
pub fn control(slave: i32) -> io::Result<()> {
    let steal = 0;
    // SAFETY: plain numbers.
    check(libc::c_long::from(unsafe {
        libc::ioctl(slave, libc::TIOCSCTTY, steal)
    }))
    .map(drop)
}
