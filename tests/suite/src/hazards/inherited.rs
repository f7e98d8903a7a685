//! What whoever starts orch leaves to it, and must not leave to a task: open
//! descriptors, LISTEN_FDS, groups, variables, secrets (H7, H8, H15, H16, A13).

use std::ffi::OsStr;
use std::fs::File;
use std::net::TcpListener;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use super::{PROGRAM, in_every_tier, judged};
use crate::harness::{Test, Verdict, test};
use crate::rig::orch::Orch;
use crate::rig::place::{self, Place};
use crate::rig::{Result, at, ensure, lease};

pub fn tests() -> Vec<Test> {
    let mut tests = in_every_tier("H7_A13_leaked_descriptors", leaked);
    tests.extend(in_every_tier("H16_supplementary_groups", groups));
    tests.extend(in_every_tier(
        "H15_variables_that_are_not_utf8",
        odd_variables,
    ));
    tests.extend(in_every_tier(
        "A13_PX-03_PX-04_secrets_of_the_caller",
        secrets,
    ));
    tests.push(test(
        "hazards::H7_control::what_is_leaked_is_seen",
        leak_control,
    ));
    tests.push(test(
        "hazards::H8::the_caller_keeps_its_oom_score_and_dumps",
        caller,
    ));
    tests
}

/// Makes `command` start with these at descriptors 3, 4, …, open across execve(2).
fn leave_open(command: &mut Command, leaks: Vec<OwnedFd>) {
    // SAFETY: dup2 and fcntl only; the descriptors live as long as the closure. The
    // copies high up keep one from overwriting the next.
    unsafe {
        command.pre_exec(move || {
            let high: Vec<i32> = leaks
                .iter()
                .map(|leak| libc::fcntl(leak.as_raw_fd(), libc::F_DUPFD, 100))
                .collect();
            for (target, source) in (3..).zip(&high) {
                if libc::dup2(*source, target) < 0 {
                    return Err(std::io::Error::last_os_error());
                }
            }
            Ok(())
        });
    }
}

/// A listening socket, a directory of the host, a file of the host.
fn leaks(place: &Place) -> Result<Vec<OwnedFd>> {
    let socket = TcpListener::bind("127.0.0.1:0").map_err(at("listen on loopback"))?;
    let directory = File::open("/").map_err(at("/"))?;
    let file = File::create(place.path().join("leaked")).map_err(at("leaked"))?;
    Ok(vec![socket.into(), directory.into(), file.into()])
}

fn leaked(tier: &'static str) -> Result<Verdict> {
    let place = Place::new("leak")?;
    let mut orch = Orch::new(tier)?.probe()?;
    leave_open(orch.command(), leaks(&place)?);
    orch.command().env("LISTEN_FDS", "3").env("LISTEN_PID", "1");
    let script = format!("{PROGRAM} run PX-07 A2 A13; echo ready >&2; echo ready; read -r line");
    let mut live = orch.start(&["/bin/sh", "-c", &script])?;
    let mut text = String::new();
    loop {
        let line = live.line()?;
        if line == "ready" {
            break;
        }
        text.push_str(&line);
        text.push('\n');
    }
    judged(tier, &text, &["PX-07", "A2", "A13"])?;
    // Neither do the launcher, the guest and the lease hold what was left open.
    let mark = place.path().join("leaked");
    let processes = live.processes();
    ensure(processes.len() >= 4, || {
        format!("only {processes:?} below orch")
    })?;
    for process in &processes {
        for (number, target) in process.descriptors() {
            ensure(target != mark && target.as_os_str() != "/", || {
                format!(
                    "{} ({}) holds {} as {number}",
                    process.field("Name"),
                    process.pid,
                    target.display()
                )
            })?;
        }
    }
    live.say("")?;
    live.end(crate::rig::host::PATIENCE)?.clean()?;
    Ok(Verdict::Held)
}

