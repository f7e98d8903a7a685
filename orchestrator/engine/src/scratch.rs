//! The directory that a session's tasks share, made where it is missing (FS-07).
//!
//! It may be removed between two tasks, so it is made in the last moment before it is
//! opened for its mount.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use orch_policy::{Code, Error};
use rustix::fs::{
    CWD, Dir, Gid, Mode, OFlags, ResolveFlags, Uid, fchmod, fchown, fstat, mkdirat, openat2,
};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid};

use crate::source::{self, Rules};

/// Who a directory that is made belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// User id on disk.
    pub uid: u32,
    /// Group id on disk.
    pub gid: u32,
}

impl Owner {
    /// Whoever started orch, where there is no folder whose owner would be meant.
    #[must_use]
    pub fn caller() -> Self {
        Self {
            uid: geteuid().as_raw(),
            gid: getegid().as_raw(),
        }
    }
}

/// Where the directory is or will be, without links.
///
/// # Errors
/// As [`source::resolve`]; a link that leads to nothing is an error too.
pub fn locate(path: &Path) -> Result<PathBuf, Error> {
    let is_missing = |path: &Path| {
        path.symlink_metadata()
            .is_err_and(|e| e.kind() == io::ErrorKind::NotFound)
    };
    if !is_missing(path) {
        return source::resolve(path);
    }
    source::check_plain(path)?;
    let above = path.ancestors().find(|above| !is_missing(above));
    let above = above.unwrap_or(Path::new("/"));
    let below = path.strip_prefix(above).unwrap_or(Path::new(""));
    Ok(source::resolve(above)?.join(below))
}

/// Whether a located directory could be made and mounted, before it is: the rules of
/// [`source::take`]. One that is there is left to that.
///
/// # Errors
/// [`Code::MountDenied`], [`Code::RootOwnedFolder`].
pub fn check(path: &Path, owner: Owner, rules: &Rules<'_>) -> Result<(), Error> {
    if path.exists() {
        return Ok(());
    }
    source::check_place(path, rules)?;
    // The next task would find a folder of root there, which it may not write either.
    if owner.uid == 0 && !rules.allow_root_owned {
        return Err(Error::new(
            Code::RootOwnedFolder,
            format!("{} would belong to root and be writable", path.display()),
            "make it and give it to a user of its own, name a --folder that has one, or say --allow-root-owned",
        ));
    }
    Ok(())
}

/// Makes a located directory, and what is missing above it, 0700. What is there stays
/// as it is.
///
/// # Errors
/// [`Code::MountSourceMissing`] with what mkdirat(2), fchown(2) or openat2(2) say.
pub fn make(path: &Path, owner: Owner) -> Result<(), Error> {
    enter(path, owner).map(drop).map_err(|e| {
        Error::new(
            Code::MountSourceMissing,
            format!("scratch directory {} cannot be made", path.display()),
            "name a directory that can be made, or make it",
        )
        .because(e)
    })
}

/// No link is followed: the path was free of them when it was located.
fn enter(path: &Path, owner: Owner) -> io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match openat2(CWD, path, flags, Mode::empty(), resolve) {
        Err(Errno::NOENT) => {}
        found => return Ok(found?),
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Errno::NOENT.into());
    };
    let above = enter(parent, owner)?;
    let mode = Mode::from_raw_mode(0o700);
    let made = match mkdirat(&above, name, mode) {
        Ok(()) => true,
        Err(Errno::EXIST) => false,
        Err(e) => return Err(e.into()),
    };
    let resolve = resolve | ResolveFlags::BENEATH;
    let directory = openat2(&above, name, flags, Mode::empty(), resolve)?;
    if made {
        // Somebody who can write above could have put another one in its place.
        if fstat(&directory)?.st_uid != geteuid().as_raw() || !is_empty(&directory)? {
            return Err(io::Error::other(
                "somebody has put another directory in its place",
            ));
        }
        // Whatever the umask is.
        fchmod(&directory, mode)?;
        let (uid, gid) = (Uid::from_raw(owner.uid), Gid::from_raw(owner.gid));
        fchown(&directory, Some(uid), Some(gid))?;
    }
    Ok(directory)
}

fn is_empty(directory: &OwnedFd) -> io::Result<bool> {
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::*;

    fn base(test: &str) -> PathBuf {
        let name = format!("orch-scratch-{test}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        path.canonicalize().unwrap()
    }

    /// FS-07: made with what is missing above, and left as it is when it is there.
    #[test]
    fn what_is_missing_is_made_for_its_owner_alone() {
        let base = base("make");
        symlink(&base, base.join("link")).unwrap();
        let located = locate(&base.join("link/deep/scratch")).unwrap();
        let before = fs::read_dir(&base).unwrap().count();
        make(&located, Owner::caller()).unwrap();
        let modes = ["deep", "deep/scratch"].map(|name| {
            let meta = fs::metadata(base.join(name)).unwrap();
            (meta.mode() & 0o7777, meta.uid())
        });
        fs::write(located.join("file"), "x").unwrap();
        make(&located, Owner::caller()).unwrap();
        let kept = fs::read_to_string(located.join("file")).unwrap();
        fs::remove_dir_all(&base).unwrap();
        assert_eq!(located, base.join("deep/scratch"));
        assert_eq!(before, 1, "locating makes nothing");
        assert_eq!(modes, [(0o700, geteuid().as_raw()); 2]);
        assert_eq!(kept, "x");
    }

    #[test]
    fn a_link_to_nothing_and_a_file_are_no_place() {
        let base = base("links");
        symlink(base.join("victim"), base.join("dangling")).unwrap();
        fs::write(base.join("file"), "").unwrap();
        let codes = ["dangling", "dangling/below", "file/below"]
            .map(|name| locate(&base.join(name)).map_err(|e| e.code));
        let climbing = locate(Path::new("/tmp/../x/none")).unwrap_err().code;
        let victim = base.join("victim").exists();
        fs::remove_dir_all(&base).unwrap();
        assert_eq!(codes, [const { Err(Code::MountSourceMissing) }; 3]);
        assert_eq!(climbing, Code::MountInvalid);
        assert!(!victim);
    }

    /// FS-14, FS-21: what would be refused when it is there is not made either.
    #[test]
    fn the_rules_of_mounts_hold_before_it_is_made() {
        let base = base("rules");
        let denied = [base.join("hidden")];
        let ask = |name: &str, uid, allow_root_owned| {
            let rules = Rules {
                denied: &denied,
                allow_root_owned,
            };
            check(&base.join(name), Owner { uid, gid: 7 }, &rules).map_err(|e| e.code)
        };
        let found = [
            ask("hidden/below", 7, false),
            ask("scratch", 0, false),
            ask("scratch", 0, true),
            ask("scratch", 7, false),
        ];
        fs::remove_dir_all(&base).unwrap();
        let refused = [Err(Code::MountDenied), Err(Code::RootOwnedFolder)];
        assert_eq!(found[..2], refused);
        assert_eq!(found[2..], [Ok(()), Ok(())]);
    }
}
