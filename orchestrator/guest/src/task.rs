//! One command, from fork to execve(2).

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use orch_wire::Channel;
use orch_wire::guest::{Exec, FromLease, Step};

use crate::gate::{self, Gate};
use crate::syscall::{check, errno, prctl};
use crate::{filter, privilege, signals, terminal};

/// Standard input, output and error.
const STREAMS: usize = 3;

/// A command that has reached execve(2).
pub struct Started {
    /// Process id within the lease.
    pub pid: libc::pid_t,
    /// Where its table of system calls asks.
    pub gate: Option<Gate>,
    pidfd: OwnedFd,
    terminal: Option<OwnedFd>,
}

impl Started {
    /// Tells the daemon, with the handle by which the kernel itself will say how
    /// the command ended, and with the terminal where there is one.
    pub fn announce(&self, channel: &Channel, exec: u32) {
        let mut fds = vec![self.pidfd.as_fd()];
        fds.extend(self.terminal.as_ref().map(AsFd::as_fd));
        // Where the daemon is gone, the next poll ends this process.
        let _ = channel.send(&FromLease::Started { exec }, &fds);
    }
}

/// Everything that needs memory, made before the fork.
struct Prepared {
    programs: Vec<CString>,
    argv: Vec<CString>,
    env: Vec<CString>,
    cwd: CString,
}

