//! A delegated subtree that is not the root (docs/decisions/0013-delegated-subtrees.md).
//! Version 2 only: on version 1 every group may hold processes and limits.

use std::process::{Child, Command, Stdio};

use crate::harness::{Test, Verdict, test};
use crate::hazards::waits::{opens, strace};
use crate::rig::host::{PATIENCE, Process, alive, eventually, unified};
use crate::rig::orch::Orch;
use crate::rig::place::{self, Place};
use crate::rig::subtree::Subtree;
use crate::rig::{Result, at, ensure};

const ALL: [&str; 4] = ["memory", "pids", "cpu", "io"];
/// What a rule of systemd may leave out.
const NO_IO: [&str; 3] = ["memory", "pids", "cpu"];

pub fn tests() -> Vec<Test> {
    if !unified() {
        return Vec::new();
    }
    vec![
        test("delegated::groups_are_made_in_the_delegated_one", inside),
        test("delegated::without_a_mark_it_is_left_alone", unmarked),
        test("delegated::neighbours_move_into_the_leaf_once", neighbours),
        test(
            "delegated::a_controller_that_is_not_there_is_named",
            lacking,
        ),
    ]
}

/// Path of a process's group, below the root of the tree.
fn group_of(pid: i32) -> Result<String> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).map_err(at(pid))?;
    let path = text.trim().strip_prefix("0::");
    path.map(str::to_owned).ok_or(format!("{pid} is in {text}"))
}

/// Runs a task from within the subtree, and gives its group and that of orch.
fn located(subtree: &Subtree) -> Result<(String, String)> {
    let mut orch = Orch::new("standard")?;
    subtree.hold(orch.command());
    let mut live = orch.start(&["/bin/sh", "-c", "echo ready; read -r line"])?;
    live.expect("ready")?;
    let (_, task) = live.task()?;
    let task = group_of(task.first().ok_or("no task")?.pid)?;
    let own = group_of(live.pid())?;
    live.say("go on")?;
    live.end(PATIENCE)?.clean()?;
    Ok((task, own))
}

fn inside() -> Result<Verdict> {
    let subtree = Subtree::new(&ALL)?;
    subtree.delegate()?;
    let (task, own) = located(&subtree)?;
    let name = subtree.path().display().to_string();
    let below = |group: &str, rest: &str| {
        let place = format!("/{rest}");
        group
            .split_once(&place)
            .is_some_and(|(before, _)| name.ends_with(before) && !before.is_empty())
    };
    ensure(below(&task, "orch/"), || format!("{task} is not in {name}"))?;
    ensure(below(&own, "main"), || format!("orch itself is in {own}"))?;
    ensure(subtree.members("").is_empty(), || {
        format!("processes in {name}")
    })?;
    let left = subtree.path().join("orch");
    ensure(!left.exists(), || format!("{} is left", left.display()))?;
    Ok(Verdict::Held)
}

/// Control of the above: what made the difference is the mark, and where there is
/// none nothing is done to the group that orch happens to be started in.
fn unmarked() -> Result<Verdict> {
    let subtree = Subtree::new(&ALL)?;
    let (task, own) = located(&subtree)?;
    ensure(!task.contains("/given/orch/"), || task.clone())?;
    ensure(own.ends_with("/given"), || own.clone())?;
    let leaf = subtree.path().join("main");
    ensure(!leaf.exists(), || leaf.display().to_string())?;
    Ok(Verdict::Held)
}

struct Sleeper(Child);

impl Drop for Sleeper {
    fn drop(&mut self) {
        // It sleeps for longer than any test runs.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn neighbours() -> Result<Verdict> {
    let subtree = Subtree::new(&ALL)?;
    subtree.delegate()?;
    let mut command = Command::new("sleep");
    command.arg("1000").stdin(Stdio::null());
    subtree.hold(&mut command);
    let sleeper = Sleeper(command.spawn().map_err(at("sleep"))?);
    let pid = i32::try_from(sleeper.0.id()).map_err(at("sleep"))?;
    let before = Process::read(pid).ok_or("no sleeper")?;
    let place = Place::new("strace")?;
    let traced = |name: &str| -> Result<usize> {
        let log = place.path().join(name);
        let mut command = strace(&log);
        command.arg(place::orch()?);
        let mut orch = Orch::around(command, "strict")?;
        // From where whoever was there at first is by now.
        subtree.hold(orch.command());
        orch.run(&["/bin/true"])?.clean()?;
        Ok(opens(&log)?.len())
    };
    // Control: the move itself is a write to that file, and it is seen.
    let first = traced("first")?;
    ensure(first > 0, || "nothing was moved".to_owned())?;
    ensure(subtree.members("main") == [pid], || {
        format!("{:?} in the leaf", subtree.members("main"))
    })?;
    ensure(alive(&[before]).len() == 1, || "it has ended".to_owned())?;
    let second = traced("second")?;
    ensure(second == 0, || format!("{second} writes to cgroup.procs"))?;
    Ok(Verdict::Held)
}

fn lacking() -> Result<Verdict> {
    let place = Place::new("profile")?;
    let slow = "extends: standard\nname: mine\nlimits:\n  io_read_mb_per_second: 1\n";
    let slow = place.file("slow.yaml", slow)?;
    let slow = slow.display().to_string();
    let within = |subtree: &Subtree, profile: &str| {
        let mut orch = Orch::new(profile)?;
        subtree.hold(orch.command());
        orch.run(&["/bin/echo", "ran"])
    };
    let refused = |subtree: &Subtree, profile: &str, controller: &str| {
        let ended = within(subtree, profile)?;
        ended.refused(&["cgroup_failed"])?;
        let named = ended
            .stderr
            .contains(&format!("the {controller} controller"));
        ensure(named, || format!("{controller} is not named: {ended:?}"))
    };
    let subtree = Subtree::new(&NO_IO)?;
    subtree.delegate()?;
    within(&subtree, "standard")?.clean()?;
    refused(&subtree, &slow, "io")?;
    let subtree = Subtree::new(&["memory", "pids"])?;
    subtree.delegate()?;
    refused(&subtree, "standard", "cpu")?;
    // Control: the same profile where the controller is there.
    let subtree = Subtree::new(&ALL)?;
    subtree.delegate()?;
    within(&subtree, &slow)?.clean()?;
    // A run that was refused has left nothing behind either.
    eventually("no group", PATIENCE, || {
        (!subtree.path().join("orch").exists()).then_some(())
    })?;
    Ok(Verdict::Held)
}
