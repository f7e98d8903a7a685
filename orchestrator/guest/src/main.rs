//! PID 1 of a container, and (forked from it) PID 1 of each lease.
//!
//! - [`contain`]: the container's PID 1: stages leases, reaps, ends when the
//!   daemon is gone.
//! - [`stage`]: the namespaces, mounts and privileges of a lease.
//! - [`mount`], [`network`], [`privilege`], [`filter`]: what staging does.
//! - [`serve`]: the lease's PID 1: starts commands, reaps, reports.
//! - [`task`]: one command, from fork to execve(2).
//! - [`gate`]: the word of a listener on who may call execve(2).
//!
//! Single-threaded throughout, so that fork is safe. It is started with its
//! control socket as descriptor 3 and nothing else open but 0, 1 and 2.

mod contain;
mod filter;
mod gate;
mod mount;
mod network;
mod privilege;
mod serve;
mod signals;
mod stage;
mod syscall;
mod task;
mod terminal;
mod writable_root;

use std::os::fd::{FromRawFd, OwnedFd};
use std::process::ExitCode;

/// Where the launcher puts the control socket.
const CONTROL_FD: i32 = 3;

#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

fn main() -> ExitCode {
    // SAFETY: the launcher hands this descriptor over for good and nothing in
    // this process has touched it yet; if it is not open, the first use fails.
    let control = unsafe { OwnedFd::from_raw_fd(CONTROL_FD) };
    match contain::run(control) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
