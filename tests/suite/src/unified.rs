//! What cgroup version 2 can do and version 1 cannot, and its counters in the receipt.
//! Version 2 only.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::call::Ended;
use crate::harness::{Test, Verdict, test};
use crate::limits::limited;
use crate::place::OWNER;
use crate::rig::host::{PATIENCE, Process, alive, descendants, eventually, groups, unified};
use crate::rig::lease;
use crate::rig::orch::Orch;
use crate::rig::subtree::Subtree;
use crate::rig::{Result, at, ensure};

pub fn tests() -> Vec<Test> {
    if !unified() {
        return Vec::new();
    }
    vec![
        test("unified::out_of_memory_ends_the_whole_tree", oom_group),
        test("unified::swap_is_closed_where_there_is_some_pr20", swap),
        test("unified::groups_below_end_with_the_command_fa26", kill),
        test("unified::peaks_and_events_are_in_the_receipt", counters),
        test("unified::buffered_writes_are_counted_and_slowed", buffered),
    ]
}

/// `memory.oom.group`: the shell, which did nothing, ends as well.
fn oom_group() -> Result<Verdict> {
    let ended = |script: &str| -> Result<Ended> {
        let (_place, call) = limited(&["memory_mb: 64"])?;
        call.with_mode()?.sh(script).run()
    };
    let script = "/opt/mode mode memhog 134217728 >/dev/null; echo survived";
    let killed = ended(script)?.is(137, "exited", "oom")?;
    ensure(killed.out().is_empty(), || format!("{killed:?}"))?;
    // Control: what is killed for another reason leaves it alone.
    ended("sh -c 'kill -9 $$'; echo survived")?.says("survived")?;
    Ok(Verdict::Held)
}

/// A task does not get past its memory by way of swap, which others can here.
fn swap() -> Result<Verdict> {
    let swaps = std::fs::read_to_string("/proc/swaps").unwrap_or_default();
    if swaps.lines().count() < 2 {
        return Ok(Verdict::Skipped("no swap is in use".to_owned()));
    }
    let subtree = Subtree::new(&["memory", "pids"])?;
    let file = subtree.path().join("memory.max");
    std::fs::write(&file, "67108864").map_err(at(file.display()))?;
    let own = std::env::current_exe().map_err(at("this program"))?;
    let mut hog = Command::new(own);
    hog.args([crate::MODE, "memhog", "100663296"]);
    hog.stdout(Stdio::null());
    subtree.hold(&mut hog);
    let status = hog.status().map_err(at("memhog"))?;
    ensure(status.success(), || {
        format!("control: without swap.max it ended with {status}")
    })?;
    let (_place, call) = limited(&["memory_mb: 64"])?;
    call.mode(&["memhog", "100663296"])?
        .run()?
        .is(137, "exited", "oom")?;
    Ok(Verdict::Held)
}

/// `cgroup.kill` takes the groups below along, which a hunt for the pids of the group
/// of a command would not see.
fn kill() -> Result<Verdict> {
    let own = i32::try_from(std::process::id()).map_err(at("this process"))?;
    let find = |words: &str| {
        eventually(words, PATIENCE, || {
            descendants(own).into_iter().find(|process| {
                std::fs::read(format!("/proc/{}/cmdline", process.pid))
                    .is_ok_and(|line| line == words.replace(' ', "\0").as_bytes())
            })
        })
    };
    let move_and_end = || -> Result<Process> {
        let (hidden, first) = (find("sleep 630\0")?, find("sleep 631\0")?);
        let (id, exec) = hidden.exec().ok_or("in no group")?;
        let group = groups(&id).pop().ok_or("no group")?;
        let below = group.join(exec.to_string()).join("below");
        std::fs::create_dir(&below).map_err(at(below.display()))?;
        let file = below.join("cgroup.procs");
        std::fs::write(&file, hidden.pid.to_string()).map_err(at(file.display()))?;
        // Control: it lives, and what is killed here is another.
        ensure(alive(std::slice::from_ref(&hidden)).len() == 1, || {
            "it has ended by itself".to_owned()
        })?;
        // SAFETY: a plain call; the process is a descendant of ours.
        unsafe { libc::kill(first.pid, libc::SIGKILL) };
        Ok(hidden)
    };
    lease::session("standard", |open| {
        std::thread::scope(|scope| {
            let mover = scope.spawn(move_and_end);
            let ran = open.exec(&["/bin/sh", "-c", "sleep 630 & sleep 631; echo end"])?;
            let hidden = mover.join().map_err(|_| "the mover failed")??;
            ensure(ran.stdout == "end\n", || format!("{ran:?}"))?;
            let left = alive(&[hidden]);
            ensure(left.is_empty(), || format!("{left:?}"))
        })
    })?;
    Ok(Verdict::Held)
}

