//! What goes in and comes out (issue item 2, E9).

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::call::{Call, Input, Owned, ensure};
use crate::harness::{Test, Verdict, test};
use crate::left::{self, eventually};
use crate::pace;
use crate::place::Place;

const SOON: Duration = Duration::from_secs(15);

pub fn tests() -> Vec<Test> {
    vec![
        test("streams::bytes_come_out_as_they_were", untouched),
        test("streams::five_megabytes_through_a_pipe", big_pipe),
        test("streams::a_file_is_standard_input", file),
        test("streams::nothing_is_standard_input", nothing),
        test("streams::input_that_nobody_reads", unread),
        test("streams::input_that_never_ends", endless),
        test("streams::a_reader_that_leaves_e9", head),
        test("streams::a_slow_reader_costs_no_memory_e9", slow),
        test("streams::a_reader_that_never_reads_e9", stuck),
        test("streams::json_is_one_document", json),
        test("streams::json_keeps_bytes_that_are_no_text", json_bytes),
        test("streams::receipt_behind_the_output", receipt_on_stdout),
        test(
            "streams::receipt_in_a_pipe_and_through_a_link",
            receipt_elsewhere,
        ),
        test("streams::quiet_says_nothing", quiet),
    ]
}

fn every_byte(times: usize) -> Vec<u8> {
    let bytes = (0..times)
        .flat_map(|round| (0..=255_u8).map(move |b| b.rotate_left(u32::from(round % 2 == 1))));
    bytes.collect()
}

fn untouched() -> Result<Verdict, String> {
    let ended = Call::new("strict")?
        .args(["--quiet"])
        .sh("printf 'a\\0b\\r\\n\\377'; printf 'x\\376\\0' >&2; exit 9")
        .run()?;
    ensure!(ended.stdout == b"a\0b\r\n\xff", "{:?}", ended.stdout);
    ensure!(
        ended.stderr.starts_with('x') && ended.stderr.ends_with('\0'),
        "{ended:?}"
    );
    ensure!(ended.code() == 9, "{ended:?}");
    Ok(Verdict::Held)
}

fn big_pipe() -> Result<Verdict, String> {
    let bytes = every_byte(20_000);
    let ended = Call::new("strict")?
        .input(Input::Bytes(bytes.clone()))
        .cmd(["cat"])
        .run()?
        .is(0, "exited", "exit")?;
    ensure!(
        ended.stdout == bytes,
        "{} of {}",
        ended.stdout.len(),
        bytes.len()
    );
    Ok(Verdict::Held)
}

fn file() -> Result<Verdict, String> {
    let place = Place::new()?;
    let bytes = every_byte(1000);
    let path = place.file("input", &bytes)?;
    let mut file = File::open(path).map_err(|e| e.to_string())?;
    // From where the caller has got to, as a shell would.
    file.seek(std::io::SeekFrom::Start(10))
        .map_err(|e| e.to_string())?;
    let ended = Call::new("strict")?
        .input(Input::File(file))
        .cmd(["cat"])
        .run()?;
    ensure!(ended.stdout == bytes[10..], "{} bytes", ended.stdout.len());
    Ok(Verdict::Held)
}

fn nothing() -> Result<Verdict, String> {
    Call::new("strict")?.sh("wc -c").run()?.says("0")?;
    Call::new("strict")?
        .input(Input::Bytes(Vec::new()))
        .sh("wc -c")
        .run()?
        .says("0")?;
    Call::new("strict")?
        .args(["-i"])
        .sh("wc -c")
        .run()?
        .says("0")?;
    Ok(Verdict::Held)
}

fn unread() -> Result<Verdict, String> {
    let ended = Call::new("strict")?
        .input(Input::Bytes(every_byte(20_000)))
        .sh("head -c 3 >/dev/null; echo done")
        .run()?
        .says("done")?;
    ensure!(ended.elapsed < pace::here(SOON), "{ended:?}");
    Ok(Verdict::Held)
}

/// The caller keeps its end open and writes nothing.
fn endless() -> Result<Verdict, String> {
    let call = Call::new("strict")?.sh("echo done");
    let child = call
        .command()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| e.to_string())?;
    let mut child = Owned(child);
    let _held = child.0.stdin.take();
    ends(&mut child)?;
    let mut out = String::new();
    let stdout = child.0.stdout.as_mut().ok_or("no pipe")?;
    stdout.read_to_string(&mut out).map_err(|e| e.to_string())?;
    ensure!(out == "done\n", "{out:?}");
    Ok(Verdict::Held)
}

fn ends(child: &mut Owned) -> Result<(), String> {
    eventually(SOON, || {
        let ended = child.0.try_wait().map_err(|e| e.to_string())?;
        Ok(ended.is_none().then(|| "orch has not ended".to_owned()))
    })
}

fn piped(call: &Call) -> Result<Owned, String> {
    let mut command: Command = call.command();
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    Ok(Owned(command.spawn().map_err(|e| e.to_string())?))
}

fn head() -> Result<Verdict, String> {
    let call = Call::new("standard")?.sh("exec yes");
    let state = call.state();
    let mut child = piped(&call)?;
    let mut line = String::new();
    let stdout = child.0.stdout.take().ok_or("no pipe")?;
    BufReader::new(stdout)
        .read_line(&mut line)
        .map_err(|e| e.to_string())?;
    ensure!(line == "y\n", "{line:?}");
    ends(&mut child)?;
    match left::left(&state, None) {
        None => Ok(Verdict::Held),
        Some(what) => Err(what),
    }
}

