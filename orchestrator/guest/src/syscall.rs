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

/// errno of an error, or EIO where it has none.
pub fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}

/// prctl(2) with up to three arguments.
pub fn prctl(
    option: libc::c_int,
    a: libc::c_ulong,
    b: libc::c_ulong,
    c: libc::c_ulong,
) -> io::Result<()> {
    let none: libc::c_ulong = 0;
    // SAFETY: every option used in this program takes plain numbers, or (for the
    // filter, in `filter.rs`) is not called through here.
    check(libc::c_long::from(unsafe {
        libc::prctl(option, a, b, c, none)
    }))
    .map(drop)
}
