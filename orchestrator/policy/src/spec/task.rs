//! What one command gets.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::layout;
use crate::error::{Code, Error};
use crate::profile::{Limits, Profile, SyscallTable, Tier};
use crate::task::Task;

/// Largest user or group id inside; the two above are taken (design §3.7, §4).
pub const MAX_ID: u32 = 65_533;

/// A resource limit by its POSIX name, soft and hard (getrlimit(2)).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rlimit {
    /// `RLIMIT_*`.
    pub name: &'static str,
    /// Soft limit.
    pub soft: u64,
    /// Hard limit.
    pub hard: u64,
}

/// What one command gets, on top of the container it runs in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TaskSpec {
    /// Program and arguments.
    #[serde(serialize_with = "lossy")]
    pub argv: Vec<OsString>,
    /// `NAME=value`.
    #[serde(serialize_with = "lossy")]
    pub env: Vec<OsString>,
    /// Working directory, absolute.
    pub cwd: PathBuf,
    /// User id.
    pub uid: u32,
    /// Group id; there are no others.
    pub gid: u32,
    /// umask(2).
    pub umask: u32,
    /// Resource limits.
    pub rlimits: Vec<Rlimit>,
    /// System-call table.
    pub syscalls: SyscallTable,
    /// Ceilings of the control group, output and copy-out.
    pub limits: Limits,
    /// Wall clock, milliseconds.
    pub timeout_ms: u64,
    /// Whether there is a terminal.
    pub tty: bool,
}

fn lossy<S: serde::Serializer>(list: &[OsString], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(list.iter().map(|s| s.to_string_lossy()))
}

/// User and group id of a task.
#[must_use]
pub fn ids(profile: &Profile, task: &Task) -> (u32, u32) {
    match task.user {
        Some((uid, gid)) => (uid, gid.unwrap_or(uid)),
        None => (profile.uid, profile.gid),
    }
}

/// The spec of a command. `limits` and `timeout_ms` are the effective ones;
/// `inherited` is what the profile lets through of the caller's environment.
///
/// # Errors
/// No command, a user outside the range, a malformed variable or directory.
pub fn task(
    profile: &Profile,
    task: &Task,
    limits: &Limits,
    timeout_ms: u64,
    inherited: &[(OsString, OsString)],
) -> Result<TaskSpec, Error> {
    if task.argv.first().is_none_or(|name| name.is_empty()) {
        return Err(Error::new(
            Code::Usage,
            "there is no command",
            "put it behind --: orch run -- CMD ARG…",
        ));
    }
    let (uid, gid) = ids(profile, task);
    if uid > MAX_ID || gid > MAX_ID {
        return Err(Error::new(
            Code::UserInvalid,
            format!("user {uid}:{gid} is outside the range of a container"),
            format!("name ids from 0 to {MAX_ID}"),
        ));
    }
    if profile.tier == Tier::Strict && (uid == 0 || gid == 0) {
        return Err(Error::new(
            Code::UserInvalid,
            format!("tier strict runs nothing as user {uid}:{gid}"),
            "name ids other than 0, or use --tier standard",
        ));
    }
    Ok(TaskSpec {
        argv: no_nul(&task.argv, "argument")?,
        env: no_nul(&env(profile, task, inherited)?, "variable")?,
        cwd: cwd(task.workdir.as_deref())?,
        uid,
        gid,
        umask: 0o022,
        rlimits: rlimits(limits),
        syscalls: profile.syscalls,
        limits: limits.clone(),
        timeout_ms,
        tty: task.tty,
    })
}

fn no_nul(list: &[OsString], what: &str) -> Result<Vec<OsString>, Error> {
    match list.iter().find(|s| s.as_bytes().contains(&0)) {
        None => Ok(list.to_vec()),
        Some(bad) => Err(Error::new(
            Code::Usage,
            format!("{what} {} holds a NUL byte", bad.to_string_lossy()),
            "leave it out: no program can be given one",
        )),
    }
}

/// Starts empty (PX-03). A later setting of a name replaces an earlier one:
/// caller's own where allowed, profile, scratch directory, task.
fn env(
    profile: &Profile,
    task: &Task,
    inherited: &[(OsString, OsString)],
) -> Result<Vec<OsString>, Error> {
    let fixed = profile
        .env
        .set
        .iter()
        .map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let scratch = task.scratch.as_ref();
    let scratch = scratch.map(|_| ("SCRATCH".into(), layout::SCRATCH.into()));
    let mut all: Vec<(OsString, OsString)> = Vec::new();
    let layers = inherited
        .iter()
        .cloned()
        .chain(fixed)
        .chain(scratch)
        .chain(task.env.iter().cloned());
    for (name, value) in layers {
        if name.is_empty() || name.as_bytes().contains(&b'=') {
            return Err(Error::new(
                Code::EnvInvalid,
                format!("{:?} is not the name of a variable", name.to_string_lossy()),
                "write NAME=value",
            ));
        }
        match all.iter_mut().find(|(there, _)| *there == name) {
            Some(slot) => slot.1 = value,
            None => all.push((name, value)),
        }
    }
    Ok(all
        .into_iter()
        .map(|(mut name, value)| {
            name.push(OsStr::new("="));
            name.push(value);
            name
        })
        .collect())
}

fn cwd(asked: Option<&Path>) -> Result<PathBuf, Error> {
    let cwd = Path::new(layout::WORKSPACE).join(asked.unwrap_or(Path::new("")));
    if cwd
        .components()
        .any(|part| part == std::path::Component::ParentDir)
    {
        return Err(Error::new(
            Code::WorkdirMissing,
            format!("working directory {} holds ..", cwd.display()),
            "name a path inside the sandbox without ..",
        ));
    }
    // Without the trailing slash that joining an empty path leaves.
    Ok(cwd.components().collect())
}

/// Soft and hard are the same, except for CPU time: at the soft one the task is
/// told (SIGXCPU), a second later the kernel ends it.
fn rlimits(limits: &Limits) -> Vec<Rlimit> {
    let equal = |name, value| Rlimit {
        name,
        soft: value,
        hard: value,
    };
    vec![
        Rlimit {
            name: "RLIMIT_CPU",
            soft: limits.cpu_seconds,
            hard: limits.cpu_seconds + 1,
        },
        equal("RLIMIT_NOFILE", limits.open_files),
        equal("RLIMIT_FSIZE", limits.file_size_bytes),
        equal("RLIMIT_STACK", limits.stack_bytes),
        equal("RLIMIT_CORE", 0),
        equal("RLIMIT_NICE", 0),
        equal("RLIMIT_RTPRIO", 0),
        equal("RLIMIT_MEMLOCK", 64 << 10),
        equal("RLIMIT_MSGQUEUE", 800 << 10),
    ]
}