/// What a kernel has a file for is in the receipt, the rest is absent.
fn counters() -> Result<Verdict> {
    let mut live = Orch::new("standard")?
        .flag("--pids", "8")
        .flag("--cpus", "0.2")
        .start(&[
            "/bin/sh",
            "-c",
            "echo ready; read -r line; n=0; while [ $n -lt 100000 ]; do n=$((n+1)); done; \
             for n in 1 2 3 4 5 6 7 8 9; do sleep 5 & done 2>/dev/null; wait",
        ])?;
    live.expect("ready")?;
    let (id, _) = live.task()?;
    let group = groups(&id).pop().ok_or("no group")?.join("0");
    let knows = |file: &str| group.join(file).exists();
    let (memory, pids) = (knows("memory.peak"), knows("pids.peak"));
    live.say("go on")?;
    let ended = live.end(PATIENCE * 6)?;
    let receipt = ended.receipt.as_ref().ok_or("no receipt")?;
    let usage = |name: &str| receipt["usage"][name].as_u64();
    let hits = |key: &str| receipt["limits"][format!("limits.{key}")]["hits"].as_u64();
    let say = || format!("{receipt}");
    // A shell's memory, and less than the limit.
    let peak = usage("memory_peak_bytes");
    ensure(peak.is_some() == memory, say)?;
    ensure(
        peak.is_none_or(|peak| (100_000..2 << 30).contains(&peak)),
        say,
    )?;
    let peak = usage("pids_peak");
    ensure(
        peak.is_some() == pids && peak.is_none_or(|peak| peak == 8),
        say,
    )?;
    ensure(hits("processes") > Some(0), say)?;
    ensure(hits("cpus") > Some(0), say)?;
    ensure(hits("memory_mb") == Some(0), say)?;
    ensure(usage("cpu_us") > Some(0), say)?;
    Ok(Verdict::Held)
}

/// On version 1 the kernel charges such writes to nobody (design §1).
fn buffered() -> Result<Verdict> {
    const SIZE: u64 = 4 << 20;
    let write = |limit: &str| -> Result<(u64, u64)> {
        let place = crate::place::Place::new()?;
        let folder = place.folder("data")?;
        if let Some(reason) = crate::rates::unfit(&folder)? {
            return Err(reason);
        }
        let (_profile, call) = limited(&[limit])?;
        let ended = call
            .args(["--folder".as_ref(), folder.as_os_str()])
            .sh("dd if=/dev/zero of=file bs=1M count=4 conv=fsync 2>/dev/null")
            .run()?
            .is(0, "exited", "exit")?;
        let number = |name: &str| ended.fact(&format!("/usage/{name}")).as_u64();
        owner(&folder.join("file"))?;
        let both = number("io_write_bytes").zip(number("wall_us"));
        both.ok_or(format!("not counted: {ended:?}"))
    };
    let (bytes, free) = write("open_files: 64")?;
    ensure(bytes >= SIZE, || format!("{bytes} bytes of {SIZE}"))?;
    let (bytes, slowed) = write("io_write_mb_per_second: 1")?;
    ensure(bytes >= SIZE, || format!("{bytes} bytes of {SIZE}"))?;
    ensure(slowed > 2_000_000 && free < slowed / 2, || {
        format!("{free} µs, and {slowed} µs with a limit")
    })?;
    Ok(Verdict::Held)
}

/// The file is the one that the task has written.
fn owner(file: &Path) -> Result<()> {
    use std::os::unix::fs::MetadataExt;
    let meta = eventually("the file", PATIENCE, || std::fs::metadata(file).ok())?;
    ensure(meta.uid() == OWNER, || format!("owner {}", meta.uid()))
}
