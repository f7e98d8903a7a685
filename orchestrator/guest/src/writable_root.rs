//! A root file system that a task may write and that is thrown away (PR-03).

use std::ffi::{CString, OsString};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::CWD;
use rustix::mount::{MoveMountFlags, OpenTreeFlags, UnmountFlags, move_mount, open_tree, unmount};

use crate::mount;

/// Where the new root is put together; a directory that every root has and over
/// which a lease mounts its own file system later.
const STAGE: &str = "/tmp";

/// Copies the small files of `/` and `/etc` into an in-memory file system, hangs
/// every mount of the container below it, and makes it the root.
pub fn enter(size: u64, inodes: u64) -> io::Result<()> {
    let made = mount::tmpfs(size, inodes, 0o755, true)?;
    mount::attach(&made, STAGE.as_bytes())?;
    let mounts = mount_points()?;
    copy(Path::new("/"), Path::new(STAGE), &mounts)?;
    for point in outermost(&mounts) {
        let source = CString::new(point.as_bytes())?;
        let target = CString::new([STAGE.as_bytes(), point.as_bytes()].concat())?;
        let tree = open_tree(
            CWD,
            &source,
            OpenTreeFlags::OPEN_TREE_CLONE
                | OpenTreeFlags::OPEN_TREE_CLOEXEC
                | OpenTreeFlags::AT_RECURSIVE
                | OpenTreeFlags::AT_SYMLINK_NOFOLLOW,
        )?;
        move_mount(
            tree.as_fd(),
            c"",
            CWD,
            &target,
            MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH,
        )?;
    }
    rustix::process::chdir(STAGE)?;
    rustix::process::pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    rustix::process::chdir("/")?;
    Ok(())
}

/// Mount points below `/`, parents before children.
fn mount_points() -> io::Result<Vec<OsString>> {
    let table = std::fs::read("/proc/self/mountinfo")?;
    let mut points: Vec<OsString> = table
        .split(|byte| *byte == b'\n')
        .filter_map(|line| line.split(|byte| *byte == b' ').nth(4))
        .map(unescape)
        .filter(|point| point != b"/" && point != STAGE.as_bytes())
        .map(std::os::unix::ffi::OsStringExt::from_vec)
        .collect();
    points.sort();
    points.dedup();
    Ok(points)
}

/// Those that lie below no other. Each is copied with everything in it: the kernel
/// gives no mount to a user namespace without what is locked over parts of it, and
/// what is shadowed stays so.
fn outermost(points: &[OsString]) -> impl Iterator<Item = &OsString> {
    let below = |point: &OsString| {
        let above = Path::new(point).ancestors().skip(1);
        above
            .filter(|path| *path != Path::new("/"))
            .any(|path| points.iter().any(|other| Path::new(other) == path))
    };
    points.iter().filter(move |point| !below(point))
}

/// Undoes the octal escapes of proc_pid_mountinfo(5).
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, tail @ ..] = rest {
        if let ([b'\\', a, b, c, ..], true) = (rest, *first == b'\\') {
            let digit = |byte: u8| byte.wrapping_sub(b'0') & 7;
            bytes.push(digit(*a) << 6 | digit(*b) << 3 | digit(*c));
            rest = &rest[4..];
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    bytes
}

fn copy(from: &Path, to: &Path, mounts: &[OsString]) -> io::Result<()> {
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if source == Path::new(STAGE) {
            std::fs::create_dir(&target)?;
            continue;
        }
        let mounted = mounts.iter().any(|point| source == Path::new(point));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            std::fs::create_dir(&target)?;
            if !mounted {
                copy(&source, &target, mounts)?;
            }
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(std::fs::read_link(&source)?, &target)?;
        } else if mounted {
            std::fs::File::create(&target)?;
        } else if kind.is_file() {
            std::fs::copy(&source, &target)?;
        }
        if !kind.is_symlink() {
            owner(&source, &target)?;
        }
    }
    Ok(())
}

fn owner(source: &Path, target: &Path) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let meta = std::fs::symlink_metadata(source)?;
    std::os::unix::fs::lchown(target, Some(meta.uid()), Some(meta.gid()))?;
    let mode = std::fs::Permissions::from_mode(meta.mode() & 0o777);
    std::fs::set_permissions(target, mode)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::{outermost, unescape};

    #[test]
    fn a_mount_comes_with_what_is_mounted_in_it() {
        let points = ["/data", "/data/sub", "/data2", "/dev/null", "/usr"].map(OsString::from);
        let outer: Vec<_> = outermost(&points).collect();
        assert_eq!(outer, ["/data", "/data2", "/dev/null", "/usr"]);
    }

    #[test]
    fn octal_escapes_of_mountinfo_are_undone() {
        assert_eq!(unescape(b"/a\\040b\\134c"), b"/a b\\c");
        assert_eq!(unescape(b"/plain\\"), b"/plain\\");
    }
}
