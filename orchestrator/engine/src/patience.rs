//! Waiting for an answer, but not for ever.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use orch_policy::{Code, Error};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::failure;

/// How long the launcher or a guest may take for one answer. All that they do takes
/// milliseconds; a mount source on a file system that does not answer takes for ever.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Waits until something can be read, or the other side is gone.
///
/// # Errors
/// [`Code::RuntimeFailed`] when neither happens in time.
pub fn await_answer(who: &str, socket: BorrowedFd<'_>, patience: Duration) -> Result<(), Error> {
    let until = Instant::now() + patience;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        let mut fds = [PollFd::from_borrowed_fd(socket, PollFlags::IN)];
        match poll(&mut fds, Some(&timeout)) {
            Ok(0) => {
                return Err(Error::new(
                    Code::RuntimeFailed,
                    format!("the {who} has not answered for {} s", patience.as_secs()),
                    "look whether a mounted folder lies on a file system that hangs, then try again",
                ));
            }
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(failure::kernel(format_args!("wait for the {who}"), e)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn silence_is_an_error_and_a_closed_end_is_an_answer() {
        let (ours, theirs) = crate::launcher::pair().unwrap();
        let short = Duration::from_millis(20);
        let error = await_answer("test", ours.as_fd(), short).unwrap_err();
        assert!(error.message.contains("the test has not answered"));
        drop(theirs);
        await_answer("test", ours.as_fd(), short).unwrap();
    }
}
