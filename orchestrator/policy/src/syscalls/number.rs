//! Names and numbers of the calls, and the constants that rules use.

use std::collections::HashMap;

use serde::Deserialize;

use crate::error::{Code, Error};

const NUMBERS: &str = include_str!("../../syscalls/numbers.json");
const CONSTANTS: &str = include_str!("../../syscalls/constants.json");

/// A fault in a data file. It means that orch was built wrong: nothing runs.
pub(super) fn fault(file: &str, what: impl std::fmt::Display) -> Error {
    Error::new(
        Code::ControlMissing,
        format!("system-call table {file}: {what}"),
        "report it: these tables are part of orch and no profile changes them",
    )
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NumbersFile<'a> {
    #[serde(rename = "about")]
    _about: &'a str,
    #[serde(rename = "kernel")]
    _kernel: &'a str,
    #[serde(borrow)]
    numbers: HashMap<&'a str, u16>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConstantsFile<'a> {
    #[serde(rename = "about")]
    _about: &'a str,
    #[serde(borrow)]
    constants: HashMap<&'a str, &'a str>,
}

/// What the data files may name.
#[derive(Debug)]
pub(super) struct Names {
    numbers: HashMap<&'static str, u16>,
    constants: HashMap<&'static str, u32>,
}

impl Names {
    /// Reads the two files that are built in.
    pub(super) fn load() -> Result<Self, Error> {
        let numbers: NumbersFile<'static> =
            serde_json::from_str(NUMBERS).map_err(|e| fault("numbers", e))?;
        let constants: ConstantsFile<'static> =
            serde_json::from_str(CONSTANTS).map_err(|e| fault("constants", e))?;
        let constants = constants
            .constants
            .into_iter()
            .map(|(name, text)| match literal(text) {
                Some(value) => Ok((name, value)),
                None => Err(fault(
                    "constants",
                    format!("{name} is not a number: {text}"),
                )),
            })
            .collect::<Result<_, _>>()?;
        Ok(Self {
            numbers: numbers.numbers,
            constants,
        })
    }

    /// The number of a call.
    pub(super) fn number(&self, file: &str, name: &str) -> Result<u16, Error> {
        let number = self.numbers.get(name).copied();
        number.ok_or_else(|| fault(file, format!("unknown call {name}")))
    }

    /// The value of one constant, or of several joined by `|`.
    pub(super) fn value(&self, file: &str, text: &str) -> Result<u32, Error> {
        text.split('|')
            .try_fold(0, |bits, name| match self.constants.get(name).copied() {
                Some(value) => Ok(bits | value),
                None => Err(fault(file, format!("unknown constant {name}"))),
            })
    }

    /// The highest number that is known.
    pub(super) fn newest(&self) -> u16 {
        self.numbers.values().copied().max().unwrap_or(0)
    }

    /// Every call, in no order.
    pub(super) fn calls(&self) -> impl Iterator<Item = (&'static str, u16)> {
        self.numbers.iter().map(|(name, number)| (*name, *number))
    }
}

/// `0x1f`, `0o17` or `31`; 32 bits, because every argument that a rule looks at
/// is an `int`, an `unsigned int` or a mode in the kernel.
fn literal(text: &str) -> Option<u32> {
    if let Some(digits) = text.strip_prefix("0x") {
        return u32::from_str_radix(digits, 16).ok();
    }
    match text.strip_prefix("0o") {
        Some(digits) => u32::from_str_radix(digits, 8).ok(),
        None => text.parse().ok(),
    }
}

/// The errno values that tables may give, by name (`asm-generic/errno.h`).
pub(super) fn errno(file: &str, name: &str) -> Result<u16, Error> {
    match name {
        "EPERM" => Ok(EPERM),
        "EACCES" => Ok(13),
        "ENOSYS" => Ok(ENOSYS),
        "EPROTONOSUPPORT" => Ok(93),
        "EAFNOSUPPORT" => Ok(97),
        _ => Err(fault(file, format!("unknown errno {name}"))),
    }
}

/// What a known call that is refused gives.
pub(super) const EPERM: u16 = 1;
/// What an unknown call gives, and one whose users fall back.
pub(super) const ENOSYS: u16 = 38;

/// Whether libseccomp 2.5.4, the oldest one that runc is commonly built with,
/// knows the call: its tables end with Linux 5.17, and the two calls of the
/// uprobes came later in a gap.
pub(super) fn known_to_libseccomp(number: u16) -> bool {
    number <= 450 && !(335..=336).contains(&number)
}

#[cfg(test)]
pub(super) fn constants_file() -> HashMap<&'static str, &'static str> {
    let file: ConstantsFile<'static> = serde_json::from_str(CONSTANTS).unwrap();
    file.constants
}
