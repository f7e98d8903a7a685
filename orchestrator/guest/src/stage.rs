//! The making of a lease: namespaces, mounts, privileges, filter.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use orch_wire::Channel;
use orch_wire::guest::{FromLease, Lease};
use rustix::fs::{Mode, OFlags};

use crate::syscall::{check, errno};
use crate::{filter, mount, network, privilege, serve, writable_root};

/// Which of the two processes this is.
pub enum Side {
    /// The lease's PID 1.
    Lease,
    /// The container's PID 1.
    Container,
}

/// fork(2) into namespaces that no other lease has (design §4). The user
/// namespace stays that of the container: a nested one would let a lease mount.
pub fn fork_into_namespaces() -> io::Result<Side> {
    let mut flags = libc::CLONE_NEWPID
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWNET
        | libc::SIGCHLD;
    if !in_own_cgroup_namespace()? {
        flags |= libc::CLONE_NEWCGROUP;
    }
    // SAFETY: without CLONE_VM and with a null stack this is a plain fork, and
    // this process has a single thread.
    let pid = check(unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) })?;
    Ok(if pid == 0 {
        Side::Lease
    } else {
        Side::Container
    })
}

/// On cgroup v2 the launcher has made the namespace already, one level above this
/// process: an exec can only be cloned into a group that is seen from inside.
fn in_own_cgroup_namespace() -> io::Result<bool> {
    Ok(std::fs::read_to_string("/proc/self/cgroup")?.trim() == "0::/guest")
}

/// Closes what belongs to the container and must not be reached from a lease.
pub fn close_inherited(fds: &[BorrowedFd<'_>]) {
    for fd in fds {
        // SAFETY: this is the forked copy; the owners of these descriptors are
        // never used or dropped in it, because it ends with _exit.
        unsafe { libc::close(fd.as_raw_fd()) };
    }
}

/// Tells the daemon that there will be no lease.
pub fn report_broken(channel: &Channel, step: &str, error: &io::Error) {
    // Where the daemon is gone, nobody is left to be told.
    let _ = channel.send(
        &FromLease::Broken {
            step: step.to_owned(),
            errno: errno(error),
        },
        &[],
    );
}

/// Stages the lease and then serves it until the daemon closes its socket.
pub fn run(lease: &Lease, channel: &Channel) -> io::Result<()> {
    for (step, action) in STEPS {
        action(lease).inspect_err(|e| report_broken(channel, step, e))?;
    }
    let temporary = rustix::fs::open(
        TEMPORARY,
        OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    channel
        .send(&FromLease::Ready, &[temporary.as_fd()])
        .map_err(|_| io::Error::from_raw_os_error(libc::EPIPE))?;
    drop(temporary);
    serve::run(channel)
}

/// Root of the file system from which results are copied out: its handle, unlike
/// a path, cannot be turned into something else by a task.
const TEMPORARY: &str = "/tmp";

type Step = (&'static str, fn(&Lease) -> io::Result<()>);

/// In this order: later mounts shadow earlier ones and masks come last (FS-06);
/// ids and filter come when nothing privileged is left to do.
const STEPS: &[Step] = &[
    ("propagation", |_| mount::make_private()),
    ("hostname", hostname),
    ("loopback", |_| network::loopback_up()),
    ("root", |lease| {
        lease
            .writable_root
            .map_or(Ok(()), |(size, inodes)| writable_root::enter(size, inodes))
    }),
    ("proc", |_| mount::proc()),
    ("sys", |_| mount::sys()),
    ("devpts", |lease| mount::pts(lease.tty_gid)),
    ("mqueue", |_| mount::mqueue()),
    ("tmpfs", tmpfs),
    ("directories", |lease| {
        lease
            .dirs
            .iter()
            .try_for_each(|(path, mode, uid, gid)| mount::directory(path, *mode, *uid, *gid))
    }),
    ("read-only paths", |lease| mount::readonly(&lease.readonly)),
    ("masked paths", |lease| mount::mask(&lease.masked)),
    ("keyring", |_| keyring()),
    ("privileges", |lease| privilege::become_lease(lease.id)),
    ("filter", |lease| filter::load(&lease.filter)),
];

fn hostname(lease: &Lease) -> io::Result<()> {
    rustix::system::sethostname(&lease.hostname)?;
    rustix::system::setdomainname(b"(none)")?;
    Ok(())
}

fn tmpfs(lease: &Lease) -> io::Result<()> {
    lease.tmpfs.iter().try_for_each(|t| {
        let made = mount::tmpfs(t.size, t.inodes, t.mode, t.exec)?;
        mount::attach(&made, &t.path)
    })
}

/// A session keyring of its own; without it the lease would share the one of the
/// daemon (H6). A kernel built without keys has none to share.
fn keyring() -> io::Result<()> {
    const JOIN_SESSION_KEYRING: libc::c_long = 1;
    let anonymous: libc::c_long = 0;
    // SAFETY: a null name asks for an anonymous keyring.
    match check(unsafe { libc::syscall(libc::SYS_keyctl, JOIN_SESSION_KEYRING, anonymous) }) {
        Err(e) if e.raw_os_error() != Some(libc::ENOSYS) => Err(e),
        _ => Ok(()),
    }
}
