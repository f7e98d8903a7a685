//! Loading a system-call filter that was compiled on the host.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use crate::syscall::{check, prctl};

/// Sets `no_new_privs` and loads the filter; from here on it can only be tightened.
///
/// # Errors
/// EINVAL for an empty or malformed program, otherwise what seccomp(2) says.
pub fn load(program: &[u8]) -> io::Result<()> {
    set(program, 0).map(drop)
}

/// As [`load`], for a program that asks; gives the descriptor of its listener.
///
/// # Errors
/// Also EBUSY where a filter that is loaded already has a listener.
pub fn load_with_listener(program: &[u8]) -> io::Result<OwnedFd> {
    let fd = set(program, libc::SECCOMP_FILTER_FLAG_NEW_LISTENER)?;
    let fd = i32::try_from(fd).map_err(|_| io::Error::from_raw_os_error(libc::EBADF))?;
    // SAFETY: the kernel made this descriptor for this call.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn set(program: &[u8], flags: libc::c_ulong) -> io::Result<libc::c_long> {
    const INSTRUCTION: usize = size_of::<libc::sock_filter>();
    let count = program.len() / INSTRUCTION;
    let len = libc::c_ushort::try_from(count).unwrap_or(0);
    if len == 0 || !program.len().is_multiple_of(INSTRUCTION) {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    // A copy with the alignment of the instruction type.
    let mut aligned = vec![
        libc::sock_filter {
            code: 0,
            jt: 0,
            jf: 0,
            k: 0
        };
        count
    ];
    // SAFETY: both areas are `program.len()` bytes long and do not overlap, and
    // every bit pattern is a valid `sock_filter`.
    unsafe {
        std::ptr::copy_nonoverlapping(
            program.as_ptr(),
            aligned.as_mut_ptr().cast::<u8>(),
            program.len(),
        );
    }
    let fprog = libc::sock_fprog {
        len,
        filter: aligned.as_mut_ptr(),
    };
    prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0)?;
    // SAFETY: `fprog` points at `len` instructions that outlive the call.
    check(unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            flags,
            &raw const fprog,
        )
    })
}
