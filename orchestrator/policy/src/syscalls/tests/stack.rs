//! Filters stack: what an inner one allows, no outer one may take away, and each
//! tier allows no more than the one before.

use super::machine::{Answer, Call, run};
use super::*;
use crate::syscalls::table;
use crate::syscalls::verdict::Verdict;

/// Numbers whose answer depends on arguments in some program.
fn checked() -> Vec<u32> {
    let mut tables = vec![table::guest().unwrap()];
    tables.extend(TIERS.map(|tier| table::task(tier.into()).unwrap()));
    tables.push(table::task(SyscallTable::Python).unwrap());
    let checked = |nr: &u32| {
        let at = usize::try_from(*nr).unwrap();
        tables
            .iter()
            .any(|t| matches!(t.get(at), Some(Some(Verdict::Check(_)))))
    };
    (0..=600).filter(checked).collect()
}

/// Every call that `inner` allows, `outer` allows.
fn holds(inner: &Program, outer: &Program, name: &str) -> u32 {
    let (checked, few, many) = (checked(), samples(2), samples(4000));
    let mut allowed = 0;
    for nr in 0..=600 {
        for args in if checked.contains(&nr) { &many } else { &few } {
            let call = Call::native(nr, args);
            if matches!(run(inner, &call), Answer::Allow | Answer::Ask) {
                allowed += 1;
                assert_eq!(run(outer, &call), Answer::Allow, "{name}: {nr} {args:x?}");
            }
        }
    }
    allowed
}

#[test]
fn a_task_is_never_refused_by_what_it_inherits() {
    let guest = &*GUEST;
    for tier in TIERS {
        let (task, lease) = (task(tier), lease(tier));
        assert!(holds(task, lease, "task in lease") > 1000);
        assert!(holds(lease, guest, "lease in guest") > 1000);
    }
    let lease = lease(SyscallTable::Python.tier());
    assert!(holds(&PYTHON, lease, "python in lease") > 1000);
}

#[test]
fn each_tier_allows_no_more_than_the_one_before() {
    let [loose, standard, strict] = TIERS.map(task);
    assert!(holds(strict, standard, "strict in standard") > 1000);
    assert!(holds(standard, loose, "standard in loose") > 1000);
    assert!(holds(&PYTHON, strict, "python in strict") > 1000);
}

/// The control of the tests above: the inclusions are strict, so they could fail.
#[test]
fn the_inclusions_do_not_hold_the_other_way_round() {
    let [loose, standard, strict] = TIERS.map(task);
    let allowed = |p: &Program, call| ask(p, call, &[]) == Answer::Allow;
    assert!(allowed(loose, "mbind") && !allowed(standard, "mbind"));
    assert!(allowed(standard, "inotify_init1") && !allowed(strict, "inotify_init1"));
    assert!(allowed(lease(Tier::Strict), "setgroups") && !allowed(strict, "setgroups"));
    assert!(allowed(&GUEST, "mount"));
    for tier in TIERS {
        let lease = lease(tier);
        assert!(
            !allowed(lease, "mount") && !allowed(lease, "unshare"),
            "{tier:?}"
        );
        assert!(allowed(lease, "clone3") && !allowed(task(tier), "clone3"));
    }
}

/// What the stages of design §4 do, by program.
#[test]
fn stages_can_do_their_work() {
    let staging = [
        "unshare",
        "clone",
        "fork",
        "mount",
        "umount2",
        "move_mount",
        "open_tree",
        "mount_setattr",
        "pivot_root",
        "sethostname",
        "seccomp",
        "prctl",
        "capset",
        "setresuid",
        "setgroups",
        "execve",
        "waitid",
        "kill",
        "pidfd_open",
        "recvmsg",
        "sendmsg",
        "close_range",
        "rt_sigprocmask",
        "poll",
        "symlinkat",
        "mkdirat",
    ];
    let starting = [
        "fork",
        "clone",
        "clone3",
        "setuid",
        "setgid",
        "setgroups",
        "setresuid",
        "setresgid",
        "capset",
        "seccomp",
        "prlimit64",
        "execve",
        "execveat",
        "wait4",
        "waitid",
        "kill",
        "write",
        "read",
        "recvmsg",
        "sendmsg",
        "ioctl",
        "dup",
        "dup2",
        "dup3",
        "close_range",
        "openat",
        "chdir",
        "fchdir",
        "umask",
        "setsid",
        "rt_sigaction",
        "rt_sigprocmask",
        "rt_sigtimedwait",
        "signalfd4",
        "poll",
        "ppoll",
        "epoll_wait",
        "pidfd_open",
        "pidfd_send_signal",
        "exit_group",
        "rseq",
        "rt_sigreturn",
        "sched_setaffinity",
    ];
    let guest = &*GUEST;
    for call in staging {
        assert_eq!(ask(guest, call, &[]), Answer::Allow, "guest {call}");
    }
    let (new, tty, netlink) = (0x7c02_0011, 0x540e, [16, 3, 0]);
    assert_eq!(ask(guest, "clone", &[new]), Answer::Allow);
    assert_eq!(ask(guest, "keyctl", &[1]), Answer::Allow);
    assert_eq!(ask(guest, "keyctl", &[11]), Answer::Errno(1));
    for tier in TIERS {
        let lease = lease(tier);
        for call in starting {
            assert_eq!(
                ask(lease, call, &[]),
                Answer::Allow,
                "lease {tier:?} {call}"
            );
        }
        assert_eq!(ask(lease, "ioctl", &[0, tty, 0]), Answer::Allow);
        assert_eq!(ask(lease, "socket", &netlink), Answer::Allow);
        assert_eq!(ask(lease, "clone", &[new]), Answer::Errno(1));
        for option in [1, 4, 8, 15, 24, 28, 36, 38, 47] {
            assert_eq!(
                ask(lease, "prctl", &[option]),
                Answer::Allow,
                "prctl {option}"
            );
        }
    }
}
