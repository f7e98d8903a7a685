//! What is kept: one row a result, and every sample behind it.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::case::Bar;
use crate::statistics::{median, p99, pairwise_ratio};

/// The samples of one case in the order in which they were taken.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Samples {
    /// Of what the project promises.
    pub subject: Vec<f64>,
    /// Of the other side; `peer[i]` ran right after `subject[i]`.
    pub peer: Vec<f64>,
}

/// One row of `results.json`. What was not measured is null.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Row {
    /// Name of the case.
    pub name: String,
    /// Unit of the medians and percentiles.
    pub unit: String,
    /// Median of the subject.
    pub median: Option<f64>,
    /// 99th percentile of the subject.
    pub p99: Option<f64>,
    /// Number of samples of the subject.
    pub runs: usize,
    /// Who it is compared with.
    pub peer: Option<String>,
    /// Median of the peer.
    pub peer_median: Option<f64>,
    /// 99th percentile of the peer.
    pub peer_p99: Option<f64>,
    /// Median of subject / peer, pair by pair.
    pub ratio: Option<f64>,
    /// The bound in words.
    pub bar: Option<String>,
    /// Whether the ratio is within it.
    pub met: Option<bool>,
    /// Why it could not be measured here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub absent: Option<String>,
    /// Why the measurement broke off; its samples do not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

impl Row {
    /// A row from its samples.
    #[must_use]
    pub fn of(
        name: &str,
        unit: &str,
        samples: &Samples,
        peer: Option<&str>,
        bar: Option<Bar>,
    ) -> Self {
        let ratio = pairwise_ratio(&samples.subject, &samples.peer);
        Self {
            name: name.into(),
            unit: unit.into(),
            median: median(&samples.subject),
            p99: p99(&samples.subject),
            runs: samples.subject.len(),
            peer: peer.map(Into::into),
            peer_median: median(&samples.peer),
            peer_p99: p99(&samples.peer),
            ratio,
            bar: bar.zip(peer).map(|(bar, peer)| bar.against(peer)),
            met: bar.zip(ratio).map(|(bar, ratio)| bar.met(ratio)),
            absent: None,
            failed: None,
        }
    }
}

/// Writes the samples of `name` to `directory/raw/`.
///
/// # Errors
/// When the directory or file cannot be written.
pub fn write_samples(directory: &Path, name: &str, unit: &str, samples: &Samples) -> Result<()> {
    #[derive(Serialize)]
    struct Raw<'a> {
        name: &'a str,
        unit: &'a str,
        #[serde(flatten)]
        samples: &'a Samples,
    }
    let raw = Raw {
        name,
        unit,
        samples,
    };
    write(
        &directory.join("raw"),
        &format!("{name}.json"),
        &serde_json::to_vec(&raw)?,
    )
}

/// Writes every row to `directory/results.json`.
///
/// # Errors
/// When the directory or file cannot be written.
pub fn write_results(directory: &Path, rows: &[Row]) -> Result<()> {
    write(directory, "results.json", &serde_json::to_vec_pretty(rows)?)
}

fn write(directory: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    let path = directory.join(name);
    fs::create_dir_all(directory)
        .and_then(|()| fs::write(&path, bytes))
        .with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Samples {
        Samples {
            subject: vec![4.0, 5.0, 6.0],
            peer: vec![10.0, 10.0, 10.0],
        }
    }

    #[test]
    fn a_row_has_the_promised_keys() {
        let row = Row::of("a", "ms", &samples(), Some("runc"), Some(Bar::at_most(0.4)));
        let json = serde_json::to_value(&row).unwrap();
        let expected = serde_json::json!({
            "name": "a", "unit": "ms", "median": 5.0, "p99": 6.0, "runs": 3,
            "peer": "runc", "peer_median": 10.0, "peer_p99": 10.0,
            "ratio": 0.5, "bar": "<= 0.4 x runc", "met": false,
        });
        assert_eq!(json, expected);
    }

    #[test]
    fn without_a_peer_no_bar_can_be_met() {
        let alone = Samples {
            subject: vec![1.0],
            peer: vec![],
        };
        let row = Row::of("a", "ms", &alone, None, Some(Bar::at_most(9.0)));
        assert_eq!((row.ratio, row.bar, row.met), (None, None, None));
    }

    #[test]
    fn samples_survive_in_their_order() {
        let scratch = crate::scratch::Scratch::new().unwrap();
        write_samples(scratch.path(), "x.y", "ms", &samples()).unwrap();
        let text = fs::read(scratch.path().join("raw/x.y.json")).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(json["subject"], serde_json::json!([4.0, 5.0, 6.0]));
        assert_eq!(json["peer"], serde_json::json!([10.0, 10.0, 10.0]));
    }
}
