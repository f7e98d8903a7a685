//! Where the time of `orch run` goes, by its own receipts.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::{NOTHING, Stand};
use crate::case::{Case, Kind, Pace};
use crate::invocation::Invocation;
use crate::scratch::Scratch;

/// One row a stage, back to back and with gaps.
pub fn cases(stand: &Stand) -> Vec<Case> {
    [Pace::BackToBack, Pace::GAP]
        .into_iter()
        .map(|pace| {
            let stand = stand.clone();
            let mut ready = None;
            let sample = move || {
                let (scratch, run) = match &mut ready {
                    Some(ready) => ready,
                    empty => empty.insert(prepare(&stand)?),
                };
                run.time()?;
                read(&scratch.path().join("receipt.json"))
            };
            Case {
                name: format!("stages.strict.{}", pace.as_str()),
                unit: "us",
                pace,
                bar: None,
                kind: Kind::Spread(Box::new(sample)),
            }
        })
        .collect()
}

fn prepare(stand: &Stand) -> Result<(Scratch, Invocation)> {
    let scratch = Scratch::new()?;
    let receipt = scratch.path().join("receipt.json");
    let args = [
        OsStr::new("run"),
        OsStr::new("--profile"),
        OsStr::new("strict"),
        OsStr::new("--quiet"),
        OsStr::new("--receipt"),
        receipt.as_os_str(),
        OsStr::new("--"),
        OsStr::new(NOTHING),
    ];
    let run = Invocation::new(&stand.orch, args);
    Ok((scratch, run))
}

/// Takes the receipt away with the reading, so that a run that writes none
/// cannot pass off the one before.
fn read(receipt: &Path) -> Result<BTreeMap<String, f64>> {
    let bytes = std::fs::read(receipt).context("the run left no receipt")?;
    std::fs::remove_file(receipt).context("cannot remove a receipt")?;
    stages(&bytes)
}

fn stages(receipt: &[u8]) -> Result<BTreeMap<String, f64>> {
    let receipt: Value = serde_json::from_slice(receipt).context("the receipt is no JSON")?;
    let stages = receipt
        .get("stages_us")
        .and_then(Value::as_object)
        .context("the receipt has no stages_us")?;
    stages
        .iter()
        .map(|(stage, value)| {
            let value = value.as_f64();
            let value = value.with_context(|| format!("stage {stage} is not a number"))?;
            Ok((stage.clone(), value))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_come_out_of_a_receipt() {
        let receipt = br#"{"version": 1, "stages_us": {"load": 210, "create": 4100}}"#;
        let expected = [("create", 4100.0), ("load", 210.0)];
        let expected = expected.map(|(stage, us)| (stage.to_owned(), us));
        assert_eq!(stages(receipt).unwrap(), expected.into());
    }

    #[test]
    fn a_receipt_without_stages_is_an_error() {
        assert!(stages(b"{}").is_err());
        assert!(stages(br#"{"stages_us": {"load": "soon"}}"#).is_err());
        assert!(stages(b"").is_err());
    }

    #[test]
    fn a_receipt_is_read_once() {
        let scratch = Scratch::new().unwrap();
        let path = scratch.path().join("receipt.json");
        std::fs::write(&path, br#"{"stages_us": {"exec": 1}}"#).unwrap();
        assert!(read(&path).is_ok());
        assert!(read(&path).is_err());
    }
}
