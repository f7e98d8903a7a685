//! Killing until nothing is left.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Instant;

use super::directories;
use crate::process;

/// Kills what stands in `cgroup.procs` of the group, and of those below it, until
/// nothing does. Each round waits for the ones it has killed, so that it ends as soon
/// as they have.
pub fn until_empty(directory: &Path) -> bool {
    directories(directory)
        .into_iter()
        .all(|below| until_empty(&directory.join(below)))
        && one_until_empty(directory)
}

fn one_until_empty(directory: &Path) -> bool {
    let deadline = Instant::now() + process::PATIENCE;
    loop {
        let killed = members(directory);
        if killed.is_empty() {
            return pids(directory).is_empty();
        }
        for pidfd in &killed {
            process::kill(pidfd);
        }
        for pidfd in &killed {
            if !process::wait(pidfd, deadline) {
                return false;
            }
        }
        process::reap();
    }
}

/// One SIGKILL for each member, without waiting.
pub fn signal_all(directory: &Path) {
    for pidfd in members(directory) {
        process::kill(&pidfd);
    }
}

/// Process ids in the group, as this process sees them.
pub fn pids(directory: &Path) -> Vec<i32> {
    std::fs::read_to_string(directory.join("cgroup.procs"))
        .unwrap_or_default()
        .lines()
        .filter_map(|line| line.parse().ok())
        // 0 stands for a process of another pid namespace than ours.
        .filter(|pid| *pid > 0)
        .collect()
}

/// The processes as handles. One that ends between the list and the handle is
/// gone; a number that has been taken by another process since is told apart by
/// reading the list again.
fn members(directory: &Path) -> Vec<OwnedFd> {
    let open: Vec<(i32, OwnedFd)> = pids(directory)
        .into_iter()
        .filter_map(|pid| Some((pid, process::open(pid).ok()?)))
        .collect();
    let still = pids(directory);
    open.into_iter()
        .filter(|(pid, _)| still.contains(pid))
        .map(|(_, pidfd)| pidfd)
        .collect()
}
