//! A14, A24, A25, PR-06, PR-09: what the mount table says about this sandbox.

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
    Outcome::value(text.lines().filter(|line| line.contains(word)).count().to_string())
}

fn option_values(word: &str) -> Vec<String> {
    mountinfo()
        .split([' ', ',', '\n'])
        .filter_map(|option| option.strip_prefix(word))
        .map(str::to_owned)
        .collect()
}

/// Places that can be written and would honour set-user-id files or device nodes.
/// The usual device nodes are binds of their own that carry no such files.
fn writable_mounts() -> Outcome {
    let text = mountinfo();
    if text.is_empty() {
        return Outcome::error("no /proc/self/mountinfo");
    }
    let found = text
        .lines()
        .filter_map(|line| {
            let fields = line.split(' ').collect::<Vec<_>>();
            let (path, options) = (fields.get(4)?, fields.get(5)?);
            let has = |word: &str| options.split(',').any(|option| option == word);
            let folder = std::fs::metadata(path).is_ok_and(|meta| meta.is_dir());
            let device_folder = path.starts_with("/dev") && has("nosuid");
            let weak = has("rw") && folder && !(has("nosuid") && has("nodev"));
            (weak && !device_folder).then(|| (*path).to_owned())
        })
        .collect::<Vec<_>>();
    Outcome::found(&found)
}

/// `ro` or `rw`, as the mount that holds the path says.
fn flags_of(path: &std::ffi::CStr) -> Outcome {
    // SAFETY: `stat` is writable and the path outlives the call.
    let (answer, flags) = unsafe {
        let mut stat = std::mem::zeroed::<libc::statvfs>();
        (libc::statvfs(path.as_ptr(), &raw mut stat), stat.f_flag)
    };
    match raw::answer(answer) {
        Err(libc::ENOENT) => Outcome::with_errno(Verdict::Hidden, libc::ENOENT, ""),
        Err(number) => Outcome::with_errno(Verdict::Error, number, "statvfs"),
        Ok(_) if flags & libc::ST_RDONLY != 0 => Outcome::value("ro"),
        Ok(_) => Outcome::value("rw"),
    }
}
