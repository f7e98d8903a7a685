//! The launcher process, seen from the engine.

use std::cell::Cell;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use orch_policy::Error;
use orch_wire::Channel;
use orch_wire::launch::{Reply, Request};
use orch_wire::range::LOCKS;
use rustix::net::{AddressFamily, Shutdown, SocketFlags, SocketType, shutdown, socketpair};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::account::micros;
use crate::patience::{PATIENCE, await_answer};
use crate::state::StateDir;
use crate::{failure, rootless, sealed};

/// How far a launcher that is not root has come.
#[derive(Debug)]
enum Entered {
    /// It has made its user namespace, and nothing has been asked of it yet.
    Fresh,
    /// Its ids are mapped for tasks with these.
    With((u32, u32)),
    /// It could not become root of its namespace.
    Failed,
}

/// One launcher and what is needed to use it.
#[derive(Debug)]
pub struct Engine {
    channel: Option<Channel>,
    process: Child,
    guest: OwnedFd,
    state: StateDir,
    /// Whether the container that ends next is the last one.
    last: bool,
    /// Only where the launcher is not root: its program, to start another one.
    rootless: Option<(OwnedFd, Entered)>,
    /// How long starting took, and when it was done; told with the first task.
    started: Cell<Option<(Duration, Instant)>>,
}

impl Engine {
    /// Starts the launcher from sealed memory, with an empty environment and
    /// nothing open but its control socket. It boots while the guest is sealed and
    /// the caller goes on.
    ///
    /// # Errors
    /// What the kernel says to sealing and starting.
    pub fn start(state: &StateDir, launcher: &[u8], guest: &[u8]) -> Result<Self, Error> {
        let begun = Instant::now();
        let (ours, theirs) = pair()?;
        let program = sealed::seal(c"orch-launcher", launcher)
            .map_err(|e| failure::kernel("seal the launcher", e))?;
        let process = spawn(&program, theirs)?;
        let guest =
            sealed::seal(c"orch-guest", guest).map_err(|e| failure::kernel("seal the guest", e))?;
        Ok(Self {
            channel: Some(Channel::new(ours)),
            process,
            rootless: rootless::needed().then_some((program, Entered::Fresh)),
            guest,
            state: state.clone(),
            last: false,
            started: Cell::new(Some((begun.elapsed(), Instant::now()))),
        })
    }

    /// Makes the launcher ready for tasks with these ids. Only one that is not root
    /// has anything to do: its ids are mapped, and a map cannot be changed, so that
    /// other ids take another launcher.
    ///
    /// # Errors
    /// What this host does not let its users do, by name.
    pub fn enter(&mut self, uid: u32, gid: u32) -> Result<(), Error> {
        let Some((program, entered)) = &mut self.rootless else {
            return Ok(());
        };
        let fresh = match entered {
            Entered::With(ids) if *ids == (uid, gid) => return Ok(()),
            Entered::Fresh => true,
            Entered::With(_) | Entered::Failed => false,
        };
        // Whatever goes wrong from here on has used this launcher up.
        *entered = Entered::Failed;
        if !fresh {
            let (ours, theirs) = pair()?;
            let process = spawn(program, theirs)?;
            self.end();
            (self.channel, self.process) = (Some(Channel::new(ours)), process);
        }
        let unshared = self.reply().map_err(rootless::explain)?;
        rootless::map_ids(self.process.id(), uid, gid)?;
        let locks = self.locks().as_os_str().as_bytes().to_vec();
        let entered = self.ask(&Request::Enter { locks });
        match (unshared, entered.map_err(rootless::explain)?) {
            ((Reply::Unshared, _), (Reply::Entered, _)) => {
                if let Some((_, entered)) = &mut self.rootless {
                    *entered = Entered::With((uid, gid));
                }
                Ok(())
            }
            _ => Err(closed()),
        }
    }

    /// Whether the launcher is root of a user namespace only.
    #[must_use]
    pub fn is_rootless(&self) -> bool {
        self.rootless.is_some()
    }

    /// File of the locks on id ranges ([`orch_wire::range`]).
    pub(crate) fn locks(&self) -> PathBuf {
        match self.rootless {
            None => LOCKS.into(),
            Some(_) => self.state.path().join("ids.lock"),
        }
    }

    /// Stages before the first task: starting the launcher, and loading until now.
    pub(crate) fn first_stages(&self) -> Vec<(String, u64)> {
        let Some((launcher, since)) = self.started.take() else {
            return Vec::new();
        };
        vec![
            ("launcher".to_owned(), micros(launcher)),
            ("load".to_owned(), micros(since.elapsed())),
        ]
    }

    /// From here on the end of a container is the end of this engine.
    pub(crate) fn is_for_the_last(&mut self) {
        self.last = true;
    }

    /// Asks for the end of a container and waits for it. After the last one the
    /// launcher ends by itself, while its answer is still being read.
    ///
    /// # Errors
    /// As [`Engine::ask`].
    pub(crate) fn ask_for_end(&self, request: &Request) -> Result<(Reply, Vec<OwnedFd>), Error> {
        self.send(request, &[])?;
        if let (true, Some(channel)) = (self.last, &self.channel) {
            // It fails where the launcher is gone, and the reply will say so.
            let _ = shutdown(channel, Shutdown::Write);
        }
        self.reply()
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
        await_answer("launcher", channel.as_fd(), PATIENCE)?;
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
    /// Closing the socket ends the launcher; it removes what is left before. It is
    /// waited for, so that not even a dead process is left to the host's init.
    fn drop(&mut self) {
        self.end();
    }
}

impl Engine {
    fn end(&mut self) {
        self.channel = None;
        let ended = i32::try_from(self.process.id())
            .ok()
            .and_then(Pid::from_raw)
            .and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok())
            .map(|pidfd| await_answer("launcher", pidfd.as_fd(), PATIENCE));
        if matches!(ended, Some(Err(_))) {
            // What it holds ends with it: the guest sees its socket close, and the
            // next launcher removes the rest.
            let _ = self.process.kill();
        }
        // Nothing could be done about an error here.
        let _ = self.process.wait();
    }
}

/// Starts the sealed program (posix_spawn(3): no copy of this process is made,
/// however large it is, and nothing runs in between).
fn spawn(program: &OwnedFd, control: OwnedFd) -> Result<Child, Error> {
    Command::new(format!("/proc/self/fd/{}", program.as_raw_fd()))
        .env_clear()
        .stdin(Stdio::from(control))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| failure::kernel("start the launcher", e))
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