/// Starts a command; returns when it has reached execve(2), or where it failed.
pub fn start(exec: &Exec, mut fds: Vec<OwnedFd>) -> Result<Started, (Step, i32)> {
    let at = |step: Step| move |e: io::Error| (step, errno(&e));
    let prepared = prepare(exec).map_err(at(Step::Exec))?;
    let (terminal, slave) = if exec.tty {
        let (master, slave) = terminal::open(exec.size).map_err(at(Step::Streams))?;
        (Some(master), Some(slave))
    } else {
        (None, None)
    };
    let streams = if exec.tty { 0 } else { STREAMS };
    if fds.len() < streams {
        return Err((Step::Streams, libc::EBADF));
    }
    let joins = fds.split_off(streams);
    let streams: [i32; STREAMS] = match &slave {
        Some(slave) => [slave.as_raw_fd(); STREAMS],
        None => std::array::from_fn(|i| fds.get(i).map_or(-1, AsRawFd::as_raw_fd)),
    };

    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
        .map_err(|e| (Step::Fork, e.raw_os_error()))?;
    let way = exec.asks.then(gate::way).transpose();
    let way = way.map_err(at(Step::Filter))?;
    let cgroup = exec.unified.then(|| joins.first()).flatten();
    let forked = match cgroup {
        Some(directory) => fork_into(directory),
        None => fork(),
    };
    let (pid, pidfd) = match forked.map_err(at(Step::Fork))? {
        Forked::Child => {
            let joins: &[OwnedFd] = if exec.unified { &[] } else { &joins };
            let report = write.as_raw_fd();
            let (step, e) =
                match become_command(exec, &prepared, joins, streams, report, way.as_ref()) {
                    Ok(never) => match never {},
                    Err(failed) => failed,
                };
            let failure = [step as u8, u8::try_from(errno(&e)).unwrap_or(u8::MAX)];
            let _ = rustix::io::write(&write, &failure);
            // SAFETY: nothing of this copy of the process is to run any further.
            unsafe { libc::_exit(127) }
        }
        Forked::Parent(pid, pidfd) => (pid, pidfd),
    };
    drop(write);
    let gate = way.and_then(|(ours, child)| {
        // Or a child that fails before it has a listener would be waited for.
        drop(child);
        Gate::receive(&ours)
    });
    if let Some(gate) = &gate
        && let Err(e) = gate.admit(&read)
    {
        // Nobody would ever answer the child; the lease cannot go on either.
        // SAFETY: a child that is not reaped yet.
        unsafe { libc::kill(pid, libc::SIGKILL) };
        return Err((Step::Filter, errno(&e)));
    }
    let mut report = [0_u8; 2];
    loop {
        match rustix::io::read(&read, &mut report) {
            Ok(0) => break,
            Ok(_) => {
                let mut status = 0;
                // SAFETY: the child is ours and is about to end.
                unsafe { libc::waitpid(pid, &raw mut status, 0) };
                return Err((step(report[0]), i32::from(report[1])));
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err((Step::Fork, e.raw_os_error())),
        }
    }
    Ok(Started {
        pid,
        gate,
        pidfd,
        terminal,
    })
}

fn step(byte: u8) -> Step {
    const ALL: [Step; 8] = [
        Step::Fork,
        Step::Cgroup,
        Step::Streams,
        Step::Rlimit,
        Step::Privileges,
        Step::Cwd,
        Step::Filter,
        Step::Exec,
    ];
    ALL.into_iter()
        .find(|s| *s as u8 == byte)
        .unwrap_or(Step::Exec)
}

fn prepare(exec: &Exec) -> io::Result<Prepared> {
    let strings = |list: &[Vec<u8>]| -> io::Result<Vec<CString>> {
        list.iter()
            .map(|b| Ok(CString::new(b.as_slice())?))
            .collect()
    };
    let argv = strings(&exec.argv)?;
    let name = exec
        .argv
        .first()
        .filter(|name| !name.is_empty())
        .ok_or(io::Error::from_raw_os_error(libc::ENOENT))?;
    let programs = if name.contains(&b'/') {
        vec![name.clone()]
    } else {
        let path = exec
            .env
            .iter()
            .rev()
            .find_map(|variable| variable.strip_prefix(b"PATH="))
            .unwrap_or(b"/usr/local/bin:/usr/bin:/bin");
        path.split(|byte| *byte == b':')
            .map(|directory| match directory {
                b"" => [b"./", name.as_slice()].concat(),
                _ => [directory, b"/", name].concat(),
            })
            .collect()
    };
    Ok(Prepared {
        programs: strings(&programs)?,
        argv,
        env: strings(&exec.env)?,
        cwd: CString::new(exec.cwd.as_slice())?,
    })
}

enum Forked {
    Child,
    Parent(libc::pid_t, OwnedFd),
}

/// clone(2) and not clone3(2), which the filter of the lease refuses on hosts
/// where nothing needs it.
fn fork() -> io::Result<Forked> {
    let mut pidfd: libc::c_int = -1;
    let flags = libc::CLONE_PIDFD | libc::SIGCHLD;
    // SAFETY: without CLONE_VM and with a null stack this is a plain fork of a
    // single-threaded process; the kernel writes the pidfd to the third argument.
    let pid = check(unsafe { libc::syscall(libc::SYS_clone, flags, 0, &raw mut pidfd, 0, 0) })?;
    parent_or_child(pid, pidfd)
}

/// Straight into a cgroup v2 directory: moving a process there afterwards waits
/// for a grace period (design §1).
fn fork_into(directory: &OwnedFd) -> io::Result<Forked> {
    let mut pidfd: libc::c_int = -1;
    // SAFETY: `clone_args` is plain numbers, for which zero means "not given".
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    let flag = |bits: libc::c_longlong| u64::try_from(bits).unwrap_or(0);
    args.flags = flag(libc::CLONE_PIDFD.into()) | flag(0x2_0000_0000);
    args.pidfd = std::ptr::from_mut(&mut pidfd) as u64;
    args.exit_signal = u64::try_from(libc::SIGCHLD).unwrap_or(0);
    args.cgroup = u64::try_from(directory.as_raw_fd()).unwrap_or(0);
    // SAFETY: as in `fork`; the structure outlives the call.
    let pid = check(unsafe {
        libc::syscall(
            libc::SYS_clone3,
            &raw const args,
            size_of::<libc::clone_args>(),
        )
    })?;
    parent_or_child(pid, pidfd)
}

fn parent_or_child(pid: libc::c_long, pidfd: i32) -> io::Result<Forked> {
    if pid == 0 {
        return Ok(Forked::Child);
    }
    let pid = libc::pid_t::try_from(pid).map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))?;
    // SAFETY: the kernel made this descriptor for this call.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    Ok(Forked::Parent(pid, pidfd))
}

enum Never {}

