//! Control groups of a test's own, on version 2.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{XattrFlags, setxattr};

use super::host::{group_roots, unified};
use super::{Result, at, ensure};

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A group below the one in which orch makes its own when this process starts it,
/// removed with all that is in it.
#[derive(Debug)]
pub struct Subtree(PathBuf);

impl Subtree {
    /// A group with these controllers, which can hand them on.
    ///
    /// # Errors
    /// There is no group below which one could be made.
    pub fn new(controllers: &[&str]) -> Result<Self> {
        ensure(unified(), || "not version 2".to_owned())?;
        // The first run of orch has switched controllers on, or found them so.
        let parent = group_roots()
            .into_iter()
            .rev()
            .find(|group| {
                let on = std::fs::read_to_string(group.join("cgroup.subtree_control"));
                on.is_ok_and(|on| on.contains("memory") && on.contains("pids"))
            })
            .ok_or("no group hands controllers on")?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let between = parent.join(format!("suite-{}-{number}", std::process::id()));
        let made = Self(between);
        std::fs::create_dir(&made.0).map_err(at(made.0.display()))?;
        for name in controllers {
            let file = made.0.join("cgroup.subtree_control");
            std::fs::write(&file, format!("+{name}")).map_err(at(format!("{name} in {file:?}")))?;
        }
        std::fs::create_dir(made.path()).map_err(at(made.0.display()))?;
        Ok(made)
    }

    /// The group; its controllers are those that were asked for.
    pub fn path(&self) -> PathBuf {
        self.0.join("given")
    }

    /// Marks it as systemd marks what it delegates.
    ///
    /// # Errors
    /// What setxattr(2) says.
    pub fn delegate(&self) -> Result<()> {
        setxattr(self.path(), "trusted.delegate", b"1", XattrFlags::empty())
            .map_err(at("mark as delegated"))
    }

    /// Lets a command begin in this group, or in the leaf that orch has made in it.
    pub fn hold(&self, command: &mut Command) {
        let leaf = self.path().join("main");
        let group = if leaf.is_dir() { leaf } else { self.path() };
        let file = group.join("cgroup.procs");
        // SAFETY: opens, writes and closes, between fork and exec.
        unsafe {
            command.pre_exec(move || std::fs::write(&file, "0"));
        }
    }

    /// Numbers of the processes in a group below, or in itself (`""`).
    pub fn members(&self, below: &str) -> Vec<i32> {
        std::fs::read_to_string(self.path().join(below).join("cgroup.procs"))
            .unwrap_or_default()
            .lines()
            .filter_map(|line| line.parse().ok())
            .collect()
    }
}

impl Drop for Subtree {
    fn drop(&mut self) {
        // What a failed test has left there ends with it.
        let _ = std::fs::write(self.0.join("cgroup.kill"), "1");
        let _ = super::host::eventually("the end of a subtree", super::host::PATIENCE, || {
            remove(&self.0);
            (!self.0.exists()).then_some(())
        });
    }
}

fn remove(group: &Path) {
    for entry in std::fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove(&entry.path());
        }
    }
    let _ = std::fs::remove_dir(group);
}
