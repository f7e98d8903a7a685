//! What is kept, however a task ends.

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::process::Stdio;
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::{SOON, keeping, log, only_id, output, page, pages, receipt, until_log_is};
use crate::call::{Ended, Owned, ensure};
use crate::harness::{Test, Verdict, test};
use crate::left::eventually;
use crate::place::{Place, names};
use crate::rig::terminal::pty;

pub fn tests() -> Vec<Test> {
    vec![
        test(
            "artifacts::both_streams_in_order_and_read_while_it_runs_ev05",
            order,
        ),
        test("artifacts::all_output_and_the_receipt_ev05", everything),
        test("artifacts::in_every_way_of_output_ev05", ways),
        test("artifacts::up_to_the_output_limit_ev05_ev08", limit),
        test("artifacts::after_a_time_out_ev05", timeout),
        test("artifacts::of_a_command_that_never_ran_ev05", never_ran),
        test("artifacts::a_variable_names_the_directory_ev05", variable),
    ]
}

/// Each piece is written when the one before is seen, so there is one order.
fn order() -> Result<Verdict, String> {
    let place = Place::new()?;
    let script = "printf 'o1\\0\\377'; read x; printf 'e1\\376' >&2; read x; printf o2; read x";
    let call = keeping(&place, "strict")?.sh(script);
    let child = call
        .command()
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| e.to_string())?;
    let mut child = Owned(child);
    let mut stdin = child.0.stdin.take().ok_or("no pipe")?;
    let mut wanted = Vec::new();
    for piece in [&b"o1\0\xff"[..], b"e1\xfe", b"o2"] {
        wanted.extend(piece);
        until_log_is(&place, &wanted)?;
        let page = page(&place, &[])?;
        ensure!(
            page["complete"] == false && page["total"] == wanted.len(),
            "{page}"
        );
        writeln!(stdin).map_err(|e| format!("write to the task: {e}"))?;
    }
    eventually(SOON, || {
        let ended = child.0.try_wait().map_err(|e| e.to_string())?;
        Ok(ended.is_none().then(|| "orch has not ended".to_owned()))
    })?;
    ensure!(log(&place)? == b"o1\0\xffe1\xfeo2", "{:?}", log(&place)?);
    let page = page(&place, &["--offset", "2", "--limit", "4"])?;
    ensure!(
        page["complete"] == true
            && page["id"] == only_id(&place)?
            && page["offset"] == 2
            && page["bytes"] == 4
            && page["next_offset"] == 6
            && page["total"] == 9
            && page["base64"] == "AP9lMQ==",
        "{page}"
    );
    Ok(Verdict::Held)
}

/// What the receipt says of the log is so.
fn matches(place: &Place, ended: &Ended) -> Result<Vec<u8>, String> {
    let bytes = log(place)?;
    let hash = format!("{:x}", Sha256::digest(&bytes));
    ensure!(
        ended.fact("/artifacts/bytes") == bytes.len()
            && ended.fact("/artifacts/sha256") == hash.as_str()
            && ended.fact("/artifacts/path") == place.join("kept").to_string_lossy().as_ref()
            && ended.id() == Some(&only_id(place)?),
        "{} bytes, {hash}, and the receipt says {}",
        bytes.len(),
        ended.fact("artifacts")
    );
    let kept = receipt(place)?;
    ensure!(Some(&kept) == ended.receipt.as_ref(), "another: {kept}");
    Ok(bytes)
}

