//! What this kernel lets orch do, asked with arguments that change nothing.
//!
//! A version number says what Linux had when it was released: not what a
//! distribution added, a security module forbids or a filter around this process
//! answers. So the call itself is asked where that is cheap and safe.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::CWD;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, OpenTreeFlags, fsconfig_create, fsconfig_set_string,
    fsmount, fsopen, open_tree,
};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::ending;

/// The namespaces of a sandbox: name in `/proc/self/ns`, and flag (clone(2)).
pub const NAMESPACES: [(&str, i32); 7] = [
    ("user", libc::CLONE_NEWUSER),
    ("mnt", libc::CLONE_NEWNS),
    ("pid", libc::CLONE_NEWPID),
    ("net", libc::CLONE_NEWNET),
    ("ipc", libc::CLONE_NEWIPC),
    ("uts", libc::CLONE_NEWUTS),
    ("cgroup", libc::CLONE_NEWCGROUP),
];

/// `CLONE_INTO_CGROUP`, clone(2).
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
/// `MOUNT_ATTR_IDMAP`, mount_setattr(2).
const MOUNT_ATTR_IDMAP: u64 = 0x0010_0000;
/// A number that no flag, file descriptor or operation has.
const WRONG: i64 = 0x7fff_fff0;

/// A system call, and what it said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Its name.
    pub name: &'static str,
    /// Error number; 0 for success.
    pub errno: i32,
    /// Whether a kernel that has it, and lets this process use it, says that.
    pub there: bool,
}

/// Asks every system call that making a sandbox takes and that a filter around
/// orch, or an old kernel, may not have.
///
/// Each gets arguments that it refuses before it looks further; what is expected is
/// that refusal. `ENOSYS`, `EPERM` and a success that cannot be are not.
#[must_use]
pub fn calls() -> Vec<Asked> {
    use libc::{EBADF, EFAULT, EINVAL};
    let none = [0; 6];
    let first = |value: i64| [value, 0, 0, 0, 0, 0];
    let ask = |name, number, arguments: [i64; 6], expected: i32| {
        let errno = raw(number, arguments);
        Asked {
            name,
            errno,
            there: errno == expected,
        }
    };
    vec![
        ask("clone3", libc::SYS_clone3, none, EINVAL),
        ask("unshare", libc::SYS_unshare, none, 0),
        ask("setns", libc::SYS_setns, first(-1), EBADF),
        ask("mount", libc::SYS_mount, none, EFAULT),
        ask("umount2", libc::SYS_umount2, [0, WRONG, 0, 0, 0, 0], EINVAL),
        ask("pivot_root", libc::SYS_pivot_root, none, EFAULT),
        ask(
            "open_tree",
            libc::SYS_open_tree,
            [-1, 0, WRONG, 0, 0, 0],
            EINVAL,
        ),
        ask(
            "move_mount",
            libc::SYS_move_mount,
            [-1, 0, -1, 0, WRONG, 0],
            EINVAL,
        ),
        ask("mount_setattr", libc::SYS_mount_setattr, first(-1), EINVAL),
        ask("fsopen", libc::SYS_fsopen, [0, WRONG, 0, 0, 0, 0], EINVAL),
        ask("openat2", libc::SYS_openat2, first(-1), EINVAL),
        ask("pidfd_open", libc::SYS_pidfd_open, first(-1), EINVAL),
        ask(
            "close_range",
            libc::SYS_close_range,
            [1, 0, 0, 0, 0, 0],
            EINVAL,
        ),
        ask(
            "memfd_create",
            libc::SYS_memfd_create,
            [0, WRONG, 0, 0, 0, 0],
            EINVAL,
        ),
        ask("execveat", libc::SYS_execveat, [-1, 0, 0, 0, 0, 0], EFAULT),
        keyctl(raw(libc::SYS_keyctl, first(WRONG))),
        ask("setresuid", libc::SYS_setresuid, [-1, -1, -1, 0, 0, 0], 0),
        seccomp(),
    ]
}

/// A kernel without keys has none that could be shared; only one that has them and
/// refuses them is in the way.
fn keyctl(errno: i32) -> Asked {
    Asked {
        name: "keyctl",
        errno,
        there: [libc::EOPNOTSUPP, libc::ENOSYS].contains(&errno),
    }
}

/// The error number of a call, 0 where it says that it succeeded.
fn raw(number: i64, a: [i64; 6]) -> i32 {
    // SAFETY: the calls above get no pointer but null, and numbers that each of
    // them refuses, or that ask for no change at all.
    let result = unsafe { libc::syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]) };
    if result >= 0 { 0 } else { errno() }
}

