//! Mounts of a lease, through the file-descriptor calls (fsopen(2), mount_setattr(2)).

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::fs::{AtFlags, CWD, FileType, Mode};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags,
    OpenTreeFlags, UnmountFlags, fsconfig_create, fsconfig_set_string, fsmount, fsopen,
    mount_change, move_mount, open_tree, unmount,
};

/// What every mount has: no setuid bit and no device means anything in it.
const PLAIN: MountAttrFlags =
    MountAttrFlags::MOUNT_ATTR_NOSUID.union(MountAttrFlags::MOUNT_ATTR_NODEV);
const NOEXEC: MountAttrFlags = PLAIN.union(MountAttrFlags::MOUNT_ATTR_NOEXEC);
const SEALED: MountAttrFlags = NOEXEC.union(MountAttrFlags::MOUNT_ATTR_RDONLY);

/// A file system that is not attached anywhere yet.
fn make(kind: &str, options: &[(&str, String)], attr: MountAttrFlags) -> io::Result<OwnedFd> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in options {
        fsconfig_set_string(context.as_fd(), *key, value)?;
    }
    fsconfig_create(context.as_fd())?;
    Ok(fsmount(
        context.as_fd(),
        FsMountFlags::FSMOUNT_CLOEXEC,
        attr,
    )?)
}

/// An in-memory file system.
pub fn tmpfs(size: u64, inodes: u64, mode: u32, exec: bool) -> io::Result<OwnedFd> {
    sized(size, inodes, mode, if exec { PLAIN } else { NOEXEC })
}

fn sized(size: u64, inodes: u64, mode: u32, attr: MountAttrFlags) -> io::Result<OwnedFd> {
    make(
        "tmpfs",
        &[
            ("size", size.to_string()),
            ("nr_inodes", inodes.to_string()),
            ("mode", format!("{mode:o}")),
        ],
        attr,
    )
}

/// Attaches a detached mount; the last component of the path is not followed.
pub fn attach(mount: &OwnedFd, path: &[u8]) -> io::Result<()> {
    Ok(move_mount(
        mount.as_fd(),
        c"",
        CWD,
        CString::new(path)?,
        MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH,
    )?)
}

/// Nothing that is mounted here is seen elsewhere, and the other way round (A14).
pub fn make_private() -> io::Result<()> {
    Ok(mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )?)
}

/// A fresh `/proc` of this pid namespace instead of the container's, which is
/// taken away. The new one has to be made first: the kernel only makes one where
/// a whole one can be seen already.
pub fn proc() -> io::Result<()> {
    let fresh = make("proc", &[], NOEXEC)?;
    unmount("/proc", UnmountFlags::DETACH)?;
    attach(&fresh, b"/proc")
}

/// A fresh read-only `/sys`, which shows the devices of this network namespace
/// and not those of the host (FS-09).
pub fn sys() -> io::Result<()> {
    let fresh = make("sysfs", &[], SEALED)?;
    attach(&fresh, b"/sys")
}

/// Terminals of its own, so that no other lease's can be opened. They are
/// devices: the one place where those have to work.
pub fn pts(tty_gid: u32) -> io::Result<()> {
    let options = [
        ("ptmxmode", "0666".into()),
        ("mode", "0620".into()),
        ("gid", tty_gid.to_string()),
        ("max", "64".into()),
    ];
    let attr = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    attach(&make("devpts", &options, attr)?, b"/dev/pts")
}

/// POSIX message queues of its own.
pub fn mqueue() -> io::Result<()> {
    let fresh = make("mqueue", &[], NOEXEC)?;
    attach(&fresh, b"/dev/mqueue")
}

/// Makes each path read-only by mounting it onto itself; absent ones are skipped.
pub fn readonly(paths: &[Vec<u8>]) -> io::Result<()> {
    for path in paths {
        let path = CString::new(path.as_slice())?;
        let tree = match open_tree(
            CWD,
            &path,
            OpenTreeFlags::OPEN_TREE_CLONE
                | OpenTreeFlags::OPEN_TREE_CLOEXEC
                | OpenTreeFlags::AT_SYMLINK_NOFOLLOW,
        ) {
            Ok(tree) => tree,
            Err(Errno::NOENT | Errno::NOTDIR) => continue,
            Err(e) => return Err(e.into()),
        };
        restrict(&tree, SEALED)?;
        attach(&tree, path.as_bytes())?;
    }
    Ok(())
}

/// Hides each path: a directory behind an empty one, anything else behind a null
/// device that cannot be opened (A3: an append has to fail, too); absent ones are
/// skipped (FS-08).
pub fn mask(paths: &[Vec<u8>]) -> io::Result<()> {
    let mut empty = None;
    for path in paths {
        let path = CString::new(path.as_slice())?;
        let stat = match rustix::fs::statat(CWD, &path, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => continue,
            Err(e) => return Err(e.into()),
        };
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            // Before Linux 6.15 only a mount that is attached can be copied: the
            // first path gets the original.
            match &empty {
                Some(attached) => attach(&clone(attached)?, path.as_bytes())?,
                None => {
                    let made = sized(4096, 2, 0o555, SEALED)?;
                    attach(&made, path.as_bytes())?;
                    empty = Some(made);
                }
            }
        } else {
            let null = open_tree(
                CWD,
                c"/dev/null",
                OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC,
            )?;
            restrict(&null, SEALED)?;
            attach(&null, path.as_bytes())?;
        }
    }
    Ok(())
}

/// Sets flags on a mount that is not attached yet (mount_setattr(2)).
fn restrict(mount: &OwnedFd, attr: MountAttrFlags) -> io::Result<()> {
    #[repr(C)]
    struct MountAttr {
        set: u64,
        clear: u64,
        propagation: u64,
        userns: u64,
    }
    let attr = MountAttr {
        set: u64::from(attr.bits()),
        clear: 0,
        propagation: 0,
        userns: 0,
    };
    // SAFETY: the structure has the layout and the size that mount_setattr(2)
    // asks for, and the descriptor is open.
    crate::syscall::check(unsafe {
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

fn clone(mount: &OwnedFd) -> io::Result<OwnedFd> {
    Ok(open_tree(
        mount.as_fd(),
        c"",
        OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_EMPTY_PATH,
    )?)
}

/// A directory with exactly these bits and owner.
pub fn directory(path: &[u8], mode: u32, uid: u32, gid: u32) -> io::Result<()> {
    let path = CString::new(path)?;
    match rustix::fs::mkdir(&path, Mode::from_raw_mode(mode)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(e) => return Err(e.into()),
    }
    rustix::fs::chmod(&path, Mode::from_raw_mode(mode))?;
    rustix::fs::chown(
        &path,
        Some(rustix::fs::Uid::from_raw(uid)),
        Some(rustix::fs::Gid::from_raw(gid)),
    )?;
    Ok(())
}
