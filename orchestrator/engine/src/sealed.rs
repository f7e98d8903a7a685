//! Executables in sealed memory (memfd_create(2)): no process inside a sandbox
//! can reach a file of the host through `/proc/*/exe`, and nobody can change what
//! is run (CVE-2019-5736, H4).

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

/// Copies an executable into memory that can no longer be changed.
///
/// # Errors
/// What memfd_create(2), write(2) or fcntl(2) say.
pub fn seal(name: &CStr, bytes: &[u8]) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // Before Linux 6.3 there is no such flag, and every memfd can be executed.
    let memory = match memfd_create(name, flags | MemfdFlags::EXEC) {
        Err(rustix::io::Errno::INVAL) => memfd_create(name, flags)?,
        other => other?,
    };
    populate(bytes);
    let mut rest = bytes;
    while !rest.is_empty() {
        rest = &rest[rustix::io::write(&memory, rest)?..];
    }
    // Not F_SEAL_WRITE: it waits, and then gives up with EBUSY, while anything in the
    // kernel holds on to a page. There is no writable mapping that the difference
    // could matter to, and F_SEAL_SEAL keeps it so.
    fcntl_add_seals(
        memory.as_fd(),
        SealFlags::FUTURE_WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL,
    )?;
    Ok(memory)
}

/// Maps the pages of the source at once instead of one fault after the other
/// (MADV_POPULATE_READ, Linux 5.14). Where that is refused the faults do it.
fn populate(bytes: &[u8]) {
    let page = rustix::param::page_size();
    let start = bytes.as_ptr() as usize & !(page - 1);
    let length = bytes.as_ptr() as usize + bytes.len() - start;
    // SAFETY: the range covers the pages of `bytes`, which are mapped and stay so;
    // reading them in changes nothing that can be seen.
    unsafe { libc::madvise(start as *mut libc::c_void, length, libc::MADV_POPULATE_READ) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealed_memory_cannot_be_written_or_resized() {
        let memory = seal(c"test", b"abc").unwrap();
        let mut bytes = [0; 3];
        rustix::io::pread(&memory, &mut bytes, 0).unwrap();
        assert_eq!(&bytes, b"abc");
        assert_eq!(
            rustix::io::write(&memory, b"x").unwrap_err(),
            rustix::io::Errno::PERM
        );
        assert!(rustix::fs::ftruncate(&memory, 1).is_err());
    }
}