fn errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(-1)
}

/// Whether filters can answer with an error (`SECCOMP_GET_ACTION_AVAIL`).
fn seccomp() -> Asked {
    let action = libc::SECCOMP_RET_ERRNO;
    let operation = libc::SECCOMP_GET_ACTION_AVAIL;
    // SAFETY: the kernel reads one number, which outlives the call.
    let result = unsafe { libc::syscall(libc::SYS_seccomp, operation, 0, &raw const action) };
    Asked {
        name: "seccomp",
        errno: if result == 0 { 0 } else { errno() },
        there: result == 0,
    }
}

/// Whether a process can be cloned into a group (Linux 5.7): the descriptor that is
/// named is none, so there never is a process.
#[must_use]
pub fn clone_into_cgroup() -> bool {
    // SAFETY: `clone_args` is plain numbers, for which zero means "not given".
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.flags = CLONE_INTO_CGROUP;
    args.exit_signal = u64::try_from(libc::SIGCHLD).unwrap_or(0);
    args.cgroup = u64::try_from(i32::MAX).unwrap_or(0);
    let size = size_of::<libc::clone_args>();
    // SAFETY: the kernel looks the descriptor up before anything of the new process
    // runs, and fails; a success could only be a filter's, and nothing is done then.
    let result = unsafe { libc::syscall(libc::SYS_clone3, &raw const args, size) };
    result < 0 && errno() == libc::EBADF
}

/// Tries to make each namespace; the error number of each, 0 for those that can be.
///
/// As root each is made by itself, as another user inside a new user namespace.
#[must_use]
pub fn namespaces() -> Vec<(&'static str, i32)> {
    let user = if rustix::process::geteuid().is_root() {
        0
    } else {
        libc::CLONE_NEWUSER
    };
    NAMESPACES
        .iter()
        .map(|(name, flag)| {
            let errno = match Child::start(flag | user) {
                Ok(_) => 0,
                Err(e) => e.raw_os_error().unwrap_or(-1),
            };
            (*name, errno)
        })
        .collect()
}

/// A user namespace that shows the ids from 0 on as those from `first` on; nothing
/// runs in it.
///
/// # Errors
/// What clone(2) or user_namespaces(7) says.
pub fn id_map(first: u32, count: u32) -> io::Result<OwnedFd> {
    let child = Child::start(libc::CLONE_NEWUSER)?;
    let pid = child.0.as_raw_nonzero();
    for file in ["uid_map", "gid_map"] {
        std::fs::write(format!("/proc/{pid}/{file}"), format!("0 {first} {count}"))?;
    }
    Ok(std::fs::File::open(format!("/proc/{pid}/ns/user"))?.into())
}

/// Whether what a handle leads to can be shown with other owners.
///
/// The copy of the mount is attached nowhere and gone with its descriptor.
///
/// # Errors
/// What open_tree(2) or mount_setattr(2) says; `EINVAL` where the file system cannot.
pub fn id_mapped(handle: BorrowedFd<'_>, map: &OwnedFd) -> io::Result<OwnedFd> {
    let tree = open_tree(
        handle,
        c"",
        OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_EMPTY_PATH,
    )?;
    set_map(&tree, map)?;
    Ok(tree)
}

