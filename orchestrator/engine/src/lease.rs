//! One task's share of a container, and commands in it.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use orch_policy::spec::task::TaskSpec;
use orch_policy::{Code, Error, syscalls};
use orch_wire::guest::{Exec, FromLease, Rlimit, Step, ToLease};
use orch_wire::{Channel, WireError};

use crate::failure;
use crate::launcher::borrowed;
use crate::patience::{PATIENCE, await_answer};
use crate::terminal;

/// User and group id, inside, of the lease's PID 1; no task has it.
pub const LEASE_ID: u32 = 65_535;

/// A lease, seen from the engine.
#[derive(Debug)]
pub struct Lease {
    channel: Channel,
    temporary: Option<OwnedFd>,
}

/// A command that runs.
#[derive(Debug)]
pub struct Running {
    /// Its number within the lease.
    pub exec: u32,
    /// Handle on its first process.
    pub pidfd: OwnedFd,
    /// Its terminal, where it has one.
    pub terminal: Option<OwnedFd>,
}

/// How starting a command went.
#[derive(Debug)]
pub enum Start {
    /// It runs.
    Running(Running),
    /// It could not be started.
    Refused(Step, i32),
}

impl Lease {
    /// One that is still being staged.
    #[must_use]
    pub fn new(channel: Channel) -> Self {
        Self {
            channel,
            temporary: None,
        }
    }

    /// Waits until the lease is staged.
    ///
    /// # Errors
    /// What could not be staged, or that the guest is gone.
    pub fn wait(&mut self) -> Result<(), Error> {
        match receive(&self.channel)? {
            (FromLease::Ready, mut fds) if fds.len() == 1 => {
                self.temporary = fds.pop();
                Ok(())
            }
            (FromLease::Broken { step, errno }, _) => Err(failure::kernel(
                format_args!("stage the lease ({step})"),
                std::io::Error::from_raw_os_error(errno),
            )),
            _ => Err(unexpected()),
        }
    }

    /// Root of its `/tmp`, kept for copy-out.
    ///
    /// # Errors
    /// It has been let go.
    pub fn temporary(&self) -> Result<&OwnedFd, Error> {
        self.temporary.as_ref().ok_or_else(unexpected)
    }

    /// Lets the root of `/tmp` go, where nothing is to be copied out: the last
    /// holder of a file system waits for its end.
    pub fn forget_temporary(&mut self) {
        self.temporary = None;
    }

    /// Asks for a command, which waits until the lease is staged. `streams` are its standard streams (none for a
    /// terminal), `joins` what its control group came with.
    ///
    /// # Errors
    /// [`Code::LimitUnavailable`] for a resource limit that this host does not
    /// know, or that the lease is gone.
    pub fn begin(
        &self,
        exec: u32,
        spec: &TaskSpec,
        streams: &[OwnedFd],
        joins: &[OwnedFd],
        unified: bool,
    ) -> Result<(), Error> {
        let strings =
            |list: &[std::ffi::OsString]| list.iter().map(|s| s.as_bytes().to_vec()).collect();
        let filter = syscalls::task(spec.syscalls)?;
        let message = ToLease::Exec(Box::new(Exec {
            exec,
            argv: strings(&spec.argv),
            env: strings(&spec.env),
            cwd: spec.cwd.as_os_str().as_bytes().to_vec(),
            uid: spec.uid,
            gid: spec.gid,
            umask: spec.umask,
            rlimits: spec.rlimits.iter().map(rlimit).collect::<Result<_, _>>()?,
            asks: filter.asks(),
            filter: filter.bytes().to_vec(),
            tty: spec.tty,
            size: spec.tty.then(terminal::size).flatten(),
            unified,
        }));
        let mut fds = borrowed(streams);
        fds.extend(joins.iter().map(AsFd::as_fd));
        self.channel.send(&message, &fds).map_err(|e| match e {
            WireError::TooLarge(_) => crate::session::too_large().because(e),
            e => failure::lost("lease", &e),
        })
    }

    /// Waits until a command runs, or has been refused.
    ///
    /// # Errors
    /// The lease is gone, or said something else.
    pub fn started(&self, exec: u32) -> Result<Start, Error> {
        match receive(&self.channel)? {
            (FromLease::Started { exec: number }, mut fds) if number == exec && !fds.is_empty() => {
                let pidfd = fds.remove(0);
                Ok(Start::Running(Running {
                    exec,
                    pidfd,
                    terminal: fds.pop(),
                }))
            }
            (FromLease::Failed { step, errno, .. }, _) => Ok(Start::Refused(step, errno)),
            _ => Err(unexpected()),
        }
    }

    /// Sends a signal to the first process of a command.
    pub fn signal(&self, exec: u32, signal: i32) {
        // A lease that is gone has no command left that could be told.
        let _ = self.channel.send(&ToLease::Signal { exec, signal }, &[]);
    }

    /// The wait status that the guest reports for a command; its word, not proof.
    ///
    /// # Errors
    /// The lease is gone, or said something else.
    pub fn exited(&self) -> Result<(u32, i32), Error> {
        match receive(&self.channel)? {
            (FromLease::Exited { exec, status }, _) => Ok((exec, status)),
            _ => Err(unexpected()),
        }
    }

    /// What to poll for words of the lease.
    #[must_use]
    pub fn socket(&self) -> std::os::fd::BorrowedFd<'_> {
        self.channel.as_fd()
    }
}

fn receive(channel: &Channel) -> Result<(FromLease, Vec<OwnedFd>), Error> {
    await_answer("lease", channel.as_fd(), PATIENCE)?;
    channel
        .recv::<FromLease>()
        .map_err(|e| failure::lost("lease", &e))
}

fn unexpected() -> Error {
    Error::new(
        Code::RuntimeFailed,
        "the lease gave an answer that does not belong here",
        "report this",
    )
}

fn rlimit(limit: &orch_policy::spec::task::Rlimit) -> Result<Rlimit, Error> {
    let (mut soft, mut hard) = (limit.soft, limit.hard);
    if limit.name == "RLIMIT_CORE" && core_goes_to_a_program() {
        // With a program in `core_pattern`, 0 still starts it, as root of the host;
        // 1 is the value with which the kernel leaves it (core(5)).
        (soft, hard) = (soft.max(1), hard.max(1));
    }
    let resource = match limit.name {
        "RLIMIT_CPU" => libc::RLIMIT_CPU,
        "RLIMIT_NOFILE" => libc::RLIMIT_NOFILE,
        "RLIMIT_FSIZE" => libc::RLIMIT_FSIZE,
        "RLIMIT_STACK" => libc::RLIMIT_STACK,
        "RLIMIT_CORE" => libc::RLIMIT_CORE,
        "RLIMIT_NICE" => libc::RLIMIT_NICE,
        "RLIMIT_RTPRIO" => libc::RLIMIT_RTPRIO,
        "RLIMIT_MEMLOCK" => libc::RLIMIT_MEMLOCK,
        "RLIMIT_MSGQUEUE" => libc::RLIMIT_MSGQUEUE,
        other => {
            return Err(Error::new(
                Code::LimitUnavailable,
                format!("{other} is not known here"),
                "report this",
            ));
        }
    };
    Ok(Rlimit {
        resource,
        soft,
        hard,
    })
}

fn core_goes_to_a_program() -> bool {
    std::fs::read("/proc/sys/kernel/core_pattern").is_ok_and(|text| text.starts_with(b"|"))
}
