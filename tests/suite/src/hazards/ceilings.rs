//! H13, H18: a limit of zero is refused, and every limit really stands on the
//! control group that the task is in.

use std::path::{Path, PathBuf};

use super::in_every_tier;
use crate::harness::{Test, Verdict, test};
use crate::rig::host::{PATIENCE, groups};
use crate::rig::orch::Orch;
use crate::rig::place::Place;
use crate::rig::{Result, ensure};

pub fn tests() -> Vec<Test> {
    let mut tests = in_every_tier("H13_zero_flags", zero_flags);
    tests.push(test("hazards::H13_zero_in_a_profile", zero_profile));
    tests.extend(in_every_tier(
        "H18_limits_on_the_control_group",
        on_the_group,
    ));
    tests
}

fn zero_flags(tier: &'static str) -> Result<Verdict> {
    for flag in [
        "--pids",
        "--memory",
        "--cpus",
        "--timeout",
        "--output-limit",
    ] {
        for value in ["0", "-1"] {
            Orch::new(tier)?
                .flag(flag, value)
                .run(&["/bin/echo", "ran"])?
                .refused(&["limit_invalid", "usage"])
                .map_err(|why| format!("{flag} {value}: {why}"))?;
        }
    }
    // Control: the same flags with a value that is none of these.
    let ended = Orch::new(tier)?
        .flag("--pids", "16")
        .flag("--memory", "64Mi")
        .flag("--cpus", "0.5")
        .flag("--timeout", "30s")
        .flag("--output-limit", "1Mi")
        .run(&["/bin/echo", "ran"])?
        .clean()?;
    ensure(ended.stdout == "ran\n", || format!("{ended:?}"))?;
    Ok(Verdict::Held)
}

fn zero_profile() -> Result<Verdict> {
    let place = Place::new("profile")?;
    let file = |name: &str, limit: &str| {
        place.file(name, &format!("extends: standard\nname: mine\n{limit}\n"))
    };
    for key in [
        "cpu_seconds",
        "cpus",
        "memory_mb",
        "open_files",
        "processes",
        "file_size_mb",
        "stack_mb",
        "tmp_mb",
        "tmp_inodes",
        "output_mb",
    ] {
        let path = file("zero.yaml", &format!("limits:\n  {key}: 0"))?;
        Orch::new(&path.display().to_string())?
            .run(&["/bin/echo", "ran"])?
            .refused(&["limit_invalid", "profile_invalid"])
            .map_err(|why| format!("{key}: {why}"))?;
    }
    let path = file("zero.yaml", "timeout_seconds: 0")?;
    Orch::new(&path.display().to_string())?
        .run(&["/bin/echo", "ran"])?
        .refused(&["limit_invalid", "profile_invalid"])?;
    // Control: the same file with one that is not zero.
    let path = file("one.yaml", "limits:\n  processes: 8\n  memory_mb: 64")?;
    let ended = Orch::new(&path.display().to_string())?
        .run(&["/bin/echo", "ran"])?
        .clean()?;
    ensure(ended.stdout == "ran\n", || format!("{ended:?}"))?;
    Ok(Verdict::Held)
}

/// What a file of the group says, wherever it is; `None` where no hierarchy has it.
fn said(groups: &[PathBuf], file: &str) -> Option<String> {
    groups
        .iter()
        .find_map(|group| std::fs::read_to_string(group.join("0").join(file)).ok())
        .map(|text| text.trim().to_owned())
}

fn on_the_group(tier: &'static str) -> Result<Verdict> {
    let mut live = Orch::new(tier)?
        .flag("--memory", "96Mi")
        .flag("--pids", "23")
        .flag("--cpus", "0.5")
        .start(&["/bin/sh", "-c", "echo ready; read -r line"])?;
    live.expect("ready")?;
    let (id, task) = live.task()?;
    let groups = groups(&id);
    ensure(!groups.is_empty(), || format!("no control group of {id}"))?;
    let bytes = (96_u64 << 20).to_string();
    let unified = said(&groups, "memory.max").is_some();
    let wanted: Vec<(&str, String)> = if unified {
        vec![
            ("memory.max", bytes),
            ("memory.swap.max", "0".to_owned()),
            ("pids.max", "23".to_owned()),
            ("cpu.max", "50000 100000".to_owned()),
        ]
    } else {
        vec![
            ("memory.limit_in_bytes", bytes),
            ("pids.max", "23".to_owned()),
            ("cpu.cfs_quota_us", "50000".to_owned()),
            ("cpu.cfs_period_us", "100000".to_owned()),
        ]
    };
    for (file, value) in wanted {
        let found = said(&groups, file).ok_or_else(|| format!("no {file} in {groups:?}"))?;
        ensure(found == value, || format!("{file} is {found}, not {value}"))?;
    }
    // With swap counted: no more than without, or the receipt says what is missing.
    if let Some(swap) = said(&groups, "memory.memsw.limit_in_bytes") {
        ensure(swap == (96_u64 << 20).to_string(), || {
            format!("memory with swap is {swap}")
        })?;
    }
    // The task is in every one of these groups, and nowhere else.
    let pid = task.first().ok_or("no task")?.pid.to_string();
    for group in &groups {
        let tasks = ["tasks", "cgroup.threads"]
            .iter()
            .find_map(|file| std::fs::read_to_string(group.join("0").join(file)).ok())
            .unwrap_or_default();
        ensure(tasks.lines().any(|line| line == pid), || {
            format!("{pid} is not in {}: {tasks:?}", group.display())
        })?;
    }
    live.say("")?;
    live.end(PATIENCE)?.clean()?;
    ensure(!groups.iter().any(|group| Path::exists(group)), || {
        format!("left: {groups:?}")
    })?;
    Ok(Verdict::Held)
}
