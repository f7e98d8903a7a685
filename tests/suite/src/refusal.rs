//! A refusal: exit 125, code, cause and remedy for people and for programs,
//! nothing started and nothing left.

use std::time::Duration;

use serde_json::Value;

use crate::call::{Call, Ended, ensure};
use crate::left::{self, eventually};

/// What a command says that must not have been started.
const RAN: &str = "this was run";

/// Runs what must be refused, once for people and once for programs; `words` are in
/// the message, its cause or its remedy.
pub fn refused(
    make: impl Fn() -> Result<Call, String>,
    code: &str,
    words: &[&str],
) -> Result<(), String> {
    one_of(make, &[code], words)
}

/// The same where more than one code is right.
pub fn one_of(
    make: impl Fn() -> Result<Call, String>,
    codes: &[&str],
    words: &[&str],
) -> Result<(), String> {
    let before = left::groups();
    let ended = make()?.cmd(["echo", RAN]).run()?;
    people(&ended, codes, words).map_err(|why| format!("{why}: {ended:?}"))?;
    let ended = make()?.args(["--json"]).cmd(["echo", RAN]).run()?;
    programs(&ended, codes, words).map_err(|why| format!("--json: {why}: {ended:?}"))?;
    // Groups of neighbours go away as well, with their tests.
    let new: Vec<_> = left::groups().difference(&before).cloned().collect();
    eventually(Duration::from_secs(30), || {
        let there = new.iter().find(|group| group.exists());
        Ok(there.map(|group| format!("{} is left", group.display())))
    })
}

fn people(ended: &Ended, codes: &[&str], words: &[&str]) -> Result<(), String> {
    ensure!(ended.code() == 125, "not 125");
    ensure!(ended.stdout.is_empty(), "something on standard output");
    ensure!(ended.receipt.is_none(), "a receipt");
    let said = &ended.stderr;
    ensure!(
        codes
            .iter()
            .any(|code| said.contains(&format!("  code: {code}\n"))),
        "not the code {codes:?}"
    );
    ensure!(said.starts_with("orch: "), "not a message of orch");
    let remedy = said.lines().find_map(|line| line.strip_prefix("  do:   "));
    ensure!(remedy.is_some_and(|remedy| remedy.len() > 5), "no remedy");
    for word in words {
        ensure!(said.contains(word), "nothing about {word:?}");
    }
    Ok(())
}

fn programs(ended: &Ended, codes: &[&str], words: &[&str]) -> Result<(), String> {
    ensure!(ended.code() == 125, "not 125");
    let document: Value =
        serde_json::from_slice(&ended.stdout).map_err(|e| format!("no document: {e}"))?;
    let error = &document["error"];
    ensure!(
        codes.iter().any(|code| error["code"] == *code),
        "not the code {codes:?}"
    );
    let text = |key: &str| error[key].as_str().unwrap_or_default().to_owned();
    ensure!(!text("message").is_empty(), "no message");
    ensure!(text("remediation").len() > 5, "no remedy");
    let all = [text("message"), text("cause"), text("remediation")].join("\n");
    for word in words {
        ensure!(all.contains(word), "nothing about {word:?}");
    }
    Ok(())
}