/// In the child: everything from here to execve(2) only takes things away.
fn become_command(
    exec: &Exec,
    prepared: &Prepared,
    joins: &[OwnedFd],
    streams: [i32; STREAMS],
    report: i32,
    way: Option<&(Channel, Channel)>,
) -> Result<Never, (Step, io::Error)> {
    let at = |step: Step| move |e: io::Error| (step, e);
    for join in joins {
        // "0" means the writer itself. As the only thread it does not have to wait
        // for a grace period; the permission is that of whoever opened the file.
        rustix::io::write(join, b"0").map_err(|e| (Step::Cgroup, e.into()))?;
    }
    streams_and_session(exec, streams).map_err(at(Step::Streams))?;
    let way = way.map(|(_, child)| child);
    let kept = [Some(report), way.map(|child| child.as_fd().as_raw_fd())];
    close_all_but(kept.into_iter().flatten()).map_err(at(Step::Streams))?;
    for limit in &exec.rlimits {
        let value = libc::rlimit {
            rlim_cur: limit.soft,
            rlim_max: limit.hard,
        };
        // SAFETY: the structure is valid for the call. The C libraries disagree about
        // the type of the first argument.
        check(libc::c_long::from(unsafe {
            libc::setrlimit(limit.resource as _, &raw const value)
        }))
        .map_err(at(Step::Rlimit))?;
    }
    // SAFETY: umask cannot fail.
    unsafe { libc::umask(exec.umask) };
    privilege::become_task(exec.uid, exec.gid).map_err(at(Step::Privileges))?;
    // After the change of user, so that its rights decide (A2).
    // SAFETY: a valid path.
    check(libc::c_long::from(unsafe {
        libc::chdir(prepared.cwd.as_ptr())
    }))
    .map_err(at(Step::Cwd))?;
    signals::reset();
    match way {
        None => filter::load(&exec.filter).map_err(at(Step::Filter))?,
        Some(way) => {
            let listener = filter::load_with_listener(&exec.filter).map_err(at(Step::Filter))?;
            gate::hand_over(way, &listener).map_err(at(Step::Filter))?;
        }
    }
    Err((Step::Exec, execute(prepared)))
}

fn streams_and_session(exec: &Exec, streams: [i32; STREAMS]) -> io::Result<()> {
    // SAFETY: plain numbers throughout; the sources are above the targets, since
    // 0, 1 and 2 are open in this process from its start.
    unsafe {
        check(libc::c_long::from(libc::setsid()))?;
        if exec.tty {
            terminal::control(streams[0])?;
        }
        for (target, source) in (0..).zip(streams) {
            check(libc::c_long::from(libc::dup2(source, target)))?;
        }
    }
    prctl(libc::PR_SET_PDEATHSIG, 0, 0, 0)
}

/// Closes what belongs to the lease now and not at execve(2): the working directory
/// is entered before that, and `/proc/self/fd/8` would lead out of the sandbox where
/// 8 is a control group's directory (A2). What stays open is a pipe or a socket, and
/// close-on-exec.
fn close_all_but(kept: impl Iterator<Item = i32>) -> io::Result<()> {
    let kept = kept.map(|fd| u32::try_from(fd).map_err(|_| libc::EBADF));
    let kept: Result<Vec<u32>, i32> = kept.collect();
    let mut kept = kept.map_err(io::Error::from_raw_os_error)?;
    kept.sort_unstable();
    let close = |first: u32, last: u32| {
        if first > last {
            return Ok(0);
        }
        // SAFETY: the owners of these descriptors are never used again in this copy of
        // the process, nor dropped, because it ends with execve or _exit.
        check(unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) })
    };
    let mut next = u32::try_from(STREAMS).unwrap_or(u32::MAX);
    for fd in kept {
        close(next, fd.saturating_sub(1))?;
        next = fd.saturating_add(1);
    }
    close(next, u32::MAX).map(drop)
}

/// Tries each program in turn, as execvp(3) does: what exists and may not be
/// executed is remembered, what does not exist is passed over.
fn execute(prepared: &Prepared) -> io::Error {
    let pointers = |list: &[CString]| {
        list.iter()
            .map(|s| s.as_ptr())
            .chain([std::ptr::null()])
            .collect::<Vec<_>>()
    };
    let (argv, env) = (pointers(&prepared.argv), pointers(&prepared.env));
    let mut refused = None;
    for program in &prepared.programs {
        // SAFETY: null-terminated arrays of null-terminated strings that outlive the call.
        unsafe { libc::execve(program.as_ptr(), argv.as_ptr(), env.as_ptr()) };
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::ENOENT | libc::ENOTDIR) => {}
            Some(libc::EACCES) => refused = Some(error),
            _ => return error,
        }
    }
    refused.unwrap_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))
}
