//! Processes and control groups, seen from outside.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::Result;
use crate::pace;

/// How long anything may take that is known to come.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Asks again and again until there is an answer.
///
/// # Errors
/// There was none before the deadline.
pub fn eventually<T>(what: &str, limit: Duration, mut ask: impl FnMut() -> Option<T>) -> Result<T> {
    let limit = pace::here(limit);
    let end = Instant::now() + limit;
    loop {
        if let Some(answer) = ask() {
            return Ok(answer);
        }
        if Instant::now() > end {
            return Err(format!("{what}: not within {limit:?}"));
        }
        // Only the pace of asking; what is waited for is the answer.
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Version of the kernel: the first two numbers.
pub fn version() -> (u32, u32) {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|part| part.parse::<u32>().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// A process of this machine.
#[derive(Debug, Clone)]
pub struct Process {
    /// Its number here.
    pub pid: i32,
    /// Fields of `/proc/PID/status`.
    pub status: BTreeMap<String, String>,
    /// When it was started, in ticks of this machine.
    pub started: u64,
}

impl Process {
    /// Reads one; `None` when it is gone.
    pub fn read(pid: i32) -> Option<Self> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // Behind the name, which may hold anything: field 22 is the start.
        let (_, behind) = stat.rsplit_once(')')?;
        let started = behind.split_whitespace().nth(19)?.parse().ok()?;
        let status = text
            .lines()
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
            .collect();
        Some(Self {
            pid,
            status,
            started,
        })
    }

    /// Whether this is the same process.
    pub fn is(&self, other: &Self) -> bool {
        self.pid == other.pid && self.started == other.started
    }

    /// A field, empty where there is none.
    pub fn field(&self, name: &str) -> &str {
        self.status.get(name).map_or("", String::as_str)
    }

    /// Its effective user id here.
    pub fn uid(&self) -> u32 {
        self.field("Uid")
            .split_whitespace()
            .nth(1)
            .and_then(|id| id.parse().ok())
            .unwrap_or(u32::MAX)
    }

    /// A set of capabilities.
    pub fn capabilities(&self, set: &str) -> u64 {
        u64::from_str_radix(self.field(set), 16).unwrap_or(u64::MAX)
    }

    /// Where a link in its directory leads.
    pub fn link(&self, name: &str) -> Option<PathBuf> {
        std::fs::read_link(format!("/proc/{}/{name}", self.pid)).ok()
    }

    /// What its descriptors lead to, by number.
    pub fn descriptors(&self) -> BTreeMap<i32, PathBuf> {
        std::fs::read_dir(format!("/proc/{}/fd", self.pid))
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| {
                let number = entry.file_name().to_str()?.parse().ok()?;
                Some((number, std::fs::read_link(entry.path()).ok()?))
            })
            .collect()
    }

    /// Container and exec whose control group it is in.
    pub fn exec(&self) -> Option<(String, u32)> {
        let text = std::fs::read_to_string(format!("/proc/{}/cgroup", self.pid)).ok()?;
        text.lines().find_map(|line| {
            let (_, below) = line.split_once("/orch/")?;
            let mut parts = below.split('/');
            let (id, exec) = (parts.next()?, parts.next()?);
            Some((id.to_owned(), exec.parse().ok()?))
        })
    }
}

/// Every process below `root` in the tree of parents, without it.
pub fn descendants(root: i32) -> Vec<Process> {
    let all = std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(Process::read)
        .collect::<Vec<_>>();
    let mut found: Vec<Process> = Vec::new();
    let mut next = vec![root];
    while let Some(parent) = next.pop() {
        for process in &all {
            if process.field("PPid").parse() == Ok(parent) {
                next.push(process.pid);
                found.push(process.clone());
            }
        }
    }
    found
}

/// Whether every controller is on version 2.
pub fn unified() -> bool {
    std::fs::read_to_string("/proc/self/cgroup").is_ok_and(|own| own.starts_with("0::"))
}

/// Directories in which control groups of orch may be made, when this process starts
/// it: one for each hierarchy of version 1; on version 2 the own group and all above
/// it, of which one is delegated.
pub fn group_roots() -> Vec<PathBuf> {
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mut found = Vec::new();
    for line in own.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(names), Some(path)) = (fields.next(), fields.next()) else {
            continue;
        };
        let wanted = names.split(',').next().unwrap_or_default();
        for mount in mounts.lines() {
            let Some((left, right)) = mount.split_once(" - ") else {
                continue;
            };
            let kind = right.split(' ').next().unwrap_or_default();
            let options = right.rsplit(' ').next().unwrap_or_default();
            let matches = match wanted {
                "" => kind == "cgroup2",
                name => kind == "cgroup" && options.split(',').any(|option| option == name),
            };
            if let (true, Some(point)) = (matches, left.split(' ').nth(4)) {
                let own = Path::new(point).join(path.trim_start_matches('/'));
                let above = own.ancestors().skip(1).map(Path::to_owned);
                let above = above.take_while(|group| wanted.is_empty() && group.starts_with(point));
                found.extend(above);
                found.push(own);
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

/// Control groups of a container that exist. Their name is the number of the range
/// and its id; either the whole name or the id will do.
pub fn groups(id: &str) -> Vec<PathBuf> {
    let named = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name == id || name.split_once('-').is_some_and(|(_, rest)| rest == id)
    };
    group_roots()
        .into_iter()
        .flat_map(|root| std::fs::read_dir(root.join("orch")).into_iter().flatten())
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(named)
        .collect()
}

/// Which of these processes are still there: a number alone may be another's by now.
pub fn alive(processes: &[Process]) -> Vec<String> {
    processes
        .iter()
        .filter_map(|process| Process::read(process.pid).filter(|now| now.is(process)))
        .map(|now| {
            format!(
                "{} {} {} child of {}",
                now.pid,
                now.field("Name"),
                now.field("State"),
                now.field("PPid")
            )
        })
        .collect()
}

/// Fails unless nothing of a container is left: no control group, and no mount of
/// its making among those of this process.
///
/// # Errors
/// What is left.
pub fn nothing_left(id: &str) -> Result<()> {
    let groups = groups(id);
    if !groups.is_empty() {
        return Err(format!("left of {id}: {groups:?}"));
    }
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    match mounts
        .lines()
        .find(|line| line.contains("/sys/fs/cgroup/rootfs") || line.contains(id))
    {
        Some(mount) => Err(format!("left of {id}: {mount}")),
        None => Ok(()),
    }
}
