//! Answers that are kept for docs/platforms.md, by the tests that know how to make such
//! a host.

use std::path::Path;

use serde_json::Value;

use crate::rig::{Result, at};

/// Writes what doctor said of this host where `ORCH_RECORD` names a directory.
///
/// # Errors
/// What open(2) or write(2) say.
pub fn keep(host: &str, document: &Value) -> Result<()> {
    let Some(directory) = std::env::var_os("ORCH_RECORD") else {
        return Ok(());
    };
    let file = Path::new(&directory).join(format!("{host}.json"));
    std::fs::write(&file, format!("{document:#}\n")).map_err(at(file.display()))
}
