//! The other system-call ABIs of the machine, which a filter by x86-64 number
//! does not see unless it looks at the architecture first.

use super::Probe;
use crate::outcome::{Outcome, Verdict};
use crate::raw;

pub(super) fn probes() -> Vec<Probe> {
    vec![
        // getpid, keyctl, unshare, ptrace by their i386 numbers.
        Probe::new("B1.i386_getpid", || i386(20, 0)),
        Probe::new("B1.i386_unshare", || i386(310, 0)),
        Probe::new("B1.i386_keyctl", || i386(288, 0)),
        Probe::new("B1.i386_setresuid", || i386(208, u32::MAX)),
        Probe::new("B1.x32_getpid", || {
            Outcome::of_call(raw::call(0x4000_0000 | libc::SYS_getpid, [0; 6]))
        }),
        Probe::new("B1.x32_ptrace", || {
            Outcome::of_call(raw::call(0x4000_0000 | 521, [0; 6]))
        }),
        Probe::new("B1.own_filter", own_filter),
    ]
}

/// `int 0x80` with one number and the same value as every argument.
fn i386(number: u32, argument: u32) -> Outcome {
    let returned: u32;
    // SAFETY: the calls take no pointer that is used: getpid none, keyctl(0, 0) and
    // unshare(0) none, setresuid(-1, -1, -1) changes nothing. rbx is given back; the
    // kernel may clear r8 to r11. Where the ABI is off, the child dies of a signal.
    unsafe {
        std::arch::asm!(
            "xchg rbx, {argument}",
            "int 0x80",
            "xchg rbx, {argument}",
            argument = inout(reg) u64::from(argument) => _,
            inlateout("eax") number => returned,
            in("ecx") argument,
            in("edx") argument,
            in("esi") argument,
            in("edi") argument,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
    }
    let returned = i64::from(returned.cast_signed());
    match returned {
        -4095..=-1 => Outcome::of_call(Err(i32::try_from(-returned).unwrap_or(0))),
        value => Outcome::plain(Verdict::Allowed, format!("returned {value}")),
    }
}

/// A task that loads a filter of its own (browsers, test runners) must still work.
fn own_filter() -> Outcome {
    const ALLOW: u32 = 0x7fff_0000;
    let mut code = [libc::sock_filter {
        code: 0x06,
        jt: 0,
        jf: 0,
        k: ALLOW,
    }];
    let program = libc::sock_fprog {
        len: 1,
        filter: code.as_mut_ptr(),
    };
    let program = raw::address(&raw const program);
    let set = raw::call(
        libc::SYS_prctl,
        [i64::from(libc::PR_SET_NO_NEW_PRIVS), 1, 0, 0, 0, 0],
    );
    if let Err(number) = set {
        return Outcome::with_errno(Verdict::Refused, number, "no_new_privs");
    }
    // SECCOMP_SET_MODE_FILTER
    Outcome::of_call(raw::call(libc::SYS_seccomp, [1, 0, program, 0, 0, 0]))
}
