//! A container's root, put together beneath a directory that nobody else sees.

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use orch_wire::launch::{Create, Failure};
use orch_wire::rootfs::{Entry, MountFlags};
use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, ResolveFlags, Uid, chownat, fstat, mkdirat, openat,
    openat2, symlinkat,
};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
    fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
};

use crate::failure::During;
use crate::idmap;
use crate::rootless::{self, Privilege};

/// Copies the mounts that are to be bound, while this process is still in the
/// mount namespace that they belong to.
///
/// # Errors
/// The step and errno.
pub fn take_sources(
    create: &Create,
    sources: &[OwnedFd],
    privilege: Privilege,
) -> Result<Vec<Taken>, Failure> {
    let (mut taken, mut late) = (Vec::new(), false);
    for entry in &create.entries {
        let Entry::Bind {
            source,
            path,
            flags,
            idmap,
        } = entry
        else {
            continue;
        };
        let during = || format!("take the source of {}", show(path));
        let source = usize::try_from(*source)
            .ok()
            .and_then(|index| sources.get(index))
            .ok_or(Errno::BADF)
            .during(during)?;
        let tree = match privilege {
            Privilege::Host => copy(source, OpenTreeFlags::empty()),
            Privilege::Namespace => rootless::reopen(source).and_then(|own| {
                copy(&own, OpenTreeFlags::empty()).or_else(|e| {
                    // Something is mounted below, which the kernel does not take
                    // apart here. Read-only, all of it can be shown that is the caller's.
                    if flags.readonly && e.raw_os_error() == Some(libc::EINVAL) {
                        rootless::check_below(&own)?;
                        copy(&own, OpenTreeFlags::AT_RECURSIVE)
                    } else {
                        Err(e)
                    }
                })
            }),
        }
        .during(during)?;
        let userns = idmap
            .as_ref()
            .map(idmap::namespace)
            .transpose()
            .during(|| format!("make the id map of {}", show(path)))?;
        idmap::restrict(&tree, attributes(*flags), userns.as_ref()).during(|| match &userns {
            Some(_) => format!("translate the owners of {}", show(path)),
            None => format!("set the flags of {}", show(path)),
        })?;
        let root =
            std::fs::read_link(format!("/proc/self/fd/{}", source.as_raw_fd())).during(during)?;
        // Either of them would stand in the table of mounts.
        // And whatever follows one comes after it, in case it lies within.
        late |= std::str::from_utf8(path).is_err() || root.to_str().is_none();
        taken.push(Taken { tree, late });
    }
    Ok(taken)
}

fn copy(source: &OwnedFd, more: OpenTreeFlags) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH;
    Ok(open_tree(source.as_fd(), c"", flags | more)?)
}

/// How one of the kernel's own trees is copied: by itself, or, where what is mounted
/// on it cannot be taken away, with that.
pub fn whole(privilege: Privilege) -> OpenTreeFlags {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    match privilege {
        Privilege::Host => flags,
        Privilege::Namespace => flags | OpenTreeFlags::AT_RECURSIVE,
    }
}

/// A mount that is to be bound.
pub struct Taken {
    tree: OwnedFd,
    /// Whether it is to be attached when libcontainer has read the table of mounts
    /// for the last time: it refuses one with a name that is not UTF-8.
    late: bool,
}

/// What is attached at last, from inside the container: path and mount.
pub type Late = Vec<(CString, OwnedFd)>;

/// The host's `/sys` without anything mounted below it. The kernel lets a lease
/// mount one of its own, which shows its own devices, only where a whole one can
/// be seen already; that one covers this.
///
/// # Errors
/// The step and errno.
pub fn take_sys(privilege: Privilege) -> Result<OwnedFd, Failure> {
    let during = || "take /sys".to_owned();
    let tree = open_tree(rustix::fs::CWD, c"/sys", whole(privilege)).during(during)?;
    let flags = MountFlags {
        readonly: true,
        noexec: true,
    };
    idmap::restrict(&tree, attributes(flags), None).during(during)?;
    Ok(tree)
}

fn attributes(flags: MountFlags) -> u64 {
    let mut set = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    if flags.readonly {
        set |= MountAttrFlags::MOUNT_ATTR_RDONLY;
    }
    if flags.noexec {
        set |= MountAttrFlags::MOUNT_ATTR_NOEXEC;
    }
    u64::from(set.bits())
}

