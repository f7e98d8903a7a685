//! Each check with its feature taken away: a machine on which all is well, and one
//! value at a time that is not.

use std::collections::BTreeSet;

use orch_engine::feature::Asked;
use orch_engine::filesystem::Kind;
use rustix::io::Errno;

use super::checks::all;
use super::facts::{Facts, File, Hard, Hierarchy, Need, Tool};
use super::{Check, State};

const ALL: &[&str] = &["loose", "standard", "strict"];
pub(super) const STATUS: &str =
    "Name:\torch\nUid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\nSeccomp:\t0\nSeccomp_filters:\t0\n";

/// A new kernel, control groups of version 2, root.
pub(super) fn good() -> Facts {
    let mut facts = Facts {
        calls: ["clone3", "unshare", "mount_setattr", "open_tree", "seccomp"]
            .map(|name| Asked {
                name,
                errno: 22,
                there: true,
            })
            .to_vec(),
        clone_into_cgroup: true,
        built_in: orch_engine::feature::NAMESPACES
            .map(|(name, _)| name)
            .to_vec(),
        namespaces: orch_engine::feature::NAMESPACES
            .map(|(name, _)| (name, 0))
            .to_vec(),
        tmpfs: Some(true),
        overlay: Some(true),
        exit_code: Some(true),
        hard: Hard {
            open_files: Some(1 << 20),
            ..Hard::default()
        },
        ids: Some((0x7000_0000, 4095)),
        clock_corrected: Some(true),
        now: 1_800_000_000,
        ..Facts::default()
    };
    facts.groups.0.push(Hierarchy {
        point: "/sys/fs/cgroup".into(),
        unified: true,
        controllers: ["cpuset", "cpu", "io", "memory", "pids"]
            .map(str::to_owned)
            .to_vec(),
        seen: true,
        writable: true,
        peak: Some(true),
        kill: Some(true),
        ..Hierarchy::default()
    });
    for (place, path) in [(&mut facts.state, "/run/orch"), (&mut facts.folder, "/srv")] {
        place.path = path.into();
        place.kind = Some(Kind {
            magic: 0xef53,
            readonly: false,
        });
        place.id_mapped = Some(true);
    }
    facts.tools = ["newuidmap", "newgidmap"]
        .map(|name| Tool {
            name,
            path: Some(format!("/usr/bin/{name}")),
            setuid: true,
            capabilities: false,
        })
        .to_vec();
    facts.needs = [
        ("loose", 4096, 512),
        ("standard", 1024, 64),
        ("strict", 256, 32),
    ]
    .map(|(tier, open_files, processes)| Need {
        tier,
        open_files,
        processes,
        file_size: 1024,
        stack: 1024,
        cpu: 60,
        memory: 1 << 30,
    })
    .to_vec();
    for (file, text) in [
        (File::Release, "6.18.1-generic"),
        (File::Status, STATUS),
        (
            File::Mounts,
            "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw",
        ),
        (File::UidMap, "         0          0 4294967295"),
        (
            File::Actions,
            "kill_process kill_thread trap errno trace log allow",
        ),
        (File::MemfdNoexec, "0"),
        (File::MaxUser, "96365"),
        (File::MaxMnt, "96365"),
        (File::MaxPid, "96365"),
        (File::MaxNet, "96365"),
        (File::MaxIpc, "96365"),
        (File::MaxUts, "96365"),
        (File::MaxCgroup, "96365"),
        (File::PidMax, "4194304"),
        (File::ThreadsMax, "192730"),
        (File::Load, "0.1 0.1 0.1 1/230 4711"),
        (File::OpenFiles, "702\t0\t9223372036854775807"),
        (File::InotifyInstances, "128"),
        (File::InotifyWatches, "192536"),
        (File::KeysMax, "200"),
        (File::KeysBytes, "20000"),
        (File::MountMax, "100000"),
        (File::PtyMax, "4096"),
        (File::PtyReserve, "1024"),
        (File::PtyNr, "3"),
        (
            File::Memory,
            "MemTotal: 32000000 kB\nMemAvailable:   24000000 kB",
        ),
        (File::Swaps, "Filename Type Size Used Priority"),
        (File::KnownKinds, "nodev\toverlay\n\text4"),
        (File::ClockSource, "tsc"),
        (File::Smt, "0"),
        (File::Ksm, "0"),
        (
            File::Passwd,
            "root:x:0:0::/root:/bin/sh\njo:x:1000:1000::/home/jo:/bin/sh",
        ),
        (File::SubUid, "jo:100000:65536"),
        (File::SubGid, "jo:100000:65536"),
    ] {
        facts.texts.insert(file, text.into());
    }
    facts
}