/// Whether an in-memory file system can be (Linux 6.3).
///
/// # Errors
/// As [`id_mapped`].
pub fn id_mapped_tmpfs(map: &OwnedFd) -> io::Result<()> {
    let context = fsopen(c"tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&context, c"size", c"4096")?;
    fsconfig_create(&context)?;
    let mount = fsmount(
        &context,
        FsMountFlags::FSMOUNT_CLOEXEC,
        MountAttrFlags::MOUNT_ATTR_RDONLY,
    )?;
    set_map(&mount, map)
}

/// Whether an overlay can lie on layers that are (Linux 5.19): two copies of `/`,
/// read-only, attached nowhere. Asked only where overlays are known already, so that
/// no module is loaded for it.
///
/// # Errors
/// As [`id_mapped`]; where `/` itself cannot be, nothing is known about overlays.
pub fn id_mapped_overlay(map: &OwnedFd) -> io::Result<()> {
    let root = open_tree(CWD, c"/", OpenTreeFlags::OPEN_TREE_CLOEXEC)?;
    let layers = [id_mapped(root.as_fd(), map)?, id_mapped(root.as_fd(), map)?];
    let below = |layer: &OwnedFd, name: &str| format!("/proc/self/fd/{}/{name}", layer.as_raw_fd());
    let context = fsopen(c"overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    // Layers may not lie within one another.
    let lower = format!("{}:{}", below(&layers[0], "usr"), below(&layers[1], "etc"));
    fsconfig_set_string(&context, c"lowerdir", lower)?;
    fsconfig_create(&context)?;
    Ok(())
}

fn set_map(mount: &OwnedFd, map: &OwnedFd) -> io::Result<()> {
    /// Layout of `struct mount_attr`.
    #[repr(C)]
    struct MountAttr {
        set: u64,
        clear: u64,
        propagation: u64,
        userns: u64,
    }
    let attr = MountAttr {
        set: MOUNT_ATTR_IDMAP,
        clear: 0,
        propagation: 0,
        userns: u64::try_from(map.as_raw_fd()).unwrap_or(0),
    };
    // SAFETY: the structure has the layout and size of mount_setattr(2), and the
    // descriptors are open.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            &raw const attr,
            size_of::<MountAttr>(),
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Whether the kernel keeps the exit code of a process that is gone (Linux 6.15):
/// one is started and ended for it. `None` where that could not be tried.
#[must_use]
pub fn exit_code() -> Option<bool> {
    let child = Child::start(0).ok()?;
    let pidfd = pidfd_open(child.0, PidfdFlags::empty()).ok()?;
    drop(child);
    Some(ending::from_kernel(&pidfd) == Some(libc::SIGKILL))
}

/// Whether somebody corrects the clock (adjtimex(2)); `None` where it cannot be asked.
#[must_use]
pub fn clock_is_corrected() -> Option<bool> {
    // SAFETY: all zeroes is a valid `timex`; with no mode set the call only reads.
    let state = unsafe {
        let mut timex: libc::timex = std::mem::zeroed();
        libc::adjtimex(&raw mut timex)
    };
    (state >= 0).then_some(state != libc::TIME_ERROR)
}

/// A process that waits; ended and reaped with this.
struct Child(Pid);

impl Child {
    fn start(flags: i32) -> io::Result<Self> {
        const NOBODY: libc::pid_t = -1;
        let mut own = NOBODY;
        let flags = i64::from(flags | libc::CLONE_CHILD_SETTID | libc::SIGCHLD);
        // SAFETY: without CLONE_VM and with a null stack this is a fork; the kernel
        // writes the number of the child into the child's copy of `own` alone.
        let pid = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, &raw mut own, 0) };
        // SAFETY: a plain read; the compiler cannot know that the kernel wrote it.
        if pid == 0 && unsafe { std::ptr::read_volatile(&raw const own) } != NOBODY {
            loop {
                // SAFETY: plain numbers; waits for the SIGKILL of whoever made it.
                unsafe {
                    libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
                    libc::pause();
                }
            }
        }
        if pid < 0 {
            return Err(io::Error::last_os_error());
        }
        // A filter that claims success has made no child.
        i32::try_from(pid)
            .ok()
            .and_then(Pid::from_raw)
            .map(Self)
            .ok_or_else(|| io::Error::from_raw_os_error(libc::ENOSYS))
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let pid = self.0.as_raw_nonzero().get();
        // SAFETY: plain numbers and no status; the child is ours and not reaped yet.
        unsafe {
            libc::kill(pid, libc::SIGKILL);
            libc::waitpid(pid, std::ptr::null_mut(), 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every other test of this crate that makes no sandbox needs these too.
    #[test]
    fn calls_that_need_no_privilege_are_there() {
        let privileged = [
            "mount",
            "umount2",
            "pivot_root",
            "move_mount",
            "fsopen",
            "mount_setattr",
        ];
        let root = rustix::process::geteuid().is_root();
        for asked in calls() {
            if root || !privileged.contains(&asked.name) {
                assert!(asked.there, "{asked:?}");
            }
        }
        assert!(clone_into_cgroup());
    }

    #[test]
    fn keys_may_be_absent_but_not_refused() {
        assert!(keyctl(libc::EOPNOTSUPP).there && keyctl(libc::ENOSYS).there);
        assert!(!keyctl(libc::EPERM).there && !keyctl(0).there);
    }

    #[test]
    fn a_call_that_does_not_exist_is_not_there() {
        assert_eq!(raw(100_000, [0; 6]), libc::ENOSYS);
    }

    #[test]
    fn children_are_gone_with_their_handle() {
        let child = Child::start(0).unwrap();
        let proc = format!("/proc/{}", child.0.as_raw_nonzero());
        assert!(std::fs::exists(&proc).unwrap());
        drop(child);
        assert!(!std::fs::exists(&proc).unwrap());
    }
}
