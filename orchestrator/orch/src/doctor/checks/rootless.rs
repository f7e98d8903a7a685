//! What there is for users other than root (docs/rootless.md). Nothing of it concerns
//! root, who is told so that nobody has to look for it.

use crate::doctor::check::{Check, State, Subject};
use crate::doctor::facts::{Facts, File};

/// Ids of one container.
const IDS: u64 = 65_536;
/// Said of all of it.
const NOT_ROOT: &str = "concerns users other than root";

pub fn checks(facts: &Facts) -> Vec<Check> {
    vec![unprivileged(facts), tools(facts)]
}

/// Whether a user who is not root can have containers.
pub fn ready(facts: &Facts) -> bool {
    checks(facts).iter().all(|check| check.state == State::Ok)
}

/// Debian's and Ubuntu's switches, and the one of every kernel.
fn unprivileged(facts: &Facts) -> Check {
    let subject = Subject("unprivileged user namespaces", "OP-01, user_namespaces(7)");
    let mut closed = Vec::new();
    let mut fixes = Vec::new();
    if facts.text(File::UnprivilegedClone) == Some("0") {
        closed.push("kernel.unprivileged_userns_clone is 0");
        fixes.push("sysctl kernel.unprivileged_userns_clone=1");
    }
    if facts
        .number(File::AppArmorUserns)
        .is_some_and(|value| value != 0)
    {
        closed.push("kernel.apparmor_restrict_unprivileged_userns is on");
        fixes.push(
            "give the program an AppArmor profile with `userns,`, or \
             sysctl kernel.apparmor_restrict_unprivileged_userns=0",
        );
    }
    if facts.number(File::MaxUser) == Some(0) {
        closed.push("user.max_user_namespaces is 0");
        fixes.push("sysctl user.max_user_namespaces=10000");
    }
    if closed.is_empty() {
        return Check::ok(subject, format!("no switch forbids them ({NOT_ROOT})"));
    }
    let found = format!("{} ({NOT_ROOT})", closed.join("; "));
    // The last one concerns root as well; that is said where namespaces are made.
    if facts.is_root() {
        return Check::ok(subject, found);
    }
    Check::warn(
        subject,
        found,
        "as this user no container could be made, or none with privileges inside",
        fixes.join("; "),
    )
}

/// newuidmap(1), newgidmap(1), and the ids that the caller may give away.
fn tools(facts: &Facts) -> Check {
    let subject = Subject("rootless tools", "design 3.6, newuidmap(1), subuid(5)");
    let mut found = Vec::new();
    let mut lacking = Vec::new();
    for tool in &facts.tools {
        match (&tool.path, tool.setuid, tool.capabilities) {
            (None, ..) => {
                found.push(format!("no {}", tool.name));
                lacking.push("apt install uidmap");
            }
            (Some(path), true, _) => found.push(format!("{path} (setuid)")),
            (Some(path), false, true) => found.push(format!("{path} (file capabilities)")),
            (Some(path), false, false) => {
                found.push(format!(
                    "{path} (neither setuid nor with file capabilities)"
                ));
                lacking.push("install it as the distribution does");
            }
        }
    }
    let name = user_name(facts);
    for (file, what) in [(File::SubUid, "user"), (File::SubGid, "group")] {
        let count: u64 = ranges(facts, file, &name).iter().sum();
        found.push(format!("{count} subordinate {what} ids of {name}"));
        if count < IDS {
            lacking.push("usermod --add-subuids 100000-165535 --add-subgids 100000-165535 USER");
        }
    }
    let found = format!("{} ({NOT_ROOT})", found.join(", "));
    lacking.dedup();
    if lacking.is_empty() || facts.is_root() {
        return Check::ok(subject, found);
    }
    Check::warn(
        subject,
        found,
        "as this user no container could have ids of its own",
        lacking.join("; "),
    )
}

/// Name of the caller; the number where passwd(5) has none.
fn user_name(facts: &Facts) -> String {
    let Some(uid) = facts.uid() else {
        return "an unknown user".to_owned();
    };
    let number = uid.to_string();
    facts
        .text(File::Passwd)
        .unwrap_or_default()
        .lines()
        .find_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            (fields.nth(1)? == number).then(|| name.to_owned())
        })
        .unwrap_or(number)
}

/// Lengths of the ranges of a user, by name or by number.
fn ranges(facts: &Facts, file: File, name: &str) -> Vec<u64> {
    let number = facts.uid().map(|uid| uid.to_string()).unwrap_or_default();
    facts
        .text(file)
        .unwrap_or_default()
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(':');
            let owner = fields.next()?;
            let length = fields.nth(1)?.trim().parse().ok()?;
            (owner == name || owner == number).then_some(length)
        })
        .collect()
}
