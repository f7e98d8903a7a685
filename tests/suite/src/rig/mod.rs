//! What the hazard and probe tests share.
//!
//! - [`place`]: directories of a test, and where the programs are.
//! - [`orch`]: the command line: started, spoken to, ended.
//! - [`host`]: processes and control groups, seen from outside.
//! - [`lease`]: two commands in one lease, through the engine.
//! - [`subtree`]: control groups of a test.
//! - [`image`]: root file systems made by a test.
//! - [`terminal`]: a terminal for a program that wants one.
//! - [`filter`]: a filter around a whole process, for controls that must be missed.

pub mod filter;
pub mod host;
pub mod image;
pub mod lease;
pub mod orch;
pub mod place;
pub mod subtree;
pub mod terminal;

/// What every test gives.
pub type Result<T> = std::result::Result<T, String>;

/// Fails with a reason unless `holds`.
///
/// # Errors
/// The reason.
pub fn ensure(holds: bool, why: impl FnOnce() -> String) -> Result<()> {
    if holds { Ok(()) } else { Err(why()) }
}

/// The error of an operation on something that has a name.
pub fn at<E: std::fmt::Display>(what: impl std::fmt::Display) -> impl FnOnce(E) -> String {
    move |error| format!("{what}: {error}")
}
