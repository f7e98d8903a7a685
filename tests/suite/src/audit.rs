//! `--audit`: what happens, told in a log that no task reaches (AU-04…AU-06, AU-14).

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::call::{Call, ensure, orch};
use crate::harness::{Test, Verdict, test};
use crate::left::{self, eventually};
use crate::place::Place;
use crate::refusal::refused;

const SOON: Duration = Duration::from_secs(15);

pub fn tests() -> Vec<Test> {
    vec![
        test("audit::a_task_is_told_au05", told),
        test("audit::a_limit_that_was_hit_is_told_au04", limited),
        test("audit::a_refusal_is_told_au06", refusals),
        test("audit::one_line_whatever_a_task_puts_there_au06", one_line),
        test("audit::values_are_not_in_it_au06", values),
        test(
            "audit::tasks_at_the_same_time_make_one_chain_au06",
            together,
        ),
        test("audit::no_task_sees_it_au06", unseen),
        test("audit::copied_results_do_not_replace_it_au06", replaced),
        test("audit::of_an_orch_that_is_killed_au05", killed),
        test("audit::nothing_runs_that_cannot_be_told_au14", unwritable),
        test(
            "audit::an_end_that_cannot_be_told_is_no_success_au14",
            end_lost,
        ),
    ]
}

fn auditing(log: &Path, tier: &str) -> Result<Call, String> {
    Ok(Call::new(tier)?.args(["--audit".as_ref(), log.as_os_str()]))
}

/// The records, each found to be bound to the line before.
fn records(log: &Path) -> Result<Vec<Value>, String> {
    let bytes = fs::read(log).map_err(|e| format!("read {}: {e}", log.display()))?;
    let mut prev = orch_policy::audit::FIRST.to_owned();
    let mut records: Vec<Value> = Vec::new();
    ensure!(
        bytes.is_empty() || bytes.ends_with(b"\n"),
        "no last newline"
    );
    for line in bytes.split(|byte| *byte == b'\n').filter(|l| !l.is_empty()) {
        ensure!(line.is_ascii(), "not ASCII");
        let record: Value = serde_json::from_slice(line).map_err(|e| e.to_string())?;
        ensure!(record["prev"] == prev.as_str(), "not bound: {record}");
        ensure!(record["seq"] == records.len(), "a gap: {record}");
        prev = orch_policy::audit::line::hash(line);
        records.push(record);
    }
    Ok(records)
}

/// The names of the events, in order.
fn events(log: &Path) -> Result<Vec<String>, String> {
    let records = records(log)?;
    let name = |record: &Value| record["event"].as_str().unwrap_or_default().to_owned();
    Ok(records.iter().map(name).collect())
}

fn told() -> Result<Verdict, String> {
    let place = Place::new()?;
    let (log, data) = (place.join("log"), place.file("data", "x")?);
    for tier in ["loose", "standard", "strict"] {
        let before = records(&log).map_or(0, |records| records.len());
        let ended = auditing(&log, tier)?
            .mount(&data, ":/workspace/data")
            .args(["--network", "none", "--label", "job=7"])
            .sh("exit 3")
            .run()?;
        ensure!(ended.code() == 3, "{ended:?}");
        let records = records(&log)?;
        let [start, end] = &records[before..] else {
            return Err(format!("{tier}: {records:?}"));
        };
        let id = ended.id().unwrap_or_default();
        ensure!(
            start["event"] == "task_started" && start["task"] == id,
            "{start}"
        );
        ensure!(start["tier"] == tier && start["caller"] == 0, "{start}");
        ensure!(start["labels"]["job"] == "7", "{start}");
        ensure!(start["argv"][2] == "exit 3", "{start}");
        ensure!(
            start["profile_sha256"] == *ended.fact("profile_sha256"),
            "{start}"
        );
        let mount = &start["mounts"][0];
        ensure!(
            mount["target"] == "/workspace/data" && mount["writable"] == false,
            "{start}"
        );
        ensure!(end["event"] == "task_ended" && end["task"] == id, "{end}");
        ensure!(end["exit_code"] == 3 && end["reason"] == "exit", "{end}");
        ensure!(end["cleanup"] == "confirmed", "{end}");
        ensure!(end["usage"] == *ended.fact("usage"), "{end}");
    }
    Ok(Verdict::Held)
}

