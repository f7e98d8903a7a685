//! B10: running a program that is no file of the sandbox.

use std::os::unix::fs::PermissionsExt;

use super::{Place, Probe};
use crate::attempt;
use crate::outcome::{Outcome, Verdict};
use crate::raw;

/// The exit status of the little program below.
const STATUS: i32 = 42;

/// A whole static ELF file: header, one segment, `exit(42)`.
fn program() -> Vec<u8> {
    let code: [u8; 12] = [0xbf, 42, 0, 0, 0, 0xb8, 60, 0, 0, 0, 0x0f, 0x05];
    let mut file = Vec::new();
    file.extend([0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    file.extend([2, 0, 62, 0, 1, 0, 0, 0]);
    file.extend(0x40_0078_u64.to_le_bytes());
    file.extend(64_u64.to_le_bytes());
    file.extend(0_u64.to_le_bytes());
    file.extend([0, 0, 0, 0, 64, 0, 56, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    file.extend([1, 0, 0, 0, 5, 0, 0, 0]);
    for word in [0, 0x40_0000, 0x40_0000, 132, 132, 0x1000_u64] {
        file.extend(word.to_le_bytes());
    }
    file.extend(code);
    file
}

pub(super) fn probes() -> Vec<Probe> {
    vec![
        Probe::new("B10.memfd_create", || match memfd() {
            Ok(fd) => {
                raw::close(fd);
                Outcome::plain(Verdict::Allowed, "")
            }
            Err(number) => Outcome::of_call(Err(number)),
        }),
        Probe::new("B10.execveat", || {
            memfd_run(|fd, argv, envp| {
                let path = raw::address(c"".as_ptr());
                let flags = i64::from(libc::AT_EMPTY_PATH);
                raw::call(
                    libc::SYS_execveat,
                    [i64::from(fd), path, argv, envp, flags, 0],
                )
            })
        }),
        Probe::new("B10.exec_proc_fd", || {
            memfd_run(|fd, argv, envp| {
                let path = raw::c_path(format!("/proc/self/fd/{fd}"));
                raw::call(
                    libc::SYS_execve,
                    [raw::address(path.as_ptr()), argv, envp, 0, 0, 0],
                )
            })
        }),
        Probe::placed("B10.exec_written_file", written_file),
    ]
}

fn memfd() -> Result<i32, i32> {
    // SAFETY: the name is a C string.
    let fd = unsafe { libc::memfd_create(c"orch-probe".as_ptr(), 0) };
    raw::answer(fd).map(|_| fd)
}

fn memfd_run(exec: impl Fn(i32, i64, i64) -> Result<i64, i32>) -> Outcome {
    let fd = match memfd() {
        Ok(fd) => fd,
        Err(number) => return Outcome::of_call(Err(number)).detailed("memfd_create"),
    };
    let file = program();
    // SAFETY: `file` is readable for its length.
    let written = unsafe { libc::write(fd, file.as_ptr().cast(), file.len()) };
    if usize::try_from(written) != Ok(file.len()) {
        return Outcome::error("the program could not be written into the memory file");
    }
    run(|argv, envp| exec(fd, argv, envp))
}

fn written_file(place: &Place<'_>) -> Outcome {
    let Some(scratch) = place.scratch else {
        return Outcome::plain(Verdict::Hidden, "no writable directory");
    };
    let path = scratch.join("program");
    let made = std::fs::write(&path, program())
        .and_then(|()| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)));
    if let Err(error) = made {
        return Outcome::error(format!("{}: {error}", path.display()));
    }
    let c_path = raw::c_path(&path);
    let path = raw::address(c_path.as_ptr());
    run(|argv, envp| raw::call(libc::SYS_execve, [path, argv, envp, 0, 0, 0]))
}

/// Runs `exec` in a grandchild; its status tells whether the program ran.
fn run(exec: impl Fn(i64, i64) -> Result<i64, i32>) -> Outcome {
    // SAFETY: the grandchild only calls `exec` and leaves by `_exit`.
    let pid = unsafe { libc::fork() };
    if pid < 0 {
        return Outcome::with_errno(Verdict::Error, raw::last_errno(), "fork");
    }
    if pid == 0 {
        let list = [c"program".as_ptr(), std::ptr::null()];
        let argv = raw::address(list.as_ptr());
        let envp = raw::address(list[1..].as_ptr());
        let number = exec(argv, envp).err().unwrap_or(0);
        // SAFETY: ends the grandchild; the error number travels in the status, above 128.
        unsafe { libc::_exit(if number < 128 { 128 + number } else { 127 }) }
    }
    let status = attempt::wait(pid);
    if libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSYS {
        return Outcome::plain(Verdict::Refused, "killed by the system-call filter");
    }
    match libc::WEXITSTATUS(status) {
        STATUS if libc::WIFEXITED(status) => Outcome::plain(Verdict::Allowed, "the program ran"),
        code @ 129..=255 => Outcome::of_call(Err(code - 128)),
        code => Outcome::error(format!("unexpected status {code}")),
    }
}

#[cfg(test)]
mod tests {
    use super::program;

    #[test]
    fn the_program_has_the_size_that_its_header_says() {
        assert_eq!(program().len(), 132);
    }
}
