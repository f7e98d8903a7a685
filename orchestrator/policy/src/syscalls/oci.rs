//! A tier's filter as an OCI seccomp section, for runtimes that compile by name.
//!
//! `orch spec` prints it so that runc can run the same container. It is the same
//! set of calls; what differs is which errno some refusals give, and other ABIs
//! (docs/syscalls.md, "What `orch spec` prints").

use std::collections::BTreeMap;

use oci_spec::runtime::{
    Arch, LinuxSeccomp, LinuxSeccompAction, LinuxSeccompArg, LinuxSeccompArgBuilder,
    LinuxSeccompBuilder, LinuxSeccompOperator, LinuxSyscall, LinuxSyscallBuilder,
};

use super::number::{EPERM, Names, fault, known_to_libseccomp};
use super::table;
use super::verdict::{Check, Compare, Test, Verdict};
use crate::error::Error;
use crate::profile::SyscallTable;

/// What the six arguments must look like: for each a mask and the value under
/// it; mask 0 is any value. An OCI rule holds one condition for each argument, so
/// this is one rule.
type Cell = [(u32, u32); 6];

/// The filter of tasks under a table for runc, crun and youki.
///
/// # Errors
///
/// As [`super::task`].
pub fn oci(table: SyscallTable) -> Result<LinuxSeccomp, Error> {
    let table = table::task(table)?;
    let mut calls: Vec<_> = Names::load()?.calls().collect();
    calls.sort_unstable_by_key(|(_, number)| *number);

    let mut plain = Vec::new();
    let mut refused: BTreeMap<u16, Vec<String>> = BTreeMap::new();
    let mut checked: BTreeMap<Vec<Cell>, Vec<String>> = BTreeMap::new();
    for (name, number) in calls {
        // Two reasons to leave a name out: libseccomp would skip it anyway, and
        // a call that it does not know falls to the default, which refuses.
        if !known_to_libseccomp(number) {
            continue;
        }
        match &table[usize::from(number)] {
            // Without a listener nobody could start the command itself.
            Some(Verdict::Allow | Verdict::Ask) => plain.push(name.to_owned()),
            Some(Verdict::Check(checks)) => {
                let cells = allowed(checks);
                checked.entry(cells).or_default().push(name.to_owned());
            }
            Some(Verdict::Refuse(EPERM)) | None => {}
            Some(Verdict::Refuse(errno)) => {
                refused.entry(*errno).or_default().push(name.to_owned());
            }
        }
    }

    let mut rules = vec![rule(plain, LinuxSeccompAction::ScmpActAllow, None, None)?];
    for (cells, names) in checked {
        for cell in cells {
            let args = cell
                .into_iter()
                .enumerate()
                .filter(|(_, (mask, _))| *mask != 0)
                .map(|(arg, (mask, value))| condition(arg, mask, value))
                .collect::<Result<Vec<_>, _>>()?;
            let allow = LinuxSeccompAction::ScmpActAllow;
            rules.push(rule(names.clone(), allow, None, Some(args))?);
        }
    }
    for (errno, names) in refused {
        let action = LinuxSeccompAction::ScmpActErrno;
        rules.push(rule(names, action, Some(errno), None)?);
    }
    LinuxSeccompBuilder::default()
        .default_action(LinuxSeccompAction::ScmpActErrno)
        .default_errno_ret(u32::from(EPERM))
        // Naming i386 or x32 here would let their calls in under the same rules.
        .architectures(vec![Arch::ScmpArchX86_64])
        .syscalls(rules)
        .build()
        .map_err(|e| fault("oci", e))
}

fn rule(
    names: Vec<String>,
    action: LinuxSeccompAction,
    errno: Option<u16>,
    args: Option<Vec<LinuxSeccompArg>>,
) -> Result<LinuxSyscall, Error> {
    let mut rule = LinuxSyscallBuilder::default().names(names).action(action);
    if let Some(errno) = errno {
        rule = rule.errno_ret(u32::from(errno));
    }
    if let Some(args) = args {
        rule = rule.args(args);
    }
    rule.build().map_err(|e| fault("oci", e))
}

