//! User namespaces that only translate ids for a mount (mount_setattr(2)).

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use orch_wire::rootfs::IdMap;

use crate::holder;
use crate::syscall::check;

/// A user namespace with this map. Nothing ever runs in it: the process that
/// made it is ended as soon as the namespace is held by its descriptor.
pub fn namespace(map: &IdMap) -> io::Result<OwnedFd> {
    let line = |disk: u32, host: u32| format!("{disk} {host} {}", map.count);
    with_maps(
        &line(map.disk_uid, map.host_uid),
        &line(map.disk_gid, map.host_gid),
    )
}

/// A user namespace that has the ids of this process's own, one to one.
pub fn same() -> io::Result<OwnedFd> {
    with_maps(
        &identity("/proc/self/uid_map")?,
        &identity("/proc/self/gid_map")?,
    )
}

/// A range of a map has to lie within one range of the map above it.
fn identity(file: &str) -> io::Result<String> {
    let text = std::fs::read_to_string(file)?;
    let lines = text.lines().filter_map(|line| {
        let mut fields = line.split_whitespace();
        let (inside, count) = (fields.next()?, fields.nth(1)?);
        Some(format!("{inside} {inside} {count}\n"))
    });
    Ok(lines.collect())
}

fn with_maps(uids: &str, gids: &str) -> io::Result<OwnedFd> {
    let fork = || {
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
        i32::try_from(pid).map_err(io::Error::other)
    };
    holder::hold(fork, "user", |pid| {
        std::fs::write(format!("/proc/{pid}/uid_map"), uids)?;
        std::fs::write(format!("/proc/{pid}/gid_map"), gids)
    })
}

/// Layout of `struct mount_attr`.
#[repr(C)]
struct MountAttr {
    set: u64,
    clear: u64,
    propagation: u64,
    userns: u64,
}

/// Whatever is mounted below: nothing, but where it could not be taken away.
const AT_RECURSIVE: libc::c_int = 0x8000;

/// Sets flags, and ids where given, on a mount that is not attached yet, and takes it out
/// of the group of its original: what is mounted on a copy would be mounted there as well,
/// where hosts share mounts as those of systemd do (mount_namespaces(7)).
pub fn restrict(mount: &OwnedFd, set: u64, userns: Option<&OwnedFd>) -> io::Result<()> {
    const MOUNT_ATTR_IDMAP: u64 = 0x0010_0000;
    let attr = MountAttr {
        set: set | userns.map_or(0, |_| MOUNT_ATTR_IDMAP),
        clear: 0,
        propagation: libc::MS_PRIVATE,
        userns: userns.map_or(0, |fd| u64::try_from(fd.as_raw_fd()).unwrap_or(0)),
    };
    // SAFETY: the structure has the layout and size of mount_setattr(2), and the
    // descriptors are open.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | AT_RECURSIVE,
            &raw const attr,
            size_of::<MountAttr>(),
        )
    })
    .map(drop)
}
