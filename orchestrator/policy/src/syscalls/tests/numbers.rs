//! Every number in every ABI.

use super::machine::{Answer, Call, I386, run, trace};
use super::*;
use crate::syscalls::number::ENOSYS;
use crate::syscalls::table;
use crate::syscalls::verdict::Verdict;

const X32: u32 = 0x4000_0000;

#[test]
fn other_abis_and_unknown_numbers_give_enosys() {
    let known: Vec<u32> = Names::load()
        .unwrap()
        .calls()
        .map(|(_, n)| u32::from(n))
        .collect();
    for (name, program) in programs() {
        for nr in 0..=600 {
            for args in samples(4) {
                let mut call = Call::native(nr, &args);
                if !known.contains(&nr) {
                    assert_eq!(run(program, &call), Answer::Errno(ENOSYS), "{name} {nr}");
                }
                call.number = nr | X32;
                assert_eq!(
                    run(program, &call),
                    Answer::Errno(ENOSYS),
                    "{name} x32 {nr}"
                );
                for arch in [I386, 0xc000_00b7, 0] {
                    let call = Call {
                        number: nr,
                        arch,
                        args,
                    };
                    assert_eq!(
                        run(program, &call),
                        Answer::Errno(ENOSYS),
                        "{name} {arch:#x} {nr}"
                    );
                }
            }
        }
        for nr in [601, 4096, 0x3fff_ffff, 0x7fff_ffff, 0x8000_0000, u32::MAX] {
            let call = Call::native(nr, &[]);
            assert_eq!(run(program, &call), Answer::Errno(ENOSYS), "{name} {nr}");
        }
    }
}

/// The program says what the table says: for every number and many arguments.
#[test]
fn programs_follow_their_tables() {
    let mut pairs = vec![("guest".to_owned(), table::guest().unwrap(), &*GUEST)];
    for tier in TIERS {
        let (t, l) = (
            table::task(tier.into()).unwrap(),
            table::lease(tier).unwrap(),
        );
        pairs.push((format!("task {tier:?}"), t, task(tier)));
        pairs.push((format!("lease {tier:?}"), l, lease(tier)));
    }
    let python = table::task(SyscallTable::Python).unwrap();
    pairs.push(("task python".to_owned(), python, &*PYTHON));
    let (few, many) = (samples(2), samples(4000));
    for (name, table, program) in pairs {
        for (nr, verdict) in (0_u32..).zip(&table) {
            let checked = matches!(verdict, Some(Verdict::Check(_)));
            for args in if checked { &many } else { &few } {
                let told = run(program, &Call::native(nr, args));
                assert_eq!(
                    told,
                    expected(verdict.as_ref(), args),
                    "{name} {nr} {args:x?}"
                );
            }
        }
    }
}

/// The meaning of a verdict, written apart from the compiler.
fn expected(verdict: Option<&Verdict>, args: &[u64; 6]) -> Answer {
    use crate::syscalls::verdict::Test;
    let checks = match verdict {
        None => return Answer::Errno(ENOSYS),
        Some(Verdict::Allow) => return Answer::Allow,
        Some(Verdict::Ask) => return Answer::Ask,
        Some(Verdict::Refuse(errno)) => return Answer::Errno(*errno),
        Some(Verdict::Check(checks)) => checks,
    };
    let refused = checks.iter().find(|check| {
        check.when.iter().all(|compare| {
            let masked = args[usize::from(compare.arg)] & u64::from(compare.mask);
            let is = |list: &[u32]| list.iter().any(|value| u64::from(*value) == masked);
            match &compare.test {
                Test::Any => masked != 0,
                Test::In(list) => is(list),
                Test::NotIn(list) => !is(list),
            }
        })
    });
    refused.map_or(Answer::Allow, |check| Answer::Errno(check.errno))
}

/// The kernel answers these from its bitmap without running a program (5.11):
/// the path to "allow" looks at no argument.
#[test]
fn hot_calls_are_cacheable() {
    for (name, program) in programs() {
        for call in [
            "read",
            "write",
            "futex",
            "mmap",
            "epoll_wait",
            "recvmsg",
            "clock_nanosleep",
        ] {
            let answer = trace(program, &Call::native(number(call), &[]));
            assert_eq!(answer, (Answer::Allow, false), "{name} {call}");
        }
        let size = program.size();
        assert!(size < Program::MAX / 4, "{name}: {size} instructions");
        assert_eq!(program.bytes().len(), size * 8);
    }
}

/// The bytes are `struct sock_filter`: the first instruction loads the
/// architecture at offset 4, the second compares it.
#[test]
fn bytes_are_little_endian_sock_filters() {
    let bytes = task(Tier::Strict).bytes();
    assert_eq!(bytes[..8], [0x20, 0, 0, 0, 4, 0, 0, 0]);
    assert_eq!(bytes[8..16], [0x15, 0, 1, 0, 0x3e, 0, 0, 0xc0]);
}
