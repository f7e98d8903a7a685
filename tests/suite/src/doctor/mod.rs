//! `orch doctor` on this machine with one feature taken away for real: a file of the
//! kernel covered, a call refused, a capability dropped, a limit lowered (OP-01, FS-26,
//! CP-13, H18). What cannot be taken away here is tried as a value in the unit tests.

mod call;
mod faked;
mod inside;
pub mod record;
mod refused;
mod surroundings;

use crate::harness::Test;

/// The rooms' tests.
pub fn tests() -> Vec<Test> {
    [
        faked::tests(),
        inside::tests(),
        refused::tests(),
        surroundings::tests(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
