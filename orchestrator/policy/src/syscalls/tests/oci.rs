//! The OCI section allows exactly what the program allows, as far as libseccomp
//! knows the calls.

use oci_spec::runtime::{LinuxSeccompAction, LinuxSeccompOperator, LinuxSyscall};

use super::machine::{Answer, Call, run};
use super::*;
use crate::syscalls::number::known_to_libseccomp;

/// What runc makes of the rules: the first that matches, else the default.
fn answer(rules: &[LinuxSyscall], name: &str, args: &[u64; 6]) -> Answer {
    let matching = rules.iter().find(|rule| {
        let args_match = rule.args().iter().flatten().all(|arg| {
            assert_eq!(arg.op(), LinuxSeccompOperator::ScmpCmpMaskedEq);
            args[arg.index()] & arg.value() == arg.value_two().unwrap()
        });
        rule.names().iter().any(|n| n == name) && args_match
    });
    match matching {
        None => Answer::Errno(1),
        Some(rule) if rule.action() == LinuxSeccompAction::ScmpActAllow => Answer::Allow,
        Some(rule) => Answer::Errno(u16::try_from(rule.errno_ret().unwrap()).unwrap()),
    }
}

#[test]
fn the_oci_section_allows_what_the_program_allows() {
    let samples = samples(300);
    let tiers = TIERS.map(|tier| (tier.into(), task(tier)));
    for (table, program) in tiers.into_iter().chain([(SyscallTable::Python, &*PYTHON)]) {
        let section = crate::syscalls::oci(table).unwrap();
        assert_eq!(section.default_action(), LinuxSeccompAction::ScmpActErrno);
        assert_eq!(section.default_errno_ret(), Some(1));
        let rules = section.syscalls().as_ref().unwrap();
        for (name, nr) in NAMES.calls() {
            for args in &samples {
                let told = answer(rules, name, args);
                let ours = run(program, &Call::native(u32::from(nr), args));
                if !known_to_libseccomp(nr) {
                    assert_eq!(told, Answer::Errno(1), "{name}");
                } else if ours == Answer::Ask {
                    // No listener, no start: stated in the docs as well.
                    assert_eq!(told, Answer::Allow, "{name}");
                } else if matches!(ours, Answer::Errno(93 | 97))
                    || (ours == Answer::Errno(13)
                        && ["clone", "fcntl", "ioctl", "socketpair"].contains(&name))
                {
                    // One errno for all refusals of one call: stated in the docs.
                    assert_eq!(told, Answer::Errno(1), "{name} {args:x?}");
                } else {
                    assert_eq!(told, ours, "{table:?} {name} {args:x?}");
                }
            }
        }
        // A rule holds one condition for each argument: runc reads two on the
        // same one as alternatives.
        for rule in rules {
            let mut indices: Vec<_> = rule.args().iter().flatten().map(|a| a.index()).collect();
            indices.dedup();
            assert_eq!(indices.len(), rule.args().iter().flatten().count());
        }
    }
}
