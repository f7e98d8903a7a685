//! E8, E10: resource limits as the task has them, and the size of what it can fill.

use super::Probe;
use crate::outcome::{Outcome, Verdict};
use crate::{raw, status};

pub(super) fn probes() -> Vec<Probe> {
    status::RLIMITS
        .iter()
        .map(|&(name, resource)| {
            Probe::here(format!("E10.{name}"), move || {
                match status::rlimit(resource) {
                    Some(pair) => Outcome::value(pair),
                    None => Outcome::error("getrlimit"),
                }
            })
        })
        .chain(
            [("tmp", c"/tmp"), ("shm", c"/dev/shm"), ("run", c"/run")]
                .into_iter()
                .flat_map(|(name, path)| {
                    [
                        Probe::here(format!("E8.{name}_bytes"), move || {
                            size_of(path, |stat| stat.f_blocks.saturating_mul(stat.f_frsize))
                        }),
                        Probe::here(format!("E8.{name}_inodes"), move || {
                            size_of(path, |stat| stat.f_files)
                        }),
                    ]
                }),
        )
        .collect()
}

/// A size of the file system of `path`, where it can be written at all.
fn size_of(path: &std::ffi::CStr, size: impl Fn(&libc::statvfs) -> u64) -> Outcome {
    // SAFETY: `stat` is writable and the path outlives the call.
    let (answer, stat) = unsafe {
        let mut stat = std::mem::zeroed::<libc::statvfs>();
        (libc::statvfs(path.as_ptr(), &raw mut stat), stat)
    };
    match raw::answer(answer) {
        Err(libc::ENOENT) => Outcome::with_errno(Verdict::Hidden, libc::ENOENT, ""),
        Err(number) => Outcome::with_errno(Verdict::Error, number, "statvfs"),
        Ok(_) if stat.f_flag & libc::ST_RDONLY != 0 => Outcome::plain(Verdict::Hidden, "read-only"),
        Ok(_) => {
            let size = size(&stat);
            // A tmpfs mounted without a limit reports 0.
            Outcome::value(if size == 0 {
                "unlimited".to_owned()
            } else {
                size.to_string()
            })
        }
    }
}
