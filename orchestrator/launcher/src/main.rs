//! The one process that keeps privileges: namespaces, mounts, control groups.
//!
//! Started from a sealed memory file with a clean environment, its control
//! socket as descriptor 0; single-threaded, so that the workers that it forks are
//! safe (H4, H9, design §3.1).
//!
//! - [`serve`]: takes requests and answers them.
//! - [`worker`]: one forked process that makes one container with libcontainer.
//! - [`abandoned`]: the end of a first process that nobody starts.
//! - [`rootfs`], [`idmap`]: what a container's root is put together from; [`holder`]:
//!   namespaces that nothing runs in.
//! - [`cgroup`]: control groups of execs, v1 and v2; [`orphan`]: those nobody owns.
//! - [`process`]: pidfds, killing and waiting.
//! - [`rootless`]: becoming root of a user namespace, where it is not root.

mod abandoned;
mod cgroup;
mod failure;
mod holder;
mod idmap;
mod orphan;
mod process;
mod rootfs;
mod rootless;
mod serve;
mod syscall;
mod worker;

use std::process::ExitCode;

#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

fn main() -> ExitCode {
    match serve::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
