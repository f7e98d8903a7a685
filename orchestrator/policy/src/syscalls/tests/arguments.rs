//! The rows of hazards.md, one by one: what each tier answers.

use super::machine::Answer::{self, Allow, Errno};
use super::*;

const EPERM: Answer = Errno(1);
const ENOSYS: Answer = Errno(38);
const EPROTONOSUPPORT: Answer = Errno(93);
const EAFNOSUPPORT: Answer = Errno(97);

/// In every tier.
fn all(name: &str, args: &[u64], expected: Answer) {
    for tier in TIERS {
        assert_eq!(
            ask(task(tier), name, args),
            expected,
            "{tier:?} {name} {args:x?}"
        );
    }
}

#[test]
fn b1_b2_b3_b4_kernel_surface() {
    for call in [
        "ptrace",
        "process_vm_readv",
        "process_vm_writev",
        "pidfd_getfd",
        "bpf",
        "perf_event_open",
        "kexec_load",
        "kexec_file_load",
        "init_module",
        "finit_module",
        "acct",
        "swapon",
        "iopl",
        "ioperm",
        "kcmp",
        "fanotify_init",
        "move_pages",
        "setns",
        "mount",
        "umount2",
        "userfaultfd",
        "add_key",
        "request_key",
        "keyctl",
        "open_by_handle_at",
        "name_to_handle_at",
        "syslog",
        "memfd_secret",
        "quotactl",
        "vhangup",
    ] {
        all(call, &[], EPERM);
        all(call, &[1, 0xffff_ffff, u64::MAX], EPERM);
    }
    for call in [
        "io_uring_setup",
        "io_uring_enter",
        "io_uring_register",
        "process_madvise",
        "nfsservctl",
    ] {
        all(call, &[8], ENOSYS);
    }
}

#[test]
fn a16_a19_mounts_and_roots() {
    for call in [
        "chroot",
        "pivot_root",
        "open_tree",
        "move_mount",
        "fsopen",
        "fsconfig",
        "fsmount",
        "fspick",
        "mount_setattr",
        "open_tree_attr",
    ] {
        all(call, &[], EPERM);
    }
    all("statmount", &[], ENOSYS);
    all("listmount", &[], ENOSYS);
}

#[test]
fn a25_setuid_planting() {
    let (creat, tmpfile, write) = (0o101, 0o20_200_002, 0o2);
    for bits in [0o4000, 0o2000, 0o6000, 0o4755, 0o2775, 0o104_755] {
        for high in [0, 1 << 32] {
            let mode = bits | high;
            for call in ["chmod", "fchmod", "creat", "mkdir", "mknod"] {
                all(call, &[7, mode], EPERM);
            }
            for call in ["fchmodat", "mkdirat", "mknodat", "mq_open"] {
                all(call, &[7, 7, mode], EPERM);
            }
            for flags in [creat, tmpfile, creat | 0o2_000_000] {
                all("open", &[7, flags, mode], EPERM);
                all("openat", &[7, 7, flags, mode], EPERM);
            }
            // Without O_CREAT the mode is whatever was in the register.
            all("open", &[7, write, mode], Allow);
            all("openat", &[7, 7, write, mode], Allow);
        }
    }
    for call in ["fchmodat2", "openat2", "clone3"] {
        all(call, &[], ENOSYS);
    }
    for mode in [0o755, 0o1777, 0o100_644] {
        all("chmod", &[7, mode], Allow);
        all("fchmodat", &[7, 7, mode], Allow);
        all("openat", &[7, 7, creat, mode], Allow);
        all("open", &[7, creat, mode], Allow);
        all("mkdir", &[7, mode], Allow);
    }
}

#[test]
fn a21_device_nodes() {
    for (kind, answer) in [
        (0o020_666, EPERM),
        (0o060_666, EPERM),
        (0o010_666, Allow),
        (0o100_666, Allow),
    ] {
        all("mknod", &[7, kind, 0], answer);
        all("mknodat", &[7, 7, kind, 0], answer);
    }
    all("renameat2", &[7, 7, 7, 7, 4], EPERM);
    all("renameat2", &[7, 7, 7, 7, 2], Allow);
}

#[test]
fn b5_terminals() {
    for request in [0x5412, 0x541c, 0x5423, 0x1_0000_5412, 0xffff_ffff_0000_541c] {
        all("ioctl", &[0, request, 7], EPERM);
    }
    for request in [0x5401, 0x5413, 0x540e, 0x541b, 0x5421] {
        all("ioctl", &[0, request, 7], Allow);
    }
    let program = task;
    assert_eq!(ask(program(Tier::Loose), "ioctl", &[3, 0x4008_6602]), Allow);
    assert_eq!(
        ask(program(Tier::Standard), "ioctl", &[3, 0x4008_6602]),
        EPERM
    );
    assert_eq!(
        ask(program(Tier::Strict), "ioctl", &[3, 0x1_4008_6602]),
        EPERM
    );
}

