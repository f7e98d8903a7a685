//! One forked process that makes one container with libcontainer.
//!
//! Everything that libcontainer keeps (bundle, state, notify socket) lies on an
//! in-memory file system in a mount namespace of the worker's own, so that it is
//! gone with the worker, whatever happens (docs/decisions/0004-create.md).

use std::convert::Infallible;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::rc::Rc;
use std::time::Instant;

use libcontainer::container::builder::ContainerBuilder;
use libcontainer::syscall::syscall::SyscallType;
use libcontainer::workload::{
    Executor, ExecutorError, ExecutorSetEnvsError, ExecutorValidationError,
};
use oci_spec::runtime::Spec;
use orch_wire::launch::{Create, Failure, ROOTFS, USER_NAMESPACE_FD};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, mkdirat, open, openat, openat2};
use rustix::mount::{MountPropagationFlags, UnmountFlags, mount_change, open_tree, unmount};
use rustix::process::{chdir, fchdir, pivot_root};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use crate::abandoned;
use crate::failure::During;
use crate::rootfs;
use crate::rootless::Privilege;
use crate::syscall::check;

/// Where the guest finds its control socket.
const CONTROL_FD: i32 = 3;
/// Any directory does that every host has and nobody can replace by a link.
const STAGE: &str = "/proc";

/// Host process id of the guest, and how long each stage took, microseconds.
pub type Made = (i32, Vec<(String, u64)>);

/// Enters the cgroup namespace of the container, where it has one already.
///
/// # Errors
/// What setns(2) says.
pub fn enter(namespace: Option<&OwnedFd>) -> Result<(), Failure> {
    namespace.map_or(Ok(()), |namespace| {
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::ControlGroup))
            .during(|| "enter the cgroup namespace".to_owned())
    })
}

/// Makes the container and starts its guest.
///
/// # Errors
/// The step that failed; whatever had been started is ended by then.
pub fn create(
    create: &Create,
    guest: &OwnedFd,
    control: OwnedFd,
    sources: &[OwnedFd],
    privilege: Privilege,
) -> Result<Made, Failure> {
    let mut clock = Clock::start();
    if privilege == Privilege::Namespace {
        // The files of libcontainer's children would not be this one's otherwise.
        // SAFETY: plain numbers.
        check(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0) }.into())
            .during(|| "prepare the worker".to_owned())?;
    }
    // A group of the caller may be what opens the way to a source.
    let taken = rootfs::take_sources(create, sources, privilege)?;
    give_up_groups().during(|| "give up supplementary groups".to_owned())?;
    let sys = rootfs::take_sys(privilege)?;
    stage(privilege).during(|| "enter a mount namespace".to_owned())?;
    let (bundle, root) = (Path::new("/bundle"), Path::new(ROOTFS));
    for dir in [bundle, root] {
        std::fs::create_dir(dir).during(|| format!("make {}", dir.display()))?;
    }
    std::fs::write(bundle.join("config.json"), &create.config)
        .during(|| "write config.json".to_owned())?;
    let top = root_file_system(create, root).during(|| "make the root".to_owned())?;
    let late = rootfs::build(&top, create, taken, sys, privilege)?;
    drop(top);
    if privilege == Privilege::Namespace {
        user_namespace().during(|| "make the container's user namespace".to_owned())?;
    }
    clock.lap("rootfs");

    let executor = Guest {
        program: guest.as_raw_fd(),
        control: control.as_raw_fd(),
        filter: create.guest_filter.clone().into(),
        late: late.into(),
    };
    let mut container = ContainerBuilder::new(create.id.clone(), SyscallType::default())
        .with_executor(executor)
        .with_root_path("/state")
        .map_err(|e| runtime("prepare the container", e))?
        .as_init(bundle)
        .with_systemd(false)
        .with_detach(true)
        .build()
        .map_err(|e| runtime("create the container", e))?;
    remove_kcore(root).during(|| "take /dev/kcore away".to_owned())?;
    clock.lap("create");
    container
        .start()
        .map_err(|e| runtime("start the container", e))?;
    let pid = container
        .pid()
        .map(|pid| pid.as_raw())
        .ok_or(io::Error::from_raw_os_error(libc::ESRCH))
        .during(|| "find the guest".to_owned())?;
    clock.lap("start");
    Ok((pid, clock.laps))
}

