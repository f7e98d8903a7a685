//! The other half of the controls: under a system-call filter the same attempts are
//! refused, so that the tables can be met, and a filter that compares too many bits
//! or forgets an ABI is found out.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test may fail loudly"
)]

mod rig;

use std::os::unix::process::CommandExt;
use std::process::Command;

use orch_probe::{Line, Verdict, expected};
use rig::{by_id, is_root, lines, probe, skip_unless};

const ALLOW: u32 = 0x7fff_0000;
const KILL: u32 = 0x8000_0000;
const EPERM: u32 = 0x0005_0001;
const ENOSYS: u32 = 0x0005_0026;
const X86_64: u32 = 0xc000_003e;

/// Offsets in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const ARG_0: u32 = 16;
const ARG_1: u32 = 24;

const REFUSED: &[u32] = &[
    101, 103, 135, 153, 155, 159, 161, 163, 164, 165, 166, 167, 168, 169, 170, 171, 172, 173, 175,
    176, 179, 227, 246, 248, 249, 250, 256, 272, 279, 298, 300, 301, 303, 304, 305, 308, 310, 311,
    312, 313, 320, 323, 425, 426, 427, 428, 429, 430, 431, 432, 433, 438, 440, 442, 443, 467, 469,
];
const BPF: u32 = 321;

fn load(offset: u32) -> libc::sock_filter {
    libc::sock_filter {
        code: 0x20,
        jt: 0,
        jf: 0,
        k: offset,
    }
}

fn equal(k: u32, jt: u8, jf: u8) -> libc::sock_filter {
    libc::sock_filter {
        code: 0x15,
        jt,
        jf,
        k,
    }
}

fn answer(k: u32) -> libc::sock_filter {
    libc::sock_filter {
        code: 0x06,
        jt: 0,
        jf: 0,
        k,
    }
}

/// A deny list as a tier could have it.
fn filter(with_other_abis: bool) -> Vec<libc::sock_filter> {
    let mut code = Vec::new();
    if with_other_abis {
        code.extend([load(ARCH), equal(X86_64, 1, 0), answer(ENOSYS)]);
    }
    code.push(load(NUMBER));
    for number in REFUSED {
        code.extend([equal(*number, 0, 1), answer(EPERM)]);
    }
    code.extend([equal(BPF, 0, 1), answer(KILL)]);
    for number in [435, 437, 452] {
        code.extend([equal(number, 0, 1), answer(ENOSYS)]);
    }
    // socket and socketpair: UNIX, INET and INET6 by the low word only.
    for number in [41, 53] {
        code.extend([
            equal(number, 0, 6),
            load(ARG_0),
            equal(1, 3, 0),
            equal(2, 2, 0),
            equal(10, 1, 0),
            answer(EPERM),
            answer(ALLOW),
        ]);
    }
    // ioctl: TIOCSTI and TIOCLINUX by the low word only.
    code.extend([
        equal(16, 0, 5),
        load(ARG_1),
        equal(0x5412, 1, 0),
        equal(0x541c, 0, 1),
        answer(EPERM),
        answer(ALLOW),
    ]);
    code.push(answer(ALLOW));
    code
}

fn under(mut code: Vec<libc::sock_filter>, args: &[&str]) -> Command {
    let mut command = probe(args);
    // SAFETY: two plain calls between fork and exec; the program is moved in.
    unsafe {
        command.pre_exec(move || {
            let program = libc::sock_fprog {
                len: u16::try_from(code.len()).unwrap_or(0),
                filter: code.as_mut_ptr(),
            };
            let set = libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::syscall(libc::SYS_seccomp, 1, 0, &raw const program) == 0;
            if set {
                Ok(())
            } else {
                Err(std::io::Error::last_os_error())
            }
        });
    }
    command
}

fn accepted(line: &Line) -> bool {
    let table = expected("strict").unwrap();
    table[&line.id]
        .accept
        .iter()
        .any(|pattern| pattern.accepts(&line.outcome))
}

#[test]
fn what_a_filter_refuses_passes_the_strict_table() {
    if skip_unless(is_root(), "root") {
        return;
    }
    let rows = [
        "B1",
        "B2",
        "B3",
        "B4",
        "B5",
        "B6",
        "H6",
        "A10.seccomp",
        "A10.no_new_privs",
        "A19",
    ];
    let found = lines(&mut under(filter(true), &[&["run"][..], &rows].concat()));
    assert!(found.len() > 80);
    // Raw internet sockets and ping are closed by missing capabilities, not by this filter.
    let other = [
        "B6.inet_raw",
        "B6.inet6_raw",
        "B6.inet_icmp",
        "B6.inet_sctp",
    ];
    let bad = found
        .iter()
        .filter(|line| !accepted(line) && !other.contains(&line.id.as_str()))
        .collect::<Vec<_>>();
    assert!(bad.is_empty(), "{bad:#?}");

    let found = by_id(found);
    assert_eq!(found["B1.bpf"].outcome.errno.as_deref(), Some("SIGSYS"));
    // With a filter the families are really asked for; without one they are skipped.
    assert_eq!(found["B6.alg"].outcome.result, Verdict::Refused);
    assert_eq!(found["B6.other_families"].outcome.result, Verdict::Refused);
    assert_eq!(found["B1.own_filter"].outcome.result, Verdict::Allowed);
}

#[test]
fn a_filter_that_forgets_the_other_abi_is_found_out() {
    if skip_unless(is_root(), "root") {
        return;
    }
    let found = by_id(lines(&mut under(
        filter(false),
        &["run", "B1.i386_getpid", "B1.ptrace"],
    )));
    assert!(
        !accepted(&found["B1.i386_getpid"]),
        "{:?}",
        found["B1.i386_getpid"]
    );
    assert!(accepted(&found["B1.ptrace"]));
}
