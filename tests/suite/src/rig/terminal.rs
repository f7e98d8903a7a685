//! A terminal for a program that wants one.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::host::eventually;
use super::{Result, at};

/// Both ends of a terminal.
#[derive(Debug)]
pub struct Terminal {
    master: OwnedFd,
    slave: File,
}

/// A new terminal.
///
/// # Errors
/// What the kernel says.
pub fn pty() -> Result<Terminal> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)
        .map_err(at("/dev/ptmx"))?;
    grantpt(&master).map_err(at("grantpt"))?;
    unlockpt(&master).map_err(at("unlockpt"))?;
    let name = ptsname(&master, Vec::new()).map_err(at("ptsname"))?;
    let name = name.to_string_lossy().into_owned();
    let slave = File::options()
        .read(true)
        .write(true)
        .open(&name)
        .map_err(at(&name))?;
    Ok(Terminal { master, slave })
}

impl Terminal {
    /// Runs a program on it to its end; everything that it wrote.
    ///
    /// # Errors
    /// It could not be started, or did not end.
    pub fn run(self, command: &mut Command, limit: Duration) -> Result<String> {
        let copy = || self.slave.try_clone().map_err(at("copy the terminal"));
        let mut child = command
            .stdin(Stdio::from(copy()?))
            .stdout(Stdio::from(copy()?))
            .stderr(Stdio::from(copy()?))
            .spawn()
            .map_err(at("start orch"))?;
        // The command holds its own copies until it is told otherwise.
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        drop(self.slave);
        let mut master = File::from(self.master);
        let reader = std::thread::spawn(move || {
            let mut text = Vec::new();
            // EIO is how a terminal without another end says that this is all.
            let _ = master.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        let ended = eventually("the end on a terminal", limit, || {
            child.try_wait().ok().flatten()
        });
        if ended.is_err() {
            let _ = child.kill();
            let _ = child.wait();
        }
        let text = reader.join().map_err(|_| "the reader failed".to_owned())?;
        ended.map_err(|why| format!("{why}: {text}"))?;
        Ok(text)
    }
}