fn limited() -> Result<Verdict, String> {
    let place = Place::new()?;
    let log = place.join("log");
    auditing(&log, "strict")?
        .args(["--pids", "8"])
        .sh("true")
        .run()?;
    ensure!(
        events(&log)? == ["task_started", "task_ended"],
        "{:?}",
        events(&log)
    );
    auditing(&log, "strict")?
        .args(["--pids", "8"])
        .sh("for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 9 & done 2>/dev/null; exit 0")
        .run()?;
    let records = records(&log)?;
    let hit = &records[3];
    ensure!(
        hit["event"] == "limit_hit" && hit["limit"] == "limits.processes",
        "{hit}"
    );
    ensure!(hit["value"] == 8 && hit["hits"].as_u64() > Some(0), "{hit}");
    ensure!(hit["task"] == records[4]["task"], "{records:?}");
    Ok(Verdict::Held)
}

/// Whatever orch says no to, before and after it looks at the host.
fn refusals() -> Result<Verdict, String> {
    let place = Place::new()?;
    let log = place.join("log");
    let calls: [(&str, &[&str]); 4] = [
        ("no-such-profile", &[]),
        ("strict", &["--mount", "/nonexistent/file"]),
        ("strict", &["--memory", "4096Gi"]),
        ("standard", &["--folder", "/etc"]),
    ];
    for (number, (profile, more)) in calls.into_iter().enumerate() {
        let ended = auditing(&log, profile)?.args(more).cmd(["true"]).run()?;
        ensure!(ended.code() == 125, "{ended:?}");
        let records = records(&log)?;
        ensure!(records.len() == number + 1, "{records:?}");
        let last = &records[number];
        let code = last["error"]["code"].as_str().unwrap_or_default();
        ensure!(
            last["event"] == "task_refused" && last["task"].is_null(),
            "{last}"
        );
        ensure!(
            ended.stderr.contains(code) && !code.is_empty(),
            "{last} {ended:?}"
        );
    }
    Ok(Verdict::Held)
}

fn one_line() -> Result<Verdict, String> {
    let place = Place::new()?;
    let log = place.join("log");
    let forged = "\n{\"seq\":9,\"prev\":\"\",\"event\":\"task_ended\"}\n\u{2028}\u{1b}[2J";
    auditing(&log, "strict")?
        .args(["--label", &format!("a={forged}")])
        .cmd(["sh", "-c", "printf '%s' \"$1\"", "sh", forged])
        .run()?;
    let records = records(&log)?;
    ensure!(records.len() == 2, "{records:?}");
    ensure!(records[0]["argv"][4] == forged, "{}", records[0]);
    Ok(Verdict::Held)
}

fn values() -> Result<Verdict, String> {
    let place = Place::new()?;
    let log = place.join("log");
    let secret = "hunter2-of-the-log";
    auditing(&log, "strict")?
        .args(["--env", &format!("TOKEN={secret}")])
        .sh("echo \"$TOKEN\"")
        .run()?
        .says(secret)?;
    let file = place.file("env", format!("KEY=-----BEGIN-----\n{secret}/+=\n"))?;
    auditing(&log, "strict")?
        .args(["--env-file".as_ref(), file.as_os_str()])
        .sh("true")
        .run()?;
    let text = fs::read_to_string(&log).map_err(|e| e.to_string())?;
    ensure!(text.lines().count() == 3, "{text}");
    ensure!(!text.contains(secret), "{text}");
    Ok(Verdict::Held)
}

fn together() -> Result<Verdict, String> {
    let place = Place::new()?;
    let log = place.join("log");
    std::thread::scope(|scope| {
        let run = || auditing(&log, "strict")?.sh("true").run()?.says("");
        let running: Vec<_> = (0..6).map(|_| scope.spawn(run)).collect();
        running.into_iter().try_for_each(|one| {
            one.join()
                .map_err(|_| "a thread has died".to_owned())?
                .map(drop)
        })
    })?;
    let records = records(&log)?;
    ensure!(records.len() == 12, "{records:?}");
    Ok(Verdict::Held)
}

/// Who reads a file can lock it, and hold everybody up (FS-21).
fn unseen() -> Result<Verdict, String> {
    let place = Place::new()?;
    let dir = place.join("dir");
    fs::create_dir(&dir).map_err(|e| e.to_string())?;
    let log = dir.join("log");
    for mount in [&dir, &log] {
        let call = || Ok(auditing(&log, "standard")?.mount(mount, ":/data"));
        refused(call, "mount_denied", &["dir"])?;
    }
    let folder = || Ok(auditing(&log, "standard")?.args(["--folder".as_ref(), dir.as_os_str()]));
    refused(folder, "mount_denied", &["dir"])?;
    let beside = place.file("beside", "x")?;
    auditing(&log, "standard")?
        .mount(&beside, ":/data")
        .sh("cat /data")
        .run()?
        .says("x")?;
    Ok(Verdict::Held)
}

