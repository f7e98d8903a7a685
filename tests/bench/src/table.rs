//! The table that a person reads.

use std::fmt::Write as _;

use crate::record::Row;

const HEAD: [&str; 8] = [
    "case",
    "median",
    "p99",
    "runs",
    "peer median",
    "ratio",
    "bar",
    "verdict",
];
/// Columns that hold numbers are aligned to the right.
const NUMBERS: [bool; 8] = [false, true, true, true, true, true, false, false];

/// All rows under one head, and below it why a row is empty.
#[must_use]
pub fn table(rows: &[Row]) -> String {
    let lines: Vec<[String; 8]> = rows.iter().map(cells).collect();
    let widths: [usize; 8] = std::array::from_fn(|column| {
        let widest = lines.iter().map(|cells| cells[column].len()).max();
        widest.unwrap_or(0).max(HEAD[column].len())
    });
    let mut text = String::new();
    line(&mut text, &HEAD.map(String::from), &widths);
    line(&mut text, &widths.map(|width| "-".repeat(width)), &widths);
    for cells in &lines {
        line(&mut text, cells, &widths);
    }
    for row in rows {
        let reason = row.failed.as_ref().or(row.absent.as_ref());
        if let Some(reason) = reason {
            // Writing to a String cannot fail.
            let _ = write!(text, "\n{}: {}: {reason}", row.name, verdict(row));
        }
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

fn cells(row: &Row) -> [String; 8] {
    let value = |value: Option<f64>| {
        value.map_or_else(|| "-".into(), |v| format!("{} {}", digits(v), row.unit))
    };
    let dash = || "-".to_owned();
    [
        row.name.clone(),
        value(row.median),
        value(row.p99),
        row.runs.to_string(),
        value(row.peer_median),
        row.ratio.map_or_else(dash, |ratio| format!("{ratio:.3}")),
        row.bar.clone().unwrap_or_else(dash),
        verdict(row).into(),
    ]
}

fn verdict(row: &Row) -> &'static str {
    match row {
        Row {
            failed: Some(_), ..
        } => "failed",
        Row {
            absent: Some(_), ..
        } => "absent",
        Row {
            met: Some(true), ..
        } => "met",
        Row {
            met: Some(false), ..
        } => "missed",
        Row { .. } => "-",
    }
}

/// Three significant digits where the number is small, no more than that.
fn digits(value: f64) -> String {
    let decimals = match value.abs() {
        magnitude if magnitude >= 100.0 => 0,
        magnitude if magnitude >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.decimals$}")
}

fn line(text: &mut String, cells: &[String; 8], widths: &[usize; 8]) {
    let mut line = String::new();
    for ((cell, width), number) in cells.iter().zip(widths).zip(NUMBERS) {
        // Writing to a String cannot fail.
        let _ = if number {
            write!(line, "{cell:>width$}  ")
        } else {
            write!(line, "{cell:<width$}  ")
        };
    }
    text.push_str(line.trim_end());
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Bar;
    use crate::record::Samples;

    #[test]
    fn verdicts_are_words() {
        let samples = Samples {
            subject: vec![4.0, 4.0],
            peer: vec![10.0, 10.0],
        };
        let row = |factor| {
            Row::of(
                "a",
                "ms",
                &samples,
                Some("runc"),
                Some(Bar::at_most(factor)),
            )
        };
        let absent = Row {
            name: "b".into(),
            absent: Some("no docker".into()),
            ..Row::default()
        };
        let failed = Row {
            name: "c".into(),
            failed: Some("exit status: 1".into()),
            ..Row::default()
        };
        let text = table(&[row(0.45), row(0.35), absent, failed]);
        let ends: Vec<_> = text
            .lines()
            .skip(2)
            .take(4)
            .filter_map(|line| line.split_whitespace().last())
            .collect();
        assert_eq!(ends, ["met", "missed", "absent", "failed"], "{text}");
        assert!(text.contains("4.00 ms") && text.contains("0.400"), "{text}");
        assert!(text.contains("\nb: absent: no docker"), "{text}");
        assert!(text.contains("\nc: failed: exit status: 1"), "{text}");
    }

    #[test]
    fn numbers_keep_three_digits() {
        let shown: Vec<_> = [0.123, 9.876, 98.76, 987.6].map(digits).into();
        assert_eq!(shown, ["0.12", "9.88", "98.8", "988"]);
    }
}
