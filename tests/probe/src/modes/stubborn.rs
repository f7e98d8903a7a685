//! Does what it can not to die: E2, E3, E4.

use std::fs::OpenOptions;
use std::io::Write;
use std::time::{Duration, Instant};

use super::{LIFE, say};

const IGNORED: [libc::c_int; 6] = [
    libc::SIGTERM,
    libc::SIGINT,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGPIPE,
];

fn ignore_signals() {
    for signal in IGNORED {
        // SAFETY: SIG_IGN is no function of ours.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Leaves its parent and its session, ignores signals, and appends a byte to the file
/// every 100 ms; with `-` it only holds standard output open. The first process ends
/// at once.
pub(super) fn daemon(file: &str) -> u8 {
    for step in 0..2 {
        // SAFETY: single-threaded.
        match unsafe { libc::fork() } {
            -1 => return 1,
            0 if step == 0 => {
                // SAFETY: plain call.
                unsafe { libc::setsid() };
            }
            0 => {}
            _ => return 0,
        }
    }
    ignore_signals();
    say(&serde_json::json!({ "daemon": std::process::id() }));
    let end = Instant::now() + Duration::from_secs(u64::from(LIFE));
    while Instant::now() < end {
        if file != "-" {
            // A file system that has gone away is no reason to end.
            let _ = OpenOptions::new()
                .create(true)
                .append(true)
                .open(file)
                .and_then(|mut file| file.write_all(b"."));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    0
}

/// Stops itself; whoever continues it gets an ordinary end.
pub(super) fn stop() -> u8 {
    say(&serde_json::json!({ "stopping": std::process::id() }));
    // SAFETY: plain call.
    unsafe { libc::raise(libc::SIGSTOP) };
    0
}

/// Ignores every polite signal and waits.
pub(super) fn ignore() -> u8 {
    ignore_signals();
    say(&serde_json::json!({ "ignoring": std::process::id() }));
    std::thread::sleep(Duration::from_secs(u64::from(LIFE)));
    0
}
