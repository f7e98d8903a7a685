use super::{Finding, judge, judge_control};
use crate::outcome::{Line, Outcome, Verdict};
use crate::pattern::Pattern;
use crate::table::{Control, Table, expected};

/// A run in which every probe comes out as the first acceptable pattern says.
fn good_run(table: &Table) -> Vec<Line> {
    table
        .iter()
        .map(|(id, entry)| Line {
            id: id.clone(),
            outcome: example(&entry.accept[0]),
        })
        .collect()
}

fn example(pattern: &Pattern) -> Outcome {
    match pattern {
        Pattern::Word(verdict) => Outcome::plain(*verdict, ""),
        Pattern::WithErrno(verdict, errno) => Outcome {
            errno: Some(errno.clone()),
            ..Outcome::plain(*verdict, "")
        },
        Pattern::AnyValue => Outcome::value("7"),
        Pattern::Exactly(value) => Outcome::value(value.clone()),
        Pattern::AtMost(bound) => Outcome::value(bound.to_string()),
        Pattern::Among(list) => Outcome::value(list.join(",")),
    }
}

#[test]
fn a_good_run_has_no_finding_in_any_tier() {
    for tier in ["loose", "standard", "strict"] {
        let table = expected(tier).unwrap();
        assert_eq!(judge(&good_run(&table), &table), [], "{tier}");
    }
}

/// A probe that ran into an error, in place of any single good line, fails the run.
#[test]
fn an_error_in_any_probe_is_a_finding() {
    let table = expected("strict").unwrap();
    let good = good_run(&table);
    for index in 0..good.len() {
        let mut run = good.clone();
        run[index].outcome = Outcome::error("broken");
        assert!(
            matches!(judge(&run, &table).as_slice(), [Finding::Unexpected { line, .. }] if line.id == good[index].id),
            "{}",
            good[index].id
        );
    }
}

#[test]
fn a_missing_probe_is_a_finding() {
    let table = expected("standard").unwrap();
    let mut run = good_run(&table);
    let gone = run.remove(17).id;
    assert_eq!(judge(&run, &table), [Finding::Missing { id: gone }]);
}

#[test]
fn an_empty_run_misses_everything() {
    let table = expected("loose").unwrap();
    assert_eq!(judge(&[], &table).len(), table.len());
    assert_eq!(judge_control(&[], &table).len(), table.len());
}

#[test]
fn a_system_call_that_got_through_is_a_finding() {
    let table = expected("strict").unwrap();
    let mut run = good_run(&table);
    let line = run.iter_mut().find(|line| line.id == "B1.bpf").unwrap();
    line.outcome = Outcome::of_call(Err(libc::EFAULT));
    assert!(matches!(
        judge(&run, &table).as_slice(),
        [Finding::Unexpected { line, .. }] if line.id == "B1.bpf"
    ));
}

#[test]
fn a_line_that_no_table_knows_is_a_finding() {
    let table = expected("strict").unwrap();
    let mut run = good_run(&table);
    run.push(Line {
        id: "Z9.new".to_owned(),
        outcome: Outcome::plain(Verdict::Refused, ""),
    });
    assert_eq!(
        judge(&run, &table),
        [Finding::NotInTable {
            id: "Z9.new".to_owned()
        }]
    );
}

#[test]
fn a_probe_that_the_table_forgot_is_a_finding() {
    let mut table = expected("strict").unwrap();
    let mut run = good_run(&table);
    table.remove("B1.bpf");
    run.retain(|line| line.id != "B1.bpf");
    assert_eq!(
        judge(&run, &table),
        [Finding::NotInTable {
            id: "B1.bpf".to_owned()
        }]
    );
}

#[test]
fn a_table_entry_without_a_probe_is_a_finding() {
    let mut table = expected("strict").unwrap();
    let entry = table["B1.bpf"].clone();
    table.insert("B1.gone".to_owned(), entry);
    assert_eq!(
        judge(&good_run(&table), &table),
        [Finding::NoSuchProbe {
            id: "B1.gone".to_owned()
        }]
    );
}

#[test]
fn a_repeated_line_is_a_finding() {
    let table = expected("strict").unwrap();
    let mut run = good_run(&table);
    run.push(run[3].clone());
    assert_eq!(
        judge(&run, &table),
        [Finding::Repeated {
            id: run[3].id.clone()
        }]
    );
}

#[test]
fn a_control_that_is_refused_outside_is_a_finding() {
    let table = expected("strict").unwrap();
    let mut run = good_run(&table);
    for line in &mut run {
        if let Control::Expect(patterns) = &table[&line.id].control {
            line.outcome = example(&patterns[0]);
        }
    }
    assert_eq!(judge_control(&run, &table), []);
    let line = run.iter_mut().find(|line| line.id == "B1.bpf").unwrap();
    line.outcome = Outcome::of_call(Err(libc::EPERM));
    assert_eq!(judge_control(&run, &table).len(), 1);
}
