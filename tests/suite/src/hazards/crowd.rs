//! H9, H10, H11: many at once, and the end of many.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::TIERS;
use crate::harness::{Test, Verdict, test};
use crate::pace;
use crate::rig::host::{PATIENCE, alive, descendants, group_roots, groups, nothing_left};
use crate::rig::orch::{Live, Orch};
use crate::rig::{Result, at, ensure, lease};

/// Design §3.5 and E1: gone within this.
const TEARDOWN: Duration = Duration::from_secs(5);

/// Those that load the machine on purpose take turns: each asks what becomes of its own
/// crowd, and two at once only ask how fast the machine is.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    // One that failed in its turn has said so.
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn tests() -> Vec<Test> {
    vec![
        test("hazards::H9::200_creates_at_concurrency_16", many),
        test("hazards::H9::creates_while_other_threads_allocate", threads),
        test("hazards::H10::400_processes_end", || teardown("")),
        test("hazards::H10::nested_control_group", nested),
        test(
            "hazards::H10_PX-06::no_zombies_of_ended_containers",
            zombies,
        ),
        test("hazards::H11::nested_forks_end", || {
            teardown(
                "fork() { ( sleep 1000 & ( sleep 1000 & sleep 1000 & wait ) & wait ) & }; fork; fork; ",
            )
        }),
        test("hazards::H11::fork_bomb_ends", bomb),
    ]
}

fn many() -> Result<Verdict> {
    const RUNS: usize = 200;
    const AT_ONCE: usize = 16;
    let _turn = turn();
    let next = AtomicUsize::new(0);
    let worker = || -> Result<Vec<String>> {
        let mut ids = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= RUNS {
                return Ok(ids);
            }
            let ended = Orch::new(TIERS[number % TIERS.len()])?
                .run(&["/bin/true"])
                .and_then(crate::rig::orch::Ended::clean)
                .map_err(|why| format!("run {number}: {why}"))?;
            ids.extend(ended.id());
        }
    };
    let ids = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(worker)).collect();
        workers
            .into_iter()
            .map(|worker| worker.join().map_err(|_| "a worker failed".to_owned())?)
            .collect::<Result<Vec<_>>>()
    })?
    .concat();
    ensure(ids.len() == RUNS, || {
        format!("{} of {RUNS} have a receipt", ids.len())
    })?;
    let different: std::collections::BTreeSet<_> = ids.iter().collect();
    ensure(different.len() == RUNS, || {
        "two runs have one id".to_owned()
    })?;
    for id in &ids {
        nothing_left(id)?;
    }
    Ok(Verdict::Held)
}

/// The caller of the engine has threads that allocate and log all the time: what
/// is forked must not depend on their locks.
fn threads() -> Result<Verdict> {
    let _turn = turn();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let text: Vec<String> = (0..64)
                        .map(|n| format!("{n:?} {}", "x".repeat(n)))
                        .collect();
                    std::hint::black_box(text);
                    std::thread::yield_now();
                }
            });
        }
        let creators: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    (0..6).try_for_each(|_| {
                        lease::session("strict", |open| {
                            let ran = open.exec(&["/bin/true"])?;
                            ensure(ran.code == Some(0), || format!("{ran:?}"))
                        })
                    })
                })
            })
            .collect();
        let done = creators
            .into_iter()
            .try_for_each(|creator| creator.join().map_err(|_| "a creator failed".to_owned())?);
        stop.store(true, Ordering::Relaxed);
        done
    })?;
    Ok(Verdict::Held)
}

