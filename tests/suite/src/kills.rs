//! orch is asked to end, or is ended (design §3.5, PX-09): nothing stays.

use std::time::{Duration, Instant};

use crate::call::{Call, Running, ensure};
use crate::harness::{Test, Verdict, test};
use crate::left::{self, eventually};

/// Design §3.5: within a second no process or mount of it lives.
const SECOND: Duration = Duration::from_secs(1);
const SOON: Duration = Duration::from_secs(8);

pub fn tests() -> Vec<Test> {
    vec![
        test("kills::ctrl_c_cancels", || asked(libc::SIGINT, 130)),
        test("kills::sigterm_cancels", || asked(libc::SIGTERM, 143)),
        test("kills::sighup_cancels", || asked(libc::SIGHUP, 129)),
        test("kills::sigquit_cancels", || asked(libc::SIGQUIT, 131)),
        test("kills::a_second_ctrl_c_does_not_wait", twice),
        test("kills::the_command_may_say_goodbye", goodbye),
        test("kills::sigkill_of_orch_px09", || killed("standard")),
        test("kills::sigkill_of_orch_in_strict_px09", || killed("strict")),
        test("kills::sigkill_of_orch_while_it_creates", while_creating),
        test(
            "kills::sigkill_of_all_before_the_first_process_is_started",
            unstarted,
        ),
        test("kills::sigkill_of_the_launcher_alone", launcher_only),
        test("kills::sigkill_of_both", both),
    ]
}

fn sleeper(tier: &str) -> Result<Running, String> {
    let running = Call::new(tier)?
        .with_mode()?
        .sh("/opt/mode mode setsid-daemon /tmp/alive; (trap '' TERM INT HUP; sleep 620) & sleep 621")
        .start()?;
    running.until("sleep 621")?;
    running.until("/opt/mode mode setsid-daemon")?;
    Ok(running)
}

fn asked(signal: i32, code: i32) -> Result<Verdict, String> {
    let running = sleeper("standard")?;
    let state = running.state();
    running.signal(signal);
    let ended = running
        .wait(SOON)?
        .is(code, "cancelled", "cancelled")?
        .mentions("cancelled")?;
    match left::left(&state, ended.id()) {
        None => Ok(Verdict::Held),
        Some(what) => Err(what),
    }
}

/// The command ignores the first one; the second does not wait for its grace, which a
/// single one does (control).
fn twice() -> Result<Verdict, String> {
    let (patient, impatient) = (interrupted(1)?, interrupted(2)?);
    ensure!(
        impatient + Duration::from_millis(500) < patient,
        "with one it took {patient:?}, with two {impatient:?}"
    );
    Ok(Verdict::Held)
}

/// From the first of so many SIGINT to the end, of a command that ignores them.
fn interrupted(times: u32) -> Result<Duration, String> {
    let running = Call::new("standard")?.mode(&["ignore-term"])?.start()?;
    let state = running.state();
    eventually(SOON, || {
        let ignores = left::processes_of(&state).into_iter().any(|pid| {
            mask(pid, "SigIgn:").is_some_and(|mask| mask & (1 << (libc::SIGINT - 1)) != 0)
        });
        Ok((!ignores).then(|| "nobody ignores SIGINT".to_owned()))
    })?;
    running.signal(libc::SIGINT);
    let first = Instant::now();
    for _ in 1..times {
        // It is taken one at a time; a pending one of the same number would be merged.
        eventually(SECOND, || {
            let pending = mask(u32::try_from(running.pid()).unwrap_or(0), "ShdPnd:");
            Ok((pending != Some(0)).then(|| format!("pending {pending:?}")))
        })?;
        running.signal(libc::SIGINT);
    }
    let ended = running.wait(SOON)?.is(130, "cancelled", "cancelled")?;
    let took = first.elapsed();
    match left::left(&state, ended.id()) {
        None => Ok(took),
        Some(what) => Err(what),
    }
}

/// A set of signals in proc_pid_status(5).
fn mask(pid: u32, key: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(key))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

fn goodbye() -> Result<Verdict, String> {
    let running = Call::new("standard")?
        .sh("trap 'echo bye; exit 3' TERM; sleep 622 & wait")
        .start()?;
    running.until("sleep 622")?;
    running.signal(libc::SIGTERM);
    let ended = running.wait(SOON)?.is(143, "cancelled", "cancelled")?;
    ensure!(ended.out() == "bye", "no last word: {ended:?}");
    Ok(Verdict::Held)
}

/// Children of a process.
fn children(pid: i32) -> Vec<i32> {
    std::fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|list| {
            let pids = list.split_whitespace().filter_map(|pid| pid.parse().ok());
            pids.collect::<Vec<i32>>()
        })
        .collect()
}

fn launcher(running: &Running) -> Result<i32, String> {
    match children(running.pid())[..] {
        [launcher] => Ok(launcher),
        ref others => Err(format!("expected one launcher, found {others:?}")),
    }
}

fn is_alive(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/status"))
        .is_ok_and(|status| !status.contains("State:\tZ"))
}

fn kill(pid: i32) {
    // SAFETY: a plain call; the process is a descendant of ours.
    unsafe { libc::kill(pid, libc::SIGKILL) };
}

fn killed(tier: &str) -> Result<Verdict, String> {
    let running = sleeper(tier)?;
    let (state, launcher) = (running.state(), launcher(&running)?);
    let id = left::container_of(&state).ok_or("no container")?;
    running.signal(libc::SIGKILL);
    eventually(SECOND, || {
        let alive = is_alive(launcher).then(|| "the launcher is alive".to_owned());
        Ok(left::left(&state, Some(&id)).or(alive))
    })?;
    let ended = running.wait(SOON)?;
    ensure!(ended.signal() == Some(libc::SIGKILL), "{ended:?}");
    Ok(Verdict::Held)
}

