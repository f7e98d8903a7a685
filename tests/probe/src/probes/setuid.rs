//! A25: planting set-user-id and set-group-id files in a folder that the task owns.
//! The files are empty, in a private folder, and removed at once.

use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use super::{Place, Probe};
use crate::outcome::{Outcome, Verdict};
use crate::raw;

const SUID: i64 = 0o4755;
const SGID: i64 = 0o2755;
/// The kernel takes modes as 16 bits; a filter that compares more misses this.
const HIGH: i64 = 1 << 32;
/// `FS_FDCWD`-like: relative to the working directory; the paths are absolute.
const CWD: i64 = -100;

/// A way to set a mode: gets an existing file's path, a free path, a descriptor of the
/// existing file, and the mode.
type Way = fn(&Paths, i64) -> Result<i64, i32>;

struct Paths {
    existing: i64,
    free: i64,
    folder: i64,
    fd: i64,
}

const WAYS: &[(&str, Way)] = &[
    ("chmod", |p, mode| {
        raw::call(libc::SYS_chmod, [p.existing, mode, 0, 0, 0, 0])
    }),
    ("fchmod", |p, mode| {
        raw::call(libc::SYS_fchmod, [p.fd, mode, 0, 0, 0, 0])
    }),
    ("fchmodat", |p, mode| {
        raw::call(libc::SYS_fchmodat, [CWD, p.existing, mode, 0, 0, 0])
    }),
    ("fchmodat2", |p, mode| {
        raw::call(452, [CWD, p.existing, mode, 0, 0, 0])
    }),
    ("open", |p, mode| {
        raw::call(libc::SYS_open, [p.free, CREATE, mode, 0, 0, 0])
    }),
    ("openat", |p, mode| {
        raw::call(libc::SYS_openat, [CWD, p.free, CREATE, mode, 0, 0])
    }),
    ("creat", |p, mode| {
        raw::call(libc::SYS_creat, [p.free, mode, 0, 0, 0, 0])
    }),
    ("mknod", |p, mode| {
        raw::call(libc::SYS_mknod, [p.free, REGULAR | mode, 0, 0, 0, 0])
    }),
    ("mknodat", |p, mode| {
        raw::call(libc::SYS_mknodat, [CWD, p.free, REGULAR | mode, 0, 0, 0])
    }),
    ("openat2", |p, mode| {
        // struct open_how: flags, mode, resolve.
        let how = [CREATE, mode & 0o7777, 0];
        raw::call(
            libc::SYS_openat2,
            [CWD, p.free, raw::address(how.as_ptr()), 24, 0, 0],
        )
    }),
    ("tmpfile", |p, mode| {
        let flags = i64::from(libc::O_TMPFILE | libc::O_WRONLY);
        raw::call(libc::SYS_openat, [CWD, p.folder, flags, mode, 0, 0])
    }),
];

const CREATE: i64 = (libc::O_CREAT | libc::O_WRONLY) as i64;
const REGULAR: i64 = libc::S_IFREG as i64;

pub(super) fn probes() -> Vec<Probe> {
    let plain = WAYS.iter().flat_map(|&(name, way)| {
        [("suid", SUID), ("sgid", SGID)].map(|(bit, mode)| {
            Probe::placed(format!("A25.{name}_{bit}"), move |place| {
                plant(place, way, mode)
            })
        })
    });
    // The ways whose mode is an argument that a filter compares.
    let high = WAYS
        .iter()
        .filter(|(name, _)| ["chmod", "fchmod", "fchmodat", "open"].contains(name));
    plain
        .chain(high.map(|&(name, way)| {
            Probe::placed(format!("A25.{name}_high_bit"), move |place| {
                plant(place, way, SUID | HIGH)
            })
        }))
        .chain([
            Probe::placed("A25.file_caps", file_caps),
            Probe::placed("A25.ordinary_chmod", |place| {
                let (way, mode) = (WAYS[0].1, 0o755);
                plant(place, way, mode)
            }),
        ])
        .collect()
}

fn plant(place: &Place<'_>, way: Way, mode: i64) -> Outcome {
    let Some(scratch) = place.scratch else {
        return Outcome::error("no writable directory to plant in");
    };
    let (existing, free) = (scratch.join("existing"), scratch.join("free"));
    let outcome = try_to_plant(scratch, &existing, &free, way, mode);
    for path in [existing, free] {
        // One of the two does not exist on most ways; the folder goes in any case.
        let _ = std::fs::remove_file(path);
    }
    outcome
}

fn try_to_plant(scratch: &Path, existing: &Path, free: &Path, way: Way, mode: i64) -> Outcome {
    use std::os::fd::AsRawFd;
    let mut options = std::fs::OpenOptions::new();
    let file = match options
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(existing)
    {
        Ok(file) => file,
        Err(error) => return Outcome::error(format!("{}: {error}", existing.display())),
    };
    let (c_existing, c_free, c_folder) = (
        raw::c_path(existing),
        raw::c_path(free),
        raw::c_path(scratch),
    );
    let answer = way(
        &Paths {
            existing: raw::address(c_existing.as_ptr()),
            free: raw::address(c_free.as_ptr()),
            folder: raw::address(c_folder.as_ptr()),
            fd: i64::from(file.as_raw_fd()),
        },
        mode,
    );
    let modes = [existing, free].map(|path| std::fs::metadata(path).map_or(0, |meta| meta.mode()));
    let planted = modes
        .iter()
        .any(|mode| mode & (libc::S_ISUID | libc::S_ISGID) != 0);
    let outcome = Outcome::of_call(answer);
    if outcome.result == Verdict::Allowed {
        let said = if planted {
            "the bit is on a file"
        } else {
            "the kernel was reached"
        };
        return outcome.detailed(format!("{said}, in {}", scratch.display()));
    }
    if planted {
        return Outcome::plain(Verdict::Allowed, "refused, and yet the bit is on a file");
    }
    outcome
}

/// `security.capability` on a file: cap_net_raw, version 2.
fn file_caps(place: &Place<'_>) -> Outcome {
    let Some(scratch) = place.scratch else {
        return Outcome::error("no writable directory to plant in");
    };
    let path = scratch.join("capable");
    if let Err(error) = std::fs::write(&path, "") {
        return Outcome::error(format!("{}: {error}", path.display()));
    }
    let value: [u32; 5] = [0x0200_0001_u32.to_le(), (1_u32 << 13).to_le(), 0, 0, 0];
    let c_path = raw::c_path(&path);
    // SAFETY: the strings and the 20 bytes of `value` outlive the call.
    let answer = unsafe {
        libc::setxattr(
            c_path.as_ptr(),
            c"security.capability".as_ptr(),
            value.as_ptr().cast(),
            size_of_val(&value),
            0,
        )
    };
    let outcome = Outcome::of_call(raw::answer(answer));
    // The folder goes at the end of the run in any case.
    let _ = std::fs::remove_file(&path);
    outcome
}
