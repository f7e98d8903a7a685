//! A terminal for a command.

use std::io;
use std::os::fd::OwnedFd;

use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::syscall::check;

/// Opens a new terminal of this lease: the daemon's side and the command's. The
/// size is set before there is a command that could ask for it.
pub fn open(size: Option<(u16, u16)>) -> io::Result<(OwnedFd, OwnedFd)> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let slave = ioctl_tiocgptpeer(
        &master,
        OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC,
    )?;
    if let Some((rows, columns)) = size {
        let size = Winsize {
            ws_row: rows,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&slave, size)?;
    }
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