/// Ends orch by SIGTERM, and says whether all of it is gone in time.
fn end(live: Live, least: usize) -> Result<()> {
    let (id, task) = live.task()?;
    ensure(task.len() >= least, || {
        format!("only {} processes of at least {least}", task.len())
    })?;
    let all = live.processes();
    let start = Instant::now();
    live.signal(libc::SIGTERM);
    let ended = live.end(PATIENCE)?;
    let took = start.elapsed();
    ensure(took < pace::here(TEARDOWN), || {
        format!("the end took {took:?}")
    })?;
    let left = alive(&all);
    ensure(left.is_empty(), || format!("processes {left:?} are left"))?;
    ensure(
        ended.code == 128 + libc::SIGTERM || ended.code == 130 || ended.code == 137,
        || format!("exit code {}: {}", ended.code, ended.stderr),
    )?;
    nothing_left(&id)?;
    // Nothing of it is frozen, because nothing of it is there.
    for root in group_roots() {
        let frozen = root.join("orch").join(&id).join("0/freezer.state");
        ensure(!frozen.exists(), || frozen.display().to_string())?;
    }
    Ok(())
}

fn teardown(before: &str) -> Result<Verdict> {
    let _turn = turn();
    let script = format!(
        "{before} n=0; while [ $n -lt 400 ]; do sleep 1000 & n=$((n+1)); done; echo ready; wait"
    );
    let mut live = Orch::new("loose")?.start(&["/bin/sh", "-c", &script])?;
    live.expect("ready")?;
    end(live, 400)?;
    Ok(Verdict::Held)
}

/// Every process forks for as long as it can, also while all of it is being ended.
fn bomb() -> Result<Verdict> {
    let _turn = turn();
    if !std::path::Path::new("/usr/bin/perl").exists() {
        return Ok(Verdict::Skipped("perl is not installed".to_owned()));
    }
    // A shell gives up where it cannot fork; this does not.
    let bomb = r#"$SIG{TERM} = $SIG{INT} = "IGNORE"; $| = 1; print "ready\n"; while (1) { fork }"#;
    let mut live =
        Orch::new("loose")?
            .flag("--pids", "256")
            .start(&["/usr/bin/perl", "-e", bomb])?;
    live.expect("ready")?;
    crate::rig::host::eventually("a crowd", PATIENCE, || {
        let (_, task) = live.task().ok()?;
        (task.len() > 50).then_some(())
    })?;
    end(live, 1)?;
    Ok(Verdict::Held)
}

/// One launcher that ends containers for a long time collects none of them.
fn zombies() -> Result<Verdict> {
    let engine = lease::engine()?;
    let own = i32::try_from(std::process::id()).map_err(at("this process"))?;
    let guests = |dead: bool| {
        descendants(own)
            .into_iter()
            .filter(|process| process.field("Name").starts_with("memfd:orch-gues"))
            .filter(|process| process.field("State").starts_with('Z') == dead)
            .count()
    };
    for _ in 0..3 {
        lease::session_on(&engine, "strict", |open| {
            // Control: a guest that lives is seen that way.
            ensure(guests(false) >= 2, || "no guest is seen".to_owned())?;
            open.exec(&["/bin/true"]).map(drop)
        })?;
    }
    // Those of other tests are gone at once or with their launcher.
    crate::rig::host::eventually("no zombie", PATIENCE, || (guests(true) == 0).then_some(()))?;
    Ok(Verdict::Held)
}

/// A group below the task's own, with a process in it.
fn nested() -> Result<Verdict> {
    let mut live =
        Orch::new("loose")?.start(&["/bin/sh", "-c", "sleep 1000 & echo ready; wait"])?;
    live.expect("ready")?;
    let (id, task) = live.task()?;
    let mut made = 0;
    for group in groups(&id) {
        let below = group.join("0/nested");
        if std::fs::create_dir(&below).is_err() {
            continue;
        }
        made += 1;
        let inside = task.last().ok_or("no task")?.pid;
        // Version 1 takes a single thread; version 2 knows only the other file.
        let file = ["tasks", "cgroup.procs"]
            .into_iter()
            .map(|name| below.join(name))
            .find(|path| path.exists())
            .ok_or("a group without a file to join it")?;
        std::fs::write(&file, inside.to_string()).map_err(at(file.display()))?;
    }
    ensure(made > 0, || "no group could be made".to_owned())?;
    end(live, 2)?;
    Ok(Verdict::Held)
}
