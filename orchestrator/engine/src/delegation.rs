//! Where the launcher makes control groups of version 2, for whoever wants to tell.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use orch_wire::delegation::{MARKS, Seen, choose};
use rustix::fs::getxattr;

/// The group below which a launcher of this process makes its own, by the same rule;
/// `None` where version 2 is not mounted or nothing on the way up is this user's.
#[must_use]
pub fn group() -> Option<PathBuf> {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    choose(
        &read("/proc/self/cgroup")?,
        &read("/proc/self/mountinfo")?,
        look,
    )
}

fn look(group: &Path) -> Seen {
    let us = rustix::process::geteuid().as_raw();
    let marked = |mark: &str| {
        let mut value = [0; 2];
        // Not there, not to be read, or longer: none of them is a mark.
        getxattr(group, mark, &mut value).is_ok_and(|length| value[..length] == *b"1")
    };
    Seen {
        ours: std::fs::metadata(group).is_ok_and(|meta| meta.uid() == us),
        marked: MARKS.iter().any(|mark| marked(mark)),
    }
}
