//! Tasks that do not want to end: the call returns at exit or time-out, never at
//! the end of a pipe, and nothing of them is left (PX-06, FA-26, FS-28, E1–E4).

use std::time::Duration;

use crate::call::{Call, Ended, ensure};
use crate::harness::{Test, Verdict, test};
use crate::pace;

/// A time-out of one second, its grace, and a busy machine.
const SOON: Duration = Duration::from_secs(8);

pub fn tests() -> Vec<Test> {
    vec![
        test("survivors::daemons_end_with_the_command_e2_fa26", daemons),
        test("survivors::nohup_and_setsid_end_with_the_command_e2", nohup),
        test("survivors::a_child_that_holds_the_pipes_e3", holders),
        test(
            "survivors::output_before_the_end_is_not_lost_e3",
            last_words,
        ),
        test("survivors::ignored_signals_e4", ignored),
        test("survivors::stopped_processes_e4", stopped),
        test(
            "survivors::a_stopped_tree_of_a_finished_command",
            stopped_tree,
        ),
        test("survivors::a_shell_fork_bomb_e1", bomb),
        test("survivors::others_run_while_a_bomb_goes_off_e1", neighbours),
        test("survivors::many_sleepers_at_the_end_h10", sleepers),
        test("survivors::a_polite_end_is_possible", polite),
        test("survivors::background_writers_are_confined_fs28", writers),
    ]
}

/// Every tier, since their filters differ. [`Call::run`] looks for what is left.
fn each(
    make: impl Fn(Call) -> Result<Call, String>,
    judge: impl Fn(Ended) -> Result<Ended, String>,
) -> Result<Verdict, String> {
    for tier in ["loose", "standard", "strict"] {
        let call = Call::new(tier)?.args(["--network", "none"]);
        let ended = judge(make(call)?.run()?).map_err(|why| format!("{tier}: {why}"))?;
        ensure!(
            ended.elapsed < pace::here(SOON),
            "{tier}: too late: {ended:?}"
        );
    }
    Ok(Verdict::Held)
}

fn timed_out(ended: Ended) -> Result<Ended, String> {
    ended.is(124, "timeout", "timeout")
}

fn well(ended: Ended) -> Result<Ended, String> {
    ended.is(0, "exited", "exit")
}

fn daemons() -> Result<Verdict, String> {
    each(|call| call.mode(&["setsid-daemon", "/tmp/alive"]), well)?;
    each(
        |call| {
            Ok(call
                .args(["--timeout", "1s"])
                .with_mode()?
                .sh("/opt/mode mode setsid-daemon /tmp/alive; sleep 601"))
        },
        timed_out,
    )
}

fn nohup() -> Result<Verdict, String> {
    each(
        |call| {
            let script = "nohup sleep 602 >/dev/null 2>&1 & \
                          setsid sh -c '(sleep 603 &)' & setsid nohup sleep 604 & echo done";
            Ok(call.sh(script))
        },
        |ended| {
            ensure!(ended.out().contains("done"), "{ended:?}");
            well(ended)
        },
    )
}

fn holders() -> Result<Verdict, String> {
    each(|call| call.mode(&["setsid-daemon", "-"]), well)?;
    each(
        |call| Ok(call.sh("sleep 605 & echo done")),
        |ended| ended.says("done"),
    )?;
    each(
        |call| Ok(call.args(["--timeout", "1s"]).sh("sleep 606 & sleep 607")),
        timed_out,
    )
}

/// What was written before the exit comes out, although the pipe stays open.
fn last_words() -> Result<Verdict, String> {
    let ended = Call::new("standard")?
        .sh("sleep 608 & dd if=/dev/zero bs=1000 count=1000 2>/dev/null; echo end >&2")
        .args(["--quiet"])
        .run()?;
    ensure!(
        ended.stdout.len() == 1_000_000 && ended.stderr == "end\n",
        "{} bytes, {:?}",
        ended.stdout.len(),
        ended.stderr
    );
    Ok(Verdict::Held)
}

