//! The probes, one room per kind.

mod abi;
mod clock;
mod cores;
mod devices;
mod environment;
mod escalation;
mod exec;
mod identity;
mod kernel;
mod limits;
mod masks;
mod mounts;
mod namespaces;
mod network;
mod processes;
mod setuid;
mod sockets;
mod terminal;
mod walk;

use std::path::Path;

use crate::attempt;
use crate::outcome::{Line, Outcome};

/// What a probe may use.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// A private writable directory, where there is one.
    pub scratch: Option<&'a Path>,
}

type Body = Box<dyn Fn(&Place<'_>) -> Outcome>;

/// One attempt.
pub struct Probe {
    /// Its id: the row, and after a dot the member of that row.
    pub id: String,
    body: Body,
    /// Seconds until the alarm; `None` runs in the main process, which only
    /// harmless readings of that process itself may.
    seconds: Option<u32>,
}

impl std::fmt::Debug for Probe {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Probe")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// Seconds that an ordinary attempt may take.
const ALARM: u32 = 3;
/// Seconds for a probe that walks a tree; walks bound themselves well below.
const WALK_ALARM: u32 = 10;

impl Probe {
    fn new(id: impl Into<String>, body: impl Fn() -> Outcome + 'static) -> Self {
        Self::placed(id, move |_| body())
    }

    fn placed(id: impl Into<String>, body: impl Fn(&Place<'_>) -> Outcome + 'static) -> Self {
        Self {
            id: id.into(),
            body: Box::new(body),
            seconds: Some(ALARM),
        }
    }

    /// A probe that walks a tree.
    fn walking(id: impl Into<String>, body: impl Fn() -> Outcome + 'static) -> Self {
        Self {
            seconds: Some(WALK_ALARM),
            ..Self::new(id, body)
        }
    }

    /// A probe that reads something of the main process itself.
    fn here(id: impl Into<String>, body: impl Fn() -> Outcome + 'static) -> Self {
        Self {
            seconds: None,
            ..Self::new(id, body)
        }
    }

    /// Runs it; in a child of its own unless it only reads this process.
    #[must_use]
    pub fn run(&self, place: &Place<'_>) -> Line {
        let outcome = match self.seconds {
            Some(seconds) => attempt::forked(seconds, || (self.body)(place)),
            None => (self.body)(place),
        };
        Line {
            id: self.id.clone(),
            outcome,
        }
    }

    /// Whether `wanted` names it: an id, a row (`B1`), or a group (`B`, `NW`).
    #[must_use]
    pub fn is_named(&self, wanted: &str) -> bool {
        let row = self.id.split('.').next().unwrap_or(&self.id);
        let group = row.trim_end_matches(|c: char| c.is_ascii_digit() || c == '-');
        wanted == self.id || wanted == row || wanted == group
    }
}

/// Every probe, in the order of a run.
#[must_use]
pub fn all() -> Vec<Probe> {
    [
        environment::probes(),
        processes::probes(),
        identity::probes(),
        escalation::probes(),
        mounts::probes(),
        namespaces::probes(),
        masks::probes(),
        devices::probes(),
        cores::probes(),
        setuid::probes(),
        kernel::probes(),
        terminal::probes(),
        sockets::probes(),
        exec::probes(),
        clock::probes(),
        abi::probes(),
        limits::probes(),
        network::probes(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The ids of every probe.
#[must_use]
pub fn ids() -> Vec<String> {
    all().into_iter().map(|probe| probe.id).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{all, ids};

    #[test]
    fn no_id_is_given_twice() {
        let ids = ids();
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
    }

    #[test]
    fn probes_are_named_by_id_row_and_group() {
        let probes = all();
        let count = |wanted: &str| probes.iter().filter(|p| p.is_named(wanted)).count();
        assert_eq!(count("B1.bpf"), 1);
        assert!(count("B1") > 19);
        assert!(count("B") > count("B1"));
        assert!(count("NW") >= 3);
        assert_eq!(count("B1."), 0);
        assert_eq!(count("nothing"), 0);
    }
}
