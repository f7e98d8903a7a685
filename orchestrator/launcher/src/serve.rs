//! Takes requests and answers them, one after the other.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Instant;

use orch_wire::launch::{CgroupUsage, Create, Failure, Reply, Request};
use orch_wire::{Channel, WireError, range};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use crate::cgroup::{Cgroups, Joined};
use crate::failure::During;
use crate::rootless::{self, Privilege};
use crate::syscall::check;
use crate::worker;
use crate::{orphan, process};

/// Number, within a container's range, of the lease's PID 1.
const LEASE_ID: u32 = 65_535;

struct Container {
    guest: OwnedFd,
    pid: i32,
    host_id: u32,
    group: String,
    execs: Vec<u32>,
    /// Held as long as the container is: the lock on its uid range.
    _range: OwnedFd,
}

struct Made {
    guest: OwnedFd,
    pid: i32,
    reply: Reply,
    fds: Vec<OwnedFd>,
}

struct Launcher {
    privilege: Privilege,
    cgroups: Result<Cgroups, Failure>,
    containers: HashMap<String, Container>,
}

/// Serves until the daemon's end of the socket is closed, then ends and removes
/// everything that is still there (design §3.5).
pub fn run() -> io::Result<()> {
    let control = Channel::new(take_control()?);
    let locks = rootless::enter(&control)?;
    // Only now: the files of a process that cannot be dumped belong to root, and
    // somebody else has to map the ids of this one.
    // SAFETY: plain numbers.
    unsafe { check(libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0).into())? };
    let privilege = match locks {
        None => Privilege::Host,
        Some(_) => Privilege::Namespace,
    };
    let locks = locks.unwrap_or_else(|| range::LOCKS.into());
    let mut launcher = Launcher {
        privilege,
        cgroups: Cgroups::discover(privilege).inspect(|cgroups| orphan::sweep(cgroups, &locks)),
        containers: HashMap::new(),
    };
    let served = loop {
        match control.recv::<Request>() {
            Ok((request, fds)) => {
                let (reply, send) = launcher.answer(request, fds, &control);
                let send: Vec<_> = send.iter().map(AsFd::as_fd).collect();
                if control.send(&reply, &send).is_err() {
                    break Ok(());
                }
            }
            Err(WireError::Closed) => break Ok(()),
            Err(_) => break Err(io::Error::from_raw_os_error(libc::EPROTO)),
        }
    };
    let ids: Vec<String> = launcher.containers.keys().cloned().collect();
    for id in ids {
        launcher.destroy(&id);
    }
    process::reap_all(Instant::now() + process::PATIENCE);
    served
}

/// Moves the control socket out of the way of the standard streams, and makes this
/// process one that nothing else reaches: a session of its own (no Ctrl-C),
/// parent of every orphaned guest, not dumpable.
fn take_control() -> io::Result<OwnedFd> {
    // SAFETY: a plain duplication; the new descriptor is owned by nobody else.
    let control = unsafe {
        let copy = check(libc::fcntl(0, libc::F_DUPFD_CLOEXEC, 10).into())?;
        OwnedFd::from_raw_fd(i32::try_from(copy).unwrap_or(-1))
    };
    // Whatever the caller of orch had open without close-on-exec ends here (H7).
    let own = u32::try_from(control.as_raw_fd()).unwrap_or(u32::MAX);
    // SAFETY: the control socket is the only descriptor that is used from here on.
    unsafe {
        check(libc::syscall(libc::SYS_close_range, 3, own - 1, 0))?;
        check(libc::syscall(libc::SYS_close_range, own + 1, u32::MAX, 0))?;
    }
    let null = rustix::fs::open(
        "/dev/null",
        rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CLOEXEC,
        rustix::fs::Mode::empty(),
    )?;
    // SAFETY: plain numbers.
    unsafe {
        for stream in 0..3 {
            check(libc::dup2(null.as_raw_fd(), stream).into())?;
        }
        libc::setsid();
        // Started by descriptor it would be called by the number of that.
        libc::prctl(libc::PR_SET_NAME, c"orch-launcher".as_ptr());
        libc::umask(0o022);
        check(libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0).into())?;
    }
    Ok(control)
}