fn ignored() -> Result<Verdict, String> {
    each(
        |call| call.args(["--timeout", "1s"]).mode(&["ignore-term"]),
        timed_out,
    )?;
    each(
        |call| {
            let script = "trap '' TERM INT HUP QUIT; while :; do sleep 609; done";
            Ok(call.args(["--timeout", "1s"]).sh(script))
        },
        timed_out,
    )
}

fn stopped() -> Result<Verdict, String> {
    each(
        |call| call.args(["--timeout", "1s"]).mode(&["stop-self"]),
        timed_out,
    )?;
    each(
        |call| {
            Ok(call
                .args(["--timeout", "1s"])
                .sh("sleep 610 & kill -STOP $! $$"))
        },
        timed_out,
    )
}

fn stopped_tree() -> Result<Verdict, String> {
    each(
        |call| {
            let script = "for n in 1 2 3 4 5; do sleep 614 & kill -STOP $!; done; echo done";
            Ok(call.sh(script))
        },
        |ended| ended.says("done"),
    )
}

fn bomb() -> Result<Verdict, String> {
    each(
        |call| {
            let script = "b() { b | b & }; b 2>/dev/null; sleep 615";
            Ok(call.args(["--timeout", "1s", "--pids", "24"]).sh(script))
        },
        |ended| {
            // The shell itself may be the one that cannot fork.
            ensure!([124, 2, 254, 0].contains(&ended.code()), "{ended:?}");
            ensure!(
                ended.fact("cleanup") == "confirmed",
                "not confirmed: {ended:?}"
            );
            Ok(ended)
        },
    )
}

/// The machine has room for others meanwhile, and the bomb ends when it is told to.
fn neighbours() -> Result<Verdict, String> {
    let bomb = Call::new("strict")?
        .args(["--pids", "24"])
        .sh("(b() { b | b & }; b) 2>/dev/null & exec sleep 618")
        .start()?;
    bomb.until("sleep 618")?;
    let state = bomb.state();
    for _ in 0..3 {
        Call::new("strict")?.sh("echo next").run()?.says("next")?;
    }
    bomb.signal(libc::SIGTERM);
    let ended = bomb.wait(SOON)?.is(143, "cancelled", "cancelled")?;
    match crate::left::left(&state, ended.id()) {
        None => Ok(Verdict::Held),
        Some(what) => Err(what),
    }
}

fn sleepers() -> Result<Verdict, String> {
    let script = "n=0; while [ $n -lt 400 ]; do sleep 616 & n=$((n + 1)); done; echo done";
    let ended = Call::new("loose")?
        .args(["--network", "none"])
        .sh(script)
        .run()?
        .says("done")?;
    ensure!(ended.fact("cleanup") == "confirmed", "{ended:?}");
    Ok(Verdict::Held)
}

fn polite() -> Result<Verdict, String> {
    let script = "trap 'echo bye; exit 3' TERM; sleep 617 & wait";
    each(
        |call| Ok(call.args(["--timeout", "1s"]).sh(script)),
        |ended| {
            ensure!(ended.out() == "bye", "no last word: {ended:?}");
            timed_out(ended)
        },
    )
}

/// What runs in the background can write where its parent can, and nowhere else.
fn writers() -> Result<Verdict, String> {
    each(
        |call| {
            let script = "(setsid sh -c 'echo x 2>/dev/null >/usr/x; echo x 2>/dev/null >/etc/x; \
                          echo x >/tmp/x; echo end >/tmp/end' &) ; \
                          while [ ! -e /tmp/end ]; do :; done; cat /tmp/x /usr/x /etc/x 2>/dev/null";
            Ok(call.sh(script))
        },
        |ended| {
            ensure!(ended.out() == "x", "{ended:?}");
            Ok(ended)
        },
    )
}
