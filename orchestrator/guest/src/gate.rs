//! The one exec that a task gets where its table of system calls asks about it
//! (PX-11, seccomp_unotify(2)).
//!
//! A filter is loaded before exec, so one that refused exec would refuse the
//! command itself, and it cannot tell the first one from later ones. The kernel
//! asks this process in its place: it lets exec through until the command runs,
//! and refuses it from then on.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use orch_wire::Channel;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::syscall::{check, errno};

// Requests of the listener (linux/seccomp.h), by the system call, because C libraries
// disagree on their type; half of a number is the size of the structure.
const RECEIVE: libc::c_ulong = 0xc050_2100;
const SEND: libc::c_ulong = 0xc018_2101;
const _: () = assert!(size_of::<libc::seccomp_notif>() == 0x50);
const _: () = assert!(size_of::<libc::seccomp_notif_resp>() == 0x18);

/// Both ends of the way on which the listener comes from the child.
pub fn way() -> io::Result<(Channel, Channel)> {
    let (ours, child) = rustix::net::socketpair(
        rustix::net::AddressFamily::UNIX,
        rustix::net::SocketType::SEQPACKET,
        rustix::net::SocketFlags::CLOEXEC,
        None,
    )?;
    Ok((Channel::new(ours), Channel::new(child)))
}

/// In the child, which has just loaded its filter.
pub fn hand_over(way: &Channel, listener: &OwnedFd) -> io::Result<()> {
    way.send(&(), &[listener.as_fd()])
        .map_err(|_| io::Error::from_raw_os_error(libc::EPIPE))
}

/// The listener of one task's filter.
pub struct Gate(OwnedFd);

impl Gate {
    /// Waits for the child's listener; none comes where it failed before.
    pub fn receive(way: &Channel) -> Option<Self> {
        let ((), mut fds) = way.recv().ok()?;
        fds.pop().map(Self)
    }

    /// Lets exec through until `running`, which the exec closes, says that the
    /// command runs or that it could not be started.
    pub fn admit(&self, running: &OwnedFd) -> io::Result<()> {
        loop {
            let mut ready = [
                PollFd::new(running, PollFlags::IN),
                PollFd::new(&self.0, PollFlags::IN),
            ];
            match poll(&mut ready, None) {
                Err(rustix::io::Errno::INTR) => continue,
                other => other?,
            };
            let listener = ready[1].revents();
            if !ready[0].revents().is_empty() || !listener.contains(PollFlags::IN) {
                return Ok(());
            }
            let Some(id) = self.next()? else { continue };
            // Looked at again with the question in hand: whoever asked after the
            // command began to run did so after the exec had closed this.
            if readable(running.as_fd())? {
                self.refuse(id);
                return Ok(());
            }
            self.answer(id, 0, continue_flag());
        }
    }

    /// Refuses what is waiting. False once nobody is left who could ask.
    pub fn serve(&self, seen: PollFlags) -> bool {
        if seen.contains(PollFlags::IN)
            && let Ok(Some(id)) = self.next()
        {
            self.refuse(id);
        }
        !seen.intersects(PollFlags::HUP | PollFlags::ERR)
    }

    fn refuse(&self, id: u64) {
        self.answer(id, -libc::EACCES, 0);
    }

    /// The next question; none where its asker has been killed meanwhile.
    fn next(&self) -> io::Result<Option<u64>> {
        let mut question = MaybeUninit::<libc::seccomp_notif>::zeroed();
        // SAFETY: the kernel wants a zeroed structure of this size and fills it.
        let got = check(unsafe {
            let listener = self.0.as_raw_fd();
            libc::syscall(libc::SYS_ioctl, listener, RECEIVE, question.as_mut_ptr())
        });
        match got {
            // SAFETY: plain numbers, all initialised.
            Ok(_) => Ok(Some(unsafe { question.assume_init() }.id)),
            Err(e) if [libc::ENOENT, libc::EINTR].contains(&errno(&e)) => Ok(None),
            Err(e) => Err(e),
        }
    }

    fn answer(&self, id: u64, error: i32, flags: u32) {
        // SAFETY: plain numbers throughout.
        let mut answer: libc::seccomp_notif_resp = unsafe { std::mem::zeroed() };
        (answer.id, answer.error, answer.flags) = (id, error, flags);
        // An asker that was killed needs no answer.
        // SAFETY: the structure outlives the call and is as large as the request says.
        unsafe { libc::syscall(libc::SYS_ioctl, self.0.as_raw_fd(), SEND, &raw mut answer) };
    }
}

impl AsFd for Gate {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn continue_flag() -> u32 {
    // A long in libc, 32 bits in the structure.
    u32::try_from(libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE).unwrap_or(0)
}

fn readable(fd: BorrowedFd<'_>) -> io::Result<bool> {
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let mut ready = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
    Ok(poll(&mut ready, Some(&now))? > 0)
}