impl Launcher {
    fn answer(
        &mut self,
        request: Request,
        fds: Vec<OwnedFd>,
        daemon: &Channel,
    ) -> (Reply, Vec<OwnedFd>) {
        let answered = match request {
            Request::Enter { .. } => Err(io::Error::from_raw_os_error(libc::EPROTO))
                .during(|| "enter a user namespace again".to_owned()),
            Request::Create(create) => self.create(&create, fds, daemon),
            Request::Cgroup { id, exec, limits } => {
                self.cgroup(&id, exec, |cgroups, group, host_id| {
                    let Joined { fds, missing } =
                        cgroups.create(group, exec, host_id + LEASE_ID, &limits)?;
                    let unified = cgroups.unified();
                    Ok((Reply::Cgroup { unified, missing }, fds))
                })
            }
            Request::Usage { id, exec } => self.cgroup(&id, exec, |cgroups, group, _| {
                Ok((Reply::Usage(cgroups.usage(group, exec)), Vec::new()))
            }),
            Request::End { id, exec } => {
                if matches!(self.cgroups, Ok(Cgroups::Absent)) {
                    // Without a group nothing less than the container can be ended
                    // as a whole.
                    if let Some(container) = self.containers.get(&id) {
                        end(&container.guest);
                    }
                }
                let ended = self.cgroup(&id, exec, |cgroups, group, _| {
                    let empty = cgroups.kill(group, exec) || cgroups.is_empty(group, exec);
                    let usage = cgroups.usage(group, exec);
                    let removed = empty && cgroups.remove(group, exec);
                    Ok((Reply::Ended { usage, removed }, Vec::new()))
                });
                if let (Ok((Reply::Ended { removed: true, .. }, _)), Some(container)) =
                    (&ended, self.containers.get_mut(&id))
                {
                    container.execs.retain(|other| *other != exec);
                }
                ended
            }
            Request::Destroy { id } => {
                let (usage, left) = self.destroy(&id);
                Ok((Reply::Destroyed { usage, left }, Vec::new()))
            }
        };
        answered.unwrap_or_else(|failure| (Reply::Failed(failure), Vec::new()))
    }

    fn cgroup(
        &mut self,
        id: &str,
        exec: u32,
        act: impl FnOnce(&Cgroups, &str, u32) -> Result<(Reply, Vec<OwnedFd>), Failure>,
    ) -> Result<(Reply, Vec<OwnedFd>), Failure> {
        let cgroups = self.cgroups.as_ref().map_err(Clone::clone)?;
        let container = self
            .containers
            .get_mut(id)
            .ok_or(io::Error::from_raw_os_error(libc::ENOENT))
            .during(|| format!("find container {id}"))?;
        if !container.execs.contains(&exec) {
            container.execs.push(exec);
        }
        act(cgroups, &container.group, container.host_id)
    }

    fn create(
        &mut self,
        create: &Create,
        mut fds: Vec<OwnedFd>,
        daemon: &Channel,
    ) -> Result<(Reply, Vec<OwnedFd>), Failure> {
        let sound = !create.id.is_empty()
            && create.id.bytes().all(|byte| byte.is_ascii_hexdigit())
            && create.ids > LEASE_ID
            && !self.containers.contains_key(&create.id);
        if !sound || fds.len() < 3 {
            return Err(io::Error::from_raw_os_error(libc::EINVAL))
                .during(|| "read the request".to_owned());
        }
        let sources = fds.split_off(3);
        let (program, range, control) = (fds.pop(), fds.pop(), fds.pop());
        let (Some(program), Some(range), Some(control)) = (program, range, control) else {
            return Err(io::Error::from_raw_os_error(libc::EINVAL))
                .during(|| "read the request".to_owned());
        };
        let group = group_name(create, &range).during(|| "look at the lock".to_owned())?;
        match self.fork_worker(create, &group, &program, control, &sources, daemon) {
            Ok(made) => {
                self.containers.insert(
                    create.id.clone(),
                    Container {
                        guest: made.guest,
                        pid: made.pid,
                        host_id: create.host_id,
                        group,
                        execs: create.first.iter().map(|(exec, _)| *exec).collect(),
                        _range: range,
                    },
                );
                Ok((made.reply, made.fds))
            }
            Err(failure) => {
                if let Ok(cgroups) = &self.cgroups {
                    cgroups.remove_all(&group, &[]);
                }
                Err(failure)
            }
        }
    }

