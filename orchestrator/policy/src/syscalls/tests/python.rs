//! PX-11: one program that starts no other.

use super::machine::Answer::{self, Allow, Ask, Errno};
use super::*;

const EACCES: Answer = Errno(13);
const ENOSYS: Answer = Errno(38);

fn python(name: &str, args: &[u64]) -> Answer {
    ask(&PYTHON, name, args)
}

#[test]
fn processes_signals_links_and_sockets_are_refused() {
    for call in [
        "fork",
        "vfork",
        "kill",
        "tkill",
        "tgkill",
        "rt_sigqueueinfo",
        "rt_tgsigqueueinfo",
        "pidfd_open",
        "pidfd_send_signal",
        "link",
        "linkat",
        "symlink",
        "symlinkat",
        "socket",
        "bind",
        "connect",
        "listen",
        "accept",
        "accept4",
    ] {
        assert_eq!(python(call, &[]), EACCES, "{call}");
        assert_eq!(python(call, &[1, 1, 0]), EACCES, "{call}");
        // The control: it is this table that refuses them.
        let strict = ask(task(Tier::Strict), call, &[1, 1, 0]);
        assert_eq!(strict, Allow, "{call}");
    }
    assert_eq!(python("clone3", &[]), ENOSYS);
}

/// What glibc calls: fork, posix_spawn, pthread_create.
#[test]
fn a_clone_is_a_thread_or_refused() {
    const FORK: u64 = 0x0120_0011;
    const POSIX_SPAWN: u64 = 0x4111;
    const THREAD: u64 = 0x003d_0f00;
    for flags in [0, 17, FORK, POSIX_SPAWN, 0xffff_0000_0120_0011] {
        assert_eq!(python("clone", &[flags]), EACCES, "{flags:#x}");
        assert_eq!(ask(task(Tier::Strict), "clone", &[flags]), Allow);
    }
    assert_eq!(python("clone", &[THREAD]), Allow);
    // New namespaces stay refused, also for a thread.
    assert_eq!(python("clone", &[THREAD | 0x2000_0000]), Errno(1));
}

#[test]
fn only_exec_asks_and_no_other_table_does() {
    let asked: Vec<_> = NAMES
        .calls()
        .filter(|(name, _)| python(name, &[]) == Ask)
        .map(|(name, _)| name)
        .collect();
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert_eq!(python("execve", &[1, 2, 3]), Ask);
    assert_eq!(python("execveat", &[1, 2, 3]), Ask);
    for (name, program) in programs() {
        assert_eq!(program.asks(), name == "task Python", "{name}");
    }
}

#[test]
fn no_descriptor_sends_a_signal_to_another_owner() {
    for command in [8, 10, 15] {
        assert_eq!(python("fcntl", &[0, command, 1]), EACCES, "{command}");
        assert_eq!(ask(task(Tier::Strict), "fcntl", &[0, command, 1]), Allow);
    }
    for request in [0x8901, 0x8902, 1 << 32 | 0x8901] {
        assert_eq!(python("ioctl", &[0, request, 1]), EACCES, "{request:#x}");
    }
    for (call, args) in [("fcntl", [0, 3, 0]), ("ioctl", [0, 0x5401, 0])] {
        assert_eq!(python(call, &args), Allow, "{call}");
    }
}

/// A pair of datagram sockets could send to any path (unix(7)).
#[test]
fn pairs_of_sockets_reach_only_each_other() {
    for kind in [
        0,
        2,
        3,
        4,
        6,
        10,
        0xf,
        2 | 0o4000,
        2 | 0o2_000_000,
        1 << 32 | 2,
    ] {
        assert_eq!(python("socketpair", &[1, kind, 0]), EACCES, "{kind:#x}");
    }
    for kind in [1, 5, 1 | 0o4000 | 0o2_000_000, 5 | 0o2_000_000] {
        assert_eq!(python("socketpair", &[1, kind, 0]), Allow, "{kind:#x}");
    }
    assert_eq!(
        ask(task(Tier::Strict), "socketpair", &[1, 2, 0]),
        Allow,
        "the control"
    );
}

/// What one program needs: files, memory, threads, event loops, own pipes.
#[test]
fn what_an_interpreter_needs_is_left() {
    for (call, args) in [
        ("openat", vec![]),
        ("mmap", vec![]),
        ("futex", vec![]),
        ("socketpair", vec![1, 1, 0]),
        ("sendmsg", vec![]),
        ("recvmsg", vec![]),
        ("epoll_wait", vec![]),
        ("pipe2", vec![]),
        ("rename", vec![]),
        ("rt_sigaction", vec![]),
        ("exit_group", vec![]),
    ] {
        assert_eq!(python(call, &args), Allow, "{call}");
    }
}
