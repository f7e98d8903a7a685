//! System-call filters: data files compiled to classic BPF, by number.
//!
//! The host compiles, the guest only loads bytes (design §4). Three kinds of
//! program stack in a running task, and the kernel takes the strictest word:
//!
//! - [`guest`]: PID 1 of a container; makes namespaces and mounts.
//! - [`lease`]: PID 1 of a lease; starts task children.
//! - [`task`]: one per tier, loaded last before exec.
//!
//! A filter that is inherited can only take away, so each outer program allows
//! all that the inner ones allow. In all of them a call of another ABI (i386,
//! x32) and a number that the table does not know give ENOSYS, and a known call
//! that is refused gives EPERM, or the errno that makes libraries fall back.
//!
//! - `number`: names and numbers of the calls, and the named constants.
//! - `verdict`: what a table says about one call, and the union of two of those.
//! - `table`: the shape of the data files, and how they become a table.
//! - `compile`: a table as a program.
//! - `program`: the bytes that the kernel loads.
//! - `oci`: the same tier as an OCI seccomp section, for `orch spec`.

mod compile;
mod number;
mod oci;
mod program;
mod table;
mod verdict;

#[cfg(test)]
mod tests;

use crate::error::Error;
use crate::profile::Tier;

pub use oci::oci;
pub use program::{Instruction, Program};

/// The filter of a task, loaded as the last step before exec, after
/// `no_new_privs`.
///
/// # Errors
///
/// [`crate::Code::ControlMissing`] where a data file names a call, constant or
/// errno that does not exist: a name is never skipped.
pub fn task(tier: Tier) -> Result<Program, Error> {
    compile::compile(&table::task(tier)?)
}

/// The filter of a lease's PID 1: all that [`task`] of that tier allows, and
/// what starting children needs.
///
/// # Errors
///
/// As [`task`].
pub fn lease(tier: Tier) -> Result<Program, Error> {
    compile::compile(&table::lease(tier)?)
}

/// The filter of a container's PID 1: all that [`lease`] of any tier allows,
/// and what making namespaces and mounts needs.
///
/// # Errors
///
/// As [`task`].
pub fn guest() -> Result<Program, Error> {
    compile::compile(&table::guest()?)
}
