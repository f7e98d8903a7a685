//! The output limit (EV-08, E9): exactly what is allowed is passed on, and not one
//! byte more.

use crate::call::{Call, Ended, ensure};
use crate::harness::{Test, Verdict, test};

pub fn tests() -> Vec<Test> {
    vec![
        test("floods::both_streams_share_the_limit", both),
        test("floods::one_byte_at_a_time", single_bytes),
        test("floods::kept_output_ends_at_the_limit", json),
        test("floods::from_many_processes_at_once", many),
    ]
}

fn flooded(ended: Ended) -> Result<Ended, String> {
    let ended = ended.is(137, "output_limit", "output_limit")?;
    let truncated = |stream: &str| ended.fact(&format!("/{stream}/truncated")) == true;
    ensure!(truncated("stdout") || truncated("stderr"), "{ended:?}");
    Ok(ended)
}

/// Of one stream, without a line end; and the limit itself is allowed.
pub fn limit() -> Result<Verdict, String> {
    let flood = |bytes: &str| {
        Call::new("strict")?
            .args(["--output-limit", "1Mi"])
            .mode(&["flood", bytes])?
            .run()
    };
    let ended = flooded(flood("52428800")?)?.mentions("--output-limit")?;
    ensure!(
        ended.stdout.len() == 1 << 20 && ended.stdout.iter().all(|byte| *byte == b'x'),
        "{} bytes passed",
        ended.stdout.len()
    );
    let bytes = ended.fact("/stdout/bytes").as_u64();
    ensure!(bytes > Some(1 << 20), "counted {bytes:?}");
    let ended = flood("1048576")?.is(0, "exited", "exit")?;
    ensure!(
        ended.stdout.len() == 1 << 20 && ended.fact("/stdout/truncated") == false,
        "{} bytes of the limit passed",
        ended.stdout.len()
    );
    Ok(Verdict::Held)
}

fn both() -> Result<Verdict, String> {
    let ended = Call::new("standard")?
        .args(["--output-limit", "100000", "--quiet"])
        .sh("while :; do printf oooooooooo; printf eeeeeeeeee >&2; done")
        .run()?;
    let ended = flooded(ended)?;
    let passed = ended.stdout.len() + ended.stderr.len();
    ensure!(passed == 100_000, "{passed} bytes passed");
    ensure!(
        ended.stdout.iter().all(|byte| *byte == b'o') && ended.stderr.bytes().all(|b| b == b'e'),
        "the streams are mixed up"
    );
    Ok(Verdict::Held)
}

fn single_bytes() -> Result<Verdict, String> {
    let ended = Call::new("strict")?
        .args(["--output-limit", "30000", "--quiet"])
        .sh("exec dd if=/dev/zero bs=1 count=1000000")
        .run()?;
    let ended = flooded(ended)?;
    ensure!(
        ended.stdout.len() == 30_000,
        "{} bytes passed",
        ended.stdout.len()
    );
    Ok(Verdict::Held)
}

fn json() -> Result<Verdict, String> {
    let ended = Call::new("strict")?
        .args(["--output-limit", "30000", "--json"])
        .mode(&["flood", "1000000"])?
        .run()?;
    let ended = flooded(ended)?;
    let document: serde_json::Value =
        serde_json::from_slice(&ended.stdout).map_err(|e| format!("{e}: {ended:?}"))?;
    let kept = document["stdout"].as_str().map(str::len);
    ensure!(kept == Some(30_000), "{kept:?} bytes kept");
    Ok(Verdict::Held)
}

fn many() -> Result<Verdict, String> {
    let ended = Call::new("standard")?
        .args(["--output-limit", "1Mi", "--quiet"])
        .with_mode()?
        .sh("for n in 1 2 3 4 5 6; do /opt/mode mode flood 100000000 & done; wait")
        .run()?;
    let ended = flooded(ended)?;
    let passed = ended.stdout.len() + ended.stderr.len();
    ensure!(passed == 1 << 20, "{passed} bytes passed");
    Ok(Verdict::Held)
}
