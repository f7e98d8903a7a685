//! A machine for the part of classic BPF that seccomp takes
//! (kernel/seccomp.c, `seccomp_check_filter`). It stops at anything that the
//! kernel would refuse to load.

use crate::syscalls::Program;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Allow,
    Errno(u16),
    Ask,
}

pub(super) const X86_64: u32 = 0xc000_003e;
pub(super) const I386: u32 = 0x4000_0003;

/// `struct seccomp_data`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    pub(super) number: u32,
    pub(super) arch: u32,
    pub(super) args: [u64; 6],
}

impl Call {
    pub(super) fn native(number: u32, args: &[u64]) -> Self {
        let mut all = [0; 6];
        all[..args.len()].copy_from_slice(args);
        Self {
            number,
            arch: X86_64,
            args: all,
        }
    }

    fn word(&self, offset: u32) -> u32 {
        assert_eq!(offset % 4, 0, "unaligned load");
        let half = |value: u64, high: bool| {
            let value = if high { value >> 32 } else { value };
            u32::try_from(value & 0xffff_ffff).unwrap()
        };
        match offset {
            0 => self.number,
            4 => self.arch,
            8 | 12 => half(0x7fff_0000_1234, offset == 12),
            16..64 => {
                let arg = self.args[usize::try_from((offset - 16) / 8).unwrap()];
                half(arg, offset % 8 == 4)
            }
            _ => panic!("load at {offset}"),
        }
    }
}

/// Runs a program; also says whether it looked at more than number and
/// architecture, which keeps the kernel from caching the answer.
pub(super) fn trace(program: &Program, call: &Call) -> (Answer, bool) {
    assert!(program.size() <= 4096, "more than BPF_MAXINSNS");
    let (mut at, mut accumulator, mut looked) = (0_usize, 0_u32, false);
    loop {
        let i = program.instruction(at).expect("a jump leaves the program");
        at += 1;
        let hit = match i.code {
            0x20 => {
                looked |= i.value > 4;
                accumulator = call.word(i.value);
                continue;
            }
            0x54 => {
                accumulator &= i.value;
                continue;
            }
            0x05 => {
                at += usize::try_from(i.value).unwrap();
                continue;
            }
            0x06 if i.value == 0x7fff_0000 => return (Answer::Allow, looked),
            0x06 if i.value == 0x7fc0_0000 => return (Answer::Ask, looked),
            0x06 if i.value >> 16 == 5 => {
                let errno = u16::try_from(i.value & 0xffff).unwrap();
                return (Answer::Errno(errno), looked);
            }
            0x15 => accumulator == i.value,
            0x35 => accumulator >= i.value,
            0x45 => accumulator & i.value != 0,
            other => panic!("operation {other:#x} with {:#x}", i.value),
        };
        at += usize::from(if hit { i.jump_true } else { i.jump_false });
    }
}

pub(super) fn run(program: &Program, call: &Call) -> Answer {
    trace(program, call).0
}
