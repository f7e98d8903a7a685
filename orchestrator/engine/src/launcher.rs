//! The launcher process, seen from the engine.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use orch_policy::Error;
use orch_wire::Channel;
use orch_wire::launch::{Reply, Request};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Pid, WaitOptions, waitpid};

use crate::state::StateDir;
use crate::{failure, sealed};

/// One launcher and what is needed to use it.
#[derive(Debug)]
pub struct Engine {
    channel: Option<Channel>,
    process: Pid,
    guest: OwnedFd,
    state: StateDir,
}

impl Engine {
    /// Starts the launcher from sealed memory, with an empty environment and
    /// nothing open but its control socket. Sealing and booting happen in the new
    /// process, while the caller goes on; the guest is sealed here meanwhile.
    ///
    /// # Errors
    /// What the kernel says to the fork; anything later shows as a closed socket.
    pub fn start(state: &StateDir, launcher: &[u8], guest: &[u8]) -> Result<Self, Error> {
        let (ours, theirs) = pair()?;
        // SAFETY: the child makes nothing but system calls until it is another
        // program, so it does not matter what other threads held in this moment.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            let _ = become_launcher(launcher, &theirs);
            // SAFETY: nothing of this copy of the process is to run any further.
            unsafe { libc::_exit(125) }
        }
        let process = Pid::from_raw(pid)
            .filter(|_| pid > 0)
            .ok_or_else(|| failure::kernel("start the launcher", io::Error::last_os_error()))?;
        let guest =
            sealed::seal(c"orch-guest", guest).map_err(|e| failure::kernel("seal the guest", e))?;
        Ok(Self {
            channel: Some(Channel::new(ours)),
            process,
            guest,
            state: state.clone(),
        })
    }

    /// The sealed guest.
    #[must_use]
    pub fn guest(&self) -> &OwnedFd {
        &self.guest
    }

    /// The state directory.
    #[must_use]
    pub fn state(&self) -> &StateDir {
        &self.state
    }

    /// Sends a request, without waiting for the reply.
    ///
    /// # Errors
    /// The launcher is gone.
    pub fn send(
        &self,
        request: &Request,
        fds: &[std::os::fd::BorrowedFd<'_>],
    ) -> Result<(), Error> {
        let channel = self.channel.as_ref().ok_or_else(closed)?;
        channel
            .send(request, fds)
            .map_err(|e| failure::lost("launcher", &e))
    }

    /// Takes the next reply.
    ///
    /// # Errors
    /// What the launcher could not do, or that it is gone.
    pub fn reply(&self) -> Result<(Reply, Vec<OwnedFd>), Error> {
        let channel = self.channel.as_ref().ok_or_else(closed)?;
        match channel.recv::<Reply>() {
            Ok((Reply::Failed(what), _)) => Err(failure::launcher(&what)),
            Ok(reply) => Ok(reply),
            Err(e) => Err(failure::lost("launcher", &e)),
        }
    }

    /// Asks and waits.
    ///
    /// # Errors
    /// As [`Engine::send`] and [`Engine::reply`].
    pub fn ask(&self, request: &Request) -> Result<(Reply, Vec<OwnedFd>), Error> {
        self.send(request, &[])?;
        self.reply()
    }
}

impl Drop for Engine {
    /// Closing the socket ends the launcher; it removes what is left before.
    fn drop(&mut self) {
        self.channel = None;
        // Nothing could be done about an error here.
        let _ = waitpid(Some(self.process), WaitOptions::empty());
    }
}

/// In the child: seals both programs and becomes the launcher.
fn become_launcher(launcher: &[u8], control: &OwnedFd) -> io::Result<()> {
    let program = sealed::seal(c"orch-launcher", launcher)?;
    let null = rustix::fs::open(
        c"/dev/null",
        rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CLOEXEC,
        rustix::fs::Mode::empty(),
    )?;
    let streams = [control.as_raw_fd(), null.as_raw_fd(), null.as_raw_fd()];
    let argv = [c"orch-launcher".as_ptr(), std::ptr::null()];
    let env = [std::ptr::null::<libc::c_char>()];
    // SAFETY: plain descriptors, none of which is 0, 1 or 2 where those are open;
    // null-terminated arrays of null-terminated strings.
    unsafe {
        reset_signals();
        for (target, source) in (0..).zip(streams) {
            if libc::dup2(source, target) < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        // Whatever the caller had open without close-on-exec stays out (H7).
        libc::syscall(
            libc::SYS_close_range,
            3,
            u32::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        );
        libc::syscall(
            libc::SYS_execveat,
            program.as_raw_fd(),
            c"".as_ptr(),
            argv.as_ptr(),
            env.as_ptr(),
            libc::AT_EMPTY_PATH,
        );
    }
    Err(io::Error::last_os_error())
}

/// Blocked and ignored signals are inherited; the launcher starts without any.
///
/// # Safety
/// For a process that is about to become another program.
unsafe fn reset_signals() {
    let mut set = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset initialises the set; the numbers are valid.
    unsafe {
        for signal in [libc::SIGPIPE, libc::SIGCHLD, libc::SIGINT, libc::SIGTERM] {
            libc::signal(signal, libc::SIG_DFL);
        }
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, set.as_ptr(), std::ptr::null_mut());
    }
}

fn closed() -> Error {
    failure::lost("launcher", &orch_wire::WireError::Closed)
}

/// Two connected sockets.
///
/// # Errors
/// What socketpair(2) says.
pub fn pair() -> Result<(OwnedFd, OwnedFd), Error> {
    socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )
    .map_err(|e| failure::kernel("make a socket pair", e))
}

/// A descriptor for a message.
#[must_use]
pub fn borrowed(fds: &[OwnedFd]) -> Vec<std::os::fd::BorrowedFd<'_>> {
    fds.iter().map(AsFd::as_fd).collect()
}
