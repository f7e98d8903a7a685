//! A8, A16, A19, B8: new namespaces, mounts, and ways out of the root.

use super::Probe;
use crate::attempt;
use crate::outcome::{Outcome, Verdict};
use crate::raw;

const NAMESPACES: &[(&str, i64)] = &[
    ("user", 0x1000_0000),
    ("mnt", 0x0002_0000),
    ("net", 0x4000_0000),
    ("pid", 0x2000_0000),
    ("cgroup", 0x0200_0000),
    ("time", 0x0000_0080),
    ("uts", 0x0400_0000),
    ("ipc", 0x0800_0000),
];
const NEW_USER: i64 = 0x1000_0000;

pub(super) fn probes() -> Vec<Probe> {
    let unshares = NAMESPACES
        .iter()
        .map(|&(name, flag)| Probe::new(format!("B8.unshare_{name}"), move || unshare(flag)));
    // CLONE_NEWTIME is no flag of clone: its bit is part of the exit signal there.
    let clones = NAMESPACES
        .iter()
        .filter(|(name, _)| *name != "time")
        .map(|&(name, flag)| Probe::new(format!("B8.clone_{name}"), move || clone(flag)));
    unshares
        .chain(clones)
        .chain([
            Probe::new("B8.clone_user_bit32", || clone(NEW_USER | 1 << 32)),
            Probe::new("B8.clone3", || Outcome::of_call(raw::call(435, [0; 6]))),
            // release_agent (CVE-2022-0492): user, mount and cgroup namespace at once. The
            // mount itself would bind a controller on the host, so it is not made.
            Probe::new("A8.unshare", || {
                unshare(NEW_USER | 0x0002_0000 | 0x0200_0000)
            }),
            Probe::new("A8.mount_new_fs", || {
                mount(
                    c"orch-no-such-fs",
                    c"/",
                    0,
                    "file system that does not exist",
                )
            }),
            Probe::new("A16.open_by_handle_at", || {
                Outcome::of_call(raw::call(304, [-1, 0, 0, 0, 0, 0]))
            }),
            Probe::new("A16.chroot", || {
                Outcome::of_call(raw::call(
                    libc::SYS_chroot,
                    [raw::address(c"/".as_ptr()), 0, 0, 0, 0, 0],
                ))
            }),
            Probe::new("A16.pivot_root", || {
                Outcome::of_call(raw::call(155, [0; 6]))
            }),
            Probe::new("A19.umount", umount),
            Probe::new("A19.remount", remount),
            Probe::new("A19.move_mount", || {
                Outcome::of_call(raw::call(429, [-1, 0, -1, 0, 0, 0]))
            }),
            Probe::new("A19.open_tree", || {
                Outcome::of_call(raw::call(428, [-100, 0, 0, 0, 0, 0]))
            }),
            Probe::new("A19.mount_setattr", || {
                Outcome::of_call(raw::call(442, [-100, 0, 0, 0, 0, 0]))
            }),
            Probe::new("A19.open_tree_attr", || {
                Outcome::of_call(raw::call(467, [-100, 0, 0, 0, 0, 0]))
            }),
        ])
        .collect()
}

fn unshare(flags: i64) -> Outcome {
    Outcome::of_call(raw::call(libc::SYS_unshare, [flags, 0, 0, 0, 0, 0]))
}

fn clone(flags: i64) -> Outcome {
    let answer = raw::call(
        libc::SYS_clone,
        [flags | i64::from(libc::SIGCHLD), 0, 0, 0, 0, 0],
    );
    match answer {
        // SAFETY: the clone runs on a copy of this stack and leaves at once.
        Ok(0) => unsafe { libc::_exit(0) },
        Ok(pid) => {
            if let Ok(pid) = libc::pid_t::try_from(pid) {
                attempt::wait(pid);
            }
            Outcome::plain(Verdict::Allowed, "a child was made")
        }
        Err(_) => Outcome::of_call(answer),
    }
}

fn mount(kind: &std::ffi::CStr, target: &std::ffi::CStr, flags: u64, what: &str) -> Outcome {
    // SAFETY: every string outlives the call.
    let answer = unsafe {
        libc::mount(
            c"none".as_ptr(),
            target.as_ptr(),
            kind.as_ptr(),
            flags,
            std::ptr::null(),
        )
    };
    let outcome = Outcome::of_call(raw::answer(answer));
    if outcome.result == Verdict::Allowed {
        outcome.detailed(what)
    } else {
        outcome
    }
}

/// `MNT_EXPIRE` and `MNT_DETACH` exclude each other: after the check of the right
/// the kernel answers EINVAL, mounted or not, so nothing is ever unmounted.
fn umount() -> Outcome {
    let flags = libc::MNT_EXPIRE | libc::MNT_DETACH;
    // SAFETY: the path outlives the call.
    let answer = unsafe { libc::umount2(c"/proc".as_ptr(), flags) };
    Outcome::of_call(raw::answer(answer))
}

/// Remounts with the very flags the mount has: nothing changes, and whoever may do
/// that may also clear one of them.
fn remount() -> Outcome {
    let target = [c"/proc/sys", c"/usr", c"/"];
    let mut last = Outcome::error("nothing to remount");
    for path in target {
        // SAFETY: `stat` is writable and the path outlives the call.
        let flags = unsafe {
            let mut stat = std::mem::zeroed::<libc::statvfs>();
            if libc::statvfs(path.as_ptr(), &raw mut stat) != 0 {
                continue;
            }
            // ST_RDONLY, ST_NOSUID, ST_NODEV, ST_NOEXEC have the values of the MS_ flags.
            stat.f_flag & (libc::MS_RDONLY | libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC)
        };
        last = mount(
            c"none",
            path,
            flags | libc::MS_REMOUNT | libc::MS_BIND,
            "the kernel was reached",
        );
        if last.result == Verdict::Allowed {
            return last;
        }
    }
    last
}
