//! A table as a program.
//!
//! The number is found by halving the ranges of equal verdicts, so a call meets
//! seven or eight comparisons. Most meet none: since Linux 5.11 the kernel runs
//! each program once per number when it is loaded, and where the answer is
//! "allow" without looking at an argument it never runs the program for that
//! number again. For this the tree may load only the architecture and the number.

use super::number::{ENOSYS, fault};
use super::program::{Instruction, Program};
use super::table::Table;
use super::verdict::{Check, Compare, Test, Verdict};
use crate::error::Error;

/// `AUDIT_ARCH_X86_64` (linux/audit.h); calls through `int 0x80` carry another.
pub(super) const ARCH_X86_64: u32 = 0xc000_003e;

// Offsets in `struct seccomp_data` (linux/seccomp.h).
const OFFSET_NUMBER: u32 = 0;
const OFFSET_ARCH: u32 = 4;
const OFFSET_ARGS: u32 = 16;

// Operations (linux/bpf_common.h).
pub(super) const LOAD: u16 = 0x20;
pub(super) const AND: u16 = 0x54;
pub(super) const JUMP: u16 = 0x05;
pub(super) const JUMP_EQUAL: u16 = 0x15;
pub(super) const JUMP_AT_LEAST: u16 = 0x35;
pub(super) const JUMP_SET: u16 = 0x45;
pub(super) const RETURN: u16 = 0x06;

// Answers (linux/seccomp.h).
pub(super) const RET_ALLOW: u32 = 0x7fff_0000;
pub(super) const RET_ERRNO: u32 = 0x0005_0000;
pub(super) const RET_ASK: u32 = 0x7fc0_0000;

/// Compiles a table.
pub(super) fn compile(table: &Table) -> Result<Program, Error> {
    let mut ranges: Vec<(u32, Verdict)> = Vec::new();
    // Numbers above the table, x32 numbers (bit 30) and -1 form the last range.
    for (number, verdict) in (0u32..).zip(table.iter().chain([&None])) {
        let verdict = verdict.clone().unwrap_or(Verdict::Refuse(ENOSYS));
        if ranges.last().is_none_or(|(_, last)| *last != verdict) {
            ranges.push((number, verdict));
        }
    }
    let mut code = vec![
        stmt(LOAD, OFFSET_ARCH),
        jump(JUMP_EQUAL, ARCH_X86_64, 1, 0),
        stmt(RETURN, RET_ERRNO | u32::from(ENOSYS)),
        stmt(LOAD, OFFSET_NUMBER),
    ];
    code.extend(tree(&ranges)?);
    Program::assemble(&code)
}

fn stmt(code: u16, value: u32) -> Instruction {
    jump(code, value, 0, 0)
}

fn jump(code: u16, value: u32, jump_true: u8, jump_false: u8) -> Instruction {
    Instruction {
        code,
        jump_true,
        jump_false,
        value,
    }
}

/// Code for a run of ranges, with the number in the accumulator.
fn tree(ranges: &[(u32, Verdict)]) -> Result<Vec<Instruction>, Error> {
    let half = ranges.len() / 2;
    let (low, high) = ranges.split_at(half);
    let Some((first, verdict)) = high.first() else {
        return Err(fault("program", "no numbers"));
    };
    if low.is_empty() {
        return leaf(verdict);
    }
    let (low, first, high) = (tree(low)?, *first, tree(high)?);
    let mut code = Vec::with_capacity(2 + low.len() + high.len());
    match u8::try_from(low.len()) {
        Ok(skip) => code.push(jump(JUMP_AT_LEAST, first, skip, 0)),
        // A conditional jump reaches 255 instructions, a plain one any distance.
        Err(_) => {
            code.push(jump(JUMP_AT_LEAST, first, 0, 1));
            code.push(stmt(JUMP, distance(low.len())?));
        }
    }
    code.extend(low);
    code.extend(high);
    Ok(code)
}

fn leaf(verdict: &Verdict) -> Result<Vec<Instruction>, Error> {
    let mut code = Vec::new();
    match verdict {
        Verdict::Allow => code.push(stmt(RETURN, RET_ALLOW)),
        Verdict::Refuse(errno) => code.push(refuse(*errno)),
        Verdict::Ask => code.push(stmt(RETURN, RET_ASK)),
        Verdict::Check(checks) => {
            for check in checks {
                code.extend(refusal(check)?);
            }
            code.push(stmt(RETURN, RET_ALLOW));
        }
    }
    Ok(code)
}

fn refuse(errno: u16) -> Instruction {
    stmt(RETURN, RET_ERRNO | u32::from(errno))
}

/// Refuses where every comparison holds, falls out at the end otherwise.
fn refusal(check: &Check) -> Result<Vec<Instruction>, Error> {
    let mut code = vec![refuse(check.errno)];
    // From the last comparison to the first: each one that fails leaps over all
    // that follows it, whose length is known by then.
    for compare in check.when.iter().rev() {
        let mut front = comparison(compare, code.len())?;
        front.extend(code);
        code = front;
    }
    Ok(code)
}

/// One comparison: falls out at the end where it holds, and skips `rest`
/// instructions more where it does not.
fn comparison(compare: &Compare, rest: usize) -> Result<Vec<Instruction>, Error> {
    let mut code = vec![stmt(LOAD, OFFSET_ARGS + 8 * u32::from(compare.arg))];
    let values = match &compare.test {
        Test::Any => {
            code.push(jump(JUMP_SET, compare.mask, 0, skip(rest)?));
            return Ok(code);
        }
        Test::In(values) | Test::NotIn(values) => values,
    };
    if compare.mask != u32::MAX {
        code.push(stmt(AND, compare.mask));
    }
    for (index, value) in values.iter().enumerate() {
        let after = values.len() - 1 - index;
        let last = after == 0;
        code.push(match compare.test {
            Test::NotIn(_) => jump(JUMP_EQUAL, *value, skip(after + rest)?, 0),
            _ if last => jump(JUMP_EQUAL, *value, 0, skip(rest)?),
            _ => jump(JUMP_EQUAL, *value, skip(after)?, 0),
        });
    }
    Ok(code)
}

fn skip(instructions: usize) -> Result<u8, Error> {
    u8::try_from(instructions).map_err(|e| fault("program", format!("a check is too long: {e}")))
}

fn distance(instructions: usize) -> Result<u32, Error> {
    u32::try_from(instructions).map_err(|e| fault("program", e))
}
