//! The lock of one writer on the log (flock(2)).

use std::fs::File;
use std::io;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// How long the others may write. Each holds the lock for less than a millisecond, and
/// whoever waits here cannot be interrupted: a lock that stays is somebody else's.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// The lock, until this is dropped.
#[derive(Debug)]
pub struct Held<'a>(&'a File);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // Closing would do it as well; that this fails has no meaning.
        let _ = flock(self.0, FlockOperation::Unlock);
    }
}

/// Takes the lock as soon as it is free.
///
/// # Errors
/// What flock(2) says, or that somebody has held it all the time.
pub fn take(file: &File, patience: Duration) -> io::Result<Held<'_>> {
    let until = Instant::now() + patience;
    let mut pause = Duration::from_micros(50);
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Held(file)),
            Err(Errno::WOULDBLOCK) if Instant::now() < until => {}
            Err(Errno::WOULDBLOCK) => {
                let time = patience.as_secs_f32();
                return Err(io::Error::other(format!(
                    "another program has locked it for {time} s"
                )));
            }
            Err(Errno::INTR) => continue,
            Err(e) => return Err(e.into()),
        }
        // No call waits for such a lock until a point in time.
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(10));
    }
}
