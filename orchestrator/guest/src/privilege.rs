//! Ids and capabilities of a lease's PID 1 and of a task.

use std::io;

use crate::syscall::{check, prctl};

const CAP_KILL: u32 = 5;
const CAP_SETGID: u32 = 6;
const CAP_SETUID: u32 = 7;
/// Starting a child as another user needs these three, and nothing else does.
const STARTING: u64 = 1 << CAP_KILL | 1 << CAP_SETGID | 1 << CAP_SETUID;
/// Highest capability number tried; the kernel says where its own list ends.
const LAST_CAP: libc::c_ulong = 63;

/// Becomes `id` and keeps only what starting children needs. The bounding set,
/// which every child inherits, is empty from here on.
pub fn become_lease(id: u32) -> io::Result<()> {
    empty_bounding_set()?;
    prctl(libc::PR_SET_KEEPCAPS, 1, 0, 0)?;
    set_ids(id, id)?;
    set_capabilities(STARTING)?;
    prctl(libc::PR_SET_KEEPCAPS, 0, 0, 0)?;
    prctl(libc::PR_SET_DUMPABLE, 0, 0, 0)
}

/// Becomes the user of a task: no group but `gid`, no capability in any set,
/// also not in the bounding and the ambient one (A11).
pub fn become_task(uid: u32, gid: u32) -> io::Result<()> {
    clear_ambient()?;
    set_ids(uid, gid)?;
    set_capabilities(0)
}

fn set_ids(uid: u32, gid: u32) -> io::Result<()> {
    // The raw calls: the wrappers of the C library signal the other threads of a
    // process, and there are none.
    // SAFETY: an empty list needs no memory; the rest are plain numbers.
    unsafe {
        // Where there is none, the kernel need not be asked: in a user namespace
        // made by somebody else than root it refuses (user_namespaces(7)).
        if check(libc::syscall(
            libc::SYS_getgroups,
            0,
            std::ptr::null_mut::<u32>(),
        ))? > 0
        {
            check(libc::syscall(
                libc::SYS_setgroups,
                0,
                std::ptr::null::<u32>(),
            ))?;
        }
        check(libc::syscall(libc::SYS_setresgid, gid, gid, gid))?;
        check(libc::syscall(libc::SYS_setresuid, uid, uid, uid))?;
    }
    Ok(())
}

fn set_capabilities(set: u64) -> io::Result<()> {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    #[repr(C)]
    struct Data {
        effective: u32,
        permitted: u32,
        inheritable: u32,
    }
    /// `_LINUX_CAPABILITY_VERSION_3`, capget(2).
    const VERSION_3: u32 = 0x2008_0522;
    let header = Header {
        version: VERSION_3,
        pid: 0,
    };
    let word = |shift: u32| {
        let bits = u32::try_from((set >> shift) & 0xffff_ffff).unwrap_or(0);
        Data {
            effective: bits,
            permitted: bits,
            inheritable: 0,
        }
    };
    let data = [word(0), word(32)];
    // SAFETY: header and data have the layout of capset(2), version 3.
    check(unsafe { libc::syscall(libc::SYS_capset, &raw const header, data.as_ptr()) }).map(drop)
}

fn empty_bounding_set() -> io::Result<()> {
    for cap in 0..=LAST_CAP {
        match prctl(libc::PR_CAPBSET_DROP, cap, 0, 0) {
            Ok(()) => {}
            // The first number that the kernel does not know ends its list.
            Err(e) if e.raw_os_error() == Some(libc::EINVAL) => break,
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

fn clear_ambient() -> io::Result<()> {
    let clear = libc::c_ulong::try_from(libc::PR_CAP_AMBIENT_CLEAR_ALL).unwrap_or(0);
    prctl(libc::PR_CAP_AMBIENT, clear, 0, 0)
}
