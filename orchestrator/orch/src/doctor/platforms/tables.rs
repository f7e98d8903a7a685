//! The tables of the page. Hosts have the numbers of their rows in the first one.

use super::super::TIERS;
use super::recording::Recording;
use super::{Host, Line, rules};

fn row<I: IntoIterator<Item = String>>(cells: I) -> String {
    let cells: Vec<String> = cells.into_iter().collect();
    format!("| {} |\n", cells.join(" | "))
}

fn head<I: IntoIterator<Item = String>>(cells: I) -> String {
    let cells: Vec<String> = cells.into_iter().collect();
    let rule = cells.iter().map(|_| "---".to_owned());
    row(cells.clone()) + &row(rule)
}

/// What doctor said, as text of Markdown.
fn plain(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "\\<")
}

fn strings<const N: usize>(words: [&str; N]) -> [String; N] {
    words.map(str::to_owned)
}

/// Hosts × tiers.
pub fn tiers(hosts: &[Host]) -> String {
    let mut table = head(strings([
        "",
        "host",
        "Linux",
        "loose",
        "standard",
        "strict",
        "lost by",
        "how it is known",
    ]));
    for (number, host) in (1..).zip(hosts) {
        let Host { listed, answer } = host;
        let kernel = answered(host, "kernel").map_or("", |line| &line.found);
        let release = kernel.trim_start_matches("Linux ");
        let kept = answer.tiers.iter().map(|tier| {
            let held = tier.controls.iter().filter(|control| control.holds);
            match (tier.kept, held.count()) {
                (true, 0) => "yes".to_owned(),
                (true, held) => format!("yes, {held} controls"),
                (false, _) => "**no**".to_owned(),
            }
        });
        let mut known = match &listed.made {
            Some(command) => format!("measured: `{command}`"),
            None => "by doctor's rules".to_owned(),
        };
        if let Some(also) = &listed.also {
            known += &format!("; {also}");
        }
        table += &row([number.to_string(), listed.host.clone(), plain(release)]
            .into_iter()
            .chain(kept)
            .chain([lost_by(answer), known]));
    }
    table
}

/// The lines, and the tiers where not all of them are lost; where a tier is lost and no
/// line says so, the code of what trying it said.
fn lost_by(answer: &Recording) -> String {
    let losing = answer.checks.iter().filter(|line| !line.loses.is_empty());
    let mut reasons: Vec<String> = losing
        .map(|line| {
            if line.loses == TIERS {
                line.name.clone()
            } else {
                format!("{} ({})", line.name, line.loses.join(", "))
            }
        })
        .collect();
    for tier in answer.tiers.iter().filter(|tier| !tier.kept) {
        let said = |line: &Line| line.loses.contains(&tier.tier);
        if !answer.checks.iter().any(said) {
            let code = tier.error.as_ref().map_or("a control", |error| &error.code);
            reasons.push(format!("{code} ({})", tier.tier));
        }
    }
    reasons.join("; ")
}

/// What was tried of a tier that is kept; the same on every host, or they cannot be
/// compared.
pub fn controls(hosts: &[Host]) -> String {
    let tried = hosts.iter().flat_map(|host| &host.answer.tiers);
    let mut lists = tried
        .filter(|tier| tier.kept && !tier.controls.is_empty())
        .map(|tier| &tier.controls);
    let first = lists.next().expect("a host that keeps a tier");
    let names: Vec<&str> = first.iter().map(|control| &*control.control).collect();
    for list in lists {
        assert_eq!(list, first, "another self-test: record these hosts again");
    }
    format!("The {} controls: {}.\n", names.len(), names.join(", "))
}

/// Lines × hosts, and the lines that are `ok` on all of them.
pub fn lines(hosts: &[Host]) -> String {
    let numbers = (1..=hosts.len()).map(|number| number.to_string());
    let mut table = head(["line of doctor".to_owned()].into_iter().chain(numbers));
    let mut fine = Vec::new();
    for name in super::lines() {
        let answers = || hosts.iter().filter_map(|host| answered(host, name));
        if answers().all(Line::is_ok) {
            fine.push(name);
            continue;
        }
        let states = hosts.iter().map(|host| state(host, name));
        table += &row([name.to_owned()].into_iter().chain(states));
    }
    format!(
        "{table}\n`ok` on every measured host: {}.\n",
        fine.join(", ")
    )
}

fn state(host: &Host, name: &str) -> String {
    match answered(host, name) {
        Some(line) if line.state == "missing" => "**missing**".to_owned(),
        Some(line) => line.state.clone(),
        None => String::new(),
    }
}

/// What a host says, where it says something of its own.
fn answered<'a>(host: &'a Host, name: &str) -> Option<&'a Line> {
    let line = host.answer.line(name)?;
    (host.listed.made.is_some() || !rules::is_usual(line)).then_some(line)
}

/// What was found where hosts differ or something is not as it should be.
pub fn answers(hosts: &[Host]) -> String {
    let mut table = head(strings([
        "line of doctor",
        "state",
        "found",
        "costs",
        "hosts",
    ]));
    for name in super::lines() {
        let mut distinct: Vec<(&Line, Vec<u32>)> = Vec::new();
        for (number, host) in (1..).zip(hosts) {
            let Some(line) = answered(host, name) else {
                continue;
            };
            match distinct.iter_mut().find(|(other, _)| *other == line) {
                Some((_, numbers)) => numbers.push(number),
                None => distinct.push((line, vec![number])),
            }
        }
        // The first table has its releases.
        let same = distinct.len() < 2 || name == "kernel";
        distinct.retain(|(line, _)| !(line.is_ok() && (same || line.found.is_empty())));
        for (line, numbers) in distinct {
            table += &row([
                name.to_owned(),
                line.state.clone(),
                plain(&line.found),
                line.cost.as_deref().map(plain).unwrap_or_default(),
                ranges(&numbers),
            ]);
        }
    }
    table
}

/// Rising numbers, with those that follow each other taken together.
fn ranges(numbers: &[u32]) -> String {
    let follows = |before: &u32, after: &u32| before + 1 == *after;
    let runs = numbers.chunk_by(follows).map(|run| match run {
        [first, _, .., last] => format!("{first}–{last}"),
        few => few
            .iter()
            .map(u32::to_string)
            .collect::<Vec<_>>()
            .join(", "),
    });
    runs.collect::<Vec<_>>().join(", ")
}

#[test]
fn numbers_that_follow_each_other_are_a_range() {
    assert_eq!(ranges(&[1, 2, 3, 5, 6, 8, 9, 10, 11]), "1–3, 5, 6, 8–11");
}
