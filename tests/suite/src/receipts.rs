//! What is known about a task afterwards (EV-01…EV-05, PX-15, PX-17, PX-18).

use std::collections::BTreeSet;

use serde_json::Value;

use crate::call::{Call, Ended, ensure};
use crate::harness::{Test, Verdict, test};
use crate::place::Place;

pub fn tests() -> Vec<Test> {
    vec![
        test("receipts::keys_are_stable", keys),
        test("receipts::what_is_not_known_is_absent_design8", absent),
        test("receipts::codes_and_signals_ev02_ev03", endings),
        test("receipts::the_kernel_says_how_it_ended", source),
        test("receipts::usage_is_that_of_the_whole_tree_px15", usage),
        test("receipts::every_bound_has_a_source_px15", bounds),
        test("receipts::output_is_counted_ev08", counted),
        test("receipts::the_last_output_is_there_ev04", preview),
        test("receipts::every_stage_is_timed", stages),
        test("receipts::a_refusal_is_guessed_at_px18", denied),
        test("receipts::labels_profile_and_image", labels),
        test("receipts::ids_are_never_the_same", ids),
        test(
            "receipts::a_summary_says_which_limit_and_how_to_raise_it",
            summaries,
        ),
    ]
}

/// Every path of keys in a document; entries of `limits`, `labels` and `stages_us`
/// are names of their own, shown as `*`.
fn paths(value: &Value, at: &str, found: &mut BTreeSet<String>) {
    if let Value::Object(map) = value {
        for (key, value) in map {
            let open = matches!(at, "limits." | "labels." | "stages_us.");
            let path = format!("{at}{}", if open { "*" } else { key });
            found.insert(path.clone());
            paths(value, &format!("{path}."), found);
        }
    }
}

/// In every receipt of a command that ran.
const ALWAYS: &[&str] = &[
    "argv",
    "cleanup",
    "exit_code",
    "exit_source",
    "image",
    "limits",
    "limits.*",
    "limits.*.source",
    "limits.*.unit",
    "limits.*.value",
    "profile",
    "profile_sha256",
    "reason",
    "stages_us",
    "stages_us.*",
    "started",
    "state",
    "stderr",
    "output",
    "stderr.bytes",
    "stderr.truncated",
    "stdout",
    "stdout.bytes",
    "stdout.truncated",
    "summary",
    "task",
    "tier",
    "usage",
    "usage.cpu_us",
    "usage.memory_peak_bytes",
    "usage.wall_us",
    "version",
];

/// Where the kernel, the task or the caller gave a reason for it.
const SOMETIMES: &[&str] = &[
    "artifacts",
    "artifacts.bytes",
    "artifacts.path",
    "artifacts.sha256",
    "denied",
    "labels",
    "labels.*",
    "limits.*.hits",
    "missing",
    "out",
    "out.bytes",
    "out.directory",
    "out.files",
    "out.skipped",
    "signal",
    "usage.io_read_bytes",
    "usage.io_write_bytes",
    "usage.pids_peak",
    "error",
    "error.cause",
    "error.code",
    "error.message",
    "error.remediation",
];

fn keys() -> Result<Verdict, String> {
    let place = Place::new()?;
    let ended = Call::new("strict")?
        .args(["--label", "a=b", "--out"])
        .args([place.join("out")])
        .args(["--artifacts".into(), place.join("kept")])
        .sh("ln -s x /tmp/out/link; echo Permission denied >&2; kill -9 $$")
        .run()?;
    for ended in [ended, Call::new("standard")?.cmd(["true"]).run()?] {
        let receipt = ended.receipt.as_ref().ok_or("no receipt")?;
        let mut found = BTreeSet::new();
        paths(receipt, "", &mut found);
        for key in ALWAYS {
            ensure!(found.contains(*key), "{key} is missing: {receipt}");
        }
        for key in &found {
            ensure!(
                ALWAYS.contains(&key.as_str()) || SOMETIMES.contains(&key.as_str()),
                "{key} is new: add it here and to the documentation"
            );
        }
        ensure!(receipt["version"] == 1, "version {}", receipt["version"]);
    }
    Ok(Verdict::Held)
}

fn absent() -> Result<Verdict, String> {
    let ended = Call::new("standard")?.cmd(["true"]).run()?;
    let receipt = ended.receipt.as_ref().ok_or("no receipt")?;
    for key in [
        "signal",
        "denied",
        "labels",
        "network",
        "denials",
        "files_changed",
        "out",
        "artifacts",
        "scrub",
        "error",
    ] {
        ensure!(receipt.get(key).is_none(), "{key} is {}", receipt[key]);
    }
    let mut nulls = BTreeSet::new();
    find_nulls(receipt, "", &mut nulls);
    ensure!(nulls.is_empty(), "null instead of absent: {nulls:?}");
    // A command that never ran has no clock, and no 0 either.
    let ended = Call::new("standard")?.cmd(["no-such-command"]).run()?;
    ensure!(
        ended.fact("/usage/wall_us").is_null(),
        "{:?}",
        ended.fact("usage")
    );
    ensure!(ended.fact("signal").is_null(), "a signal");
    Ok(Verdict::Held)
}

