//! The programs that eat a resource or refuse to die.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test may fail loudly"
)]

mod rig;

use std::io::{BufRead, BufReader};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rig::{PROGRAM, lines, probe};
use serde_json::Value;

fn report(args: &[&str]) -> Value {
    let output = probe(args).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    serde_json::from_str(text.lines().last().unwrap()).unwrap()
}

fn limited(args: &[&str], resource: libc::__rlimit_resource_t, limit: u64) -> Value {
    let mut command = probe(args);
    // SAFETY: setrlimit is safe between fork and exec; `limit` is moved in.
    let command = unsafe {
        command.pre_exec(move || {
            let limit = libc::rlimit {
                rlim_cur: limit,
                rlim_max: limit,
            };
            match libc::setrlimit(resource, &raw const limit) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        })
    };
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    serde_json::from_str(text.lines().last().unwrap()).unwrap()
}

fn eventually(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(10);
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn start(args: &[&str]) -> (Child, Value) {
    let mut child = probe(args).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    (child, serde_json::from_str(&line).unwrap())
}

fn send(pid: i64, signal: i32) {
    // SAFETY: `pid` is a process that this test started.
    unsafe { libc::kill(i32::try_from(pid).unwrap(), signal) };
}

#[test]
fn a_file_size_limit_stops_the_writer_with_efbig() {
    let path = std::env::temp_dir().join(format!("orch-writer-{}", std::process::id()));
    let args = ["writer", path.to_str().unwrap(), "1000000"];
    let free = report(&args);
    let bitten = limited(&args, libc::RLIMIT_FSIZE, 100_000);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(
        (&free["done"], &free["errno"]),
        (&1_000_000.into(), &Value::Null)
    );
    assert_eq!(
        (&bitten["done"], &bitten["errno"]),
        (&100_000.into(), &"EFBIG".into())
    );
}

#[test]
fn a_descriptor_limit_stops_fds_with_emfile() {
    assert_eq!(report(&["fds", "50"])["errno"], Value::Null);
    let bitten = limited(&["fds", "50"], libc::RLIMIT_NOFILE, 20);
    // 20 less the standard three, and less what the caller of the tests left open.
    assert!(
        (1..=17).contains(&bitten["done"].as_u64().unwrap()),
        "{bitten}"
    );
    assert_eq!(bitten["errno"], "EMFILE");
}

#[test]
fn memhog_touches_what_it_says() {
    let done = report(&["memhog", "33554432"]);
    assert_eq!(
        (&done["done"], &done["errno"]),
        (&33_554_432.into(), &Value::Null)
    );
    let bitten = limited(&["memhog", "1073741824"], libc::RLIMIT_AS, 64 << 20);
    assert_eq!(bitten["errno"], "ENOMEM");
}

#[test]
fn inodes_are_made_and_counted() {
    let folder = std::env::temp_dir().join(format!("orch-inodes-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let done = report(&["inodes", folder.to_str().unwrap(), "25"]);
    let count = std::fs::read_dir(&folder).unwrap().count();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!((&done["done"], count), (&25.into(), 25));
}

#[test]
fn a_flood_has_exactly_its_bytes() {
    let output = probe(&["flood", "300001"]).output().unwrap();
    assert_eq!(output.stdout.len(), 300_001);
    assert!(output.stdout.iter().all(|byte| *byte == b'x'));
}

#[test]
fn a_cpu_burn_ends_after_its_seconds() {
    let start = Instant::now();
    assert_eq!(report(&["cpuburn", "1"])["errno"], Value::Null);
    assert!(start.elapsed() >= Duration::from_secs(1));
}

#[test]
fn a_fork_bomb_makes_its_children_and_takes_them_along() {
    let (mut child, line) = start(&["forkbomb", "5"]);
    assert_eq!(line["done"], 5);
    let parent = child.id();
    let path = format!("/proc/{parent}/task/{parent}/children");
    let children = std::fs::read_to_string(path).unwrap();
    assert_eq!(children.split_whitespace().count(), 5);
    child.kill().unwrap();
    child.wait().unwrap();
    for pid in children.split_whitespace() {
        eventually("a child lives on", || {
            std::fs::read_to_string(format!("/proc/{pid}/stat"))
                .map_or(true, |stat| stat.contains(") Z"))
        });
    }
}

#[test]
fn the_daemon_leaves_its_parent_and_beats_on() {
    let path = std::env::temp_dir().join(format!("orch-beat-{}", std::process::id()));
    let (mut child, line) = start(&["setsid-daemon", path.to_str().unwrap()]);
    assert!(child.wait().unwrap().success());
    let pid = line["daemon"].as_i64().unwrap();
    assert_ne!(pid, i64::from(child.id()));
    send(pid, libc::SIGTERM);
    send(pid, libc::SIGHUP);
    let size = || std::fs::metadata(&path).map_or(0, |meta| meta.len());
    let before = size();
    eventually("no beat after SIGTERM", || size() > before + 2);
    send(pid, libc::SIGKILL);
    eventually("it lives on", || {
        std::fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |s| s.contains(") Z"))
    });
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn ignore_term_dies_of_kill_only_and_stop_self_stops() {
    let (mut child, line) = start(&["ignore-term"]);
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
        send(line["ignoring"].as_i64().unwrap(), signal);
    }
    assert!(child.try_wait().unwrap().is_none());
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));

    let (mut child, _) = start(&["stop-self"]);
    let stat = format!("/proc/{}/stat", child.id());
    eventually("it does not stop", || {
        std::fs::read_to_string(&stat).unwrap().contains(") T")
    });
    send(i64::from(child.id()), libc::SIGCONT);
    assert!(child.wait().unwrap().success());
}

#[test]
fn wrong_arguments_are_refused() {
    for args in [
        &["memhog"][..],
        &["memhog", "lots"],
        &["writer", "/tmp/x"],
        &["dance"],
        &[],
    ] {
        assert_eq!(
            probe(args).output().unwrap().status.code(),
            Some(2),
            "{args:?}"
        );
    }
}

#[test]
fn the_list_names_what_a_run_reports() {
    let output = probe(&["list"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let listed = text
        .lines()
        .filter(|id| id.starts_with("E10."))
        .collect::<Vec<_>>();
    let run = lines(&mut probe(&["run", "E10"]));
    assert_eq!(
        run.iter().map(|line| line.id.as_str()).collect::<Vec<_>>(),
        listed
    );
    assert!(PROGRAM.ends_with("orch-probe"));
}
