//! A1, A15, A16, PX-08: other processes, the runtime's own program, control sockets.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use super::{Probe, environment, walk};
use crate::outcome::{Outcome, Verdict};
use crate::raw;

pub(super) fn probes() -> Vec<Probe> {
    vec![
        Probe::here("PX-08.count", || Outcome::value(pids().len().to_string())),
        Probe::new("PX-08.kernel_threads", || {
            let found = pids()
                .into_iter()
                .filter(|pid| {
                    std::fs::read_to_string(format!("/proc/{pid}/comm"))
                        .is_ok_and(|name| name.trim() == "kthreadd" || name.starts_with("rcu_"))
                })
                .map(|pid| pid.to_string())
                .collect::<Vec<_>>();
            Outcome::found(&found)
        }),
        Probe::new("A1.own_exe", || write_program("/proc/self/exe")),
        Probe::new("A1.pid1_exe", || write_program("/proc/1/exe")),
        Probe::new("A1.any_exe", any_exe),
        Probe::walking("A15.socket_files", || {
            walk::find(walk::ROOTS, |_| true, |entry| entry.kind.is_socket())
        }),
        Probe::new("A15.socket_names", socket_names),
        Probe::new("A16.pid1_root", pid1_root),
        Probe::new("A16.pid1_cwd", || {
            Outcome::of_path(raw::touch_open(
                "/proc/1/cwd/",
                libc::O_PATH | libc::O_DIRECTORY,
            ))
        }),
        Probe::new("A16.shadow", || environment::read_of("/etc/shadow")),
    ]
}

/// Opens a program for writing. While it runs the kernel says `ETXTBSY` before it
/// looks at the mount; where that is read-only, it is what refuses afterwards.
fn write_program(path: &str) -> Outcome {
    let answer = raw::touch_open(path, libc::O_WRONLY);
    if answer == Err(libc::ETXTBSY) && raw::is_read_only(path) {
        return Outcome::with_errno(
            Verdict::Refused,
            libc::EROFS,
            "busy, and on a read-only mount",
        );
    }
    Outcome::of_path(answer)
}

fn pids() -> Vec<u32> {
    std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// CVE-2019-5736: a program of the runtime that can be opened for writing. `ETXTBSY`
/// means that only its running stood in the way.
fn any_exe() -> Outcome {
    let mut refused = Outcome::plain(Verdict::Hidden, "no other process");
    for pid in pids().into_iter().filter(|pid| *pid != std::process::id()) {
        let path = format!("/proc/{pid}/exe");
        let outcome = write_program(&path);
        match outcome.result {
            Verdict::Allowed => return outcome.detailed(path),
            Verdict::Refused => refused = outcome,
            _ => {}
        }
    }
    refused
}

/// Sockets of engines and of the system in this network namespace.
fn socket_names() -> Outcome {
    const WORDS: [&str; 8] = [
        "docker",
        "containerd",
        "podman",
        "crio",
        "sandboxd",
        "orch",
        "systemd",
        "dbus",
    ];
    match std::fs::read_to_string("/proc/net/unix") {
        Err(error) => Outcome::of_path(Err(error.raw_os_error().unwrap_or(0))),
        Ok(text) => {
            let found = text
                .lines()
                .filter_map(|line| line.split_whitespace().nth(7))
                .filter(|name| WORDS.iter().any(|word| name.contains(word)))
                .map(str::to_owned)
                .collect::<Vec<_>>();
            Outcome::found(&found)
        }
    }
}

fn pid1_root() -> Outcome {
    let identity = |path: &str| std::fs::metadata(path).map(|meta| (meta.dev(), meta.ino()));
    match (identity("/proc/1/root/."), identity("/")) {
        (Ok(theirs), Ok(ours)) if theirs == ours => {
            Outcome::plain(Verdict::Hidden, "the same root")
        }
        (Ok(_), Ok(_)) => {
            let shadow = Path::new("/proc/1/root/etc/shadow").exists();
            Outcome::plain(
                Verdict::Visible,
                format!("another root; its shadow file: {shadow}"),
            )
        }
        (Err(error), _) => Outcome::of_path(Err(error.raw_os_error().unwrap_or(0))),
        (_, Err(error)) => Outcome::error(error.to_string()),
    }
}
