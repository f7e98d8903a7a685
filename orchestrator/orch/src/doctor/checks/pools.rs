//! Pools that all sandboxes of a host share, and for how many there is room.
//!
//! What one sandbox takes was counted from outside while `orch run` ran one
//! (docs/platforms.md): processes, namespaces, descriptors, mounts and keys.

use super::namespaces::maximum;
use crate::doctor::check::{Check, Sandboxes, State, Subject};
use crate::doctor::facts::{Facts, File, Need, field};

/// Fewer than this many sandboxes is worth a word.
const FEW: u64 = 16;
/// Processes of orch itself for one sandbox: orch, launcher, guest, the lease's first.
const PROCESSES: u64 = 4;
/// Descriptors that these have open together.
const DESCRIPTORS: u64 = 46;
/// Namespaces of one sandbox, by kind.
const NAMESPACES: [(&str, u64); 7] = [
    ("user", 1),
    ("mnt", 2),
    ("pid", 2),
    ("net", 1),
    ("ipc", 1),
    ("uts", 1),
    ("cgroup", 1),
];
/// Mounts of one sandbox without any that were asked for, the host's own for a
/// moment among them.
const MOUNTS: u64 = 100;
/// Keys of one sandbox, and their bytes: the session keyring of its guest.
const KEYS: (u64, u64) = (1, 5);
/// Directories that a task watches which follows a source tree.
const WATCHES: u64 = 1024;

pub fn checks(facts: &Facts) -> Vec<Check> {
    vec![
        processes(facts),
        files_of_the_host(facts),
        namespaces(facts),
        ids(facts),
        inotify(facts),
        keys(facts),
        mounts(facts),
        terminals(facts),
        memory(facts),
    ]
}

/// What a check says about a pool.
struct Pool {
    subject: Subject,
    found: String,
    /// What a sandbox is refused when it is used up.
    cost: &'static str,
    fix: &'static str,
}

impl Pool {
    /// Judged by how many sandboxes of each tier it has room for.
    fn judge(self, room: Sandboxes, few: u64) -> Check {
        let Self {
            subject,
            found,
            cost,
            fix,
        } = self;
        let each = [
            ("loose", room.loose),
            ("standard", room.standard),
            ("strict", room.strict),
        ];
        let same = room.loose == room.strict && room.loose == room.standard;
        let found = if same {
            format!("{found}: room for {} sandboxes", room.loose)
        } else {
            let words: Vec<String> = each.iter().map(|(t, n)| format!("{n} {t}")).collect();
            format!("{found}: room for {} sandboxes", words.join(", "))
        };
        let lost: Vec<&str> = each
            .iter()
            .filter(|(_, count)| *count == 0)
            .map(|(tier, _)| *tier)
            .collect();
        let check = if !lost.is_empty() {
            Check::missing(subject, found, cost, fix).losing(lost)
        } else if each.iter().any(|(_, count)| *count < few) {
            Check::warn(subject, found, cost, fix)
        } else {
            Check::ok(subject, found)
        };
        check.room(room)
    }
}

/// Room for each tier, by what one sandbox of it takes.
fn by_tier(facts: &Facts, free: u64, takes: impl Fn(&Need) -> u64) -> Sandboxes {
    let of = |tier| {
        facts
            .needs
            .iter()
            .find(|need| need.tier == tier)
            .map_or(0, |need| free / takes(need).max(1))
    };
    Sandboxes {
        loose: of("loose"),
        standard: of("standard"),
        strict: of("strict"),
    }
}

fn all(count: u64) -> Sandboxes {
    Sandboxes {
        loose: count,
        standard: count,
        strict: count,
    }
}