#[test]
fn b6_socket_families() {
    let cloexec = 0o2_000_000;
    for family in (0..=60).filter(|f| ![1, 2, 10, 16].contains(f)) {
        for kind in [1, 2, 3, 5, 10, 1 | cloexec] {
            all("socket", &[family, kind, 0], EAFNOSUPPORT);
            all("socket", &[family | 1 << 32, kind, 0], EAFNOSUPPORT);
        }
    }
    for kind in [1, 2, 5, 1 | cloexec, 2 | 0o4000] {
        all("socket", &[1, kind, 0], Allow);
        all("socketpair", &[1, kind, 0], Allow);
    }
    for family in [2, 10] {
        for kind in [1, 2, 1 | cloexec, 2 | cloexec | 0o4000, 1 | 7 << 32] {
            for protocol in [0, 6, 17] {
                all("socket", &[family, kind, protocol], Allow);
            }
            for protocol in [33, 115, 132, 136, 255, 262] {
                all("socket", &[family, kind, protocol], EPROTONOSUPPORT);
            }
        }
        for kind in [3, 4, 5, 6, 10, 3 | cloexec] {
            all("socket", &[family, kind, 0], EPERM);
            all("socket", &[family, kind, 1], EPERM);
        }
        all("socketpair", &[family, 1, 0], EAFNOSUPPORT);
    }
    // What glibc opens for getaddrinfo and if_nameindex.
    all("socket", &[16, 3 | cloexec, 0], Allow);
    for protocol in 1..32 {
        all("socket", &[16, 3, protocol], EAFNOSUPPORT);
    }
}

#[test]
fn b8_namespaces() {
    all("unshare", &[0x1000_0000], EPERM);
    for flag in [
        0x2_0000,
        0x200_0000,
        0x400_0000,
        0x800_0000,
        0x1000_0000,
        0x2000_0000,
        0x4000_0000,
    ] {
        all("clone", &[flag | 17], EPERM);
        all("clone", &[flag | 1 << 40], EPERM);
    }
    all("clone", &[0x3d_0f00], Allow);
    all("clone", &[0x120_0011], Allow);
}

#[test]
fn b10_fileless_exec_is_allowed_in_every_tier() {
    all("memfd_create", &[7, 0], Allow);
    all("execveat", &[3, 7, 7, 7, 0x1000], Allow);
}

#[test]
fn b12_clocks_and_priorities() {
    for call in ["settimeofday", "clock_settime", "adjtimex", "clock_adjtime"] {
        all(call, &[], EPERM);
    }
    for policy in [1, 2, 6, 7, 0x4000_0001, 1 << 32 | 2] {
        all("sched_setscheduler", &[0, policy], EPERM);
    }
    for policy in [0, 3, 5, 0x4000_0000] {
        all("sched_setscheduler", &[0, policy], Allow);
    }
}

#[test]
fn filters_of_the_task_work_and_listeners_do_not() {
    for flags in [0, 1, 2, 4] {
        all("seccomp", &[1, flags, 7], Allow);
    }
    for flags in [8, 9, 0x28, 1 << 32 | 8] {
        all("seccomp", &[1, flags, 7], EPERM);
    }
    all("prctl", &[22, 2, 7], Allow);
    for call in [
        "landlock_create_ruleset",
        "landlock_add_rule",
        "landlock_restrict_self",
    ] {
        all(call, &[], Allow);
    }
}

#[test]
fn settings_of_processes_and_files() {
    for personality in [0, 0xffff_ffff, u64::MAX] {
        all("personality", &[personality], Allow);
    }
    for personality in [8, 0x4_0000, 0x2_0000, 0x40_0000] {
        all("personality", &[personality], EPERM);
    }
    all("prctl", &[35], EPERM);
    all("prctl", &[67], EPERM);
    all("prctl", &[15], Allow);
    all("fcntl", &[3, 1024, 0], EPERM);
    all("fcntl", &[3, 1030, 0], Allow);
    let strict = task(Tier::Strict);
    assert_eq!(ask(strict, "prctl", &[9999]), EPERM);
    assert_eq!(ask(strict, "fcntl", &[3, 1026, 0]), EPERM);
    assert_eq!(ask(strict, "setsockopt", &[3, 6, 31]), EPERM);
    assert_eq!(ask(strict, "setsockopt", &[3, 1, 26]), EPERM);
    assert_eq!(ask(strict, "setsockopt", &[3, 6, 26]), Allow);
    assert_eq!(ask(strict, "setsockopt", &[3, 1, 2]), Allow);
}
