//! A21: device nodes, found, opened or made.

use std::os::unix::fs::{FileTypeExt, MetadataExt};

use super::{Place, Probe, walk};
use crate::outcome::{Outcome, Verdict};
use crate::raw;

/// The major number of the drivers that share one (`/proc/misc`).
const MISC: u32 = 10;

/// Opened for reading and closed: no ioctl, no connect, no read.
const NODES: &[(&str, &str)] = &[
    ("A21.net_tun", "/dev/net/tun"),
    ("A21.fuse", "/dev/fuse"),
    ("A21.kvm", "/dev/kvm"),
    ("A21.vsock", "/dev/vsock"),
    ("A21.vhost_vsock", "/dev/vhost-vsock"),
    ("A21.mem", "/dev/mem"),
    ("A21.kmsg", "/dev/kmsg"),
    ("A21.loop_control", "/dev/loop-control"),
    ("A21.userfaultfd", "/dev/userfaultfd"),
];

pub(super) fn probes() -> Vec<Probe> {
    NODES
        .iter()
        .map(|&(id, path)| Probe::new(id, move || open(path)))
        .chain([
            Probe::new("A21.dev_names", dev_names),
            Probe::walking("A21.nodes", || {
                walk::find(walk::ROOTS, |_| true, is_unusual)
            }),
            // Made in a private folder, never opened, and removed at once.
            Probe::placed("A21.mknod_block", |place| make(place, libc::S_IFBLK, 8, 0)),
            Probe::placed("A21.mknod_mem", |place| make(place, libc::S_IFCHR, 1, 1)),
        ])
        .collect()
}

/// Opening a node whose driver is not loaded makes the kernel load it. With a filter,
/// so in a sandbox, that is the attempt to prove; without one it would change the host.
fn open(path: &str) -> Outcome {
    let number = match std::fs::metadata(path) {
        Ok(meta) => (libc::major(meta.rdev()), libc::minor(meta.rdev())),
        Err(error) => return Outcome::of_path(Err(error.raw_os_error().unwrap_or(0))),
    };
    if number.0 == MISC && !raw::is_filtered() && !is_loaded(number.1) {
        return Outcome::plain(
            Verdict::SkippedUnsafe,
            "no system-call filter, and the attempt could load a driver",
        );
    }
    Outcome::of_path(raw::touch_open(path, libc::O_RDONLY))
}

fn is_loaded(minor: u32) -> bool {
    let minor = minor.to_string();
    std::fs::read_to_string("/proc/misc").is_ok_and(|text| {
        text.lines()
            .any(|line| line.split_whitespace().next() == Some(&minor))
    })
}

fn dev_names() -> Outcome {
    match std::fs::read_dir("/dev") {
        Err(error) => Outcome::error(error.to_string()),
        Ok(list) => {
            let mut names = list
                .flatten()
                .map(|entry| entry.file_name().to_string_lossy().into_owned())
                .collect::<Vec<_>>();
            names.sort();
            Outcome::value(names.join(","))
        }
    }
}

/// A node other than null, zero, full, random, urandom, tty, ptmx and pty slaves. One
/// that cannot be looked at counts as well.
fn is_unusual(entry: &walk::Entry) -> bool {
    if entry.kind.is_block_device() {
        return true;
    }
    if !entry.kind.is_char_device() {
        return false;
    }
    let number = std::fs::symlink_metadata(&entry.path)
        .map(|meta| (libc::major(meta.rdev()), libc::minor(meta.rdev())));
    !matches!(
        number,
        Ok((1, 3 | 5 | 7 | 8 | 9) | (5, 0 | 2) | (136..=143, _))
    )
}

fn make(place: &Place<'_>, kind: u32, major: u32, minor: u32) -> Outcome {
    let Some(scratch) = place.scratch else {
        return Outcome::error("no writable directory to try it in");
    };
    let path = scratch.join("node");
    let c_path = raw::c_path(&path);
    // SAFETY: the path outlives the call.
    let answer = unsafe { libc::mknod(c_path.as_ptr(), kind | 0o600, libc::makedev(major, minor)) };
    let outcome = Outcome::of_call(raw::answer(answer));
    if outcome.result == Verdict::Allowed && answer == 0 {
        // The folder is private and goes at the end of the run in any case.
        let _ = std::fs::remove_file(&path);
    }
    outcome
}
