//! A23: memory images of crashed tasks.

use super::{Place, Probe};
use crate::attempt;
use crate::outcome::{Outcome, Verdict};
use crate::raw;

pub(super) fn probes() -> Vec<Probe> {
    vec![
        Probe::new("A23.raise_limit", || {
            let limit = libc::rlimit {
                rlim_cur: libc::RLIM_INFINITY,
                rlim_max: libc::RLIM_INFINITY,
            };
            // SAFETY: `limit` outlives the call.
            Outcome::of_call(raw::answer(unsafe {
                libc::setrlimit(libc::RLIMIT_CORE, &raw const limit)
            }))
        }),
        Probe::placed("A23.crash", crash),
    ]
}

/// A grandchild crashes in a private folder with the highest limit it can have, at
/// most 1 MiB. The wait status says whether an image was made.
fn crash(place: &Place<'_>) -> Outcome {
    let pattern = std::fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap_or_default();
    if pattern.is_empty() || pattern.contains(['|', '/', '@']) {
        return Outcome::plain(
            Verdict::SkippedUnsafe,
            format!(
                "images go to the host: core_pattern is `{}`",
                pattern.trim()
            ),
        );
    }
    let Some(scratch) = place.scratch else {
        return Outcome::error("no writable directory to crash in");
    };
    if let Err(error) = std::env::set_current_dir(scratch) {
        return Outcome::error(format!("{}: {error}", scratch.display()));
    }
    // SAFETY: the grandchild makes plain calls and ends by its signal.
    let pid = unsafe { libc::fork() };
    if pid < 0 {
        return Outcome::with_errno(Verdict::Error, raw::last_errno(), "fork");
    }
    if pid == 0 {
        // SAFETY: see above; `limit` is writable.
        unsafe {
            let mut limit = std::mem::zeroed::<libc::rlimit>();
            libc::getrlimit(libc::RLIMIT_CORE, &raw mut limit);
            limit.rlim_cur = limit.rlim_max.min(1 << 20);
            libc::setrlimit(libc::RLIMIT_CORE, &raw const limit);
            libc::signal(libc::SIGSEGV, libc::SIG_DFL);
            libc::raise(libc::SIGSEGV);
            libc::_exit(0)
        }
    }
    let status = attempt::wait(pid);
    if !libc::WIFSIGNALED(status) {
        return Outcome::error(format!("the child did not crash, status {status}"));
    }
    if libc::WCOREDUMP(status) {
        Outcome::plain(Verdict::Allowed, "a memory image was made")
    } else {
        Outcome::plain(Verdict::Refused, "no memory image")
    }
}