/// Of the launcher's own ids: libcontainer maps more than one range of them only by
/// newuidmap(1), and takes setgroups(2) away.
fn user_namespace() -> io::Result<()> {
    let made = crate::idmap::same()?;
    // SAFETY: plain descriptors; the number is that of nothing else, because the
    // launcher has reserved it (`rootless::enter`).
    check(unsafe { libc::dup3(made.as_raw_fd(), USER_NAMESPACE_FD, libc::O_CLOEXEC) }.into())
        .map(drop)
}

/// libcontainer makes this link where the host's kernel has `/proc/kcore`. Only the
/// usual devices are to be there (A21), and in here the root can still be written.
fn remove_kcore(root: &Path) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let dev = open(root.join("dev"), flags, Mode::empty())?;
    match rustix::fs::unlinkat(&dev, "kcore", rustix::fs::AtFlags::empty()) {
        Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

/// Whoever starts orch may be in groups of the host; a container is in none (H16).
fn give_up_groups() -> io::Result<()> {
    // SAFETY: an empty list needs no memory.
    check(unsafe { libc::syscall(libc::SYS_setgroups, 0, std::ptr::null::<u32>()) }).map(drop)
}

fn runtime(step: &str, error: impl std::error::Error) -> Failure {
    let mut cause = error.to_string();
    let mut inner = error.source();
    while let Some(e) = inner {
        let text = e.to_string();
        if !cause.ends_with(&text) {
            cause = format!("{cause}: {text}");
        }
        inner = e.source();
    }
    Failure {
        step: step.to_owned(),
        cause,
        errno: None,
    }
}

/// A small world for this process: a mount namespace whose root is an empty file
/// system with the host's `/proc` and `/dev` and nothing else. libcontainer reads
/// the table of mounts often and copies it with every namespace, so a short one
/// makes it faster on hosts with many. Control groups are not to be seen in it.
fn stage(privilege: Privilege) -> io::Result<()> {
    // SAFETY: this process has a single thread and shares nothing that the flag
    // takes apart.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS)? };
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )?;
    let kept = ["proc", "dev"];
    let mut trees = Vec::new();
    for name in kept {
        trees.push(open_tree(
            CWD,
            format!("/{name}"),
            rootfs::whole(privilege),
        )?);
    }
    let world = rootfs::tmpfs(&[("mode", "0711".into()), ("size", "16m".into())])?;
    rootfs::attach(
        &world,
        open(STAGE, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?.as_fd(),
    )?;
    for (name, tree) in kept.into_iter().zip(&trees) {
        mkdirat(&world, name, Mode::from_raw_mode(0o755))?;
        let target = openat(&world, name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        rootfs::attach(tree, target.as_fd())?;
    }
    fchdir(&world)?;
    // The old root is under the new one for a moment (pivot_root(2), NOTES).
    pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    Ok(chdir("/")?)
}

/// The file system that becomes `/`, owned by root of the container.
fn root_file_system(create: &Create, path: &Path) -> io::Result<OwnedFd> {
    let made = rootfs::tmpfs(&[
        ("mode", "0755".into()),
        ("uid", create.host_id.to_string()),
        ("gid", create.host_id.to_string()),
        ("size", create.root_bytes.to_string()),
        ("nr_inodes", create.root_inodes.to_string()),
    ])?;
    rootfs::attach(
        &made,
        open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?.as_fd(),
    )?;
    Ok(openat(
        CWD,
        path,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?)
}

struct Clock {
    last: Instant,
    laps: Vec<(String, u64)>,
}

impl Clock {
    fn start() -> Self {
        Self {
            last: Instant::now(),
            laps: Vec::new(),
        }
    }

    fn lap(&mut self, name: &str) {
        let us = u64::try_from(self.last.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.laps.push((name.to_owned(), us));
        self.last = Instant::now();
    }
}

/// What libcontainer runs as PID 1: the sealed guest, straight from memory, so
/// that no file of any image is it and no file system holds it.
#[derive(Clone)]
struct Guest {
    program: i32,
    control: i32,
    filter: Rc<[u8]>,
    late: Rc<[(CString, OwnedFd)]>,
}

impl Executor for Guest {
    fn exec(&self, _: &Spec) -> Result<(), ExecutorError> {
        match self.become_guest() {
            Ok(never) => match never {},
            Err(e) => Err(ExecutorError::Execution(Box::new(e))),
        }
    }

    /// The last that is asked of it before it waits to be started.
    fn validate(&self, _: &Spec) -> Result<(), ExecutorValidationError> {
        abandoned::end_with(self.control)
            .map_err(|e| ExecutorValidationError::ArgValidationError(e.to_string()))
    }

    /// Nothing to set: the environment of the launcher is empty, and the guest
    /// takes none. The default would look at each variable as UTF-8 (H15).
    fn setup_envs(
        &self,
        _: std::collections::HashMap<String, String>,
    ) -> Result<(), ExecutorSetEnvsError> {
        Ok(())
    }
}

impl Guest {
    fn become_guest(&self) -> io::Result<Infallible> {
        let argv = [c"orch-guest".as_ptr(), std::ptr::null()];
        let env = [std::ptr::null::<libc::c_char>()];
        let null = open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        // SAFETY: plain descriptors; what is replaced is the worker's copy of them.
        unsafe {
            for stream in 0..3 {
                check(libc::dup2(null.as_raw_fd(), stream).into())?;
            }
            if self.control == CONTROL_FD {
                check(libc::fcntl(CONTROL_FD, libc::F_SETFD, 0).into())?;
            } else {
                check(libc::dup2(self.control, CONTROL_FD).into())?;
            }
        }
        for (path, tree) in self.late.iter() {
            // The root is this one's by now, and its own mounts are all there is.
            let target = openat2(
                CWD,
                path,
                OFlags::PATH | OFlags::CLOEXEC,
                Mode::empty(),
                ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS,
            )?;
            rootfs::attach(tree, target.as_fd())?;
        }
        abandoned::started(CONTROL_FD)?;
        load(&self.filter)?;
        // SAFETY: null-terminated arrays of null-terminated strings.
        check(unsafe {
            libc::syscall(
                libc::SYS_execveat,
                self.program,
                c"".as_ptr(),
                argv.as_ptr(),
                env.as_ptr(),
                libc::AT_EMPTY_PATH,
            )
        })?;
        Err(io::Error::from_raw_os_error(libc::ENOEXEC))
    }
}

/// Loads the guest's own filter; without it nothing is executed (H3).
fn load(program: &[u8]) -> io::Result<()> {
    let mut instructions: Vec<libc::sock_filter> = program
        .chunks_exact(size_of::<libc::sock_filter>())
        .map(|c| libc::sock_filter {
            code: u16::from_le_bytes([c[0], c[1]]),
            jt: c[2],
            jf: c[3],
            k: u32::from_le_bytes([c[4], c[5], c[6], c[7]]),
        })
        .collect();
    let fprog = libc::sock_fprog {
        len: u16::try_from(instructions.len()).unwrap_or(0),
        filter: instructions.as_mut_ptr(),
    };
    // SAFETY: `fprog` points at `len` instructions that outlive both calls.
    unsafe {
        check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0).into())?;
        check(libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            0,
            &raw const fprog,
        ))?;
    }
    Ok(())
}
