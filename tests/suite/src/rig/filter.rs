//! A filter around a whole process, for controls that must be missed: it makes a
//! system call fail, or do nothing and claim success.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Makes `command` and everything that it starts get `errno` for system call
/// `number` (x86-64) instead of the call; 0 means a success that is none.
pub fn answer(command: &mut Command, number: i64, errno: u16) {
    // SAFETY: only prctl(2) and seccomp(2) are called, which may be between fork
    // and exec; the program lives on the stack of the closure.
    unsafe { command.pre_exec(move || load(number, errno)) };
}

/// The same for the calling process, which has to be root or to have
/// `no_new_privs`.
///
/// # Errors
/// What seccomp(2) says.
pub fn load(number: i64, errno: u16) -> io::Result<()> {
    /// Offset of the number in `struct seccomp_data`.
    const NUMBER: u32 = 0;
    let number = u32::try_from(number).map_err(io::Error::other)?;
    let step = |code: u32, jt, jf, k| {
        Ok::<_, io::Error>(libc::sock_filter {
            code: u16::try_from(code).map_err(io::Error::other)?,
            jt,
            jf,
            k,
        })
    };
    let mut program = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, NUMBER)?,
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, number)?,
        step(
            libc::BPF_RET | libc::BPF_K,
            0,
            0,
            libc::SECCOMP_RET_ERRNO | u32::from(errno),
        )?,
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW)?,
    ];
    let program = libc::sock_fprog {
        len: 4,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: the program outlives the call.
    match unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            0,
            &raw const program,
        )
    } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