fn everything() -> Result<Verdict, String> {
    for tier in ["loose", "standard", "strict"] {
        let place = Place::new()?;
        let ended = keeping(&place, tier)?
            .args(["--network", "none"])
            .sh("head -c 200000 /dev/urandom")
            .run()?;
        let bytes = matches(&place, &ended)?;
        ensure!(
            bytes.len() == 200_000 && bytes == ended.stdout,
            "{tier}: {} bytes in the log, {} on standard output",
            bytes.len(),
            ended.stdout.len()
        );
        for (limit, count) in [(64_000, 4), (12_000, 17)] {
            let joined = pages(&place, limit)?;
            ensure!(
                joined == (bytes.clone(), count),
                "{tier}: {} pages",
                joined.1
            );
        }
        let first = output(&place.join("kept"), &only_id(&place)?, &[])?;
        ensure!(
            first.stdout == bytes[..12_000],
            "{} bytes",
            first.stdout.len()
        );
        ended.mentions("195 KiB of output kept in ")?;
        let folder = place.join("kept").join(only_id(&place)?);
        ensure!(
            names(&folder)? == ["output.log", "receipt.json"],
            "{:?}",
            names(&folder)?
        );
        for (name, mode) in [("", 0o700), ("output.log", 0o600), ("receipt.json", 0o600)] {
            let found = fs::metadata(folder.join(name)).map_err(|e| e.to_string())?;
            ensure!(
                found.mode() & 0o7777 == mode && found.uid() == 0,
                "{name}: {:o} of {}",
                found.mode(),
                found.uid()
            );
        }
        // What was taken before the start is given back; blocks are of 512 bytes.
        let found = fs::metadata(folder.join("output.log")).map_err(|e| e.to_string())?;
        ensure!(found.blocks() < 500, "{} blocks", found.blocks());
    }
    // The control: nobody asked, and nothing is said.
    let ended = crate::call::Call::new("strict")?.sh("echo x").run()?;
    ensure!(
        ended.fact("artifacts").is_null() && !ended.stderr.contains("kept"),
        "{ended:?}"
    );
    Ok(Verdict::Held)
}

fn ways() -> Result<Verdict, String> {
    for flags in [&["--json"][..], &["--quiet"], &["--json", "--quiet"]] {
        let place = Place::new()?;
        let ended = keeping(&place, "strict")?
            .args(flags)
            .sh("printf 'a\\377'")
            .run()?;
        let bytes = matches(&place, &ended)?;
        ensure!(bytes == b"a\xff", "{flags:?}: {bytes:?}");
    }
    let place = Place::new()?;
    let call = keeping(&place, "strict")?
        .args(["-t", "-q"])
        .sh("echo a; echo b >&2");
    let seen = pty()?.run(&mut call.command(), SOON)?;
    let bytes = log(&place)?;
    ensure!(
        bytes == b"a\r\nb\r\n" && seen.as_bytes() == bytes,
        "on a terminal {seen:?}, in the log {bytes:?}"
    );
    Ok(Verdict::Held)
}

fn limit() -> Result<Verdict, String> {
    let place = Place::new()?;
    let ended = keeping(&place, "strict")?
        .args(["--output-limit", "100000"])
        .sh("yes out & exec yes err >&2")
        .run()?
        .is(137, "output_limit", "output_limit")?;
    let bytes = matches(&place, &ended)?;
    ensure!(bytes.len() == 100_000, "{} bytes", bytes.len());
    Ok(Verdict::Held)
}

fn timeout() -> Result<Verdict, String> {
    let place = Place::new()?;
    let ended = keeping(&place, "standard")?
        .args(["--timeout", "1s"])
        .sh("trap 'echo last words; exit' TERM; echo half; sleep 630 & wait")
        .run()?
        .is(124, "timeout", "timeout")?;
    let bytes = matches(&place, &ended)?;
    ensure!(bytes == b"half\nlast words\n", "{bytes:?}");
    ensure!(ended.elapsed < Duration::from_secs(20), "{ended:?}");
    Ok(Verdict::Held)
}

fn never_ran() -> Result<Verdict, String> {
    let place = Place::new()?;
    let ended = keeping(&place, "strict")?.cmd(["no-such-command"]).run()?;
    let ended = ended.is(127, "exited", "not_found")?;
    ensure!(matches(&place, &ended)?.is_empty(), "{ended:?}");
    let page = page(&place, &[])?;
    ensure!(
        page["complete"] == true && page["total"] == 0 && page["text"] == "",
        "{page}"
    );
    Ok(Verdict::Held)
}

/// The flag wins; relative ones start where orch does.
fn variable() -> Result<Verdict, String> {
    let place = Place::new()?;
    let call = || -> Result<_, String> {
        let call = crate::call::Call::new("strict")?.cwd(place.path());
        Ok(call.env("ORCH_ARTIFACTS", "by-variable").sh("echo x"))
    };
    call()?.run()?;
    ensure!(names(&place.join("by-variable"))?.len() == 1, "not there");
    call()?.args(["--artifacts", "by-flag"]).run()?;
    ensure!(
        names(&place.join("by-flag"))?.len() == 1 && names(&place.join("by-variable"))?.len() == 1,
        "the variable has won"
    );
    Ok(Verdict::Held)
}
