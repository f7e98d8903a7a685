//! The data files under `syscalls/`, and how they become one verdict per number.

use std::collections::HashSet;

use serde::Deserialize;

use super::number::{EPERM, Names, errno, fault};
use super::verdict::{Check, Compare, Test, Verdict};
use crate::error::Error;
use crate::profile::{SyscallTable, Tier};

const LOOSE: &str = include_str!("../../syscalls/loose.json");
const STANDARD: &str = include_str!("../../syscalls/standard.json");
const STRICT: &str = include_str!("../../syscalls/strict.json");
const PYTHON: &str = include_str!("../../syscalls/python.json");
const LEASE: &str = include_str!("../../syscalls/lease.json");
const GUEST: &str = include_str!("../../syscalls/guest.json");

/// A verdict for every number from 0 to the newest; `None` is a number that no
/// call has.
pub(super) type Table = Vec<Option<Verdict>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File<'a> {
    #[serde(rename = "about")]
    _about: &'a str,
    extends: Option<&'a str>,
    #[serde(borrow, default)]
    refuse: Vec<Refuse<'a>>,
    #[serde(borrow, default)]
    ask: Vec<Group<'a>>,
    #[serde(default)]
    check: Vec<Checks<'a>>,
    allow: Option<Vec<Group<'a>>>,
    #[serde(default)]
    add: Vec<Group<'a>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Group<'a> {
    #[serde(rename = "group")]
    _group: &'a str,
    #[serde(rename = "reason")]
    _reason: &'a str,
    #[serde(borrow)]
    calls: Vec<&'a str>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Refuse<'a> {
    #[serde(rename = "group")]
    _group: &'a str,
    #[serde(rename = "reason")]
    _reason: &'a str,
    errno: &'a str,
    calls: Vec<&'a str>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Checks<'a> {
    #[serde(rename = "group")]
    _group: &'a str,
    #[serde(rename = "reason")]
    _reason: &'a str,
    errno: &'a str,
    #[serde(borrow)]
    rules: Vec<Rule<'a>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule<'a> {
    #[serde(borrow)]
    calls: Vec<&'a str>,
    when: Vec<When<'a>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct When<'a> {
    arg: u8,
    mask: Option<&'a str>,
    any: Option<&'a str>,
    #[serde(borrow, rename = "in")]
    is_in: Option<Vec<&'a str>>,
    not_in: Option<Vec<&'a str>>,
}

/// The table of the tasks.
pub(super) fn task(table: SyscallTable) -> Result<Table, Error> {
    task_table(&Names::load()?, table)
}

/// The table of a tier's lease: the tier's own and the calls that start children.
pub(super) fn lease(tier: Tier) -> Result<Table, Error> {
    lease_table(&Names::load()?, tier)
}

/// The table of the guest: every tier's lease and the calls that make one.
pub(super) fn guest() -> Result<Table, Error> {
    let names = Names::load()?;
    let mut table = lease_table(&names, Tier::Loose)?;
    for tier in [Tier::Standard, Tier::Strict] {
        let other = lease_table(&names, tier)?;
        for (one, two) in table.iter_mut().zip(&other) {
            if let (Some(one), Some(two)) = (one, two) {
                *one = one.union(two);
            }
        }
    }
    widen(&names, "guest", GUEST, &mut table)?;
    Ok(table)
}

fn lease_table(names: &Names, tier: Tier) -> Result<Table, Error> {
    let mut table = task_table(names, tier.into())?;
    widen(names, "lease", LEASE, &mut table)?;
    Ok(table)
}

fn task_table(names: &Names, which: SyscallTable) -> Result<Table, Error> {
    let mut table = vec![None; usize::from(names.newest()) + 1];
    for (_, number) in names.calls() {
        table[usize::from(number)] = Some(Verdict::Allow);
    }
    // Each file takes away from the one before, so the order of the tables holds
    // by construction and not by comparing three lists.
    narrow(names, "loose", None, LOOSE, &mut table)?;
    if which >= SyscallTable::Standard {
        narrow(names, "standard", Some("loose"), STANDARD, &mut table)?;
    }
    if which >= SyscallTable::Strict {
        narrow(names, "strict", Some("standard"), STRICT, &mut table)?;
    }
    if which >= SyscallTable::Python {
        narrow(names, "python", Some("strict"), PYTHON, &mut table)?;
    }
    Ok(table)
}

fn slot<'t>(
    names: &Names,
    file: &str,
    call: &str,
    table: &'t mut Table,
) -> Result<&'t mut Verdict, Error> {
    let number = names.number(file, call)?;
    let slot = table.get_mut(usize::from(number)).and_then(Option::as_mut);
    slot.ok_or_else(|| fault(file, format!("no number for {call}")))
}

/// Takes away what a tier's file refuses.
pub(super) fn narrow(
    names: &Names,
    file: &str,
    extends: Option<&str>,
    text: &str,
    table: &mut Table,
) -> Result<(), Error> {
    let data: File<'_> = serde_json::from_str(text).map_err(|e| fault(file, e))?;
    if data.extends != extends || !data.add.is_empty() {
        return Err(fault(
            file,
            "a tier extends the one before and adds nothing",
        ));
    }
    for group in &data.refuse {
        let errno = errno(file, group.errno)?;
        for call in &group.calls {
            let verdict = slot(names, file, call, table)?;
            if matches!(verdict, Verdict::Refuse(_)) {
                return Err(fault(file, format!("{call} is refused twice")));
            }
            *verdict = Verdict::Refuse(errno);
        }
    }
    for call in data.ask.iter().flat_map(|group| &group.calls) {
        match slot(names, file, call, table)? {
            // A check that the listener would never get to see would be lost.
            Verdict::Allow => *slot(names, file, call, table)? = Verdict::Ask,
            _ => return Err(fault(file, format!("{call} is asked about and refused"))),
        }
    }
    for (call, check) in checks(names, file, &data.check)? {
        match slot(names, file, call, table)? {
            Verdict::Refuse(_) | Verdict::Ask => {
                return Err(fault(file, format!("{call} is refused and checked")));
            }
            Verdict::Check(checks) => checks.push(check),
            allowed @ Verdict::Allow => *allowed = Verdict::Check(vec![check]),
        }
    }
    if let Some(allow) = &data.allow {
        keep(names, file, allow, table)?;
    }
    Ok(())
}

/// Refuses every call that the allow list does not name.
fn keep(names: &Names, file: &str, allow: &[Group<'_>], table: &mut Table) -> Result<(), Error> {
    let mut kept = HashSet::new();
    for call in allow.iter().flat_map(|group| &group.calls) {
        if matches!(slot(names, file, call, table)?, Verdict::Refuse(_)) {
            return Err(fault(file, format!("{call} is refused and allowed")));
        }
        if !kept.insert(usize::from(names.number(file, call)?)) {
            return Err(fault(file, format!("{call} is allowed twice")));
        }
    }
    for (number, verdict) in table.iter_mut().enumerate() {
        if let Some(verdict) = verdict
            && !kept.contains(&number)
        {
            // What is refused already keeps the errno that its group gives.
            if !matches!(verdict, Verdict::Refuse(_)) {
                *verdict = Verdict::Refuse(EPERM);
            }
        }
    }
    Ok(())
}

/// Gives back what the lease or the guest needs on top of the tasks.
pub(super) fn widen(names: &Names, file: &str, text: &str, table: &mut Table) -> Result<(), Error> {
    let data: File<'_> = serde_json::from_str(text).map_err(|e| fault(file, e))?;
    if data.extends.is_some()
        || data.allow.is_some()
        || !data.refuse.is_empty()
        || !data.ask.is_empty()
    {
        return Err(fault(file, "a filter that tasks inherit only adds"));
    }
    for call in data.add.iter().flat_map(|group| &group.calls) {
        *slot(names, file, call, table)? = Verdict::Allow;
    }
    for (call, check) in checks(names, file, &data.check)? {
        let verdict = slot(names, file, call, table)?;
        *verdict = verdict.union(&Verdict::Check(vec![check]));
    }
    Ok(())
}

fn checks<'a>(
    names: &Names,
    file: &str,
    groups: &[Checks<'a>],
) -> Result<Vec<(&'a str, Check)>, Error> {
    let mut found = Vec::new();
    for group in groups {
        let errno = errno(file, group.errno)?;
        for rule in &group.rules {
            if rule.when.is_empty() {
                return Err(fault(file, "a check without a condition"));
            }
            let when = rule
                .when
                .iter()
                .map(|when| compare(names, file, when))
                .collect::<Result<Vec<_>, _>>()?;
            for call in &rule.calls {
                let when = when.clone();
                found.push((*call, Check { when, errno }));
            }
        }
    }
    Ok(found)
}

fn compare(names: &Names, file: &str, when: &When<'_>) -> Result<Compare, Error> {
    if when.arg > 5 {
        return Err(fault(file, format!("argument {} of 0-5", when.arg)));
    }
    let values = |texts: &[&str]| {
        let values = texts.iter().map(|text| names.value(file, text));
        values.collect::<Result<Vec<_>, _>>()
    };
    let mask = when
        .mask
        .map_or(Ok(u32::MAX), |text| names.value(file, text))?;
    let (mask, test) = match (when.mask, when.any, &when.is_in, &when.not_in) {
        (None, Some(bits), None, None) => (names.value(file, bits)?, Test::Any),
        (_, None, Some(list), None) if !list.is_empty() => (mask, Test::In(values(list)?)),
        (_, None, None, Some(list)) if !list.is_empty() => (mask, Test::NotIn(values(list)?)),
        _ => return Err(fault(file, "a condition has one of any, in, not_in")),
    };
    let outside = |list: &[u32]| list.iter().any(|value| value & !mask != 0);
    match &test {
        Test::In(list) | Test::NotIn(list) if outside(list) => {
            Err(fault(file, "a value has bits outside its mask"))
        }
        _ => Ok(Compare {
            arg: when.arg,
            mask,
            test,
        }),
    }
}