/// Does every step in order.
///
/// What is made belongs to root of the container from the start: the file-system
/// ids of this process are those (setfsuid(2)) as long as it makes something.
///
/// # Errors
/// The step and errno of the first one that failed.
pub fn build(
    root: &OwnedFd,
    create: &Create,
    sources: Vec<Taken>,
    sys: OwnedFd,
    privilege: Privilege,
) -> Result<Late, Failure> {
    file_system_ids(create.host_id);
    let built = steps(root, create, sources, sys, privilege);
    file_system_ids(0);
    built
}

/// Cannot fail for a process that is root; anybody else's files would show it.
fn file_system_ids(id: u32) {
    // SAFETY: plain numbers.
    unsafe {
        libc::setfsgid(id);
        libc::setfsuid(id);
    }
}

/// The root that is being put together.
struct Root<'a> {
    dir: &'a OwnedFd,
    /// Devices of the in-memory file systems that were made for it. One that lies
    /// on another is the host's, in-memory or not.
    own: Vec<u64>,
}

fn steps(
    dir: &OwnedFd,
    create: &Create,
    sources: Vec<Taken>,
    sys: OwnedFd,
    privilege: Privilege,
) -> Result<Late, Failure> {
    let mut late = Vec::new();
    let during = || "look at the root".to_owned();
    let mut own = Root {
        dir,
        own: vec![fstat(dir).during(during)?.st_dev],
    };
    let mut handed_over = Vec::new();
    let mut sources = sources.into_iter();
    let point = directory(&own, b"/sys").during(|| "make /sys".to_owned())?;
    match privilege {
        Privilege::Host => attach(&sys, point.as_fd()).during(|| "mount /sys".to_owned())?,
        // It comes with the control groups below it, where libcontainer would want
        // to make one.
        Privilege::Namespace => late.push((c"/sys".to_owned(), sys)),
    }
    let host = |id: u32| create.host_id + id.min(create.ids - 1);
    for entry in &create.entries {
        match entry {
            Entry::Dir { path } => {
                make_directory(&own, path).during(|| format!("make directory {}", show(path)))?;
            }
            Entry::File { path, content } => {
                file(&own, path, content).during(|| format!("write file {}", show(path)))?;
            }
            Entry::Symlink { path, target } => {
                symlink(&own, path, target).during(|| format!("make link {}", show(path)))?;
            }
            Entry::Bind { path, .. } => {
                let during = || format!("mount on {}", show(path));
                let source = sources.next().ok_or(Errno::BADF).during(during)?;
                let target = target(&own, path, &source.tree, create.host_id).during(during)?;
                if source.late {
                    let path = CString::new(path.as_slice()).during(during)?;
                    late.push((path, source.tree));
                } else {
                    attach(&source.tree, target.as_fd()).during(during)?;
                }
            }
            Entry::Tmpfs {
                path,
                size,
                inodes,
                mode,
                uid,
                gid,
            } => {
                let options = [
                    ("size", size.to_string()),
                    ("nr_inodes", inodes.to_string()),
                    ("mode", format!("{mode:o}")),
                    // Until everything in it is made.
                    ("uid", create.host_id.to_string()),
                    ("gid", create.host_id.to_string()),
                ];
                let during = || format!("mount tmpfs on {}", show(path));
                let made = tmpfs(&options).during(during)?;
                directory(&own, path)
                    .and_then(|dir| attach(&made, dir.as_fd()))
                    .during(during)?;
                own.own.push(fstat(&made).during(during)?.st_dev);
                handed_over.push((made, host(*uid), host(*gid)));
            }
        }
    }
    file_system_ids(0);
    for (made, uid, gid) in handed_over {
        chownat(
            &made,
            c"",
            Some(Uid::from_raw(uid)),
            Some(Gid::from_raw(gid)),
            AtFlags::EMPTY_PATH,
        )
        .during(|| "hand a tmpfs over".to_owned())?;
    }
    Ok(late)
}

/// An in-memory file system that is not attached yet.
pub fn tmpfs(options: &[(&str, String)]) -> io::Result<OwnedFd> {
    let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in options {
        fsconfig_set_string(context.as_fd(), *key, value)?;
    }
    fsconfig_create(context.as_fd())?;
    Ok(fsmount(
        context.as_fd(),
        FsMountFlags::FSMOUNT_CLOEXEC,
        MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV,
    )?)
}

/// Attaches a detached mount to an open directory or file.
pub fn attach(mount: &OwnedFd, target: BorrowedFd<'_>) -> io::Result<()> {
    Ok(move_mount(
        mount.as_fd(),
        c"",
        target,
        c"",
        MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH,
    )?)
}

/// Links are never followed, not even ones that stay inside: an image decides
/// what stands there (H5, A3, A6, A7).
const RESOLVE: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS);

