//! Walks a tree within bounds of time and count.

use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::outcome::Outcome;

const TIME: Duration = Duration::from_secs(6);
const ENTRIES: usize = 3_000_000;
/// Things found after which a walk has seen enough.
const ENOUGH: usize = 16;

/// One entry that a walk came to. Its kind comes with the listing: asking for the
/// rest of every entry would make a walk ten times as long.
pub(super) struct Entry {
    pub(super) path: PathBuf,
    pub(super) kind: std::fs::FileType,
}

/// Walks every tree of `roots`, each within its file system, and reports what
/// `wanted` picks; a walk that had to stop early having found nothing is an error,
/// because then "nothing" was not shown.
pub(super) fn find(
    roots: &[&str],
    enter: impl Fn(&Path) -> bool,
    wanted: impl Fn(&Entry) -> bool,
) -> Outcome {
    let end = Instant::now() + TIME;
    let mut seen = 0;
    let mut found = Vec::new();
    for root in roots {
        let Ok(top) = std::fs::symlink_metadata(root) else {
            continue;
        };
        let mut waiting = vec![PathBuf::from(root)];
        while let Some(folder) = waiting.pop() {
            let Ok(list) = std::fs::read_dir(&folder) else {
                continue;
            };
            for (path, kind) in list
                .flatten()
                .filter_map(|entry| Some((entry.path(), entry.file_type().ok()?)))
            {
                seen += 1;
                if found.len() >= ENOUGH {
                    return Outcome::found(&found);
                }
                if seen > ENTRIES || Instant::now() > end {
                    return if found.is_empty() {
                        Outcome::error(format!("walk stopped after {seen} entries"))
                    } else {
                        Outcome::found(&found)
                    };
                }
                if kind.is_dir() && is_on(&path, top.dev()) && enter(&path) {
                    waiting.push(path.clone());
                }
                let entry = Entry { path, kind };
                if wanted(&entry) {
                    found.push(entry.path.display().to_string());
                }
            }
        }
    }
    Outcome::found(&found)
}

fn is_on(path: &Path, device: u64) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|meta| meta.dev() == device)
}

/// Whether a path of `/proc` belongs to a process.
pub(super) fn is_process(path: &Path) -> bool {
    path.file_name()
        .and_then(OsStr::to_str)
        .is_some_and(|name| {
            ["self", "thread-self"].contains(&name) || name.bytes().all(|b| b.is_ascii_digit())
        })
}

/// The roots of everything that a task can reach and that may be a file system of its
/// own, the small ones first.
pub(super) const ROOTS: &[&str] = &[
    "/dev",
    "/dev/shm",
    "/run",
    "/tmp",
    "/workspace",
    "/home",
    "/root",
    "/srv",
    "/var",
    "/",
];