fn find_nulls(value: &Value, at: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Null => drop(found.insert(at.to_owned())),
        Value::Object(map) => {
            for (key, value) in map {
                find_nulls(value, &format!("{at}/{key}"), found);
            }
        }
        _ => {}
    }
}

fn endings() -> Result<Verdict, String> {
    for code in [0, 1, 2, 42, 124, 125, 126, 127, 137, 255] {
        let ended = Call::new("strict")?.sh(&format!("exit {code}")).run()?;
        let ended = ended.is(code, "exited", "exit")?;
        ensure!(ended.fact("exit_code") == code, "{:?}", ended.receipt);
    }
    for (signal, name) in [
        (9, "KILL"),
        (15, "TERM"),
        (6, "ABRT"),
        (11, "SEGV"),
        (2, "INT"),
    ] {
        let ended = Call::new("strict")?
            .sh(&format!("kill -{name} $$"))
            .run()?
            .is(128 + signal, "exited", "signal")?
            .mentions(&format!("SIG{name}"))?;
        ensure!(ended.fact("signal") == signal, "{:?}", ended.receipt);
    }
    Ok(Verdict::Held)
}

/// PIDFD_INFO_EXIT, Linux 6.15; else it has to be said that the guest says so.
fn source() -> Result<Verdict, String> {
    let wanted = if crate::rig::host::version() >= (6, 15) {
        "kernel"
    } else {
        "guest"
    };
    for script in ["exit 3", "kill -9 $$", "true"] {
        let ended = Call::new("standard")?.sh(script).run()?;
        ensure!(
            ended.fact("exit_source") == wanted,
            "{script}: {:?}",
            ended.receipt
        );
    }
    for (command, args) in [("no-such-command", &[][..]), ("sleep", &["641"])] {
        let call = Call::new("standard")?.args(["--timeout", "1s"]);
        let ended = call.cmd([&[command][..], args].concat()).run()?;
        ensure!(ended.fact("exit_source") == "orch", "{:?}", ended.receipt);
    }
    Ok(Verdict::Held)
}

fn usage() -> Result<Verdict, String> {
    let ended = Call::new("standard")?
        .with_mode()?
        .sh("/opt/mode mode cpuburn 1 & /opt/mode mode cpuburn 1 & /opt/mode mode memhog 50000000; wait")
        .run()?;
    let number = |name: &str| ended.fact(&format!("/usage/{name}")).as_u64().unwrap_or(0);
    let (wall, cpu, memory) = (
        number("wall_us"),
        number("cpu_us"),
        number("memory_peak_bytes"),
    );
    let outside = u64::try_from(ended.elapsed.as_micros()).unwrap_or(u64::MAX);
    ensure!(
        (1_000_000..=outside).contains(&wall),
        "wall {wall} µs of {outside}"
    );
    ensure!(
        (100_000..2 * wall + 100_000).contains(&cpu),
        "CPU time {cpu} µs"
    );
    ensure!(
        (50_000_000..500_000_000).contains(&memory),
        "peak {memory} bytes"
    );
    if let Some(peak) = ended.fact("/usage/pids_peak").as_u64() {
        ensure!((4..10).contains(&peak), "{peak} processes");
    }
    Ok(Verdict::Held)
}

fn bound(ended: &Ended, key: &str) -> (Option<u64>, String, String) {
    let bound = &ended.fact("limits")[key];
    let text = |name: &str| bound[name].as_str().unwrap_or("absent").to_owned();
    (bound["value"].as_u64(), text("unit"), text("source"))
}

fn bounds() -> Result<Verdict, String> {
    let place = Place::new()?;
    let profile = place.profile("extends: strict\nlimits:\n  open_files: 100\n")?;
    let ended = Call::new(&profile)?
        .args([
            "--memory",
            "100Mi",
            "--timeout",
            "9s",
            "--cpus",
            "0.5",
            "--pids",
            "9",
        ])
        .args(["--output-limit", "5000"])
        .cmd(["true"])
        .run()?;
    for (key, value, unit, source) in [
        ("limits.memory_mb", 100 << 20, "bytes", "task"),
        ("timeout_seconds", 9_000, "milliseconds", "task"),
        ("command_timeout_seconds", 9_000, "milliseconds", "task"),
        ("limits.cpus", 500, "millicpus", "task"),
        ("limits.processes", 9, "count", "task"),
        ("limits.output_mb", 5_000, "bytes", "task"),
        ("limits.open_files", 100, "count", "profile"),
        ("limits.cpu_seconds", 60, "seconds", "profile"),
        ("limits.tmp_mb", 256 << 20, "bytes", "profile"),
    ] {
        let found = bound(&ended, key);
        ensure!(
            found == (Some(value), unit.to_owned(), source.to_owned()),
            "{key}: {found:?}"
        );
    }
    // What the kernel does not count has no number of hits.
    ensure!(
        ended.fact("limits")["limits.open_files"]
            .get("hits")
            .is_none(),
        "hits"
    );
    Ok(Verdict::Held)
}

