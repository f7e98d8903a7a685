//! Programs for limit and kill tests. Each is bounded by its argument or by
//! `LIFE`, and says on standard output, as one JSON line, how far it came.

mod hog;
mod stubborn;

use std::io::Write;

use serde_json::Value;

/// Seconds after which a mode that waits to be killed ends by itself.
const LIFE: u32 = 600;

/// Runs the mode `name`; `None` when there is no such mode or an argument is wrong.
/// The value is the exit status.
#[must_use]
pub fn run(name: &str, args: &[String]) -> Option<u8> {
    let number = |index: usize| args.get(index)?.parse::<u64>().ok();
    let expected = match name {
        "stop-self" | "ignore-term" => 0,
        "writer" | "inodes" => 2,
        _ => 1,
    };
    if args.len() != expected {
        return None;
    }
    let status = match name {
        "forkbomb" => hog::forkbomb(number(0)?),
        "memhog" => hog::memory(number(0)?),
        "cpuburn" => hog::cpu(number(0)?),
        "writer" => hog::write(&args[0], number(1)?),
        "inodes" => hog::inodes(&args[0], number(1)?),
        "fds" => hog::descriptors(number(0)?),
        "flood" => hog::flood(number(0)?),
        "setsid-daemon" => stubborn::daemon(&args[0]),
        "stop-self" => stubborn::stop(),
        "ignore-term" => stubborn::ignore(),
        _ => return None,
    };
    Some(status)
}

/// Prints one JSON line and pushes it out at once: the next thing may be SIGKILL.
fn say(value: &Value) {
    let mut out = std::io::stdout().lock();
    // A reader that has gone is part of what is tested.
    let _ = writeln!(out, "{value}").and_then(|()| out.flush());
}

/// How far a mode came, and what stopped it.
fn report(done: u64, stopped: Option<&std::io::Error>) -> u8 {
    let errno = stopped
        .and_then(std::io::Error::raw_os_error)
        .map(crate::errno_name);
    say(&serde_json::json!({ "done": done, "errno": errno }));
    u8::from(stopped.is_some())
}