    /// Runs the worker, makes the control group of the first exec meanwhile and
    /// says so at once, and takes the guest over from the worker.
    fn fork_worker(
        &self,
        create: &Create,
        group: &str,
        program: &OwnedFd,
        control: OwnedFd,
        sources: &[OwnedFd],
        daemon: &Channel,
    ) -> Result<Made, Failure> {
        let during = || "fork a worker".to_owned();
        let cgroups = self.cgroups.as_ref().map_err(Clone::clone)?;
        let lease_uid = create.host_id + LEASE_ID;
        let nest = cgroups.prepare(group, lease_uid)?;
        let (ours, theirs) = socketpair(
            AddressFamily::UNIX,
            SocketType::STREAM,
            SocketFlags::CLOEXEC,
            None,
        )
        .during(during)?;
        let privilege = self.privilege;
        let pid = match &nest {
            Some(nest) => crate::cgroup::clone_into(&nest.group),
            // SAFETY: this process has a single thread, so its copy is whole.
            None => check(unsafe { libc::fork() }.into())
                .and_then(|pid| i32::try_from(pid).map_err(io::Error::other)),
        }
        .during(during)?;
        if pid == 0 {
            drop(ours);
            let namespace = nest.map(|nest| nest.namespace);
            let result = worker::enter(namespace.as_ref())
                .and_then(|()| worker::create(create, program, control, sources, privilege));
            let sent = Channel::new(theirs).send(&result, &[]);
            // SAFETY: nothing of this copy of the process is to run any further.
            unsafe { libc::_exit(i32::from(sent.is_err())) }
        }
        drop((theirs, control));
        let joined = create
            .first
            .as_ref()
            .map(|(exec, limits)| cgroups.create(group, *exec, lease_uid, limits))
            .transpose();
        let joined = joined.map(|joined| {
            if let Some(Joined { fds, missing }) = joined {
                let unified = cgroups.unified();
                let fds: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
                // Where the daemon is gone, that is seen at once below.
                let _ = daemon.send(&Reply::Cgroup { unified, missing }, &fds);
            }
        });
        let answer = Self::hear(pid, ours, daemon.as_fd());
        let guest = match answer {
            // The worker is not reaped yet, so the guest's number is still its own.
            Ok((Ok(made), _)) => process::open(made.0)
                .during(|| "open the guest".to_owned())
                .map(|guest| (made, guest)),
            Ok((Err(failure), _)) => Err(failure),
            Err(e) => {
                Err(io::Error::other(e.to_string())).during(|| "hear from the worker".to_owned())
            }
        };
        if guest.is_err() {
            // What the worker had started may hold its end of the socket, and is in
            // no control group yet.
            let known: Vec<i32> = self.containers.values().map(|c| c.pid).collect();
            process::end_strays(&known, Instant::now() + process::PATIENCE);
        } else {
            // SAFETY: the child is ours and not reaped yet.
            unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
        }
        process::reap();
        let ((pid, stages), guest) = guest?;
        let copy = rustix::io::fcntl_dupfd_cloexec(&guest, 10)
            .during(|| "copy the guest's handle".to_owned());
        match (joined, copy) {
            (Ok(()), Ok(copy)) => Ok(Made {
                guest,
                pid,
                reply: Reply::Created { pid, stages },
                fds: vec![copy],
            }),
            (Err(failure), _) | (_, Err(failure)) => {
                end(&guest);
                Err(failure)
            }
        }
    }

    /// The answer of a worker. One that is killed gives none, and the end of its
    /// socket is not seen either as long as a child of it lives.
    fn hear(
        worker: i32,
        answer: OwnedFd,
        daemon: BorrowedFd<'_>,
    ) -> Result<(Result<worker::Made, Failure>, Vec<OwnedFd>), WireError> {
        let ended = process::open(worker).map_err(|_| WireError::Closed)?;
        let deadline = Instant::now() + process::CREATE;
        let heard = process::wait_either(&answer, &ended, daemon, deadline)
            // It may have answered and ended in one go.
            && process::wait(&answer, Instant::now());
        if !heard {
            return Err(WireError::Closed);
        }
        Channel::new(answer).recv()
    }

    /// Kills the guest, and with its pid namespace everything in it; then the
    /// control groups, which also hold whatever got out of that namespace.
    fn destroy(&mut self, id: &str) -> (Vec<(u32, CgroupUsage)>, Vec<String>) {
        let Some(container) = self.containers.remove(id) else {
            return Default::default();
        };
        let (mut usage, mut left) = (Vec::new(), Vec::new());
        if !end(&container.guest) {
            left.push("the guest has not ended".to_owned());
        }
        if let Ok(cgroups) = &self.cgroups {
            let group = &container.group;
            for &exec in &container.execs {
                if !cgroups.is_empty(group, exec) && !cgroups.kill(group, exec) {
                    left.push(format!("processes of exec {exec}"));
                }
                usage.push((exec, cgroups.usage(group, exec)));
            }
            left.extend(cgroups.remove_all(group, &container.execs));
        }
        (usage, left)
    }
}

/// Name of a container's control group, which tells whoever finds it later where to
/// see whether anybody still owns it.
fn group_name(create: &Create, lock: &OwnedFd) -> io::Result<String> {
    let lock = orphan::lock_name(lock, create.number)?;
    Ok(format!("{lock}-{}", create.id))
}

/// Kills a guest, and with its pid namespace everything in it.
fn end(guest: &OwnedFd) -> bool {
    process::kill(guest);
    let ended = process::wait(guest, Instant::now() + process::PATIENCE);
    process::reap();
    ended
}
