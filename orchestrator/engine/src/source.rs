//! Sources of mounts on the host: resolved, checked, opened.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use orch_policy::paths;
use orch_policy::profile::Access;
use orch_policy::{Code, Error};
use rustix::fs::{Mode, OFlags, fstat, open};

use crate::{failure, filesystem};

/// A source that may be mounted.
#[derive(Debug)]
pub struct Source {
    /// Handle (`O_PATH`); what was checked is what will be mounted.
    pub handle: OwnedFd,
    /// Owner on disk.
    pub uid: u32,
    /// Group on disk.
    pub gid: u32,
}

/// What must never be shown, or be written without an explicit word.
#[derive(Debug)]
pub struct Rules<'a> {
    /// Denied paths of the profile and paths of orch itself.
    pub denied: &'a [PathBuf],
    /// Whether a writable folder may belong to root.
    pub allow_root_owned: bool,
}

/// Resolves the path of a source; links in it are followed here and never again.
///
/// # Errors
/// [`Code::MountInvalid`] for a relative path or one with `..`,
/// [`Code::MountSourceMissing`] where there is nothing.
pub fn resolve(path: &Path) -> Result<PathBuf, Error> {
    check_plain(path)?;
    std::fs::canonicalize(path).map_err(|e| {
        Error::new(
            Code::MountSourceMissing,
            format!("mount source {} cannot be found", path.display()),
            "check the path and its permissions",
        )
        .because(e)
    })
}

/// A path that is absolute and has no `..`.
///
/// # Errors
/// [`Code::MountInvalid`].
pub(crate) fn check_plain(path: &Path) -> Result<(), Error> {
    let climbs = path
        .components()
        .any(|part| part == std::path::Component::ParentDir);
    if path.is_absolute() && !climbs {
        return Ok(());
    }
    Err(Error::new(
        Code::MountInvalid,
        format!("mount source {} is not a plain path", path.display()),
        "name it without ..",
    ))
}

/// What no source may be, by its resolved path (FS-21, PR-16).
///
/// # Errors
/// [`Code::MountDenied`].
pub(crate) fn check_place(path: &Path, rules: &Rules<'_>) -> Result<(), Error> {
    check_denied(path, rules)?;
    if paths::is_kernel_tree(path) {
        return Err(kernel_tree(path));
    }
    Ok(())
}

/// Opens a resolved source after checking it (FS-21, PR-16).
///
/// # Errors
/// [`Code::MountDenied`] inside or above a hidden path, [`Code::RootOwnedFolder`],
/// [`Code::MountInvalid`] for anything but files and directories.
pub fn take(path: &Path, mode: Access, rules: &Rules<'_>) -> Result<Source, Error> {
    check_place(path, rules)?;
    let missing = |e: rustix::io::Errno| {
        Error::new(
            Code::MountSourceMissing,
            format!("mount source {} cannot be opened", path.display()),
            "check the path and its permissions",
        )
        .because(std::io::Error::from(e))
    };
    let handle = open(
        path,
        OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .map_err(missing)?;
    // Somebody may have put a link into the path since it was resolved; where the
    // handle has led to is what is checked once more.
    let led_to = std::fs::read_link(format!("/proc/self/fd/{}", handle.as_raw_fd()))
        .map_err(|e| failure::kernel("look at a mount source", e))?;
    if led_to != path {
        check_place(&led_to, rules)?;
    }
    let stat = fstat(&handle).map_err(missing)?;
    let kind = rustix::fs::FileType::from_raw_mode(stat.st_mode);
    if !matches!(
        kind,
        rustix::fs::FileType::Directory | rustix::fs::FileType::RegularFile
    ) {
        return Err(Error::new(
            Code::MountInvalid,
            format!("{} is neither a file nor a directory", path.display()),
            "mount a file or a directory; sockets, pipes and devices stay outside",
        ));
    }
    if mode == Access::Rw && stat.st_uid == 0 && !rules.allow_root_owned {
        return Err(Error::new(
            Code::RootOwnedFolder,
            format!("{} belongs to root and would be writable", path.display()),
            "give it to a user of its own, or say --allow-root-owned",
        ));
    }
    Ok(Source {
        handle,
        uid: stat.st_uid,
        gid: stat.st_gid,
    })
}

fn kernel_tree(path: &Path) -> Error {
    Error::new(
        Code::MountDenied,
        format!("{} belongs to the kernel of the host", path.display()),
        "every task has a /proc, /sys and /dev of its own",
    )
}

fn check_denied(path: &Path, rules: &Rules<'_>) -> Result<(), Error> {
    for denied in rules.denied {
        // A denied path that is a link hides what it leads to as well.
        let real = std::fs::canonicalize(denied).unwrap_or_else(|_| denied.clone());
        for hidden in [denied, &real] {
            if path.starts_with(hidden) || hidden.starts_with(path) {
                return Err(Error::new(
                    Code::MountDenied,
                    format!(
                        "{} lies inside or above {}, which must stay hidden",
                        path.display(),
                        hidden.display()
                    ),
                    "mount a narrower path, or copy what is needed elsewhere",
                ));
            }
        }
    }
    Ok(())
}

/// Why a file system cannot carry a workspace, where it cannot (FS-26).
#[must_use]
pub fn unfit(handle: &OwnedFd) -> Option<&'static str> {
    filesystem::kind(handle).ok()?.unfit()
}
