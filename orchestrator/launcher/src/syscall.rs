//! Results of raw system calls.

use std::io;

/// Turns the `-1` convention into a result.
pub fn check(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}
