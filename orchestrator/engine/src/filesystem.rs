//! Which file systems can hold a folder or the state, by their number (FS-26).

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, StatVfsMountFlags, fstatfs, fstatvfs, openat};

/// Number (statfs(2), `linux/magic.h`), name, and why it carries neither a folder
/// nor the state, where it does not.
const KINDS: &[(u32, &str, Option<&str>)] = &[
    (
        0x4d44,
        "vfat",
        Some("vfat has no owners and no permissions"),
    ),
    (
        0x2011_bab0,
        "exfat",
        Some("exfat has no owners and no permissions"),
    ),
    (
        0x6969,
        "nfs",
        Some("nfs cannot show files with other owners, and its server decides who root is"),
    ),
    (
        0x6573_5546,
        "fuse",
        Some("fuse is a program of some user: owners and permissions are what it says they are"),
    ),
    (
        0x0102_1997,
        "9p",
        Some("9p cannot show files with other owners, and its server decides about permissions"),
    ),
    (
        0x517b,
        "smb",
        Some("smb cannot show files with other owners, and its server decides about permissions"),
    ),
    (
        0xff53_4d42,
        "cifs",
        Some("cifs cannot show files with other owners, and its server decides about permissions"),
    ),
    (
        0xfe53_4d42,
        "smb2",
        Some("smb2 cannot show files with other owners, and its server decides about permissions"),
    ),
    (0xef53, "ext4", None),
    (0x5846_5342, "xfs", None),
    (0x9123_683e, "btrfs", None),
    (0x0102_1994, "tmpfs", None),
    (0x794c_7630, "overlay", None),
    (0xf2f5_2010, "f2fs", None),
    (0x2fc1_2fc1, "zfs", None),
    (0x8584_58f6, "ramfs", None),
];

/// One file system, as statfs(2) and statvfs(3) describe it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind {
    /// Its number, `f_type`.
    pub magic: u32,
    /// Whether it is mounted read-only.
    pub readonly: bool,
}

impl Kind {
    /// Its name; the number where it is not known here.
    #[must_use]
    pub fn name(&self) -> String {
        KINDS
            .iter()
            .find(|(magic, _, _)| *magic == self.magic)
            .map_or_else(
                || format!("a file system with number {:#x}", self.magic),
                |(_, name, _)| (*name).to_owned(),
            )
    }

    /// Why it carries neither a folder nor the state.
    #[must_use]
    pub fn unfit(&self) -> Option<&'static str> {
        KINDS
            .iter()
            .find(|(magic, _, _)| *magic == self.magic)
            .and_then(|(_, _, why)| *why)
    }
}

/// A handle of what is there (`O_PATH`): nothing is read.
///
/// # Errors
/// What open(2) says.
pub fn handle(path: &Path) -> std::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    Ok(openat(CWD, path, flags, Mode::empty())?)
}

/// The file system that something lies on.
///
/// # Errors
/// What statfs(2) says.
pub fn kind(handle: &OwnedFd) -> std::io::Result<Kind> {
    let magic = fstatfs(handle)?.f_type;
    // Some architectures have a signed number of 32 bits there.
    let magic = u32::try_from(magic & 0xffff_ffff).unwrap_or(0);
    // What is not served by the kernel may not answer this.
    let readonly =
        fstatvfs(handle).is_ok_and(|found| found.f_flag.contains(StatVfsMountFlags::RDONLY));
    Ok(Kind { magic, readonly })
}

/// Path of what a handle leads to.
///
/// # Errors
/// What readlink(2) says.
pub fn path(handle: &OwnedFd) -> std::io::Result<std::path::PathBuf> {
    std::fs::read_link(format!("/proc/self/fd/{}", handle.as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(magic: u32) -> Kind {
        Kind {
            magic,
            readonly: false,
        }
    }

    /// The kernels that this is tested on have none of them; the numbers are those
    /// of `linux/magic.h` and statfs(2).
    #[test]
    fn file_systems_that_carry_no_folder_are_refused_by_name_fs26() {
        for (magic, name) in [
            (0x4d44, "vfat"),
            (0x2011_bab0, "exfat"),
            (0x6969, "nfs"),
            (0x6573_5546, "fuse"),
            (0x0102_1997, "9p"),
            (0xff53_4d42, "cifs"),
            (0xfe53_4d42, "smb2"),
            (0x517b, "smb"),
        ] {
            let why = of(magic).unfit().unwrap_or_default();
            assert!(why.starts_with(name), "{name}: {why}");
        }
        for (magic, name) in [(0xef53, "ext4"), (0x0102_1994, "tmpfs")] {
            assert_eq!((of(magic).unfit(), of(magic).name().as_str()), (None, name));
        }
        assert!(of(1).name().ends_with("0x1"));
    }

    #[test]
    fn what_is_there_is_asked() {
        let proc = handle(Path::new("/proc")).unwrap();
        assert_eq!(kind(&proc).unwrap().magic, 0x9fa0);
        assert_eq!(path(&proc).unwrap(), Path::new("/proc"));
        assert!(handle(Path::new("/nonexistent")).is_err());
    }
}