fn replaced() -> Result<Verdict, String> {
    let place = Place::new()?;
    let out = place.join("out");
    fs::create_dir(&out).map_err(|e| e.to_string())?;
    let log = out.join("log");
    let call = || Ok(auditing(&log, "strict")?.args(["--out".as_ref(), out.as_os_str()]));
    refused(call, "audit_failed", &["could replace it"])?;
    let call = || {
        let call = auditing(&log, "strict")?.no_receipt();
        Ok(call.args(["--receipt".as_ref(), log.as_os_str()]))
    };
    refused(call, "receipt_failed", &["is the audit log"])?;
    // Of the four refusals, and nothing else.
    let records = records(&log)?;
    ensure!(records.len() == 4, "{records:?}");
    let (other, beside) = (place.join("log"), out.as_os_str());
    auditing(&other, "strict")?
        .args(["--out".as_ref(), beside])
        .sh("echo x >/tmp/out/result")
        .run()?;
    ensure!(
        out.join("result").exists(),
        "the control has copied nothing"
    );
    Ok(Verdict::Held)
}

/// A start without an end says so by itself; what comes after goes on.
fn killed() -> Result<Verdict, String> {
    let place = Place::new()?;
    let log = place.join("log");
    let running = auditing(&log, "standard")?.sh("exec sleep 641").start()?;
    running.until("sleep 641")?;
    ensure!(events(&log)? == ["task_started"], "{:?}", events(&log));
    running.signal(libc::SIGKILL);
    let state = running.state();
    running.wait(SOON)?;
    eventually(SOON, || Ok(left::left(&state, None)))?;
    auditing(&log, "standard")?.sh("true").run()?.says("")?;
    let events = events(&log)?;
    ensure!(
        events == ["task_started", "task_started", "task_ended"],
        "{events:?}"
    );
    Ok(Verdict::Held)
}

/// Runs orch with its log on a small file system of its own, after `before`.
fn on_a_disk(options: &str, before: &str, command: &str) -> Result<(Option<i32>, String), String> {
    let place = Place::new()?;
    let dir = place.join("dir");
    fs::create_dir(&dir).map_err(|e| e.to_string())?;
    let script = format!(
        "mount -t tmpfs -o mode=700,{options} none \"$1\" || exit 1; cd \"$1\"; {before}; \
         \"$2\" run --quiet --profile strict --audit \"$1/log\" -- sh -c '{command}'"
    );
    let done = Command::new("unshare")
        .args([
            "--mount",
            "--propagation",
            "private",
            "sh",
            "-c",
            &script,
            "sh",
        ])
        .args([dir.as_os_str(), &orch()])
        .env("ORCH_STATE_DIR", place.join("state"))
        .env("ORCH_UID_BLOCK", left::uid_block(&place.join("state")))
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("unshare: {e}"))?;
    let said = [done.stdout, done.stderr].concat();
    Ok((
        done.status.code(),
        String::from_utf8_lossy(&said).into_owned(),
    ))
}

/// AU-14, whatever the reason is.
fn unwritable() -> Result<Verdict, String> {
    let room = |before| on_a_disk("size=64k", before, "echo ran");
    let (code, said) = room("true")?;
    ensure!(code == Some(0) && said == "ran\n", "{code:?} {said}");
    for before in [
        "head -c 100000 /dev/zero >fill 2>/dev/null",
        "echo not a log >log",
        "mkdir log",
        "ln -s /tmp/elsewhere log",
        "chmod 777 .",
    ] {
        let (code, said) = room(before)?;
        ensure!(code == Some(125), "{before}: {code:?} {said}");
        ensure!(said.contains("code: audit_failed"), "{before}: {said}");
        ensure!(!said.contains("ran\n"), "{before}: {said}");
    }
    Ok(Verdict::Held)
}

/// The first page of a small disk takes the start; the end finds it full.
fn end_lost() -> Result<Verdict, String> {
    // One page for the log: its start fits with an argument of this length, and
    // nothing after it.
    let pad = "x".repeat(3500);
    let command = format!(": {pad}; echo ran");
    let (code, said) = on_a_disk("size=4k", "true", &command)?;
    ensure!(code == Some(125), "{code:?} {said}");
    ensure!(
        said.contains("ran\n") && said.contains("code: audit_failed"),
        "{said}"
    );
    let (code, said) = on_a_disk("size=16k", "true", &command)?;
    ensure!(code == Some(0) && said == "ran\n", "{code:?} {said}");
    Ok(Verdict::Held)
}