fn condition(arg: usize, mask: u32, value: u32) -> Result<LinuxSeccompArg, Error> {
    LinuxSeccompArgBuilder::default()
        .index(arg)
        .value(u64::from(mask))
        .value_two(u64::from(value))
        .op(LinuxSeccompOperator::ScmpCmpMaskedEq)
        .build()
        .map_err(|e| fault("oci", e))
}

/// The arguments that no check refuses, as rules of which one must match.
///
/// OCI has no "refuse these, allow the rest" for one call, because libseccomp
/// lets an unconditional rule swallow the conditional ones. So every check is
/// turned round: not (a and b) is (not a) or (not b).
fn allowed(checks: &[Check]) -> Vec<Cell> {
    let mut cells = vec![Cell::default()];
    for check in checks {
        let mut next = Vec::new();
        for compare in &check.when {
            for (mask, value) in opposite(compare) {
                let narrowed = cells
                    .iter()
                    .filter_map(|cell| narrow(cell, compare.arg, mask, value));
                next.extend(narrowed);
            }
        }
        cells = drop_covered(next);
    }
    cells
}

/// Masks and values under them of which one holds exactly where the comparison
/// does not.
fn opposite(compare: &Compare) -> Vec<(u32, u32)> {
    match &compare.test {
        Test::Any => vec![(compare.mask, 0)],
        Test::NotIn(values) => values.iter().map(|value| (compare.mask, *value)).collect(),
        Test::In(values) => {
            let mut pieces = Vec::new();
            complement(compare.mask, 31, (0, 0), values, &mut pieces);
            pieces
        }
    }
}

/// Covers everything but `values` with prefixes, from the highest bit down.
fn complement(
    mask: u32,
    bit: u32,
    prefix: (u32, u32),
    values: &[u32],
    pieces: &mut Vec<(u32, u32)>,
) {
    if values.is_empty() {
        pieces.push(prefix);
        return;
    }
    let one = 1 << bit;
    let branches: &[u32] = if mask & one == 0 { &[] } else { &[0, one] };
    for branch in branches {
        let rest: Vec<u32> = values
            .iter()
            .copied()
            .filter(|v| v & one == *branch)
            .collect();
        let prefix = (prefix.0 | one, prefix.1 | branch);
        if bit > 0 {
            complement(mask, bit - 1, prefix, &rest, pieces);
        } else if rest.is_empty() {
            pieces.push(prefix);
        }
    }
    if branches.is_empty() && bit > 0 {
        complement(mask, bit - 1, prefix, values, pieces);
    }
}

/// The cell with one more condition; nothing where the two contradict each other.
fn narrow(cell: &Cell, arg: u8, mask: u32, value: u32) -> Option<Cell> {
    let mut cell = *cell;
    let (old_mask, old_value) = cell[usize::from(arg)];
    if (old_value ^ value) & old_mask & mask != 0 {
        return None;
    }
    cell[usize::from(arg)] = (old_mask | mask, old_value | value);
    Some(cell)
}

/// Leaves out every cell that lies inside another one, and sorts the rest.
fn drop_covered(mut cells: Vec<Cell>) -> Vec<Cell> {
    let inside = |small: &Cell, large: &Cell| {
        small
            .iter()
            .zip(large)
            .all(|((own_mask, own_value), (mask, value))| {
                own_mask & mask == *mask && own_value & mask == *value
            })
    };
    // Wide cells first: one that lies inside another has all its bits and more.
    cells.sort_unstable_by_key(|cell| cell.iter().map(|(mask, _)| mask.count_ones()).sum::<u32>());
    let mut kept: Vec<Cell> = Vec::new();
    for cell in cells {
        if !kept.iter().any(|other| inside(&cell, other)) {
            kept.push(cell);
        }
    }
    kept.sort_unstable();
    kept
}