/// One value that is not as it should be.
struct Case {
    check: &'static str,
    state: State,
    loses: &'static [&'static str],
    /// A word of what was found or of the fix.
    says: &'static str,
    change: fn(&mut Facts),
}

const fn case(
    check: &'static str,
    state: State,
    loses: &'static [&'static str],
    says: &'static str,
    change: fn(&mut Facts),
) -> Case {
    Case {
        check,
        state,
        loses,
        says,
        change,
    }
}

pub(super) fn set(facts: &mut Facts, file: File, text: &str) {
    facts.texts.insert(file, text.into());
}

pub(super) fn group(facts: &mut Facts, change: impl Fn(&mut Hierarchy)) {
    facts.groups.0.iter_mut().for_each(change);
}

pub(super) fn refuse(facts: &mut Facts, name: &str, errno: Errno) {
    for asked in facts.calls.iter_mut().filter(|asked| asked.name == name) {
        asked.there = false;
        asked.errno = errno.raw_os_error();
    }
}

fn status(facts: &mut Facts, from: &str, to: &str) {
    assert!(STATUS.contains(from), "{from}");
    set(facts, File::Status, &STATUS.replace(from, to));
}

fn user(facts: &mut Facts) {
    status(facts, "0\t0\t0\t0", "1000\t1000\t1000\t1000");
}

/// Version 1 of control groups instead of 2.
fn legacy(facts: &mut Facts) {
    group(facts, |hierarchy| {
        hierarchy.unified = false;
        hierarchy.kill = None;
    });
}

#[path = "cases_table.rs"]
mod table;

fn named<'a>(checks: &'a [Check], name: &str) -> &'a Check {
    let found = checks.iter().find(|check| check.name == name);
    found.unwrap_or_else(|| panic!("there is no check {name}"))
}

#[test]
fn on_a_good_machine_every_check_is_ok() {
    for check in all(&good()) {
        assert_eq!(check.state, State::Ok, "{check:?}");
        assert!(check.cost.is_none() && check.fix.is_none() && check.loses.is_empty());
    }
}

#[test]
fn every_check_misses_its_feature_when_it_is_taken_away_op01() {
    for case in table::CASES {
        let mut facts = good();
        (case.change)(&mut facts);
        let checks = all(&facts);
        let check = named(&checks, case.check);
        let about = format!("{} should say {:?}: {check:?}", case.check, case.says);
        assert_eq!(check.state, case.state, "{about}");
        assert_eq!(check.loses, case.loses, "{about}");
        let words = [
            &check.found,
            check.fix.as_ref().unwrap(),
            check.cost.as_ref().unwrap(),
        ];
        assert!(words.iter().any(|text| text.contains(case.says)), "{about}");
        assert!(words.iter().all(|text| !text.is_empty()), "{about}");
    }
}

#[test]
fn what_only_looks_bad_is_ok() {
    for (name, says, change) in table::STILL_OK {
        let mut facts = good();
        change(&mut facts);
        let checks = all(&facts);
        let check = named(&checks, name);
        assert_eq!(check.state, State::Ok, "{name} with {says:?}: {check:?}");
        assert!(
            check.found.contains(says),
            "{name} with {says:?}: {check:?}"
        );
    }
}

/// The net under the table: whoever adds a check has to take its feature away, too.
#[test]
fn no_check_is_without_a_case_in_which_it_is_not_ok() {
    let checks: BTreeSet<&str> = all(&good()).iter().map(|check| check.name).collect();
    let cases: BTreeSet<&str> = table::CASES.iter().map(|case| case.check).collect();
    assert_eq!(checks, cases);
    assert_eq!(checks.len(), all(&good()).len(), "two checks have one name");
}

/// Of what is read, every file is judged by some check: none is read for nothing.
#[test]
fn every_file_that_is_read_decides_something() {
    for file in File::ALL {
        let bad = table::CASES.iter().map(|case| case.change);
        let fine = table::STILL_OK.iter().map(|(_, _, change)| *change);
        let used = bad.chain(fine).any(|change| {
            let mut with = good();
            change(&mut with);
            let mut without = with.clone();
            without.texts.remove(file);
            with.has(*file) && all(&with) != all(&without)
        });
        assert!(used, "{file:?} changes nothing");
    }
}

/// Without a single fact nothing is claimed to be there.
#[test]
fn a_machine_of_which_nothing_is_known_keeps_no_tier() {
    let checks = all(&Facts::default());
    for tier in ALL {
        assert!(checks.iter().any(|check| check.loses.contains(tier)));
    }
}
