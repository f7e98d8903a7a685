//! Takes the samples of a case, subject and peer by turns.

use std::collections::BTreeMap;
use std::thread::sleep;

use anyhow::{Context, Result};

use crate::case::{Case, Kind, Pace, Peer, Sampler, Spread};
use crate::record::{Row, Samples};

/// How many samples each pace takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// Samples back to back.
    pub runs: usize,
    /// Samples with gaps.
    pub gap_runs: usize,
}

impl Effort {
    const fn of(self, pace: Pace) -> usize {
        match pace {
            Pace::BackToBack => self.runs,
            Pace::Gap(_) => self.gap_runs,
        }
    }
}

/// Measures one case: its rows, each with the samples behind it. A run that
/// fails ends the case, and its row says why.
pub fn measure(case: Case, effort: Effort) -> Vec<(Row, Samples)> {
    let runs = effort.of(case.pace);
    let blank = Row {
        name: case.name.clone(),
        unit: case.unit.into(),
        ..Row::default()
    };
    match case.kind {
        Kind::Absent { peer, reason } => {
            let row = Row {
                bar: case.bar.zip(peer.as_deref()).map(|(b, p)| b.against(p)),
                peer,
                absent: Some(reason),
                ..blank
            };
            vec![(row, Samples::default())]
        }
        Kind::Value { subject, peer } => {
            let name = peer.as_ref().map(|peer| peer.name.clone());
            let row = match by_turns(subject, peer, case.pace, runs) {
                Ok(samples) => {
                    let row = Row::of(&case.name, case.unit, &samples, name.as_deref(), case.bar);
                    return vec![(row, samples)];
                }
                Err(error) => Row {
                    bar: case.bar.zip(name.as_deref()).map(|(b, p)| b.against(p)),
                    peer: name,
                    failed: Some(format!("{error:#}")),
                    ..blank
                },
            };
            vec![(row, Samples::default())]
        }
        Kind::Spread(spread) => match spread_out(spread, case.pace, runs) {
            Ok(values) => values
                .into_iter()
                .map(|(part, subject)| {
                    let samples = Samples {
                        subject,
                        peer: vec![],
                    };
                    let name = format!("{}.{part}", case.name);
                    (Row::of(&name, case.unit, &samples, None, None), samples)
                })
                .collect(),
            Err(error) => {
                let row = Row {
                    failed: Some(format!("{error:#}")),
                    ..blank
                };
                vec![(row, Samples::default())]
            }
        },
    }
}

fn by_turns(
    mut subject: Sampler,
    mut peer: Option<Peer>,
    pace: Pace,
    runs: usize,
) -> Result<Samples> {
    let mut samples = Samples::default();
    // The first pair warms caches and builds what is built lazily.
    for turn in 0..=runs {
        rest(pace, turn);
        let value = subject()?;
        let other = match &mut peer {
            Some(peer) => {
                rest(pace, turn);
                let failed = || format!("the peer {} failed", peer.name);
                Some((peer.sampler)().with_context(failed)?)
            }
            None => None,
        };
        if turn > 0 {
            samples.subject.push(value);
            samples.peer.extend(other);
        }
    }
    Ok(samples)
}

fn spread_out(mut spread: Spread, pace: Pace, runs: usize) -> Result<BTreeMap<String, Vec<f64>>> {
    let mut values = BTreeMap::<String, Vec<f64>>::new();
    for turn in 0..=runs {
        rest(pace, turn);
        let sample = spread()?;
        if turn > 0 {
            for (part, value) in sample {
                values.entry(part).or_default().push(value);
            }
        }
    }
    anyhow::ensure!(!values.is_empty(), "no run reported anything");
    Ok(values)
}

fn rest(pace: Pace, turn: usize) {
    if let (Pace::Gap(gap), 1..) = (pace, turn) {
        sleep(gap);
    }
}

#[cfg(test)]
#[path = "measure_tests.rs"]
mod tests;