/// (min(pid_max, threads-max) − threads now) ÷ (4 + processes of the tier). proc(5):
/// the fourth field of loadavg ends in the number of threads.
fn processes(facts: &Facts) -> Check {
    let limit = [File::PidMax, File::ThreadsMax]
        .into_iter()
        .filter_map(|file| facts.number(file))
        .min()
        .unwrap_or(0);
    let now = facts
        .text(File::Load)
        .and_then(|text| {
            text.split_whitespace()
                .nth(3)?
                .split('/')
                .nth(1)?
                .parse()
                .ok()
        })
        .unwrap_or(0);
    let free = limit.saturating_sub(now);
    let room = by_tier(facts, free, |need| need.processes + PROCESSES);
    Pool {
        subject: Subject("processes", "PX-13, proc_sys_kernel(5)"),
        found: format!("{limit} on the host, {now} in use"),
        cost: "with all of them at their limit the next fork fails, on the host as well",
        fix: "sysctl kernel.pid_max=4194304 kernel.threads-max=1000000",
    }
    .judge(room, FEW)
}

/// (file-max − open now) ÷ (46 + open files of one process of the tier). proc(5):
/// file-nr has open, unused and greatest number.
fn files_of_the_host(facts: &Facts) -> Check {
    let numbers: Vec<u64> = facts
        .text(File::OpenFiles)
        .unwrap_or_default()
        .split_whitespace()
        .filter_map(|number| number.parse().ok())
        .collect();
    let (now, limit) = match numbers[..] {
        [now, _, limit] => (now, limit),
        _ => (0, 0),
    };
    let free = limit.saturating_sub(now);
    let room = by_tier(facts, free, |need| need.open_files + DESCRIPTORS);
    Pool {
        subject: Subject("open files of the host", "PR-21, proc_sys_fs(5)"),
        found: format!("{limit}, {now} in use"),
        cost: "with that many open in all sandboxes, nobody but root can open another",
        fix: "sysctl fs.file-max=9223372036854775807",
    }
    .judge(room, FEW)
}

/// Least of user.max_X_namespaces ÷ what one sandbox takes. All are root's, who makes
/// them (namespaces(7)).
fn namespaces(facts: &Facts) -> Check {
    let each = NAMESPACES.map(|(name, takes)| {
        let limit = facts.number(maximum(name)).unwrap_or(0);
        (limit / takes, name)
    });
    let (room, name) = each.into_iter().min().unwrap_or((0, "user"));
    Pool {
        subject: Subject("namespace limits", "namespaces(7)"),
        found: format!("{name} namespaces run out first"),
        cost: "the next sandbox is refused (host_exhausted)",
        fix: "sysctl user.max_{user,mnt,pid,net,ipc,uts,cgroup}_namespaces=100000",
    }
    .judge(all(room), FEW)
}

/// Ranges of the configured block: 65 536 ids for each container.
fn ids(facts: &Facts) -> Check {
    let (_, ranges) = facts.ids.unwrap_or((0, 0));
    Pool {
        subject: Subject("user id ranges", "design 3.7, ORCH_UID_BLOCK"),
        found: "65536 ids for each container".to_owned(),
        cost: "the next sandbox is refused (host_exhausted)",
        fix: "configure a larger block with ORCH_UID_BLOCK=FIRST:RANGES",
    }
    .judge(all(u64::from(ranges)), FEW)
}

/// min(instances ÷ 1, watches ÷ 1024), for sandboxes with one program that watches
/// files. Measured: what a task makes counts for the maker of its user namespace too,
/// who is root, so that two sandboxes share one limit (inotify(7)).
fn inotify(facts: &Facts) -> Check {
    let instances = facts.number(File::InotifyInstances).unwrap_or(0);
    let watches = facts.number(File::InotifyWatches).unwrap_or(0);
    Pool {
        subject: Subject("inotify", "inotify(7)"),
        found: format!("{instances} instances and {watches} watches for all sandboxes together"),
        cost: "a task that watches files is refused; one sandbox can use up all of them",
        fix: "sysctl fs.inotify.max_user_instances=8192 fs.inotify.max_user_watches=1048576",
    }
    .judge(all(instances.min(watches / WATCHES)), FEW)
}

