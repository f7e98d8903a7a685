//! A3, A9, A17, A18, A24, H14: what of `/proc` and `/sys` can be read and written.

use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use super::{Probe, walk};
use crate::outcome::{Outcome, Verdict};
use crate::raw;

const MASKED_FILES: &[(&str, &str)] = &[
    ("A17.kcore", "/proc/kcore"),
    ("A17.keys", "/proc/keys"),
    ("A17.latency_stats", "/proc/latency_stats"),
    ("A17.timer_list", "/proc/timer_list"),
    ("A17.timer_stats", "/proc/timer_stats"),
    ("A17.sched_debug", "/proc/sched_debug"),
    ("H14.interrupts", "/proc/interrupts"),
];

const MASKED_FOLDERS: &[(&str, &str)] = &[
    ("A17.acpi", "/proc/acpi"),
    ("A17.asound", "/proc/asound"),
    ("A17.scsi", "/proc/scsi"),
    ("A17.firmware", "/sys/firmware"),
    ("H14.powercap", "/sys/devices/virtual/powercap"),
];

/// Opened for writing and closed; never written.
const READ_ONLY: &[(&str, &str)] = &[
    ("A18.core_pattern", "/proc/sys/kernel/core_pattern"),
    ("A18.modprobe", "/proc/sys/kernel/modprobe"),
    ("A18.hostname", "/proc/sys/kernel/hostname"),
    ("A18.ip_forward", "/proc/sys/net/ipv4/ip_forward"),
    (
        "A18.ping_group_range",
        "/proc/sys/net/ipv4/ping_group_range",
    ),
    ("A18.binfmt_misc", "/proc/sys/fs/binfmt_misc/register"),
    ("A18.sysrq_trigger", "/proc/sysrq-trigger"),
    ("A18.irq_affinity", "/proc/irq/0/smp_affinity"),
    ("A18.uevent_helper", "/sys/kernel/uevent_helper"),
];

pub(super) fn probes() -> Vec<Probe> {
    let files = MASKED_FILES
        .iter()
        .map(|&(id, path)| Probe::new(id, move || readable(path)));
    let folders = MASKED_FOLDERS
        .iter()
        .map(|&(id, path)| Probe::new(id, move || listable(&[path.into()])));
    let opens = READ_ONLY.iter().map(|&(id, path)| {
        Probe::new(id, move || {
            Outcome::of_path(raw::touch_open(path, libc::O_WRONLY))
        })
    });
    files
        .chain(folders)
        .chain(opens)
        .chain([
            Probe::new("H14.thermal_throttle", || {
                listable(
                    &processors()
                        .map(|cpu| format!("{cpu}/thermal_throttle"))
                        .collect::<Vec<_>>(),
                )
            }),
            Probe::new("A3.kcore_node", kcore_node),
            Probe::new("A3.dev_null", dev_null),
            Probe::walking("A9.control_files", control_files),
            Probe::walking("A9.folders", || {
                walk::find(
                    &cgroup_roots(),
                    |_| true,
                    |entry| entry.kind.is_dir() && writable(&entry.path),
                )
            }),
            Probe::new("A18.vm", || {
                walk::find(
                    &["/proc/sys/vm"],
                    |_| true,
                    |entry| opens_for_write(&entry.path),
                )
            }),
            Probe::walking("A18.writable_proc", || {
                walk::find(
                    &["/proc"],
                    |path| !walk::is_process(path),
                    |entry| entry.kind.is_file() && is_writable_file(&entry.path),
                )
            }),
            Probe::walking("A18.writable_sys", || {
                walk::find(
                    &["/sys"],
                    |_| true,
                    |entry| entry.kind.is_file() && is_writable_file(&entry.path),
                )
            }),
            Probe::new("A18.bus_pci", || {
                walk::find(
                    &["/proc/bus/pci"],
                    |_| true,
                    |entry| entry.kind.is_file() && is_writable_file(&entry.path),
                )
            }),
            // SYSLOG_ACTION_SIZE_BUFFER: only a number.
            Probe::new("A24.syslog", || {
                Outcome::of_call(raw::call(103, [10, 0, 0, 0, 0, 0]))
            }),
            Probe::new("A24.proc_kmsg", || {
                Outcome::of_path(raw::touch_open("/proc/kmsg", libc::O_RDONLY))
            }),
            Probe::new("A24.kallsyms", kallsyms),
        ])
        .collect()
}

fn of_io(error: &std::io::Error) -> Outcome {
    Outcome::of_path(Err(error.raw_os_error().unwrap_or(0)))
}

