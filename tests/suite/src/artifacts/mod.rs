//! `--artifacts` and `orch output`: all output and the receipt, kept (EV-05).
//!
//! - [`kept`]: what is there, however a task ends.
//! - [`cut`]: when nobody reads, orch is killed, or the disk is full.
//! - [`refused`]: where nothing is kept, and what is not read.

mod cut;
mod kept;
mod refused;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::call::{Call, ensure, orch};
use crate::harness::Test;
use crate::left::eventually;
use crate::place::{Place, names};

const SOON: Duration = Duration::from_secs(15);

pub fn tests() -> Vec<Test> {
    [kept::tests(), cut::tests(), refused::tests()]
        .into_iter()
        .flatten()
        .collect()
}

/// A call that keeps its artifacts in `kept` of this place.
fn keeping(place: &Place, tier: &str) -> Result<Call, String> {
    let kept = place.join("kept");
    Ok(Call::new(tier)?.args(["--artifacts".as_ref(), kept.as_os_str()]))
}

/// The one task that something is kept of.
fn only_id(place: &Place) -> Result<String, String> {
    let ids = names(&place.join("kept"))?;
    match ids.as_slice() {
        [id] => Ok(id.clone()),
        _ => Err(format!("expected one folder, found {ids:?}")),
    }
}

/// What is in the log of that task.
fn log(place: &Place) -> Result<Vec<u8>, String> {
    let path = place.join("kept").join(only_id(place)?).join("output.log");
    fs::read(&path).map_err(|e| format!("read {}: {e}", path.display()))
}

/// Waits until the log of the only task is these bytes.
fn until_log_is(place: &Place, bytes: &[u8]) -> Result<(), String> {
    eventually(SOON, || {
        let there = log(place).unwrap_or_default();
        Ok((there != bytes).then(|| format!("the log is {there:?}")))
    })
}

/// The receipt that is kept.
fn receipt(place: &Place) -> Result<Value, String> {
    let path = place
        .join("kept")
        .join(only_id(place)?)
        .join("receipt.json");
    let text = fs::read(&path).map_err(|e| format!("read {}: {e}", path.display()))?;
    serde_json::from_slice(&text).map_err(|e| format!("{}: {e}", path.display()))
}

/// What `orch output` gave.
#[derive(Debug)]
struct Read {
    code: Option<i32>,
    stdout: Vec<u8>,
    stderr: String,
}

fn output(dir: &Path, id: &str, more: &[&str]) -> Result<Read, String> {
    let done = Command::new(orch())
        .args(["output", id, "--artifacts"])
        .arg(dir)
        .args(more)
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("start orch: {e}"))?;
    Ok(Read {
        code: done.status.code(),
        stdout: done.stdout,
        stderr: String::from_utf8_lossy(&done.stderr).into_owned(),
    })
}

/// One page as a document.
fn page(place: &Place, more: &[&str]) -> Result<Value, String> {
    let args = [more, &["--format", "json"]].concat();
    let read = output(&place.join("kept"), &only_id(place)?, &args)?;
    ensure!(read.code == Some(0), "{read:?}");
    serde_json::from_slice(&read.stdout).map_err(|e| format!("{e}: {read:?}"))
}

/// Every page, joined as a caller would.
fn pages(place: &Place, limit: usize) -> Result<(Vec<u8>, usize), String> {
    let (mut joined, mut count) = (Vec::new(), 0);
    loop {
        let (offset, limit) = (joined.len().to_string(), limit.to_string());
        let more = ["--offset", &offset, "--limit", &limit];
        let read = output(&place.join("kept"), &only_id(place)?, &more)?;
        ensure!(read.code == Some(0), "{read:?}");
        if read.stdout.is_empty() {
            return Ok((joined, count));
        }
        joined.extend(read.stdout);
        count += 1;
    }
}
