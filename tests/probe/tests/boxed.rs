//! A test of the probe itself: a plain bubblewrap box has namespaces and no
//! capabilities but no system-call filter, so the probes must show what it closes and
//! what it leaves open.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test may fail loudly"
)]

mod rig;

use orch_probe::{Finding, Verdict, expected, judge};
use rig::{boxed, by_id, has_bwrap, is_root, lines, skip_unless};

/// What only a system-call filter closes, measured for the design.
const OPEN: &[&str] = &[
    "A13.pid1_environ",
    "A13.pid1_fds",
    "A16.open_by_handle_at",
    "A16.pid1_cwd",
    "A19.mount_setattr",
    "A19.open_tree",
    "A25.chmod_suid",
    "A25.fchmodat2_suid",
    "A25.openat2_suid",
    "A8.unshare",
    "B1.i386_getpid",
    "B1.perf_event_open",
    "B1.personality",
    "B1.pidfd_getfd",
    "B1.process_vm_readv",
    "B1.ptrace",
    "B1.setns",
    "B2.io_uring_enter",
    "B2.io_uring_register",
    "B2.io_uring_setup",
    "B3.userfaultfd",
    "B4.add_key",
    "B4.keyctl_join",
    "B4.keyctl_session_id",
    "B4.request_key",
    "B5.tioclinux_bit32",
    "B5.tiocsti",
    "B5.tiocsti_bit32",
    "B6.netlink_netfilter",
    "B6.socketpair_vsock",
    "B6.vsock",
    "B6.vsock_bit32",
    "B8.clone3",
    "B8.clone_user",
    "B8.clone_user_bit32",
    "B8.unshare_user",
    "H6.session_keyring",
];

/// What namespaces and the lack of capabilities close already.
const CLOSED: &[(&str, Verdict)] = &[
    ("A11.setuid_program", Verdict::Refused),
    ("A16.chroot", Verdict::Refused),
    ("A16.pivot_root", Verdict::Refused),
    ("A19.remount", Verdict::Refused),
    ("A19.umount", Verdict::Refused),
    ("A21.kvm", Verdict::Hidden),
    ("A21.mknod_block", Verdict::Refused),
    ("A21.nodes", Verdict::Hidden),
    ("A24.syslog", Verdict::Refused),
    ("A25.writable_mounts", Verdict::Hidden),
    ("A8.mount_new_fs", Verdict::Refused),
    ("A9.control_files", Verdict::Hidden),
    ("B12.sched_fifo", Verdict::Refused),
    ("B6.packet", Verdict::Refused),
    ("B8.unshare_net", Verdict::Refused),
    ("NW-06.resolve", Verdict::Refused),
    ("NW-06.tcp4", Verdict::Refused),
    ("NW-06.udp4", Verdict::Refused),
    ("PX-08.kernel_threads", Verdict::Hidden),
];

#[test]
fn a_plain_box_leaves_open_what_only_a_filter_closes() {
    if skip_unless(is_root() && has_bwrap(), "root and bubblewrap") {
        return;
    }
    let lines = lines(&mut boxed(&["run"]));
    let found = by_id(lines.clone());
    for id in OPEN {
        assert_eq!(
            found[*id].outcome.result,
            Verdict::Allowed,
            "{:?}",
            found[*id]
        );
    }
    for (id, verdict) in CLOSED {
        assert_eq!(found[*id].outcome.result, *verdict, "{:?}", found[*id]);
    }
    assert_eq!(found["NW-06.interfaces"].outcome.detail, "lo");
    let errors = found
        .values()
        .filter(|line| line.outcome.result == Verdict::Error);
    assert_eq!(errors.collect::<Vec<_>>(), Vec::<&orch_probe::Line>::new());

    // The judge turns each of these into a finding, in strict at the latest.
    let findings = judge(&lines, &expected("strict").unwrap());
    for id in OPEN {
        assert!(
            findings
                .iter()
                .any(|f| matches!(f, Finding::Unexpected { line, .. } if line.id == *id)),
            "{id} passes"
        );
    }
}
