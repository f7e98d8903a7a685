//! Hosts that nobody has tried yet: a machine on which all is well, with the values
//! that such a host is known to have, and what doctor says of them.

use rustix::io::Errno;

use super::super::cases::{STATUS, good, group, set};
use super::super::facts::{Facts, File};
use super::super::{Report, TIERS, Tier};
use super::all;
use super::recording::{Line, Recording};

/// What such a host has.
type Change = fn(&mut Facts);

const RULES: [(&str, Change); 5] = [
    ("linux-5.15", |f| by_version(f, "5.15.0")),
    ("linux-5.14", |f| by_version(f, "5.14.21")),
    ("wsl2", |f| {
        wsl(f, "enabled\ninterpreter /init\nflags: PF\n")
    }),
    ("wsl2-interop-off", |f| wsl(f, "disabled\n")),
    ("podman-default", podman),
];

/// Names of these hosts.
pub const NAMES: [&str; RULES.len()] = {
    let mut names = [""; RULES.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = RULES[at].0;
        at += 1;
    }
    names
};

/// What doctor would say; a tier that no line loses has not been tried.
pub fn answer(name: &str) -> Recording {
    let rule = RULES.iter().find(|rule| rule.0 == name);
    let (_, change) = rule.unwrap_or_else(|| panic!("no rules for {name}: {NAMES:?}"));
    let mut facts = good();
    change(&mut facts);
    of(&facts)
}

/// A line that says of this host what it says of every good one tells nothing of it.
pub fn is_usual(line: &Line) -> bool {
    of(&good()).line(&line.name) == Some(line)
}

fn of(facts: &Facts) -> Recording {
    let tier = |tier| Tier {
        tier,
        kept: true,
        lost_by: Vec::new(),
        controls: Vec::new(),
        error: None,
    };
    let report = Report::new(all(facts), TIERS.map(tier).into());
    Recording::parse(&serde_json::to_string(&report).unwrap()).unwrap()
}

/// Nothing of what came later could be tried.
fn by_version(facts: &mut Facts, release: &str) {
    set(facts, File::Release, release);
    (facts.tmpfs, facts.overlay, facts.exit_code) = (None, None, None);
    group(facts, |hierarchy| {
        (hierarchy.peak, hierarchy.kill) = (None, None);
    });
}

fn wsl(facts: &mut Facts, handler: &str) {
    by_version(facts, "5.15.167.4-microsoft-standard-WSL2");
    set(facts, File::Binfmt, "enabled\n");
    set(facts, File::WslInterop, handler);
}

/// Its capabilities, filter and masks (containers.conf(5), seccomp.json of
/// containers/common).
fn podman(facts: &mut Facts) {
    set(facts, File::PodmanMarker, "");
    let status = STATUS
        .replace("000001ffffffffff", "00000000800405fb")
        .replace("Seccomp:\t0", "Seccomp:\t2")
        .replace("Seccomp_filters:\t0", "Seccomp_filters:\t1");
    set(facts, File::Status, &status);
    // The filter lets a user namespace be made; the kernel wants SYS_ADMIN for others.
    for (name, errno) in &mut facts.namespaces {
        if *name != "user" {
            *errno = Errno::PERM.raw_os_error();
        }
    }
    group(facts, |hierarchy| hierarchy.writable = false);
    let masks = "90 80 0:5 /null /proc/kcore rw,nosuid - tmpfs tmpfs rw\n\
                 91 80 0:6 /sys /proc/sys ro,nosuid - proc proc rw\n";
    set(facts, File::Mounts, masks);
}
