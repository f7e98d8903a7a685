//! The way to the directory for results, which may lead through a folder that a
//! task can fill with links.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, mkdirat, openat2};
use rustix::io::Errno;

/// Links that are followed on one way (path_resolution(7)).
const LINKS: usize = 40;

/// Opens a directory, making what is missing. A link is followed where only the
/// host could have made it, and never in one of the folders `shown` (canonical).
///
/// # Errors
/// ELOOP for such a link or too many, otherwise what openat2(2) or mkdirat(2) say.
pub fn open(path: &Path, shown: &[PathBuf]) -> io::Result<OwnedFd> {
    let mut rest = parts(path);
    let mut here = PathBuf::from("/");
    let mut links = 0;
    while let Some(part) = rest.pop_front() {
        if part == ".." {
            here.pop();
            continue;
        }
        let next = here.join(&part);
        match std::fs::read_link(&next) {
            Ok(target) => {
                links += 1;
                if links > LINKS || shown.iter().any(|folder| here.starts_with(folder)) {
                    return Err(io::Error::new(
                        io::ErrorKind::PermissionDenied,
                        format!("{} is a link in a folder of the task", next.display()),
                    ));
                }
                if target.is_absolute() {
                    here = PathBuf::from("/");
                }
                for part in parts(&target).into_iter().rev() {
                    rest.push_front(part);
                }
            }
            // Not a link, or not there: then it is made below.
            Err(_) => here = next,
        }
    }
    make(&here)
}

fn parts(path: &Path) -> VecDeque<OsString> {
    path.components()
        .filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir))
        .map(|part| part.as_os_str().to_owned())
        .collect()
}

/// Opens a path without any link in it; one that has come into it since is an error.
fn make(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let open = |path: &Path| openat2(CWD, path, flags, Mode::empty(), resolve);
    match open(path) {
        Err(Errno::NOENT) => {}
        found => return Ok(found?),
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Errno::NOENT.into());
    };
    let above = make(parent)?;
    match mkdirat(&above, name, Mode::from_raw_mode(0o777)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(e) => return Err(e.into()),
    }
    let resolve = resolve | ResolveFlags::BENEATH;
    Ok(openat2(&above, name, flags, Mode::empty(), resolve)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// D11, A6: the folder of a task leads results nowhere else.
    #[test]
    fn a_link_is_followed_only_outside_the_folders_of_the_task() {
        let base = std::env::temp_dir().join(format!("orch-destination-{}", std::process::id()));
        std::fs::create_dir_all(base.join("folder")).unwrap();
        std::fs::create_dir_all(base.join("victim")).unwrap();
        let base = base.canonicalize().unwrap();
        let shown = [base.join("folder")];
        symlink(base.join("victim"), base.join("folder/planted")).unwrap();
        symlink("folder", base.join("into")).unwrap();
        symlink("victim", base.join("own")).unwrap();
        let refused = ["folder/planted", "folder/planted/below", "into/planted"]
            .map(|path| open(&base.join(path), &shown).is_err());
        let followed = ["own/made", "folder/made/deep", "into/made"]
            .map(|path| open(&base.join(path), &shown).is_ok());
        let made = base.join("victim/made").is_dir() && base.join("folder/made/deep").is_dir();
        let escaped = base.join("victim/below").exists();
        std::fs::remove_dir_all(&base).unwrap();
        assert_eq!((refused, followed), ([true; 3], [true; 3]));
        assert!(made && !escaped);
    }
}
