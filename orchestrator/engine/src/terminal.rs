//! The caller's terminal, while a command has one of its own.

use std::os::fd::{AsFd, OwnedFd};

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize};

/// The caller's terminal in raw mode, as long as this lives.
#[derive(Debug)]
pub struct Raw {
    terminal: OwnedFd,
    before: Termios,
}

impl Raw {
    /// Puts a terminal into raw mode: what is typed goes to the command untouched.
    ///
    /// # Errors
    /// ENOTTY where it is none.
    pub fn enter(terminal: OwnedFd) -> rustix::io::Result<Self> {
        let before = tcgetattr(&terminal)?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(&terminal, OptionalActions::Drain, &raw)?;
        Ok(Self { terminal, before })
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // A terminal that has gone away needs no settings.
        let _ = tcsetattr(&self.terminal, OptionalActions::Drain, &self.before);
    }
}

/// Rows and columns of the terminal on standard input, where it is one.
#[must_use]
pub fn size() -> Option<(u16, u16)> {
    let size = tcgetwinsize(std::io::stdin().as_fd()).ok()?;
    Some((size.ws_row, size.ws_col))
}

/// Gives the command's terminal the size of the one on standard input.
pub fn copy_size(to: &OwnedFd) {
    // Where standard input is no terminal, there is no size to be copied.
    if let Ok(size) = tcgetwinsize(std::io::stdin().as_fd()) {
        let _ = tcsetwinsize(to, size);
    }
}
