//! System-call filters: data files compiled to classic BPF, by number.
//!
//! The host compiles, the guest only loads bytes (design §4). Three kinds of
//! program stack in a running task, and the kernel takes the strictest word:
//!
//! - [`guest`]: PID 1 of a container; makes namespaces and mounts.
//! - [`lease`]: PID 1 of a lease; starts task children.
//! - [`task`]: one per tier and one for a single program, loaded last before exec.
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
use crate::profile::{SyscallTable, Tier};

pub use oci::oci;
pub use program::{Instruction, Program};

/// One of the programs that stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filter {
    /// PID 1 of a container.
    Guest,
    /// PID 1 of a lease of that tier.
    Lease(Tier),
    /// Every process of a task under that table.
    Task(SyscallTable),
}

impl Filter {
    /// All of them, outermost first.
    pub const ALL: [Filter; 8] = [
        Filter::Guest,
        Filter::Lease(Tier::Loose),
        Filter::Lease(Tier::Standard),
        Filter::Lease(Tier::Strict),
        Filter::Task(SyscallTable::Loose),
        Filter::Task(SyscallTable::Standard),
        Filter::Task(SyscallTable::Strict),
        Filter::Task(SyscallTable::Python),
    ];
}

/// The filter of a task, loaded as the last step before exec, after
/// `no_new_privs`. Where it [asks](Program::asks), it needs a listener that lets
/// the first exec through.
///
/// # Errors
///
/// [`crate::Code::ControlMissing`] where orch was built with bytes that are no
/// program.
pub fn task(table: SyscallTable) -> Result<Program, Error> {
    carried(Filter::Task(table))
}

/// The filter of a lease's PID 1: all that [`task`] of that tier allows, and
/// what starting children needs.
///
/// # Errors
///
/// As [`task`].
pub fn lease(tier: Tier) -> Result<Program, Error> {
    carried(Filter::Lease(tier))
}

/// The filter of a container's PID 1: all that [`lease`] of any tier allows,
/// and what making namespaces and mounts needs.
///
/// # Errors
///
/// As [`task`].
pub fn guest() -> Result<Program, Error> {
    carried(Filter::Guest)
}

/// Compiles a filter from the tables, which takes about 0.2 ms; [`task`],
/// [`lease`] and [`guest`] give the same bytes ready-made, and a test fails when
/// they differ.
///
/// # Errors
///
/// [`crate::Code::ControlMissing`] where a data file names a call, constant or
/// errno that does not exist: a name is never skipped.
pub fn compile(filter: Filter) -> Result<Program, Error> {
    let table = match filter {
        Filter::Guest => table::guest(),
        Filter::Lease(tier) => table::lease(tier),
        Filter::Task(table) => table::task(table),
    };
    compile::compile(&table?)
}

fn carried(filter: Filter) -> Result<Program, Error> {
    macro_rules! bytes {
        ($name:literal) => {
            include_bytes!(concat!("../../syscalls/compiled/", $name, ".bpf")).as_slice()
        };
    }
    Program::new(match filter {
        Filter::Guest => bytes!("guest"),
        Filter::Lease(Tier::Loose) => bytes!("lease-loose"),
        Filter::Lease(Tier::Standard) => bytes!("lease-standard"),
        Filter::Lease(Tier::Strict) => bytes!("lease-strict"),
        Filter::Task(SyscallTable::Loose) => bytes!("task-loose"),
        Filter::Task(SyscallTable::Standard) => bytes!("task-standard"),
        Filter::Task(SyscallTable::Strict) => bytes!("task-strict"),
        Filter::Task(SyscallTable::Python) => bytes!("task-python"),
    })
}
