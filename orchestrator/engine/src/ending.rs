//! How a command ended, from the kernel where it can tell (design §3.4).

use std::os::fd::{AsRawFd, OwnedFd};

/// Layout of the first version of `struct pidfd_info` (Linux 6.13).
#[repr(C)]
#[derive(Default)]
struct PidfdInfo {
    mask: u64,
    cgroup: u64,
    pid: u32,
    tgid: u32,
    ppid: u32,
    ids: [u32; 8],
    exit_code: i32,
}

/// `PIDFD_INFO_EXIT`: the exit code of a process that has been reaped (Linux 6.15).
const PIDFD_INFO_EXIT: u64 = 1 << 3;
/// `PIDFD_GET_INFO`, `_IOWR(0xFF, 11, struct pidfd_info)`.
const PIDFD_GET_INFO: libc::c_ulong = {
    let (read_write, size) = (3, size_of::<PidfdInfo>() as libc::c_ulong);
    read_write << 30 | size << 16 | 0xff << 8 | 11
};

/// The wait status of a process that has been reaped; `None` where this kernel
/// does not keep it, or where the process has not been reaped yet.
#[must_use]
pub fn from_kernel(pidfd: &OwnedFd) -> Option<i32> {
    let mut info = PidfdInfo {
        mask: PIDFD_INFO_EXIT,
        ..PidfdInfo::default()
    };
    // SAFETY: the structure has the layout and the size that the number of the
    // request names; the kernel writes no more than that.
    let result = unsafe { libc::ioctl(pidfd.as_raw_fd(), PIDFD_GET_INFO, &raw mut info) };
    (result == 0 && info.mask & PIDFD_INFO_EXIT != 0).then_some(info.exit_code)
}

/// How the first process of a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It called exit with this code.
    Exited(i32),
    /// This signal ended it.
    Signalled(i32),
}

/// Reads a wait status (wait(2)).
#[must_use]
pub fn read(status: i32) -> Ending {
    if libc::WIFSIGNALED(status) {
        Ending::Signalled(libc::WTERMSIG(status))
    } else {
        Ending::Exited(libc::WEXITSTATUS(status))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Pid, PidfdFlags, pidfd_open};

    #[test]
    fn wait_statuses_are_read_as_wait_does() {
        assert_eq!(read(0x0300), Ending::Exited(3));
        assert_eq!(read(9), Ending::Signalled(9));
    }

    #[test]
    fn the_kernel_tells_the_status_of_a_reaped_process_or_nothing() {
        let mut child = std::process::Command::new("sh")
            .args(["-c", "exit 7"])
            .spawn()
            .unwrap();
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).unwrap();
        child.wait().unwrap();
        let told = from_kernel(&pidfd).map(read);
        assert!(matches!(told, None | Some(Ending::Exited(7))), "{told:?}");
    }
}
