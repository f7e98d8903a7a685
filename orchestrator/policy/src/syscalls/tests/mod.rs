//! Proof of the tables: every number, every ABI, arguments around every value
//! that a rule names, run through a BPF machine that is written apart from the
//! compiler.

mod arguments;
mod compiled;
mod machine;
mod numbers;
mod oci;
mod python;
mod stack;
mod tables;

use std::sync::LazyLock;

use super::number::Names;
use crate::profile::{SyscallTable, Tier};
use crate::syscalls::Program;
use machine::{Answer, Call, run};

const TIERS: [Tier; 3] = [Tier::Loose, Tier::Standard, Tier::Strict];

static NAMES: LazyLock<Names> = LazyLock::new(|| Names::load().unwrap());
static GUEST: LazyLock<Program> = LazyLock::new(|| super::guest().unwrap());
static LEASES: LazyLock<[Program; 3]> = LazyLock::new(|| TIERS.map(|t| super::lease(t).unwrap()));
static TASKS: LazyLock<[Program; 3]> =
    LazyLock::new(|| TIERS.map(|t| super::task(t.into()).unwrap()));
static PYTHON: LazyLock<Program> = LazyLock::new(|| super::task(SyscallTable::Python).unwrap());

fn task(tier: Tier) -> &'static Program {
    &TASKS[tier as usize]
}

fn lease(tier: Tier) -> &'static Program {
    &LEASES[tier as usize]
}

/// All eight programs, with a name for messages.
fn programs() -> Vec<(String, &'static Program)> {
    let mut all = vec![
        ("guest".to_owned(), &*GUEST),
        ("task Python".to_owned(), &*PYTHON),
    ];
    for tier in TIERS {
        all.push((format!("lease {tier:?}"), lease(tier)));
        all.push((format!("task {tier:?}"), task(tier)));
    }
    all
}

fn number(name: &str) -> u32 {
    u32::from(NAMES.number("test", name).unwrap())
}

/// What a program answers to a call by name.
fn ask(program: &Program, name: &str, args: &[u64]) -> Answer {
    run(program, &Call::native(number(name), args))
}

/// Tuples of arguments: zeros, ones, and mixtures of all values that rules name,
/// their neighbours, and the same with higher bits set. The same every time.
fn samples(count: usize) -> Vec<[u64; 6]> {
    let mut values = vec![
        0,
        1,
        2,
        3,
        5,
        6,
        u64::MAX,
        0xffff_ffff,
        0o755,
        0o644,
        0o7777,
        0x1200011,
    ];
    let mut constants: Vec<_> = super::number::constants_file().into_keys().collect();
    constants.sort_unstable();
    for name in constants {
        let value = u64::from(NAMES.value("test", name).unwrap());
        values.extend([
            value,
            value ^ 1,
            value | 0o100,
            value | 0x80000,
            value | (1 << 32),
        ]);
    }
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        values[usize::try_from(state >> 33).unwrap() % values.len()]
    };
    let mut all = vec![[0; 6], [u64::MAX; 6]];
    all.extend((0..count).map(|_| std::array::from_fn(|_| next())));
    all
}
