use std::path::Path;

use super::*;
use crate::builtin::builtin;
use crate::profile::{Image, Reuse, SyscallTable};

fn shipped(name: &str) -> Profile {
    builtin(name, Path::new("/home/me")).unwrap().profile
}

/// PR-02, design §5: loose ⊇ standard ⊇ strict, and offline in between.
#[test]
fn the_tiers_are_ordered_in_every_field() {
    for (tight, loose) in [
        ("strict", "standard"),
        ("standard", "loose"),
        ("strict", "loose"),
        ("offline", "standard"),
        ("python", "strict"),
    ] {
        for order in compare(&shipped(tight), &shipped(loose)) {
            assert!(
                order.relation.allows_no_more(),
                "{tight} is {:?} than {loose} in {}",
                order.relation,
                order.field
            );
        }
        assert!(
            compare(&shipped(tight), &shipped(loose))
                .iter()
                .any(|order| order.relation == Relation::Tighter),
            "{tight} and {loose} are not the same"
        );
    }
    let offline = compare(&shipped("offline"), &shipped("strict"));
    assert!(
        offline
            .iter()
            .all(|order| order.relation != Relation::Tighter),
        "offline is not tighter than strict anywhere"
    );
}

#[test]
fn every_profile_equals_itself() {
    for name in crate::builtin::NAMES {
        let profile = shipped(name);
        for order in compare(&profile, &profile) {
            assert_eq!(order.relation, Relation::Equal, "{name}: {}", order.field);
        }
    }
}

type Loosen = fn(&mut Profile);

fn mount(path: &str, mode: Access) -> Mount {
    Mount {
        path: path.into(),
        source: Some("/srv/data".into()),
        mode,
    }
}

/// One way to allow more for every field that can allow anything.
const LOOSENINGS: &[(&str, Loosen)] = &[
    ("tier", |p| p.tier = Tier::Loose),
    ("sandbox.root", |p| p.root = Access::Rw),
    ("sandbox.workspace", |p| {
        p.workspace = Some("/srv/ws".into())
    }),
    ("sandbox.workspace_mode", |p| p.workspace_mode = Access::Rw),
    ("sandbox.tmpdir", |p| p.tmpdir = Some("/srv/tmp".into())),
    ("sandbox.mounts", |p| {
        p.mounts.push(mount("/data", Access::Ro))
    }),
    ("sandbox.deny_paths", |p| p.deny_paths.truncate(1)),
    ("sandbox.network.default", |p| {
        p.network.default = NetworkDefault::Allow
    }),
    ("sandbox.network.allow", |p| {
        p.network.allow.push("pypi.org".into())
    }),
    ("sandbox.network.deny", |p| p.network.deny.clear()),
    ("limits.cpu_seconds", |p| p.limits.cpu_seconds += 1),
    ("limits.cpus", |p| p.limits.cpu_milli += 1),
    ("limits.memory_mb", |p| p.limits.memory_bytes += 1),
    ("limits.open_files", |p| p.limits.open_files += 1),
    ("limits.processes", |p| p.limits.processes += 1),
    ("limits.file_size_mb", |p| p.limits.file_size_bytes += 1),
    ("limits.stack_mb", |p| p.limits.stack_bytes += 1),
    ("limits.tmp_mb", |p| p.limits.tmp_bytes += 1),
    ("limits.tmp_inodes", |p| p.limits.tmp_inodes += 1),
    ("limits.output_mb", |p| p.limits.output_bytes += 1),
    ("limits.out_mb", |p| p.limits.out_bytes += 1),
    ("limits.io_read_mb_per_second", |p| {
        p.limits.io_read_bytes_per_second = None
    }),
    ("limits.io_write_mb_per_second", |p| {
        p.limits.io_write_bytes_per_second = None
    }),
    ("command_timeout_seconds", |p| p.command_timeout_ms += 1),
    ("timeout_seconds", |p| p.timeout_ms += 1),
    ("env.allow", |p| p.env.allow.push("SECRET".into())),
    ("env.set", |p| p.env.set.push(("A".into(), "b".into()))),
    ("syscalls", |p| p.syscalls = SyscallTable::Loose),
    ("user", |p| p.uid = 0),
    ("reuse", |p| p.reuse = Reuse::Pool),
];

/// Fields of which no value allows more than another.
const WORDS: [&str; 4] = ["name", "description", "sandbox.image", "hostname"];

fn subject() -> Profile {
    let mut profile = shipped("strict");
    profile.limits.io_read_bytes_per_second = Some(1);
    profile.limits.io_write_bytes_per_second = Some(1);
    profile.network.deny.push("dead.example.com".into());
    profile
}

