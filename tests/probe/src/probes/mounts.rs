//! A14, A24, A25, PR-06, PR-09: what the mount table says about this sandbox.

use std::collections::BTreeSet;
use std::ffi::CStr;

use super::Probe;
use crate::outcome::{Outcome, Verdict};
use crate::raw;

pub(super) fn probes() -> Vec<Probe> {
    vec![
        Probe::here("A14.shared", || count(" shared:")),
        Probe::here("A14.master", || count(" master:")),
        Probe::here("A24.lowerdir", || {
            Outcome::found(&option_values("lowerdir="))
        }),
        Probe::here("A25.writable_mounts", writable_mounts),
        Probe::here("PR-06.root", || flags_of(c"/")),
        Probe::here("PR-09.workspace", || flags_of(c"/workspace")),
        Probe::here("PR-14.tmp", || flags_of(c"/tmp")),
        Probe::here("FS-03.usr", || flags_of(c"/usr")),
        Probe::here("FS-03.etc", || flags_of(c"/etc")),
    ]
}

fn mountinfo() -> String {
    std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default()
}

fn count(word: &str) -> Outcome {
    let text = mountinfo();
    if text.is_empty() {
        return Outcome::error("no /proc/self/mountinfo");
    }
    Outcome::value(
        text.lines()
            .filter(|line| line.contains(word))
            .count()
            .to_string(),
    )
}

fn option_values(word: &str) -> Vec<String> {
    mountinfo()
        .split([' ', ',', '\n'])
        .filter_map(|option| option.strip_prefix(word))
        .map(str::to_owned)
        .collect()
}

/// Folders that can be written and would honour set-user-id files or device nodes.
/// Below `/dev` only set-user-id counts: device nodes are its purpose, and A21 looks
/// at them one by one. What the mount table says of a covered mount does not matter,
/// so each path is asked for its flags.
fn writable_mounts() -> Outcome {
    let text = mountinfo();
    if text.is_empty() {
        return Outcome::error("no /proc/self/mountinfo");
    }
    let paths = text
        .lines()
        .filter_map(|line| line.split(' ').nth(4))
        .collect::<BTreeSet<_>>();
    let found = paths
        .into_iter()
        .filter(|path| std::fs::metadata(path).is_ok_and(|meta| meta.is_dir()))
        .filter(|path| {
            let flags = mount_flags(&raw::c_path(path)).unwrap_or(0);
            let inert = if path.starts_with("/dev") {
                libc::ST_NOSUID
            } else {
                libc::ST_NOSUID | libc::ST_NODEV
            };
            flags & libc::ST_RDONLY == 0 && flags & inert != inert
        })
        .map(str::to_owned)
        .collect::<Vec<_>>();
    Outcome::found(&found)
}

fn mount_flags(path: &CStr) -> Result<u64, i32> {
    // SAFETY: `stat` is writable and the path outlives the call.
    let (answer, flags) = unsafe {
        let mut stat = std::mem::zeroed::<libc::statvfs>();
        (libc::statvfs(path.as_ptr(), &raw mut stat), stat.f_flag)
    };
    raw::answer(answer).map(|_| flags)
}

/// `ro` or `rw`, as the mount that holds the path says.
fn flags_of(path: &CStr) -> Outcome {
    match mount_flags(path) {
        Err(libc::ENOENT) => Outcome::with_errno(Verdict::Hidden, libc::ENOENT, ""),
        Err(number) => Outcome::with_errno(Verdict::Error, number, "statvfs"),
        Ok(flags) if flags & libc::ST_RDONLY != 0 => Outcome::value("ro"),
        Ok(_) => Outcome::value("rw"),
    }
}
