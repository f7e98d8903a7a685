//! User namespaces that only translate ids for a mount (mount_setattr(2)).

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use orch_wire::rootfs::IdMap;
use rustix::fs::{CWD, Mode, OFlags, openat};

use crate::syscall::check;

/// A user namespace with this map. Nothing ever runs in it: the process that
/// made it is ended as soon as the namespace is held by its descriptor.
pub fn namespace(map: &IdMap) -> io::Result<OwnedFd> {
    // SAFETY: without CLONE_VM and with a null stack this is a plain fork of a
    // single-threaded process.
    let pid = check(unsafe {
        libc::syscall(
            libc::SYS_clone,
            libc::CLONE_NEWUSER | libc::SIGCHLD,
            0,
            0,
            0,
            0,
        )
    })?;
    if pid == 0 {
        loop {
            // SAFETY: waits for the SIGKILL below, or for the death of the parent.
            unsafe {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
                libc::pause();
            }
        }
    }
    let result = mapped(pid, map);
    if let Ok(pid) = libc::pid_t::try_from(pid) {
        // SAFETY: the child is ours and not reaped yet.
        unsafe {
            libc::kill(pid, libc::SIGKILL);
            libc::waitpid(pid, std::ptr::null_mut(), 0);
        }
    }
    result
}

fn mapped(pid: i64, map: &IdMap) -> io::Result<OwnedFd> {
    let line = |disk: u32, host: u32| format!("{disk} {host} {}", map.count);
    std::fs::write(
        format!("/proc/{pid}/uid_map"),
        line(map.disk_uid, map.host_uid),
    )?;
    std::fs::write(
        format!("/proc/{pid}/gid_map"),
        line(map.disk_gid, map.host_gid),
    )?;
    Ok(openat(
        CWD,
        format!("/proc/{pid}/ns/user"),
        OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )?)
}

/// Layout of `struct mount_attr`.
#[repr(C)]
struct MountAttr {
    set: u64,
    clear: u64,
    propagation: u64,
    userns: u64,
}

/// Sets flags, and ids where given, on a mount that is not attached yet.
pub fn restrict(mount: &OwnedFd, set: u64, userns: Option<&OwnedFd>) -> io::Result<()> {
    const MOUNT_ATTR_IDMAP: u64 = 0x0010_0000;
    let attr = MountAttr {
        set: set | userns.map_or(0, |_| MOUNT_ATTR_IDMAP),
        clear: 0,
        propagation: 0,
        userns: userns.map_or(0, |fd| u64::try_from(fd.as_raw_fd()).unwrap_or(0)),
    };
    // SAFETY: the structure has the layout and size of mount_setattr(2), and the
    // descriptors are open.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            &raw const attr,
            size_of::<MountAttr>(),
        )
    })
    .map(drop)
}
