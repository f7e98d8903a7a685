//! Eats one resource until the limit bites or the argument is reached.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use super::{LIFE, report, say};
use crate::raw;

const CHUNK: usize = 64 * 1024;

/// Makes up to `count` children that wait, says how many there are, and waits to be
/// killed with them; its own end takes them along.
pub(super) fn forkbomb(count: u64) -> u8 {
    let parent = std::process::id();
    let mut made = 0;
    let mut stopped = None;
    while made < count {
        // SAFETY: single-threaded; the child makes plain calls and waits.
        match unsafe { libc::fork() } {
            0 => unsafe {
                // SAFETY: as above. A parent that died before the call sends nothing.
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                if u32::try_from(libc::getppid()) != Ok(parent) {
                    libc::_exit(0);
                }
                libc::alarm(LIFE);
                loop {
                    libc::pause();
                }
            },
            -1 => {
                stopped = Some(io::Error::last_os_error());
                break;
            }
            _ => made += 1,
        }
    }
    let status = report(made, stopped.as_ref());
    // SAFETY: plain calls.
    unsafe {
        libc::alarm(LIFE);
        libc::pause();
    }
    status
}

/// Touches `bytes` of private memory, a chunk at a time, and says so at every 16 MiB.
pub(super) fn memory(bytes: u64) -> u8 {
    let mut held: Vec<Vec<u8>> = Vec::new();
    let mut done = 0_u64;
    while done < bytes {
        let mut chunk = Vec::new();
        if chunk.try_reserve_exact(CHUNK).is_err() {
            return report(done, Some(&io::Error::from_raw_os_error(libc::ENOMEM)));
        }
        // Not zero, so that no zero page is shared.
        chunk.resize(CHUNK, 1);
        held.push(chunk);
        done += CHUNK as u64;
        if done.is_multiple_of(16 << 20) {
            say(&serde_json::json!({ "touched": done }));
        }
    }
    std::hint::black_box(&held);
    report(done, None)
}

/// Computes for `seconds` of wall clock.
pub(super) fn cpu(seconds: u64) -> u8 {
    let end = Instant::now() + Duration::from_secs(seconds.min(u64::from(LIFE)));
    let mut rounds = 0_u64;
    while Instant::now() < end {
        for _ in 0..100_000 {
            rounds = std::hint::black_box(rounds + 1);
        }
    }
    report(rounds, None)
}

/// Writes `bytes` into the file `path`.
pub(super) fn write(path: &str, bytes: u64) -> u8 {
    // Past RLIMIT_FSIZE the answer shall be EFBIG and not a signal.
    // SAFETY: plain call.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    match File::create(path) {
        Ok(mut file) => pour(&mut file, bytes),
        Err(error) => report(0, Some(&error)),
    }
}

/// Writes `bytes` of one letter to standard output, without a line end, and the
/// report to standard error.
pub(super) fn flood(bytes: u64) -> u8 {
    // SAFETY: plain call; the reader may leave.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    let mut out = io::stdout().lock();
    let chunk = [b'x'; CHUNK];
    let mut done = 0_u64;
    while done < bytes {
        let wanted = usize::try_from(bytes - done).unwrap_or(CHUNK).min(CHUNK);
        if let Err(error) = out.write_all(&chunk[..wanted]) {
            let _ = writeln!(io::stderr(), "{{\"done\":{done},\"error\":\"{error}\"}}");
            return 1;
        }
        done += wanted as u64;
    }
    u8::from(out.flush().is_err())
}

fn pour(file: &mut File, bytes: u64) -> u8 {
    let chunk = [b'x'; CHUNK];
    let mut done = 0_u64;
    while done < bytes {
        let wanted = usize::try_from(bytes - done).unwrap_or(CHUNK).min(CHUNK);
        match file.write(&chunk[..wanted]) {
            Ok(count) => done += count as u64,
            Err(error) => return report(done, Some(&error)),
        }
    }
    report(done, None)
}

/// Makes up to `count` empty files in `folder`.
pub(super) fn inodes(folder: &str, count: u64) -> u8 {
    for number in 0..count {
        if let Err(error) = File::create(Path::new(folder).join(format!("inode-{number}"))) {
            return report(number, Some(&error));
        }
    }
    report(count, None)
}

/// Opens up to `count` descriptors of `/dev/null`.
pub(super) fn descriptors(count: u64) -> u8 {
    for number in 0..count {
        // SAFETY: the path is a C string; the descriptors end with the process.
        let fd = unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
        if let Err(errno) = raw::answer(fd) {
            return report(number, Some(&io::Error::from_raw_os_error(errno)));
        }
    }
    report(count, None)
}