fn peak_kib(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn slow() -> Result<Verdict, String> {
    const TOTAL: usize = 60 << 20;
    let call = Call::new("loose")?
        .args(["--network", "none"])
        .mode(&["flood", &TOTAL.to_string()])?;
    let mut child = piped(&call)?;
    let pid = child.0.id();
    let mut stdout = child.0.stdout.take().ok_or("no pipe")?;
    let (mut total, mut peak) = (0, 0);
    let mut chunk = vec![0; 64 << 10];
    loop {
        match stdout.read(&mut chunk).map_err(|e| e.to_string())? {
            0 => break,
            read => total += read,
        }
        // Not before the first byte: until exec the child is a copy of this process.
        peak = peak.max(peak_kib(pid).unwrap_or(0));
    }
    ends(&mut child)?;
    ensure!(total == TOTAL, "{total} bytes came");
    ensure!(peak > 0 && peak < 32 << 10, "orch held {peak} KiB");
    Ok(Verdict::Held)
}

/// The task ends in time although nobody takes its output, and so does orch when
/// it is told to.
fn stuck() -> Result<Verdict, String> {
    let call = Call::new("standard")?
        .args(["--timeout", "1s"])
        .sh("exec yes");
    let state = call.state();
    let mut child = piped(&call)?;
    let _unread = child.0.stdout.take();
    for there in [true, false] {
        eventually(SOON, || {
            let pids = left::processes_of(&state);
            let wrong = pids.is_empty() == there;
            Ok(wrong.then(|| format!("processes {pids:?}, wanted: {there}")))
        })?;
    }
    // A Ctrl-C at least must get through to orch.
    // SAFETY: a plain call; the child is ours and not reaped yet.
    unsafe { libc::kill(i32::try_from(child.0.id()).unwrap_or(-1), libc::SIGINT) };
    ends(&mut child).map_err(|why| format!("{why}, after time-out and Ctrl-C"))?;
    Ok(Verdict::Held)
}

fn json() -> Result<Verdict, String> {
    let ended = Call::new("strict")?
        .args(["--json", "--label", "job=7"])
        .sh("printf 'o\\nut'; printf err >&2; exit 4")
        .run()?;
    let document: serde_json::Value =
        serde_json::from_slice(&ended.stdout).map_err(|e| format!("{e}: {ended:?}"))?;
    ensure!(
        document["stdout"] == "o\nut"
            && document["stderr"] == "err"
            && document["receipt"]["exit_code"] == 4
            && document["receipt"]["labels"]["job"] == "7"
            && ended.code() == 4,
        "{document}"
    );
    ensure!(document.get("stdout_base64").is_none(), "{document}");
    Ok(Verdict::Held)
}

fn json_bytes() -> Result<Verdict, String> {
    let ended = Call::new("strict")?
        .args(["--json"])
        .sh("printf 'a\\377'")
        .run()?;
    let document: serde_json::Value =
        serde_json::from_slice(&ended.stdout).map_err(|e| format!("{e}: {ended:?}"))?;
    ensure!(document["stdout_base64"] == "Yf8=", "{document}");
    Ok(Verdict::Held)
}

fn receipt_on_stdout() -> Result<Verdict, String> {
    let ended = Call::new("strict")?
        .no_receipt()
        .args(["--receipt", "-"])
        .sh("echo first")
        .run()?;
    let out = ended.out();
    let rest = out.strip_prefix("first\n").ok_or(format!("{ended:?}"))?;
    let receipt: serde_json::Value = serde_json::from_str(rest).map_err(|e| e.to_string())?;
    ensure!(receipt["exit_code"] == 0, "{receipt}");
    Ok(Verdict::Held)
}

fn receipt_elsewhere() -> Result<Verdict, String> {
    let place = Place::new()?;
    let target = place.file("target", "old")?;
    let link = place.join("link");
    std::os::unix::fs::symlink(&target, &link).map_err(|e| e.to_string())?;
    let call = Call::new("strict")?.no_receipt();
    call.args(["--receipt".as_ref(), link.as_os_str()])
        .sh("true")
        .run()?;
    let text = std::fs::read_to_string(&target).map_err(|e| e.to_string())?;
    ensure!(text.contains("\"exit_code\": 0"), "{text}");
    ensure!(link.is_symlink(), "the link has gone");
    let call = Call::new("strict")?.no_receipt();
    let ended = call.args(["--receipt", "/dev/stderr"]).sh("true").run()?;
    ensure!(ended.stderr.contains("\"exit_code\": 0"), "{ended:?}");
    Ok(Verdict::Held)
}

fn quiet() -> Result<Verdict, String> {
    let ended = Call::new("strict")?.sh("echo x >&2; exit 3").run()?;
    let words: Vec<&str> = ended.stderr.lines().collect();
    ensure!(
        words.len() == 2 && words[0] == "x" && words[1].starts_with("orch: exited with code 3"),
        "{words:?}"
    );
    let ended = Call::new("strict")?
        .args(["--quiet"])
        .sh("echo x >&2; exit 3")
        .run()?;
    ensure!(ended.stderr == "x\n", "{ended:?}");
    // The receipt has it all the same.
    ensure!(ended.fact("exit_code") == 3, "{ended:?}");
    let _ = std::io::stdout().flush();
    Ok(Verdict::Held)
}