/// Design §5: loosening any field in turn is caught, in that field and no other.
#[test]
fn every_loosening_is_caught() {
    let base = subject();
    let fields: Vec<&str> = compare(&base, &base).iter().map(|o| o.field).collect();
    for field in &fields {
        let known = LOOSENINGS.iter().any(|(name, _)| name == field);
        assert!(known != WORDS.contains(field), "{field} needs a loosening");
    }
    for (field, loosen) in LOOSENINGS {
        assert!(fields.contains(field), "{field} is a field");
        let mut other = base.clone();
        loosen(&mut other);
        for order in compare(&other, &base) {
            let want = if order.field == *field {
                Relation::Looser
            } else {
                Relation::Equal
            };
            assert_eq!(order.relation, want, "{field} seen in {}", order.field);
        }
        for order in compare(&base, &other) {
            let want = if order.field == *field {
                Relation::Tighter
            } else {
                Relation::Equal
            };
            assert_eq!(order.relation, want, "{field} the other way round");
        }
    }
}

/// Pairs of loosenings: no field hides another.
#[test]
fn pairs_of_loosenings_are_caught() {
    let base = subject();
    for (a, loosen_a) in LOOSENINGS {
        for (b, loosen_b) in LOOSENINGS {
            let mut other = base.clone();
            loosen_a(&mut other);
            loosen_b(&mut other);
            let looser: Vec<&str> = compare(&other, &base)
                .iter()
                .filter(|o| o.relation == Relation::Looser)
                .map(|o| o.field)
                .collect();
            assert!(
                looser.contains(a) && looser.contains(b),
                "{a} and {b}: {looser:?}"
            );
        }
    }
}

/// PR-28, PR-31: what a tier is cannot be loosened; what users set can be.
#[test]
fn the_tier_bounds_what_it_is_made_of() {
    for tier in ["strict", "standard"] {
        let base = shipped(tier);
        for (field, loosen) in LOOSENINGS {
            let mut other = base.clone();
            loosen(&mut other);
            let fixed = compare(&other, &base).iter().any(|o| {
                o.field == *field && o.bounded == Bounded::Tier && !o.relation.allows_no_more()
            });
            let strict_only = tier == "strict" && *field == "user";
            let caught =
                check_tier(&other, &base).is_err_and(|l| l.iter().any(|l| l.field == *field));
            assert_eq!(caught, fixed || strict_only, "{tier}: {field}");
        }
    }
    // The list itself, so that a ruling cannot be changed by accident.
    let fixed: Vec<&str> = compare(&subject(), &subject())
        .iter()
        .filter(|o| o.bounded == Bounded::Tier)
        .map(|o| o.field)
        .collect();
    assert_eq!(
        fixed,
        [
            "tier",
            "sandbox.root",
            "sandbox.workspace_mode",
            "sandbox.network.default",
            "syscalls",
            "reuse"
        ]
    );
}

/// PR-09.
#[test]
fn strict_has_no_writable_host_path() {
    let base = shipped("strict");
    let mut other = base.clone();
    other.mounts.push(mount("/data", Access::Ro));
    assert_eq!(check_tier(&other, &base), Ok(()));
    other.mounts.push(mount("/out", Access::Rw));
    let loose = check_tier(&other, &base).unwrap_err();
    assert_eq!(loose[0].field, "sandbox.mounts");
    assert_eq!(loose[0].needs, Tier::Standard);
}

#[test]
fn lists_are_compared_by_what_they_mean() {
    let relation = |left: &Profile, right: &Profile, field: &str| {
        let orders = compare(left, right);
        orders.iter().find(|o| o.field == field).unwrap().relation
    };
    let (mut a, mut b) = (shipped("standard"), shipped("standard"));
    a.network.allow = vec!["10.1.2.3:443".into(), "a.example.com".into()];
    b.network.allow = vec!["10.0.0.0/8".into(), "*.example.com".into()];
    assert_eq!(relation(&a, &b, "sandbox.network.allow"), Relation::Tighter);
    a.network.allow.push("pypi.org".into());
    assert_eq!(
        relation(&a, &b, "sandbox.network.allow"),
        Relation::Incomparable
    );
    // PR-04: allow by default opens the public internet, not the private ranges.
    b.network.default = NetworkDefault::Allow;
    assert_eq!(relation(&a, &b, "sandbox.network.allow"), Relation::Tighter);
    a.network.allow.push("192.168.1.1".into());
    assert_eq!(
        relation(&a, &b, "sandbox.network.allow"),
        Relation::Incomparable
    );

    // Denying a parent denies what is below.
    a.deny_paths = vec!["/home/me".into()];
    assert_eq!(relation(&a, &b, "sandbox.deny_paths"), Relation::Tighter);
    a.image = Image::Dir("/srv/rootfs".into());
    assert_eq!(relation(&a, &b, "sandbox.image"), Relation::Incomparable);
    // The image's own tree, read-only, is nothing new.
    let own = Mount {
        path: "/usr".into(),
        source: None,
        mode: Access::Ro,
    };
    a.mounts = vec![own];
    assert_eq!(relation(&a, &b, "sandbox.mounts"), Relation::Equal);
}
