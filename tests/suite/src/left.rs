//! What a run has left behind on the host: processes, control groups, mounts,
//! locks of user-id ranges.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::pace;

/// First user id of the block that containers get theirs from, and ids of each.
const FIRST: u32 = 0x7000_0000;
const COUNT: u32 = 65_536;

/// Asks until the answer is yes, or fails with what is still wrong.
pub fn eventually(
    patience: Duration,
    mut wrong: impl FnMut() -> Result<Option<String>, String>,
) -> Result<(), String> {
    let patience = pace::here(patience);
    let deadline = Instant::now() + patience;
    loop {
        let Some(what) = wrong()? else { return Ok(()) };
        if Instant::now() >= deadline {
            return Err(format!("after {patience:?}: {what}"));
        }
        // Between two looks, not instead of one.
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Ranges of each state directory: every one has a block of its own here, so that
/// whose processes these are can be told from outside.
const RANGES: u32 = 4;

/// Number of the first range of this state directory.
fn first_range(state: &Path) -> u32 {
    static BLOCKS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
    let mut blocks = BLOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    let known = blocks.iter().position(|path| path == state);
    let index = known.unwrap_or_else(|| {
        blocks.push(state.to_owned());
        blocks.len() - 1
    });
    FIRST / COUNT + u32::try_from(index).unwrap_or(0) * RANGES
}

/// First user id of the block of this state directory.
pub fn first_id(state: &Path) -> u32 {
    first_range(state) * COUNT
}

/// What `ORCH_UID_BLOCK` is for runs with this state directory.
pub fn uid_block(state: &Path) -> String {
    format!("{}:{RANGES}", first_range(state) * COUNT)
}

/// Ranges that runs with this state directory have: the numbers.
fn ranges(state: &Path) -> Vec<u32> {
    let first = first_range(state);
    (first..first + RANGES).collect()
}

/// Processes of the host that run as a user of one of these ranges.
fn processes(ranges: &[u32]) -> Vec<u32> {
    let ours = |uid: u32| ranges.contains(&(uid / COUNT));
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            // A dead one that waits for its parent is no process any more, but a
            // parent that never asks is one left behind: both count.
            status
                .lines()
                .find_map(|line| line.strip_prefix("Uid:"))
                .is_some_and(|ids| ids.split_whitespace().any(|id| id.parse().is_ok_and(ours)))
        })
        .collect()
}

/// Whether somebody holds the lock on a range.
fn is_locked(number: u32) -> bool {
    let Ok(file) = File::open("/run/orch-ids.lock") else {
        return false;
    };
    // SAFETY: all zeroes is a valid `flock`; the structure outlives the call.
    unsafe {
        let mut range: libc::flock = std::mem::zeroed();
        range.l_type = libc::c_short::try_from(libc::F_WRLCK).unwrap_or_default();
        range.l_start = i64::from(number);
        range.l_len = 1;
        libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut range) == 0
            && i32::from(range.l_type) != libc::F_UNLCK
    }
}

/// Whether a run with this state directory holds a range.
pub fn holds_a_range(state: &Path) -> bool {
    ranges(state).into_iter().any(is_locked)
}

/// Every process of runs with this state directory.
pub fn processes_of(state: &Path) -> Vec<u32> {
    processes(&ranges(state))
}

/// Those of them that still do anything: where launcher and orch are both gone, the
/// dead wait for the host's own init.
pub fn alive(state: &Path) -> Vec<u32> {
    let dead = |pid: &u32| {
        fs::read_to_string(format!("/proc/{pid}/status"))
            .is_ok_and(|status| status.contains("State:\tZ") && status.contains("PPid:\t1\n"))
    };
    let mut pids = processes_of(state);
    pids.retain(|pid| !dead(pid));
    pids
}

/// Control groups named `orch/<id>` in every hierarchy, by id.
pub fn groups() -> BTreeSet<PathBuf> {
    fn walk(dir: &Path, depth: u32, found: &mut BTreeSet<PathBuf>) {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let path = entry.path();
            if dir.file_name().is_some_and(|name| name == "orch") {
                found.insert(path);
            } else if depth > 0 {
                walk(&path, depth - 1, found);
            }
        }
    }
    let mut found = BTreeSet::new();
    walk(Path::new("/sys/fs/cgroup"), 6, &mut found);
    found
}

/// The id of a running container of this state directory, from the group of one
/// of its processes.
pub fn container_of(state: &Path) -> Option<String> {
    processes_of(state).into_iter().find_map(|pid| {
        let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
        let (_, rest) = groups.split_once("/orch/")?;
        let id = rest.split(['/', '\n']).next()?;
        let id = id.split_once('-')?.1;
        (id.len() == 32).then(|| id.to_owned())
    })
}

/// A container that is noted as being there: only a killed orch leaves that to the
/// next one.
pub fn noted(state: &Path) -> Option<String> {
    let mut notes = fs::read_dir(state.join("live")).into_iter().flatten();
    let note = notes.next()?.ok()?;
    Some(format!("{} is noted as being there", note.path().display()))
}

/// The first thing that runs with this state directory have left; `id` is that of
/// the container, where it is known.
pub fn left(state: &Path, id: Option<&str>) -> Option<String> {
    let ranges = ranges(state);
    if let Some(pid) = processes(&ranges).first() {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let what: Vec<&str> = status
            .lines()
            .filter(|line| {
                ["Name:", "State:", "PPid:"]
                    .iter()
                    .any(|key| line.starts_with(key))
            })
            .collect();
        return Some(format!("process {pid} ({}) is left", what.join(", ")));
    }
    if let Some(number) = ranges.into_iter().find(|number| is_locked(*number)) {
        return Some(format!("range {number} is locked"));
    }
    if let Some(id) = id {
        let group = groups()
            .into_iter()
            .find(|path| path.to_string_lossy().ends_with(id));
        if let Some(group) = group {
            return Some(format!("control group {} is left", group.display()));
        }
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let needle = state.display().to_string();
    mounts
        .lines()
        .find(|line| line.contains(&needle) || id.is_some_and(|id| line.contains(id)))
        .map(|line| format!("mount is left: {line}"))
}
