use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use super::*;
use crate::case::{Bar, timed};

const EFFORT: Effort = Effort {
    runs: 3,
    gap_runs: 2,
};

fn logged(log: &Rc<RefCell<String>>, letter: char, value: f64) -> Sampler {
    let log = Rc::clone(log);
    Box::new(move || {
        log.borrow_mut().push(letter);
        Ok(value)
    })
}

fn case(pace: Pace, kind: Kind) -> Case {
    Case {
        name: "case".into(),
        unit: "ms",
        pace,
        bar: Some(Bar::at_most(0.5)),
        kind,
    }
}

fn pair(subject: Sampler, peer: Sampler) -> Kind {
    Kind::Value {
        subject,
        peer: Some(Peer {
            name: "other".into(),
            sampler: peer,
        }),
    }
}

#[test]
fn subject_and_peer_take_turns_and_the_first_pair_does_not_count() {
    let log = Rc::default();
    let kind = pair(logged(&log, 'A', 1.0), logged(&log, 'B', 4.0));
    let rows = measure(case(Pace::BackToBack, kind), EFFORT);
    assert_eq!(*log.borrow(), "ABABABAB");
    let (row, samples) = &rows[0];
    assert_eq!(
        (row.runs, row.ratio, row.met),
        (3, Some(0.25), Some(true)),
        "{row:?}"
    );
    assert_eq!((samples.subject.len(), samples.peer.len()), (3, 3));
}

#[test]
fn gaps_are_kept_and_take_fewer_runs() {
    let pace = Pace::Gap(Duration::from_millis(20));
    let log = Rc::default();
    let kind = pair(logged(&log, 'A', 1.0), logged(&log, 'B', 4.0));
    let before = std::time::Instant::now();
    let rows = measure(case(pace, kind), EFFORT);
    assert!(before.elapsed() >= Duration::from_millis(80));
    assert_eq!(rows[0].0.runs, 2);
}

#[test]
fn a_failing_run_is_no_sample() {
    let kind = pair(Box::new(|| Ok(1.0)), Box::new(|| anyhow::bail!("broken")));
    let rows = measure(case(Pace::BackToBack, kind), EFFORT);
    let row = &rows[0].0;
    assert_eq!((row.median, row.ratio, row.met), (None, None, None));
    let reason = row.failed.as_deref().unwrap();
    assert!(reason.contains("peer other failed") && reason.contains("broken"));
}

#[test]
fn an_absent_peer_keeps_its_line() {
    let kind = Kind::Absent {
        peer: Some("youki".into()),
        reason: "not found".into(),
    };
    let rows = measure(case(Pace::BackToBack, kind), EFFORT);
    let row = &rows[0].0;
    assert_eq!(row.absent.as_deref(), Some("not found"));
    assert_eq!(row.bar.as_deref(), Some("<= 0.5 x youki"));
    assert_eq!(row.met, None);
}

#[test]
fn a_spread_gives_one_row_a_part() {
    let mut run = 0.0;
    let kind = Kind::Spread(Box::new(move || {
        run += 1.0;
        Ok([("load", run), ("exec", 7.0)]
            .map(|(part, value)| (part.to_owned(), value))
            .into())
    }));
    let rows = measure(case(Pace::BackToBack, kind), EFFORT);
    let medians: Vec<_> = rows
        .iter()
        .map(|(row, _)| (row.name.as_str(), row.median))
        .collect();
    assert_eq!(
        medians,
        [("case.exec", Some(7.0)), ("case.load", Some(3.0))]
    );
}

#[test]
fn work_inside_this_process_is_timed() {
    let mut sampler = timed(|| {
        sleep(Duration::from_millis(5));
        Ok(())
    });
    assert!(sampler().unwrap() >= 5.0);
}