fn counted() -> Result<Verdict, String> {
    let ended = Call::new("strict")?
        .sh("printf 12345; printf 123 >&2")
        .run()?;
    ensure!(
        ended.fact("/stdout/bytes") == 5
            && ended.fact("/stderr/bytes") == 3
            && ended.fact("/stdout/truncated") == false,
        "{:?}",
        ended.receipt
    );
    Ok(Verdict::Held)
}

fn denied() -> Result<Verdict, String> {
    let run = |script: &str| Call::new("strict")?.sh(script).run();
    ensure!(run("echo x > /usr/x")?.fact("denied") == true, "a refusal");
    ensure!(
        run("ls /nowhere")?.fact("denied").is_null(),
        "an ordinary failure"
    );
    ensure!(
        run("touch /usr/x; true")?.fact("denied").is_null(),
        "a success"
    );
    Ok(Verdict::Held)
}

fn labels() -> Result<Verdict, String> {
    let ended = Call::new("strict")?
        .args(["--label", "team=a", "--label", "odd=x=y\nz"])
        .cmd(["true"])
        .run()?;
    let is = |name: &str, value: &str| ended.fact(name) == value;
    ensure!(
        is("/labels/team", "a")
            && is("/labels/odd", "x=y\nz")
            && is("profile", "strict")
            && is("tier", "strict")
            && is("image", "host"),
        "{:?}",
        ended.receipt
    );
    let hash = ended.fact("profile_sha256").as_str().unwrap_or_default();
    ensure!(hash.len() == 64, "{hash:?}");
    let started = ended.fact("started").as_str().unwrap_or_default();
    ensure!(started.ends_with('Z') && started.len() == 24, "{started:?}");
    Ok(Verdict::Held)
}

fn ids() -> Result<Verdict, String> {
    let mut seen = BTreeSet::new();
    for _ in 0..5 {
        let ended = Call::new("strict")?.cmd(["true"]).run()?;
        let id = ended.id().unwrap_or_default().to_owned();
        ensure!(id.len() == 32, "{id:?}");
        ensure!(seen.insert(id), "the same id twice");
    }
    Ok(Verdict::Held)
}

/// By the flag where the task set the limit, else by the key of the profile.
fn summaries() -> Result<Verdict, String> {
    let summary = |args: &[&str], script: &str| {
        let ended = Call::new("strict")?.args(args).sh(script).run()?;
        let said = ended
            .fact("summary")
            .as_str()
            .unwrap_or_default()
            .to_owned();
        ensure!(!said.contains('\n'), "more than a line: {said:?}");
        ensure!(
            ended.stderr.contains(&said),
            "another one was said: {ended:?}"
        );
        Ok(said)
    };
    let said = summary(&["--timeout", "1s"], "sleep 642")?;
    ensure!(
        said.contains("time limit of 1s") && said.contains("--timeout"),
        "{said}"
    );
    let said = summary(
        &["--memory", "16Mi"],
        "head -c 60000000 /dev/zero > /dev/shm/x",
    )?;
    ensure!(
        said.contains("memory") && said.contains("--memory"),
        "{said}"
    );
    let said = summary(&["--output-limit", "1000"], "yes")?;
    ensure!(
        said.contains("output limit") && said.contains("--output-limit"),
        "{said}"
    );
    let said = summary(
        &["--pids", "4"],
        "for n in 1 2 3 4 5 6; do sleep 1 & done; wait",
    )?;
    ensure!(said.contains("--pids"), "{said}");
    let said = summary(&[], "exit 3")?;
    ensure!(said.starts_with("exited with code 3 after "), "{said}");
    Ok(Verdict::Held)
}

/// EV-04: the last 6 000 bytes of both streams; nothing where there is none.
fn preview() -> Result<Verdict, String> {
    let ended = Call::new("standard")?
        .sh("head -c 7000 /dev/zero | tr '\\0' x; printf end")
        .run()?;
    let output = ended.fact("/output");
    let text = output.as_str().unwrap_or_default();
    ensure!(
        text.len() == 6000 && text.ends_with("xxend") && text.starts_with('x'),
        "{} bytes: {text}",
        text.len()
    );
    let ended = Call::new("standard")?.sh("printf oops >&2").run()?;
    ensure!(ended.fact("/output") == "oops", "{ended:?}");
    let ended = Call::new("standard")?.sh(":").run()?;
    ensure!(ended.fact("/output") == "", "{ended:?}");
    Ok(Verdict::Held)
}

fn stages() -> Result<Verdict, String> {
    let ended = Call::new("standard")?.sh(":").run()?;
    for stage in [
        "launcher", "load", "plan", "create", "lease", "exec", "command", "teardown",
    ] {
        let time = ended.fact(&format!("/stages_us/{stage}"));
        ensure!(time.is_u64(), "no {stage}: {ended:?}");
    }
    Ok(Verdict::Held)
}
