//! A11: programs and calls that would give a task another user or capabilities.

use std::ffi::CString;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use super::Probe;
use crate::attempt;
use crate::outcome::{Outcome, Verdict};
use crate::raw;

pub(super) fn probes() -> Vec<Probe> {
    vec![
        Probe::new("A11.setuid_0", || {
            becoming(libc::SYS_setuid, [0, 0, 0, 0, 0, 0])
        }),
        Probe::new("A11.setgid_0", || {
            becoming(libc::SYS_setgid, [0, 0, 0, 0, 0, 0])
        }),
        Probe::new("A11.setgroups", || {
            let groups = [0_u32];
            becoming(
                libc::SYS_setgroups,
                [1, raw::address(groups.as_ptr()), 0, 0, 0, 0],
            )
        }),
        Probe::new("A11.setuid_program", setuid_program),
        Probe::new("A11.file_caps_program", file_caps_program),
    ]
}

/// EINVAL says that the id has no mapping in this user namespace: refused as well.
fn becoming(number: i64, args: [i64; 6]) -> Outcome {
    match raw::call(number, args) {
        Err(libc::EINVAL) => Outcome::with_errno(Verdict::Refused, libc::EINVAL, "id not mapped"),
        answer => Outcome::of_call(answer),
    }
}

/// Programs that print at once and are set-user-id root on common distributions.
const PROGRAMS: &[&str] = &[
    "/usr/bin/mount",
    "/usr/bin/umount",
    "/usr/bin/su",
    "/usr/bin/passwd",
    "/usr/bin/chsh",
    "/usr/bin/chfn",
    "/usr/bin/gpasswd",
    "/usr/bin/newgrp",
    "/usr/bin/sudo",
    "/usr/bin/fusermount3",
    "/bin/mount",
    "/bin/su",
    "/bin/ping",
];

fn setuid_program() -> Outcome {
    let candidate = PROGRAMS
        .iter()
        .find(|path| std::fs::metadata(path).is_ok_and(|meta| meta.mode() & libc::S_ISUID != 0));
    match candidate {
        None => Outcome::plain(Verdict::Hidden, "no set-user-id program"),
        Some(path) => run_and_look(path, "Uid"),
    }
}

const CAPABLE: &[&str] = &[
    "/usr/bin/ping",
    "/bin/ping",
    "/usr/bin/newuidmap",
    "/usr/bin/newgidmap",
    "/usr/bin/arping",
    "/usr/bin/mtr-packet",
    "/usr/bin/dumpcap",
    "/usr/sbin/clockdiff",
    // The test suite plants one here for the control.
    "/tmp/orch-probe-capable",
];

fn file_caps_program() -> Outcome {
    let candidate = CAPABLE.iter().find(|path| {
        let path = raw::c_path(path);
        // SAFETY: both strings outlive the call; no buffer is filled (size 0).
        let size = unsafe {
            libc::getxattr(
                path.as_ptr(),
                c"security.capability".as_ptr(),
                std::ptr::null_mut(),
                0,
            )
        };
        size > 0
    });
    match candidate {
        None => Outcome::plain(Verdict::Hidden, "no program with file capabilities"),
        Some(path) => run_and_look(path, "CapPrm"),
    }
}

/// Runs `path --help` as an ordinary user with its output going into a pipe that is
/// full already: it waits there, its credentials are read, and it is killed.
fn run_and_look(path: &str, field: &str) -> Outcome {
    let Some(full) = full_pipe() else {
        return Outcome::error("no pipe");
    };
    let program = CString::new(path).unwrap_or_default();
    // SAFETY: the grandchild makes plain calls on memory prepared before the fork
    // and ends in exec or `_exit`.
    let pid = unsafe { libc::fork() };
    if pid < 0 {
        return Outcome::with_errno(Verdict::Error, raw::last_errno(), "fork");
    }
    if pid == 0 {
        let argv = [program.as_ptr(), c"--help".as_ptr(), std::ptr::null()];
        let envp = [std::ptr::null()];
        // SAFETY: see above. Root becomes an ordinary user first, so that a change shows.
        unsafe {
            if libc::geteuid() == 0 {
                libc::setgroups(0, std::ptr::null());
                libc::setgid(65534);
                libc::setuid(65534);
            }
            for fd in [1, 2] {
                libc::dup2(full, fd);
            }
            libc::alarm(2);
            libc::execve(program.as_ptr(), argv.as_ptr(), envp.as_ptr());
            libc::_exit(127)
        }
    }
    let changed = watch(pid, path, field);
    // SAFETY: `pid` is our child, not yet reaped. A set-user-id program may still be
    // signalled by its real user; otherwise its own alarm ends it.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    attempt::wait(pid);
    changed
}

fn watch(pid: libc::pid_t, path: &str, field: &str) -> Outcome {
    let end = Instant::now() + Duration::from_millis(1500);
    while Instant::now() < end {
        let text = |file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}"));
        let name = path.rsplit('/').next().unwrap_or(path);
        let runs = text("comm").is_ok_and(|comm| name.starts_with(comm.trim()));
        let blocked = text("stat").is_ok_and(|stat| stat.contains(") S"));
        if runs && blocked {
            let value = text("status")
                .ok()
                .and_then(|text| raw::field_of(&text, field));
            return judge(value.as_deref().unwrap_or_default(), path, field);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Outcome::error(format!("{path} did not run long enough to be looked at"))
}

fn judge(value: &str, path: &str, field: &str) -> Outcome {
    let detail = format!("{path} {field} {value}");
    let changed = match field {
        "Uid" => {
            let ids = value.split_whitespace().collect::<Vec<_>>();
            ids.windows(2).any(|pair| pair[0] != pair[1])
        }
        _ => value.bytes().any(|digit| digit != b'0'),
    };
    let result = if changed {
        Verdict::Allowed
    } else {
        Verdict::Refused
    };
    Outcome::plain(result, detail)
}

/// The write end of a pipe without room; the read end stays open in this child.
fn full_pipe() -> Option<i32> {
    let mut ends = [-1; 2];
    let byte = [0_u8; 4096];
    // SAFETY: `ends` has room for two descriptors and `byte` is readable; the loop
    // ends when the pipe (64 KiB) is full, because the end does not block yet.
    unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) != 0 {
            return None;
        }
        while libc::write(ends[1], byte.as_ptr().cast(), byte.len()) > 0 {}
        while libc::write(ends[1], byte.as_ptr().cast(), 1) > 0 {}
        (libc::fcntl(ends[1], libc::F_SETFL, 0) == 0).then_some(ends[1])
    }
}
