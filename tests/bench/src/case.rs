//! What is measured, against whom, at which pace and under which bar.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use anyhow::Result;

/// Takes one sample in the unit of its case.
pub type Sampler = Box<dyn FnMut() -> Result<f64>>;

/// Takes one sample of several named values in the unit of its case.
pub type Spread = Box<dyn FnMut() -> Result<BTreeMap<String, f64>>>;

/// Times work inside this process, in milliseconds.
pub fn timed(mut work: impl FnMut() -> Result<()> + 'static) -> Sampler {
    Box::new(move || {
        let before = Instant::now();
        work()?;
        Ok(before.elapsed().as_secs_f64() * 1e3)
    })
}

/// How the runs follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// One right after the other.
    BackToBack,
    /// The machine idles that long before each run: caches, clocks and RCU are
    /// then in the state in which a person's command finds them.
    Gap(Duration),
}

impl Pace {
    /// One second between runs.
    pub const GAP: Self = Self::Gap(Duration::from_secs(1));

    /// As it stands in the name of a case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BackToBack => "back-to-back",
            Self::Gap(_) => "gap",
        }
    }
}

/// An upper bound for subject / peer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bar {
    /// The ratio that must not be exceeded.
    pub factor: f64,
    /// A hope rather than a promise.
    pub moonshot: bool,
}

impl Bar {
    /// A promise.
    #[must_use]
    pub const fn at_most(factor: f64) -> Self {
        Self {
            factor,
            moonshot: false,
        }
    }

    /// A hope.
    #[must_use]
    pub const fn moonshot(factor: f64) -> Self {
        Self {
            factor,
            moonshot: true,
        }
    }

    /// As it stands in the results, for example `<= 0.45 x runc`.
    #[must_use]
    pub fn against(self, peer: &str) -> String {
        let hope = if self.moonshot { " (moonshot)" } else { "" };
        format!("<= {} x {peer}{hope}", self.factor)
    }

    /// Whether `ratio` stays within it; the bound itself does.
    #[must_use]
    pub fn met(self, ratio: f64) -> bool {
        ratio <= self.factor
    }
}

/// Who the subject is compared with.
pub struct Peer {
    /// Short name, as it stands in bars.
    pub name: String,
    /// Takes its samples.
    pub sampler: Sampler,
}

/// How a case gets its samples.
pub enum Kind {
    /// One value a run, by turns with the peer where there is one.
    Value {
        /// Takes the samples of what the project promises.
        subject: Sampler,
        /// Takes those of the other side.
        peer: Option<Peer>,
    },
    /// Several named values a run, one row each.
    Spread(Spread),
    /// Not possible here. It stays in the results, so that nobody misses it.
    Absent {
        /// Who would have been compared with.
        peer: Option<String>,
        /// What is missing.
        reason: String,
    },
}

/// One line of the table (several for a [`Kind::Spread`]).
pub struct Case {
    /// Unique, dotted, stable: results are compared by it.
    pub name: String,
    /// `ms`, `us`, `count`.
    pub unit: &'static str,
    /// How the runs follow each other.
    pub pace: Pace,
    /// Upper bound, where one was promised.
    pub bar: Option<Bar>,
    /// How the samples are taken.
    pub kind: Kind,
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Case")
            .field("name", &self.name)
            .field("unit", &self.unit)
            .field("pace", &self.pace)
            .field("bar", &self.bar)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Value { .. } => "Value",
            Self::Spread(_) => "Spread",
            Self::Absent { .. } => "Absent",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_itself_is_within_the_bar() {
        let bar = Bar::at_most(0.45);
        assert!(bar.met(0.45));
        assert!(!bar.met(0.450_001));
    }

    #[test]
    fn a_bar_reads_as_a_sentence() {
        assert_eq!(Bar::at_most(0.45).against("runc"), "<= 0.45 x runc");
        assert_eq!(
            Bar::moonshot(1.5).against("bwrap"),
            "<= 1.5 x bwrap (moonshot)"
        );
    }
}