/// `visible` where at least one byte can be read.
fn readable(path: &str) -> Outcome {
    use std::io::Read;
    let mut byte = [0];
    match std::fs::File::open(path).and_then(|mut file| file.read(&mut byte)) {
        Ok(0) => Outcome::plain(Verdict::Hidden, "empty"),
        Ok(_) => Outcome::plain(Verdict::Visible, "readable"),
        Err(error) => of_io(&error),
    }
}

/// `visible` where one of the folders has entries.
fn listable(paths: &[String]) -> Outcome {
    let found = paths
        .iter()
        .filter(|path| std::fs::read_dir(path).is_ok_and(|mut list| list.next().is_some()))
        .cloned()
        .collect::<Vec<_>>();
    Outcome::found(&found)
}

fn processors() -> impl Iterator<Item = String> {
    (0..1024)
        .map(|number| format!("/sys/devices/system/cpu/cpu{number}"))
        .take_while(|path| Path::new(path).exists())
}

fn c_string(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap_or_default()
}

/// The listing names what a mask covers; a mask is `/dev/null`, which anybody may
/// write to and nothing comes of it.
fn is_writable_file(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file()) && writable(path)
}

fn writable(path: &Path) -> bool {
    raw::may_write(&c_string(path)).is_ok()
}

fn opens_for_write(path: &Path) -> bool {
    raw::touch_open(path, libc::O_WRONLY).is_ok()
}

/// A mask must be the null device, not what an image put in its place (CVE-2025-31133).
fn kcore_node() -> Outcome {
    match std::fs::metadata("/proc/kcore") {
        Err(error) => of_io(&error),
        Ok(meta) if meta.file_type().is_char_device() && meta.rdev() == libc::makedev(1, 3) => {
            Outcome::plain(Verdict::Hidden, "the null device")
        }
        Ok(meta) if meta.is_file() && meta.len() == 0 => {
            Outcome::plain(Verdict::Hidden, "an empty file")
        }
        Ok(meta) => Outcome::plain(
            Verdict::Visible,
            format!("mode {:o}, {} bytes", meta.mode(), meta.len()),
        ),
    }
}

fn dev_null() -> Outcome {
    match std::fs::symlink_metadata("/dev/null") {
        Err(error) => of_io(&error),
        Ok(meta) if meta.file_type().is_char_device() => Outcome::value(format!(
            "{}:{}",
            libc::major(meta.rdev()),
            libc::minor(meta.rdev())
        )),
        Ok(meta) => Outcome::value(format!("mode {:o}", meta.mode())),
    }
}

/// The control groups and, on version 1, each hierarchy (a file system of its own).
fn cgroup_roots() -> Vec<&'static str> {
    const ROOTS: [&str; 16] = [
        "/sys/fs/cgroup",
        "/sys/fs/cgroup/unified",
        "/sys/fs/cgroup/systemd",
        "/sys/fs/cgroup/cpu",
        "/sys/fs/cgroup/cpuacct",
        "/sys/fs/cgroup/cpu,cpuacct",
        "/sys/fs/cgroup/cpuset",
        "/sys/fs/cgroup/memory",
        "/sys/fs/cgroup/devices",
        "/sys/fs/cgroup/freezer",
        "/sys/fs/cgroup/blkio",
        "/sys/fs/cgroup/pids",
        "/sys/fs/cgroup/rdma",
        "/sys/fs/cgroup/net_cls",
        "/sys/fs/cgroup/perf_event",
        "/sys/fs/cgroup/hugetlb",
    ];
    ROOTS
        .into_iter()
        .filter(|path| Path::new(path).exists())
        .collect()
}

fn control_files() -> Outcome {
    const NAMES: [&str; 5] = [
        "cgroup.procs",
        "tasks",
        "devices.allow",
        "release_agent",
        "cgroup.subtree_control",
    ];
    walk::find(
        &cgroup_roots(),
        |_| true,
        |entry| {
            let name = entry.path.file_name().and_then(OsStr::to_str);
            name.is_some_and(|name| NAMES.contains(&name)) && opens_for_write(&entry.path)
        },
    )
}

/// Addresses of the kernel; zeros for whoever may not know them.
fn kallsyms() -> Outcome {
    use std::io::Read;
    let mut text = String::new();
    let read = std::fs::File::open("/proc/kallsyms")
        .and_then(|file| file.take(4096).read_to_string(&mut text));
    match read {
        Err(error) => of_io(&error),
        Ok(_)
            if text
                .lines()
                .any(|line| line.bytes().take(16).any(|b| b != b'0')) =>
        {
            Outcome::plain(Verdict::Visible, "addresses")
        }
        Ok(_) => Outcome::plain(Verdict::Hidden, "zeros"),
    }
}