/// The same descriptors do reach a program that is started without orch.
fn leak_control() -> Result<Verdict> {
    let place = Place::new("leak")?;
    let mut command = Command::new(place::probe()?);
    command.args(["run", "PX-07", "A2.fd_walk"]);
    leave_open(&mut command, leaks(&place)?);
    let output = command.output().map_err(at("run the probe program"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let seen = text
        .lines()
        .any(|line| line.contains("PX-07.fds") && line.contains("0,1,2,3,4,5"))
        && text
            .lines()
            .any(|line| line.contains("A2.fd_walk") && line.contains("visible"));
    ensure(seen, || format!("the leaks are not seen: {text}"))?;
    Ok(Verdict::Held)
}

fn groups(tier: &'static str) -> Result<Verdict> {
    let mut orch = Orch::new(tier)?.probe()?;
    // SAFETY: setgroups(2) with a list that lives on the stack.
    unsafe {
        orch.command().pre_exec(|| {
            let list: [libc::gid_t; 3] = [0, 27, 999];
            match libc::setgroups(list.len(), list.as_ptr()) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        });
    }
    let script = format!("{PROGRAM} run A10.groups; echo ready; read -r line");
    let mut live = orch.start(&["/bin/sh", "-c", &script])?;
    let line = live.line()?;
    live.expect("ready")?;
    judged(tier, &line, &[])?;
    ensure(line.contains(r#""detail":"""#), || {
        format!("groups inside: {line}")
    })?;
    // Control: orch itself has them.
    let own = crate::rig::host::Process::read(live.pid()).ok_or("orch is gone")?;
    ensure(own.field("Groups") == "0 27 999", || {
        format!("orch itself has groups {:?}", own.field("Groups"))
    })?;
    // Seen from outside: every process that has left the host's user namespace.
    let host = std::fs::read_link("/proc/self/ns/user").map_err(at("/proc/self/ns/user"))?;
    let inside: Vec<_> = live
        .processes()
        .into_iter()
        .filter(|process| process.link("ns/user").is_some_and(|user| user != host))
        .collect();
    ensure(inside.len() >= 3, || {
        format!("guest, lease, task: {inside:?}")
    })?;
    for process in &inside {
        ensure(process.field("Groups").is_empty(), || {
            format!(
                "{} has groups {}",
                process.field("Name"),
                process.field("Groups")
            )
        })?;
    }
    live.say("")?;
    live.end(crate::rig::host::PATIENCE)?.clean()?;
    Ok(Verdict::Held)
}

fn odd_variables(tier: &'static str) -> Result<Verdict> {
    let odd = OsStr::from_bytes(b"\xff");
    let mut orch = Orch::new(tier)?;
    orch.command().env("X", odd);
    let ended = orch
        .run(&["/bin/sh", "-c", "echo \"${X-unset}\""])?
        .clean()?;
    ensure(ended.stdout == "unset\n", || format!("{ended:?}"))?;
    // Control, and a promise of its own: asked for by name it passes as it is.
    let mut orch = Orch::new(tier)?.flag("--env", "X");
    orch.command().env("X", odd);
    let script = r#"case "$X" in "$(printf '\377')") echo same;; *) echo other;; esac"#;
    let ended = orch.run(&["/bin/sh", "-c", script])?.clean()?;
    ensure(ended.stdout == "same\n", || format!("{ended:?}"))?;
    Ok(Verdict::Held)
}

fn secrets(tier: &'static str) -> Result<Verdict> {
    let planted = [
        ("AWS_SECRET_ACCESS_KEY", "ORCH-CANARY-aws"),
        ("GITHUB_TOKEN", "ORCH-CANARY-github"),
        ("DATABASE_PASSWORD", "ORCH-CANARY-database"),
        ("HARMLESS", "ORCH-CANARY-value"),
        ("HTTP_PROXY", "http://user:ORCH-CANARY-proxy@127.0.0.1:9"),
    ];
    let script = format!(
        "tr '\\0' '\\n' < /proc/self/environ; for p in /proc/[0-9]*; do \
         tr '\\0' '\\n' < $p/environ; done 2>/dev/null; {PROGRAM} run PX-03 PX-04 A13; true"
    );
    let mut orch = Orch::new(tier)?.probe()?;
    orch.command().envs(planted);
    let ended = orch.run(&["/bin/sh", "-c", &script])?.clean()?;
    ensure(ended.stdout.contains("PATH="), || {
        format!("no environment: {ended:?}")
    })?;
    ensure(!ended.stdout.contains("ORCH-CANARY"), || {
        format!("a secret came through: {}", ended.stdout)
    })?;
    let lines: String = ended
        .stdout
        .lines()
        .filter(|line| line.starts_with('{'))
        .fold(String::new(), |text, line| text + line + "\n");
    judged(tier, &lines, &["PX-03", "PX-04", "A13"])?;
    // Control: one that is asked for does come through, and is seen.
    let mut orch = Orch::new(tier)?.flag("--env", "HARMLESS");
    orch.command().envs(planted);
    let ended = orch
        .run(&["/bin/sh", "-c", "tr '\\0' '\\n' < /proc/self/environ"])?
        .clean()?;
    ensure(ended.stdout.contains("HARMLESS=ORCH-CANARY-value"), || {
        format!("not even one that was asked for: {ended:?}")
    })?;
    Ok(Verdict::Held)
}

/// In this very process, which is what a daemon is: creating changes nothing of it.
fn caller() -> Result<Verdict> {
    let facts = || -> Result<(String, i32)> {
        let score = std::fs::read_to_string("/proc/self/oom_score_adj")
            .map_err(at("/proc/self/oom_score_adj"))?;
        // SAFETY: takes no pointers.
        Ok((score, unsafe { libc::prctl(libc::PR_GET_DUMPABLE) }))
    };
    let before = facts()?;
    lease::session("strict", |open| {
        let ran = open.exec(&[PROGRAM, "status"])?;
        ensure(ran.code == Some(0), || format!("{ran:?}"))?;
        let during = facts()?;
        ensure(during == before, || format!("{before:?} became {during:?}"))
    })?;
    let after = facts()?;
    ensure(after == before && before.1 == 1, || {
        format!("{before:?} became {after:?}")
    })?;
    Ok(Verdict::Held)
}
