//! From facts to lines: pure functions, one room for each theme.

mod calls;
mod features;
mod files;
mod groups;
mod kernel;
mod limits;
mod machine;
mod namespaces;
mod outer;
mod pools;
mod rootless;
mod wsl;

use super::check::Check;
use super::facts::Facts;

/// What everything costs without which no sandbox can be made.
const NOTHING: &str = "nothing can be run";

/// Every check, in the order in which it is shown.
pub fn all(facts: &Facts) -> Vec<Check> {
    let mut checks = Vec::new();
    let mut add = |group, found: Vec<Check>| {
        checks.extend(found.into_iter().map(|check| Check { group, ..check }));
    };
    let mut kernel = kernel::checks(facts);
    kernel.push(calls::check(facts));
    add("kernel", kernel);
    add("features of newer kernels", features::checks(facts));
    let mut ids = namespaces::checks(facts);
    ids.extend(rootless::checks(facts));
    add("namespaces and user ids", ids);
    add("control groups", groups::checks(facts));
    add("file systems", files::checks(facts));
    let mut around = outer::checks(facts);
    around.push(wsl::check(facts));
    add("around orch", around);
    let mut room = limits::checks(facts);
    room.extend(pools::checks(facts));
    add("room for sandboxes", room);
    add("time and neighbours", machine::checks(facts));
    checks
}

/// The fix of something that a runtime around orch keeps away, or the machine, or that
/// takes root.
fn inside_or_not(facts: &Facts, inside: &str, machine: &str) -> String {
    match facts.outer() {
        _ if !facts.is_root() => "as root: sudo orch doctor".to_owned(),
        Some(runtime) => format!("{inside} ({runtime})"),
        None => machine.to_owned(),
    }
}
