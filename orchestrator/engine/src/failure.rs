//! Errors of the kernel and of the launcher in the one shape of this project.

use std::io;

use orch_policy::{Code, Error};
use orch_wire::WireError;
use orch_wire::launch::Failure;

use crate::outer;

/// errno values that say: the host has run out of something.
const EXHAUSTED: &[i32] = &[
    libc::ENOSPC,
    libc::EDQUOT,
    libc::ENOMEM,
    libc::EMFILE,
    libc::ENFILE,
    libc::EAGAIN,
];
/// errno values that say: the host does not allow it.
const REFUSED: &[i32] = &[libc::EPERM, libc::EACCES, libc::ENOSYS, libc::ENODEV];

/// How a user who is not root gets control groups (systemd.resource-control(5)).
const DELEGATE: &str = "run it in a control group of your own: \
     systemd-run --user --scope -p Delegate=yes -- orch run ... \
     (docs/rootless.md has the way without systemd), or as root, or in tier standard, \
     which says what it does not limit";

/// What the launcher could not do.
pub fn launcher(failure: &Failure) -> Error {
    let (code, remediation) = match failure.errno {
        Some(libc::EXDEV) => (
            Code::MountInvalid,
            "make the target in the mounted folder first, or name a target outside of it",
        ),
        Some(libc::ELOOP) => (
            Code::MountInvalid,
            "name a target that does not lead through a symbolic link",
        ),
        Some(libc::ENOTDIR) if failure.step.starts_with("mount on ") => (
            Code::MountInvalid,
            "mount a directory on a directory and a file on a file",
        ),
        // What mount_setattr(2) says where the file system cannot do it.
        Some(libc::EINVAL) if failure.step.starts_with("translate the owners of ") => (
            Code::HostUnsupported,
            "put the source on a file system that can show files with other owners: \
             ext4, xfs or btrfs, and tmpfs from Linux 6.3 on",
        ),
        Some(errno) if EXHAUSTED.contains(&errno) => (
            Code::HostExhausted,
            "free disk space, memory, processes or descriptors on the host and try again",
        ),
        // The launcher has looked: this user may make no control group.
        Some(libc::ENODEV) if failure.step.starts_with("keep the limit of ") => {
            (Code::LimitUnavailable, DELEGATE)
        }
        Some(libc::EROFS) if failure.step.contains("control group") => (
            Code::CgroupFailed,
            "control groups are mounted read-only here: in a container give --privileged, or as \
             root in it: mount -o remount,rw,bind /sys/fs/cgroup (on version 1 each directory \
             below it), with --cgroupns=private",
        ),
        Some(libc::EACCES | libc::EPERM) if failure.step.contains("control group") => (
            Code::CgroupFailed,
            "start it in a group that is delegated to this user: \
                 `systemd-run --user --scope -p Delegate=yes orch …` (for root without --user), \
                 or Delegate=yes in the service that starts it",
        ),
        Some(libc::EBUSY) if failure.step.contains("control group") => (
            Code::CgroupFailed,
            "other processes keep starting in this group, or are there that cannot be moved; \
             start it in a group of its own: `systemd-run --scope -p Delegate=yes orch …`",
        ),
        _ if failure.step.contains("control group") || failure.step.contains("controller") => (
            Code::CgroupFailed,
            "run `orch doctor` to see which controllers this host has",
        ),
        Some(libc::EINVAL) if failure.step.starts_with("take the source of ") => (
            Code::MountInvalid,
            "something is mounted below it, which only root can leave out: name a folder \
             without mounts in it, mount it read-only, or run orch as root",
        ),
        Some(libc::EOPNOTSUPP) if failure.step.starts_with("take the source of ") => (
            Code::MountInvalid,
            "a file system of the kernel is mounted below it (proc, sysfs, cgroup, devices) and \
             would show the host, which only root can leave out: unmount it, name a folder \
             without it, or run orch as root",
        ),
        Some(libc::ESTALE) if failure.step.starts_with("take the source of ") => (
            Code::MountInvalid,
            "it was replaced while orch looked at it: try again",
        ),
        Some(errno) if REFUSED.contains(&errno) => (
            Code::HostUnsupported,
            "run `orch doctor` to see what this host lacks, and as root where it says so",
        ),
        _ => (
            Code::RuntimeFailed,
            "run `orch doctor`; if it finds nothing, report this with the cause",
        ),
    };
    let error = Error::new(code, format!("cannot {}", failure.step), remediation);
    let outer = (code == Code::HostUnsupported && failure.errno == Some(libc::EPERM))
        .then(outer::explain)
        .flatten();
    match outer {
        Some(remediation) => Error {
            remediation,
            ..error
        },
        None => error,
    }
    .because(&failure.cause)
}

/// What the kernel said to the engine itself.
pub fn kernel(step: impl std::fmt::Display, error: impl Into<io::Error>) -> Error {
    let error: io::Error = error.into();
    launcher(&Failure {
        step: step.to_string(),
        cause: error.to_string(),
        errno: error.raw_os_error(),
    })
}

/// The other end did not answer as it should.
pub fn lost(who: &str, error: &WireError) -> Error {
    Error::new(
        Code::RuntimeFailed,
        format!("the {who} is gone"),
        "look for out-of-memory kills in the host's log, then try again",
    )
    .because(error)
}