/// keyrings(7): a quota for each user id, and a sandbox has ids of its own. So there is
/// room in it for one sandbox, or for none at all.
fn keys(facts: &Facts) -> Check {
    let subject = Subject("keys", "H6, keyrings(7)");
    let keys = facts.number(File::KeysMax);
    let bytes = facts.number(File::KeysBytes);
    let (Some(keys), Some(bytes)) = (keys, bytes) else {
        return Check::ok(subject, "no quota is told here");
    };
    let found =
        format!("{keys} keys with {bytes} bytes for each user id; every sandbox has its own");
    let (least_keys, least_bytes) = KEYS;
    if keys >= least_keys && bytes >= least_bytes {
        return Check::ok(subject, found);
    }
    Check::missing(
        subject,
        found,
        "no lease can have a keyring of its own",
        "sysctl kernel.keys.maxkeys=200 kernel.keys.maxbytes=20000",
    )
}

/// A limit for each mount namespace, not for the host: it has room for all mounts of a
/// sandbox, or for none.
fn mounts(facts: &Facts) -> Check {
    let subject = Subject("mounts", "proc_sys_fs(5)");
    let Some(limit) = facts.number(File::MountMax) else {
        return Check::ok(subject, "no limit is told here");
    };
    let found = format!("{limit} in each sandbox, which has about 40 and those asked for");
    let fix = "sysctl fs.mount-max=100000";
    if limit < MOUNTS {
        return Check::missing(subject, found, "no sandbox can be put together", fix);
    }
    if limit < 10 * MOUNTS {
        return Check::warn(subject, found, "tasks with many mounts are refused", fix);
    }
    Check::ok(subject, found)
}

/// max − reserve − nr: one terminal for each sandbox that has one (pty(7)).
fn terminals(facts: &Facts) -> Check {
    let number = |file| facts.number(file).unwrap_or(0);
    let (limit, reserve) = (number(File::PtyMax), number(File::PtyReserve));
    let now = number(File::PtyNr);
    let room = limit.saturating_sub(reserve).saturating_sub(now);
    let check = Pool {
        subject: Subject("terminals", "pty(7)"),
        found: format!("{limit} on the host, {reserve} kept back, {now} in use"),
        cost: "`orch run -t` is refused",
        fix: "sysctl kernel.pty.max=4096 kernel.pty.reserve=1024",
    }
    .judge(all(room), FEW);
    // A task without a terminal does not need one.
    match check.state {
        State::Missing => check.losing(Vec::new()),
        _ => check,
    }
}

/// MemAvailable ÷ memory of the tier, for sandboxes that use all that they may. Most
/// use less: only where there is none for one is it worth a word. A tier that may use
/// more than MemTotal and SwapTotal is refused.
fn memory(facts: &Facts) -> Check {
    let subject = Subject("memory", "PR-20, proc_meminfo(5)");
    let text = facts.text(File::Memory).unwrap_or_default();
    let bytes = |name| {
        field(text, name)
            .and_then(|value| value.split_whitespace().next()?.parse::<u64>().ok())
            .unwrap_or(0)
            .saturating_mul(1024)
    };
    let free = bytes("MemAvailable");
    let all = bytes("MemTotal") + bytes("SwapTotal");
    let found = format!("{} of {} MiB available", free >> 20, all >> 20);
    let fix = "lower limits.memory_mb in a profile of your own, or run fewer at a time";
    let too_large: Vec<&Need> = facts
        .needs
        .iter()
        .filter(|need| need.memory > all)
        .collect();
    if !too_large.is_empty() {
        let asked: Vec<String> = too_large
            .iter()
            .map(|need| format!("{} asks for {} MiB", need.tier, need.memory >> 20))
            .collect();
        let cost = format!("refused (limit_unavailable): {}", asked.join(", "));
        return Check::missing(subject, found, cost, fix)
            .losing(too_large.iter().map(|need| need.tier).collect());
    }
    let check = Pool {
        subject,
        found,
        cost: "a task may be killed for the host's memory before it reaches its own limit",
        fix,
    }
    .judge(by_tier(facts, free, |need| need.memory), 1);
    match check.state {
        State::Missing => Check {
            state: State::Warn,
            ..check.losing(Vec::new())
        },
        _ => check,
    }
}
