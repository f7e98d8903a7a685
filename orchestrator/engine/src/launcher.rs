//! The launcher process, seen from the engine.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::{Child, Command, Stdio};

use orch_policy::Error;
use orch_wire::Channel;
use orch_wire::launch::{Reply, Request};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use crate::state::StateDir;
use crate::{failure, sealed};

/// One launcher and what is needed to use it.
#[derive(Debug)]
pub struct Engine {
    channel: Option<Channel>,
    process: Child,
    state: StateDir,
}

impl Engine {
    /// Starts the launcher from sealed memory, with an empty environment and
    /// nothing open but its control socket and the sealed guest. It boots while
    /// the caller goes on.
    ///
    /// # Errors
    /// What the kernel says to sealing and starting.
    pub fn start(state: &StateDir, launcher: &[u8], guest: &[u8]) -> Result<Self, Error> {
        let (ours, theirs) = pair()?;
        let seal = |name: &str, bytes| {
            sealed::seal(name, bytes).map_err(|e| failure::kernel(format_args!("seal {name}"), e))
        };
        let (program, guest) = (seal("orch-launcher", launcher)?, seal("orch-guest", guest)?);
        let process = Command::new(format!("/proc/self/fd/{}", program.as_raw_fd()))
            .env_clear()
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::from(guest))
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| failure::kernel("start the launcher", e))?;
        Ok(Self {
            channel: Some(Channel::new(ours)),
            process,
            state: state.clone(),
        })
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
        let _ = self.process.wait();
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
