//! Paths that are the same in every sandbox.

/// Where the workspace is.
pub const WORKSPACE: &str = "/workspace";
/// Where the directory is that the tasks of a session share (FS-07).
pub const SCRATCH: &str = "/scratch";
/// Where results are left for copy-out.
pub const OUT: &str = "/tmp/out";
/// Home directory of the task.
pub const HOME: &str = "/tmp/home";

/// Directories over which every lease mounts something of its own, so that
/// nothing can be mounted below them beforehand.
pub const LEASE_OWNED: &[&str] = &["/tmp", "/run", "/dev", "/proc", "/sys"];

/// Top-level entries of the host that `image: host` shows (FS-01, FS-03).
pub const HOST_ENTRIES: &[&str] = &["usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"];

/// Entries of the host's `/etc` that `image: host` shows; the rest of `/etc` is
/// synthesised, since there is no telling what lies in it.
pub const HOST_ETC: &[&str] = &[
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "alternatives",
    "ssl/certs",
    "ssl/openssl.cnf",
    "pki/tls/certs",
    "pki/ca-trust",
    "localtime",
    "mime.types",
    "os-release",
];

/// Hidden in every tier: what moby masks, and what it does not (H14, A17).
pub const MASKED: &[&str] = &[
    "/proc/acpi",
    "/proc/asound",
    "/proc/cmdline",
    "/proc/interrupts",
    "/proc/kallsyms",
    "/proc/kcore",
    "/proc/keys",
    "/proc/key-users",
    "/proc/latency_stats",
    "/proc/pressure",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/sys/devices/virtual/powercap",
    "/sys/firmware",
    "/sys/fs/cgroup",
    "/sys/kernel/debug",
    "/sys/kernel/security",
    "/sys/kernel/tracing",
];

/// Hidden for each CPU of the host, below `/sys/devices/system/cpu`.
pub const MASKED_PER_CPU: &str = "thermal_throttle";

/// Read-only in every tier (A18).
pub const READONLY: &[&str] = &[
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    "/proc/sys",
    "/proc/sysrq-trigger",
];
