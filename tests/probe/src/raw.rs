//! The raw system call and the few wrappers that every room needs.

use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The error number of the last failed libc call.
pub(crate) fn last_errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// Turns a libc return value into the value or the error number.
pub(crate) fn answer(returned: impl Into<i64>) -> Result<i64, i32> {
    let returned = returned.into();
    if returned < 0 {
        Err(last_errno())
    } else {
        Ok(returned)
    }
}

/// `S nr args…` of the hazards table.
///
/// The callers choose arguments that either carry no pointer, a pointer that
/// outlives the call, or one that the kernel must answer with `EFAULT`.
pub(crate) fn call(number: i64, args: [i64; 6]) -> Result<i64, i32> {
    let [a, b, c, d, e, f] = args;
    // SAFETY: the kernel checks every argument; no caller passes an address of
    // memory that the kernel could write to except buffers it owns (see above).
    answer(unsafe { libc::syscall(number, a, b, c, d, e, f) })
}

/// The address of a value as a system-call argument.
pub(crate) fn address<T: ?Sized>(pointer: *const T) -> i64 {
    pointer.cast::<()>().addr().cast_signed() as i64
}

/// A path as a C string; a NUL cannot occur in a path that the kernel gave.
pub(crate) fn c_path(path: impl AsRef<Path>) -> CString {
    CString::new(path.as_ref().as_os_str().as_bytes()).unwrap_or_default()
}

/// Opens and at once closes a path; nothing is read or written.
pub(crate) fn touch_open(path: impl AsRef<Path>, flags: i32) -> Result<i64, i32> {
    let path = c_path(path);
    // SAFETY: `path` is a C string that lives until the call returns.
    let fd = unsafe { libc::open(path.as_ptr(), flags | libc::O_CLOEXEC | libc::O_NONBLOCK) };
    let answer = answer(fd);
    close(fd);
    answer.map(|_| 0)
}

/// Closes a descriptor; a negative one is left alone.
pub(crate) fn close(fd: i32) {
    if fd >= 0 {
        // SAFETY: the callers pass descriptors that they opened themselves and use no more.
        unsafe { libc::close(fd) };
    }
}

/// Whether the mount that a path leads to is read-only.
pub(crate) fn is_read_only(path: impl AsRef<Path>) -> bool {
    let path = c_path(path);
    // SAFETY: `path` is a C string and `found` is writable until the call returns.
    unsafe {
        let mut found = std::mem::zeroed::<libc::statvfs>();
        libc::statvfs(path.as_ptr(), &raw mut found) == 0 && found.f_flag & libc::ST_RDONLY != 0
    }
}

/// Whether the caller's real ids may write to `path` (also `EROFS`).
pub(crate) fn may_write(path: &CStr) -> Result<i64, i32> {
    // SAFETY: `path` is a C string that lives until the call returns.
    answer(unsafe { libc::access(path.as_ptr(), libc::W_OK) })
}

/// Whether the process has loaded a system-call filter.
pub(crate) fn is_filtered() -> bool {
    status_field("Seccomp").as_deref() == Some("2")
}

/// One field of `/proc/self/status`, trimmed.
pub(crate) fn status_field(name: &str) -> Option<String> {
    field_of(&std::fs::read_to_string("/proc/self/status").ok()?, name)
}

/// One field of the text of a `status` file, trimmed.
pub(crate) fn field_of(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key == name).then(|| value.trim().to_owned())
    })
}