/// At the moments that can be seen from outside: when the launcher is there, when
/// a range is taken, when the first process of the container is there; and at
/// points between them, counted in looks rather than in time.
fn while_creating() -> Result<Verdict, String> {
    for round in 0..24 {
        let before = left::groups();
        let running = Call::new("standard")?.sh("sleep 623").start()?;
        let state = running.state();
        let mut looks = 0;
        eventually(SOON, || {
            let seen = match round % 3 {
                0 => !children(running.pid()).is_empty(),
                1 => left::holds_a_range(&state),
                _ => !left::processes_of(&state).is_empty(),
            };
            looks += u32::from(seen);
            Ok((looks <= round / 6).then(|| "not there yet".to_owned()))
        })?;
        let launchers = children(running.pid());
        running.signal(libc::SIGKILL);
        let mine: Vec<_> = left::groups().difference(&before).cloned().collect();
        eventually(2 * SECOND, || {
            let alive = launchers.iter().find(|pid| is_alive(**pid));
            let alive = alive.map(|pid| format!("launcher {pid} is alive"));
            Ok(left::left(&state, None).or(alive))
        })
        .map_err(|why| format!("round {round}: {why}"))?;
        // Groups of neighbours go away as well, with their tests.
        eventually(Duration::from_secs(30), || {
            let there = mine.iter().find(|group| group.exists());
            Ok(there.map(|group| format!("round {round}: {} is left", group.display())))
        })?;
        running.wait(SOON)?;
    }
    Ok(Verdict::Held)
}

/// libcontainer's own first process waits for its worker's word, and must not wait for
/// ever where nobody is left who could say it. That it is there can be seen for less
/// than a millisecond, so that not every round catches it.
fn unstarted() -> Result<Verdict, String> {
    let mut caught = 0;
    for _ in 0..300 {
        let running = Call::new("standard")?.sh("true").start()?;
        let state = running.state();
        let seen = loop {
            // Looked at first: whoever ends after that is caught or missed.
            let ended = !is_alive(running.pid());
            let launcher = children(running.pid()).first().copied();
            let worker = launcher.and_then(|launcher| children(launcher).first().copied());
            let first = worker.and_then(|worker| {
                children(worker).into_iter().find(|pid| {
                    std::fs::read_to_string(format!("/proc/{pid}/comm"))
                        .is_ok_and(|name| name.contains("INIT"))
                })
            });
            if let (Some(launcher), Some(worker), Some(_)) = (launcher, worker, first) {
                break Some([worker, launcher]);
            }
            if ended {
                break None;
            }
        };
        for pid in seen.into_iter().flatten() {
            kill(pid);
        }
        running.signal(libc::SIGKILL);
        eventually(SOON, || {
            let there = left::alive(&state);
            Ok((!there.is_empty()).then(|| format!("processes {there:?} live on")))
        })?;
        running.wait(SOON)?;
        caught += u32::from(seen.is_some());
        if caught >= 20 {
            return Ok(Verdict::Held);
        }
    }
    ensure!(caught > 0, "the moment was never seen");
    Ok(Verdict::Held)
}

/// PX-17: that is a failure of orch, and nothing of the task goes on.
fn launcher_only() -> Result<Verdict, String> {
    let running = sleeper("standard")?;
    let (state, launcher) = (running.state(), launcher(&running)?);
    let id = left::container_of(&state).ok_or("no container")?;
    kill(launcher);
    // orch looks after it once a second.
    eventually(2 * SECOND, || {
        let there = left::alive(&state);
        Ok((!there.is_empty()).then(|| format!("processes {there:?} live on")))
    })?;
    let ended = running.wait(SOON)?;
    ensure!(
        ended.code() == 125 && ended.stderr.contains("code: "),
        "expected a failure of orch: {ended:?}"
    );
    Call::new("standard")?.sh("echo next").run()?.says("next")?;
    next_start_cleans(&state, &id)
}

fn both() -> Result<Verdict, String> {
    let running = sleeper("standard")?;
    let (state, launcher) = (running.state(), launcher(&running)?);
    let id = left::container_of(&state).ok_or("no container")?;
    running.signal(libc::SIGSTOP);
    kill(launcher);
    running.signal(libc::SIGKILL);
    eventually(SECOND, || {
        let there = left::alive(&state);
        Ok((!there.is_empty()).then(|| format!("processes {there:?} live on")))
    })?;
    next_start_cleans(&state, &id)
}

/// Design §3.5: what the launcher cannot remove any more, the next start does.
fn next_start_cleans(state: &std::path::Path, id: &str) -> Result<Verdict, String> {
    let done = std::process::Command::new(crate::call::orch())
        .args(["run", "--", "true"])
        .env("ORCH_STATE_DIR", state)
        .env("ORCH_UID_BLOCK", crate::left::uid_block(state))
        .output()
        .map_err(|e| format!("start orch: {e}"))?;
    ensure!(done.status.success(), "the next run: {:?}", done.status);
    // The host's init takes its time.
    let found = eventually(Duration::from_secs(10), || {
        Ok(left::left(state, Some(id)).or_else(|| left::noted(state)))
    });
    match found {
        Ok(()) => Ok(Verdict::Held),
        Err(what) => {
            for group in left::groups().into_iter().filter(|path| path.ends_with(id)) {
                // What the product has left is not to be found by the next test.
                let _ = std::fs::remove_dir(group.join("0"));
                let _ = std::fs::remove_dir(group);
            }
            Err(format!("after the next start: {what}"))
        }
    }
}
