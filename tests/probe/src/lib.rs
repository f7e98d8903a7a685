//! Probes of a sandbox: each attempts one thing that a task must not be able to
//! do (or reads one thing it must not see) and says what happened.
//!
//! - `probes`: the attempts, one room per kind; ids are those of the hazards table.
//! - `attempt`: runs one in a child with an alarm, so a kill or a hang is a result.
//! - `outcome`: the JSON line of one probe.
//! - `verdict`: pure; compares lines with the expected table of a tier.
//! - `status`: what a process is, to compare the first task with a later one (A10).
//! - `modes`: programs that eat a resource or refuse to die, for limit and kill tests.
//!
//! No probe does lasting harm where it succeeds, root on a host included: the
//! arguments are chosen so that the kernel checks the right first and then finds
//! nothing to do. Where that is impossible the probe answers `skipped_unsafe`.

pub mod attempt;
mod errno;
pub mod modes;
pub mod outcome;
mod pattern;
pub mod probes;
mod raw;
mod scratch;
pub mod status;
mod table;
pub mod verdict;

pub use errno::name as errno_name;
pub use outcome::{Line, Outcome, Verdict};
pub use pattern::Pattern;
pub use probes::{Probe, ids};
pub use scratch::Scratch;
pub use table::{Control, Entry, Table, expected};
pub use verdict::{Finding, judge, judge_control};
