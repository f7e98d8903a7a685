//! Runs one probe in a child of its own, so that being killed or hanging is a
//! result and not the end of the run.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use crate::errno;
use crate::outcome::{Outcome, Verdict};
use crate::raw;

/// Seconds after the child's alarm at which its whole session is killed: the
/// alarm alone does not end a child that is stopped or traced.
const GRACE: Duration = Duration::from_secs(2);

/// Runs `body` in a child with an alarm of `seconds`.
///
/// A child that SIGSYS ended was `refused`; one that any other signal ended, or
/// that ran into the alarm, is an `error` that names the signal.
pub fn forked(seconds: u32, body: impl FnOnce() -> Outcome) -> Outcome {
    let mut ends = [-1; 2];
    // SAFETY: `ends` has room for the two descriptors.
    if let Err(number) = raw::answer(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) }) {
        return Outcome::with_errno(Verdict::Error, number, "pipe for the probe");
    }
    // SAFETY: the kernel just handed out both; nobody else owns them.
    let (read, write) = unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) };
    // SAFETY: the program is single-threaded (under the test harness glibc's fork
    // keeps malloc usable); the child only runs `body` and leaves by `_exit`.
    let pid = unsafe { libc::fork() };
    if pid < 0 {
        return Outcome::with_errno(Verdict::Error, raw::last_errno(), "fork for the probe");
    }
    if pid == 0 {
        child(seconds, &write, body);
    }
    drop(write);
    let limit = Duration::from_secs(u64::from(seconds)) + GRACE;
    let text = read_until(&read, limit);
    if text.is_none() {
        kill_session(pid);
    }
    let status = wait(pid);
    match text.and_then(|text| serde_json::from_slice::<Outcome>(&text).ok()) {
        Some(outcome) => outcome,
        None => of_death(status),
    }
}

fn child(seconds: u32, write: &OwnedFd, body: impl FnOnce() -> Outcome) -> ! {
    // SAFETY: plain calls without pointers; SIGALRM gets its default action and is
    // unblocked, because an inherited disposition would make the alarm void.
    unsafe {
        libc::setsid();
        libc::signal(libc::SIGALRM, libc::SIG_DFL);
        let mut none = std::mem::zeroed::<libc::sigset_t>();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
        libc::alarm(seconds);
    }
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body))
        .unwrap_or_else(|_| Outcome::error("the probe panicked"));
    let text = serde_json::to_vec(&outcome).unwrap_or_default();
    let mut rest = text.as_slice();
    while !rest.is_empty() {
        // SAFETY: `rest` is readable for its length.
        let written = unsafe { libc::write(write.as_raw_fd(), rest.as_ptr().cast(), rest.len()) };
        let Ok(written) = usize::try_from(written) else {
            break;
        };
        rest = rest.get(written..).unwrap_or_default();
    }
    // SAFETY: leaves without running destructors that belong to the parent.
    unsafe { libc::_exit(0) }
}

/// Everything up to end of file, or `None` when `limit` passes first.
fn read_until(read: &OwnedFd, limit: Duration) -> Option<Vec<u8>> {
    let end = Instant::now() + limit;
    let mut text = Vec::new();
    let mut buffer = [0_u8; 4096];
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let mut poll = libc::pollfd {
            fd: read.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        let wait = i32::try_from(left.as_millis()).unwrap_or(i32::MAX);
        // SAFETY: `poll` is one valid entry.
        let ready = unsafe { libc::poll(&raw mut poll, 1, wait) };
        if ready == 0 || left.is_zero() {
            return None;
        }
        // SAFETY: `buffer` is writable for its length.
        let got = unsafe { libc::read(read.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
        match usize::try_from(got) {
            Ok(0) => return Some(text),
            Ok(count) => text.extend_from_slice(&buffer[..count]),
            Err(_) if raw::last_errno() == libc::EINTR => {}
            Err(_) => return Some(text),
        }
    }
}

fn kill_session(pid: libc::pid_t) {
    // SAFETY: `pid` is our child and not yet reaped, so neither number was reused;
    // its process group holds only what it started.
    unsafe {
        libc::kill(-pid, libc::SIGKILL);
        libc::kill(pid, libc::SIGKILL);
    }
}

/// Reaps a child and returns its wait status.
pub(crate) fn wait(pid: libc::pid_t) -> i32 {
    let mut status = 0;
    loop {
        // SAFETY: `status` is writable.
        let got = unsafe { libc::waitpid(pid, &raw mut status, 0) };
        if got == pid && libc::WIFSTOPPED(status) {
            // A child that asked to be traced reports its stops; let it die instead.
            kill_session(pid);
        } else if got == pid || raw::last_errno() != libc::EINTR {
            return status;
        }
    }
}

fn of_death(status: i32) -> Outcome {
    if !libc::WIFSIGNALED(status) {
        return Outcome::error(format!("the probe ended without a result, status {status}"));
    }
    let signal = libc::WTERMSIG(status);
    let (result, detail) = match signal {
        libc::SIGSYS => (Verdict::Refused, "killed by the system-call filter"),
        libc::SIGALRM | libc::SIGKILL => (Verdict::Error, "hung or was killed"),
        _ => (Verdict::Error, "ended by a signal"),
    };
    Outcome {
        result,
        errno: Some(errno::signal(signal)),
        detail: detail.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::forked;
    use crate::outcome::{Outcome, Verdict};

    #[test]
    fn a_result_comes_back() {
        let outcome = forked(3, || Outcome::value("x".repeat(10_000)));
        assert_eq!(outcome.detail.len(), 10_000);
    }

    #[test]
    fn a_filter_kill_is_a_refusal() {
        // SAFETY: the child ends itself.
        let outcome = forked(3, || unsafe {
            libc::raise(libc::SIGSYS);
            Outcome::value("alive")
        });
        assert_eq!(outcome.result, Verdict::Refused);
        assert_eq!(outcome.errno.as_deref(), Some("SIGSYS"));
    }

    #[test]
    fn a_hang_is_an_error() {
        let outcome = forked(1, || {
            loop {
                std::thread::sleep(std::time::Duration::from_secs(60));
            }
        });
        assert_eq!(outcome.result, Verdict::Error);
        assert_eq!(outcome.errno.as_deref(), Some("SIGALRM"));
    }

    #[test]
    fn a_stopped_child_does_not_stop_the_run() {
        // SAFETY: the child stops itself.
        let outcome = forked(1, || unsafe {
            libc::raise(libc::SIGSTOP);
            Outcome::value("alive")
        });
        assert_eq!(outcome.result, Verdict::Error);
    }

    #[test]
    fn a_panic_is_an_error() {
        let outcome = forked(3, || panic!("on purpose"));
        assert_eq!(outcome.result, Verdict::Error);
    }
}
