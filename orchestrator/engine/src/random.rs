//! Ids that nobody can guess.

use std::fmt::Write;

use orch_policy::Error;
use rustix::rand::{GetRandomFlags, getrandom};

use crate::failure;

/// 128 random bits, as hexadecimal digits.
pub fn id() -> Result<String, Error> {
    let mut bytes = [0_u8; 16];
    getrandom(&mut bytes, GetRandomFlags::empty()).map_err(|e| failure::kernel("make an id", e))?;
    Ok(bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    }))
}
