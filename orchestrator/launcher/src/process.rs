//! Processes by pidfd (pidfd_open(2)), so that a recycled number is never hit.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, pidfd_open, pidfd_send_signal, wait as wait_for_any,
};

/// How long a killed process may take to end before it counts as left behind.
pub const PATIENCE: Duration = Duration::from_secs(5);
/// How long the making of a container may take.
pub const CREATE: Duration = Duration::from_secs(30);

/// Opens a process.
pub fn open(pid: i32) -> io::Result<OwnedFd> {
    let pid = Pid::from_raw(pid).ok_or(io::Error::from_raw_os_error(libc::ESRCH))?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

/// SIGKILL; one that has ended already is fine.
pub fn kill(pidfd: &OwnedFd) {
    // ESRCH is the wished-for state, and nothing else can be done about EPERM.
    let _ = pidfd_send_signal(pidfd, Signal::KILL);
}

/// Waits until it has ended; false when it has not by the deadline.
pub fn wait(pidfd: &OwnedFd, deadline: Instant) -> bool {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        let mut ready = [PollFd::from_borrowed_fd(pidfd.as_fd(), PollFlags::IN)];
        match poll(&mut ready, Some(&timeout)) {
            Ok(0) => return false,
            Ok(_) => return true,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

/// Reaps every child, also those that are only about to end; none is left to the
/// host's init, which may be in no hurry.
pub fn reap_all(deadline: Instant) {
    while let Ok(status) = wait_for_any(WaitOptions::NOHANG) {
        if status.is_none() {
            if Instant::now() >= deadline {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Reaps every child that has ended, whatever process group it is in: guests have
/// sessions of their own, and `waitpid(None, …)` would not see them.
pub fn reap() {
    while let Ok(Some(_)) = wait_for_any(WaitOptions::NOHANG) {}
}

/// Kills and reaps every child that is not one of `known`: what a worker that was
/// killed has left, which comes to this process as the nearest subreaper.
pub fn end_strays(known: &[i32], deadline: Instant) {
    loop {
        let strays: Vec<i32> = children()
            .into_iter()
            .filter(|pid| !known.contains(pid))
            .collect();
        if strays.is_empty() || Instant::now() >= deadline {
            return;
        }
        // A child that is not reaped keeps its number, so nobody else is hit.
        for pidfd in strays.into_iter().filter_map(|pid| open(pid).ok()) {
            kill(&pidfd);
            wait(&pidfd, deadline);
        }
        reap();
    }
}

/// Children of this process, from proc_pid_stat(5).
fn children() -> Vec<i32> {
    let own = std::process::id().to_string();
    let of_ours = |pid: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The name, in parentheses, may hold anything.
        let parent = stat.rsplit(')').next().unwrap_or_default();
        parent.split_ascii_whitespace().nth(1) == Some(own.as_str())
    };
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(of_ours)
        .collect()
}

/// Waits until one of two is ready, or `gone` has been closed by its other side;
/// false in that case and at the deadline.
pub fn wait_either(a: &OwnedFd, b: &OwnedFd, gone: BorrowedFd<'_>, deadline: Instant) -> bool {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        let mut ready = [
            PollFd::from_borrowed_fd(a.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(b.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(gone, PollFlags::RDHUP),
        ];
        match poll(&mut ready, Some(&timeout)) {
            Ok(0) => return false,
            Ok(_) => return !ready[0].revents().is_empty() || !ready[1].revents().is_empty(),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}