fn relative(path: &[u8]) -> PathBuf {
    let path = Path::new(OsStr::from_bytes(path));
    path.strip_prefix("/").unwrap_or(path).to_owned()
}

/// Opens a path beneath the root as a handle for mounting.
fn open(root: &Root<'_>, path: &Path) -> io::Result<OwnedFd> {
    let path = if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    };
    Ok(openat2(
        root.dir,
        path,
        OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
        RESOLVE,
    )?)
}

/// Opens a directory, making it and its parents where they are missing, but only
/// on file systems of the container's own: nothing is ever made in a mounted
/// folder.
fn directory(root: &Root<'_>, path: &[u8]) -> io::Result<OwnedFd> {
    let path = relative(path);
    match open(root, &path) {
        Err(e) if e.raw_os_error() == Some(libc::ENOENT) => {}
        found => return found,
    }
    let mut here = PathBuf::new();
    for part in path.components() {
        let parent = own_file_system(root, &here)?;
        match mkdirat(&parent, part.as_os_str(), Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(e) => return Err(e.into()),
        }
        here.push(part);
    }
    open(root, &path)
}

/// The same without opening it; a name directly below the root needs no look.
fn make_directory(root: &Root<'_>, path: &[u8]) -> io::Result<()> {
    let path = relative(path);
    let mut parts = path.components();
    if let (Some(name), None) = (parts.next(), parts.next()) {
        return match mkdirat(root.dir, name.as_os_str(), Mode::from_raw_mode(0o755)) {
            Ok(()) => Ok(()),
            // What is there may be a link; then it is not what was asked for.
            Err(Errno::EXIST) => directory(root, path.as_os_str().as_bytes()).map(drop),
            Err(e) => Err(e.into()),
        };
    }
    directory(root, path.as_os_str().as_bytes()).map(drop)
}

/// A directory in which something may be made: on a file system that was made for
/// the container. All others are the host's.
fn own_file_system(root: &Root<'_>, path: &Path) -> io::Result<OwnedFd> {
    if path.as_os_str().is_empty() {
        return root.dir.try_clone();
    }
    let dir = open(root, path)?;
    if root.own.contains(&fstat(&dir)?.st_dev) {
        return Ok(dir);
    }
    Err(io::Error::from_raw_os_error(libc::EXDEV))
}

/// The open parent of a path, made where it is missing, and the last name.
fn parent(root: &Root<'_>, path: &[u8]) -> io::Result<(OwnedFd, OsString)> {
    let path = relative(path);
    let name = path
        .file_name()
        .ok_or(io::Error::from_raw_os_error(libc::EINVAL))?
        .to_owned();
    let above = path.parent().unwrap_or(Path::new(""));
    if !above.as_os_str().is_empty() {
        make_directory(root, above.as_os_str().as_bytes())?;
    }
    Ok((own_file_system(root, above)?, name))
}

fn file(root: &Root<'_>, path: &[u8], content: &[u8]) -> io::Result<()> {
    let (parent, name) = parent(root, path)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let made = openat(&parent, name.as_os_str(), flags, Mode::from_raw_mode(0o644))?;
    let mut rest = content;
    while !rest.is_empty() {
        rest = &rest[rustix::io::write(&made, rest)?..];
    }
    Ok(())
}

fn symlink(root: &Root<'_>, path: &[u8], target: &[u8]) -> io::Result<()> {
    let (parent, name) = parent(root, path)?;
    Ok(symlinkat(
        OsStr::from_bytes(target),
        &parent,
        name.as_os_str(),
    )?)
}

/// The handle of a mount point, which is made where it is missing.
fn target(root: &Root<'_>, path: &[u8], source: &OwnedFd, host_id: u32) -> io::Result<OwnedFd> {
    // The way may lead through a folder that only its owner can enter.
    file_system_ids(0);
    let found = open(root, &relative(path));
    file_system_ids(host_id);
    let target = match found {
        Ok(target) => target,
        Err(e) if e.raw_os_error() == Some(libc::ENOENT) => {
            let kind = FileType::from_raw_mode(fstat(source)?.st_mode);
            if kind == FileType::Directory {
                make_directory(root, path)?;
            } else {
                file(root, path, b"")?;
            }
            open(root, &relative(path))?
        }
        Err(e) => return Err(e),
    };
    // move_mount(2) says EINVAL to this and to much else.
    let is_directory = |fd: &OwnedFd| {
        io::Result::Ok(FileType::from_raw_mode(fstat(fd)?.st_mode) == FileType::Directory)
    };
    if is_directory(source)? != is_directory(&target)? {
        return Err(io::Error::from_raw_os_error(libc::ENOTDIR));
    }
    Ok(target)
}

fn show(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}
