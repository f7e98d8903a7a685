//! A2, A13, PX-02, PX-03, PX-04, PX-07: what a task inherits.

use std::os::unix::ffi::OsStrExt;

use super::Probe;
use crate::outcome::{Outcome, Verdict};
use crate::{raw, status};

pub(super) fn probes() -> Vec<Probe> {
    vec![
        Probe::here("PX-07.fds", || Outcome::value(status::open_fds().join(","))),
        Probe::here("PX-02.cwd", || match std::env::current_dir() {
            Ok(path) => Outcome::value(path.display().to_string()),
            Err(error) => Outcome::error(error.to_string()),
        }),
        Probe::here("PX-03.env_names", || {
            let mut names = std::env::vars_os()
                .map(|(name, _)| name.to_string_lossy().into_owned())
                .collect::<Vec<_>>();
            names.sort();
            Outcome::value(names.join(","))
        }),
        Probe::here("PX-04.secrets", secrets),
        Probe::new("A13.pid1_environ", || read_of("/proc/1/environ")),
        Probe::new("A13.pid1_fds", || list_of("/proc/1/fd")),
        Probe::new("A2.cwd_in_root", cwd_in_root),
        Probe::here("A2.fd_walk", fd_walk),
    ]
}

/// Names that carry secrets, and the canary that the test suite plants in the
/// environment of whatever starts the sandbox. Values are never printed.
fn secrets() -> Outcome {
    const WORDS: [&str; 6] = ["KEY", "PASSWORD", "PASSWD", "SECRET", "TOKEN", "CREDENTIAL"];
    let found = std::env::vars_os()
        .filter(|(name, value)| {
            let upper = name.to_string_lossy().to_uppercase();
            WORDS.iter().any(|word| upper.contains(word))
                || value
                    .as_bytes()
                    .windows(11)
                    .any(|part| part == b"ORCH-CANARY")
        })
        .map(|(name, _)| name.to_string_lossy().into_owned())
        .collect::<Vec<_>>();
    Outcome::found(&found)
}

/// `allowed` where a file of another process gives at least one byte.
pub(super) fn read_of(path: &str) -> Outcome {
    use std::io::Read;
    let mut byte = [0];
    match std::fs::File::open(path).and_then(|mut file| file.read(&mut byte)) {
        Ok(0) => Outcome::plain(Verdict::Hidden, "empty"),
        Ok(_) => Outcome::plain(Verdict::Allowed, "readable"),
        Err(error) => Outcome::of_path(Err(error.raw_os_error().unwrap_or(0))),
    }
}

/// `allowed` where a folder can be listed and has entries.
fn list_of(path: &str) -> Outcome {
    match std::fs::read_dir(path) {
        Err(error) => Outcome::of_path(Err(error.raw_os_error().unwrap_or(0))),
        Ok(list) => match list.count() {
            0 => Outcome::plain(Verdict::Hidden, "empty"),
            count => Outcome::plain(Verdict::Allowed, format!("{count} entries")),
        },
    }
}

/// A working directory outside the root reads as `(unreachable)…` (CVE-2024-21626).
fn cwd_in_root() -> Outcome {
    let mut buffer = [0_u8; 4097];
    let pointer = raw::address(buffer.as_mut_ptr());
    match raw::call(libc::SYS_getcwd, [pointer, 4096, 0, 0, 0, 0]) {
        Ok(_) if buffer.starts_with(b"/") => Outcome::plain(Verdict::Hidden, "inside the root"),
        Ok(_) => Outcome::plain(
            Verdict::Visible,
            "the working directory is outside the root",
        ),
        Err(number) => Outcome::with_errno(Verdict::Error, number, "getcwd"),
    }
}

/// A directory descriptor left open by the runtime leads to the host's root.
fn fd_walk() -> Outcome {
    let found = (3..=1023)
        .flat_map(|fd| {
            [
                format!("/proc/self/fd/{fd}/."),
                format!("/proc/self/fd/{fd}/../../.."),
            ]
        })
        .filter(|path| raw::touch_open(path, libc::O_PATH | libc::O_DIRECTORY).is_ok())
        .collect::<Vec<_>>();
    Outcome::found(&found)
}
