//! `docs/platforms.md` says what doctor said: its tables are made of the answers that
//! are recorded in `docs/platforms`, and of doctor's rules for hosts that nobody has
//! tried yet.
//!
//! Written anew with `UPDATE_GOLDEN=1 cargo test -p orch platforms`; the difference in
//! review is the change in what hosts are said to keep.

mod recording;
mod rules;
mod tables;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde::Deserialize;

use self::recording::{Line, Recording};
use super::checks::all;
use super::facts::Facts;

/// A host of the page, as `docs/platforms/hosts.json` lists it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    /// Name of the recording, or of the rules.
    name: String,
    /// The host in words.
    host: String,
    /// The command that made its answer; `None` where [`rules`] did.
    made: Option<String>,
    /// What else is known of it.
    also: Option<String>,
}

/// A host with its answer.
#[derive(Debug)]
struct Host {
    listed: Listed,
    answer: Recording,
}

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Writes what is wanted where that was asked for, and fails where it is not there.
fn check(path: &Path, wanted: &str) {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, wanted).unwrap();
    }
    assert!(
        read(path) == wanted,
        "{} is out of date: UPDATE_GOLDEN=1 cargo test -p orch platforms",
        path.display()
    );
}

fn listed() -> Vec<Listed> {
    serde_json::from_str(&read(&docs().join("platforms/hosts.json"))).unwrap()
}

/// Every host in the order of the list; recordings as they are kept. Once for all
/// tests, which run at the same time: recordings may be written anew.
fn hosts() -> &'static [Host] {
    static HOSTS: OnceLock<Vec<Host>> = OnceLock::new();
    HOSTS.get_or_init(|| listed().into_iter().map(with_answer).collect())
}

fn with_answer(listed: Listed) -> Host {
    if listed.made.is_none() {
        let answer = rules::answer(&listed.name);
        return Host { listed, answer };
    }
    let path = docs().join(format!("platforms/{}.json", listed.name));
    let answer = Recording::parse(&read(&path));
    let answer = answer.unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    check(&path, &answer.text());
    Host { listed, answer }
}

/// Names of what doctor looks at today.
fn lines() -> Vec<&'static str> {
    let checks = all(&Facts::default());
    checks.into_iter().map(|check| check.name).collect()
}

#[test]
fn the_tables_are_those_of_the_recordings_op01() {
    let (path, hosts) = (docs().join("platforms.md"), hosts());
    let mut page = read(&path);
    for (name, table) in [
        ("tiers", tables::tiers(hosts)),
        ("controls", tables::controls(hosts)),
        ("lines", tables::lines(hosts)),
        ("answers", tables::answers(hosts)),
    ] {
        page = filled(&page, name, &table);
    }
    check(&path, &page);
}

/// What doctor looks at since a host was recorded is not known of that host.
#[test]
fn every_recording_has_the_lines_of_todays_doctor_op01() {
    for Host { listed, answer } in hosts() {
        let there: Vec<&str> = answer.checks.iter().map(|line| &*line.name).collect();
        let (there, today) = (BTreeSet::from_iter(there), BTreeSet::from_iter(lines()));
        let differ: Vec<&&str> = there.symmetric_difference(&today).collect();
        let name = &listed.name;
        assert!(
            differ.is_empty(),
            "record docs/platforms/{name}.json again: {differ:?}"
        );
    }
}

/// Neither a recording that no row shows nor rules that decide no row.
#[test]
fn every_recording_is_listed() {
    let of = |how: fn(&Listed) -> bool| -> BTreeSet<String> {
        let listed = listed().into_iter().filter(how);
        listed.map(|listed| listed.name).collect()
    };
    let entries = std::fs::read_dir(docs().join("platforms")).unwrap();
    let files: BTreeSet<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|file| Some(file.strip_suffix(".json")?.to_owned()))
        .filter(|name| name != "hosts")
        .collect();
    let recorded = of(|listed| listed.made.is_some());
    assert_eq!(files, recorded, "files, and what hosts.json lists");
    let rules: BTreeSet<String> = rules::NAMES.map(str::to_owned).into();
    let ruled = of(|listed| listed.made.is_none());
    assert_eq!(
        rules, ruled,
        "rules, and what hosts.json lists without `made`"
    );
}

/// The page with this between the markers of that name.
fn filled(page: &str, name: &str, table: &str) -> String {
    let (begin, end) = (
        format!("<!-- {name}: made of docs/platforms -->\n"),
        format!("<!-- end of {name} -->\n"),
    );
    let found = page.split_once(&begin).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(&end)?;
        Some(format!("{before}{begin}{table}{end}{after}"))
    });
    found.unwrap_or_else(|| panic!("docs/platforms.md has no place for {name}: {begin}{end}"))
}
