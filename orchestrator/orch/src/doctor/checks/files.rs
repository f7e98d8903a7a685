//! File systems: where the state is kept, a folder that a task is to get, overlays.

use crate::doctor::check::{By, Check, Subject};
use crate::doctor::facts::{Facts, File, Place};

use super::NOTHING;

pub fn checks(facts: &Facts) -> Vec<Check> {
    vec![
        state(&facts.state),
        state_file_system(&facts.state),
        folder(&facts.folder),
        overlay(facts),
    ]
}

fn state(place: &Place) -> Check {
    let subject = Subject("state directory", "FS-21, ORCH_STATE_DIR");
    match &place.error {
        None => Check::ok(subject, &place.path).by(By::Tried),
        Some((why, fix)) => {
            Check::missing(subject, format!("{}: {why}", place.path), NOTHING, fix).by(By::Tried)
        }
    }
}

fn state_file_system(place: &Place) -> Check {
    let subject = Subject("state file system", "FS-26, statfs(2)");
    let fix = "name a directory on ext4, xfs, btrfs or tmpfs with ORCH_STATE_DIR";
    let Some(kind) = &place.kind else {
        let cost = "it is not known whether others can be kept out of it";
        return Check::warn(subject, "cannot be looked at", cost, fix);
    };
    let name = kind.name();
    if let Some(why) = kind.unfit() {
        let cost = "nobody could be kept out of it, and locks may not hold";
        return Check::missing(subject, format!("{name}: {why}"), cost, fix);
    }
    if kind.readonly {
        let cost = "every run tries its tier again, which takes longer: nothing can be noted down";
        return Check::warn(subject, format!("{name}, read-only"), cost, fix);
    }
    Check::ok(subject, name)
}

/// What it costs is this folder alone: no tier is lost.
fn folder(place: &Place) -> Check {
    let subject = Subject("folder", "FS-26, statfs(2), mount_setattr(2)");
    let fix = "put it on ext4, xfs or btrfs, and look at another folder with --folder DIR";
    let path = &place.path;
    let refused = |why: &str| {
        let cost = "as --folder or --mount …:rw it is refused";
        Check::missing(subject, format!("{path}: {why}"), cost, fix).losing(Vec::new())
    };
    if let Some((why, fix)) = &place.error {
        let cost = "nothing is known about this folder";
        let found = format!("{path}: {why}");
        return Check::missing(subject, found, cost, fix).losing(Vec::new());
    }
    let Some(kind) = &place.kind else {
        return refused("its file system does not answer");
    };
    let name = kind.name();
    if let Some(why) = kind.unfit() {
        return refused(why);
    }
    if place.id_mapped == Some(false) {
        return refused(&format!("{name} cannot show files with other owners here")).by(By::Tried);
    }
    let by = match place.id_mapped {
        Some(_) => By::Tried,
        None => By::Read,
    };
    if kind.readonly {
        let cost = "a task can read it, and nothing can be written back";
        return Check::warn(subject, format!("{path}: {name}, read-only"), cost, fix).by(by);
    }
    let found = match place.id_mapped {
        Some(_) => format!("{path}: {name}, owners can be translated"),
        None => format!("{path}: {name}"),
    };
    Check::ok(subject, found).by(by)
}

fn overlay(facts: &Facts) -> Check {
    let subject = Subject("overlay", "PR-06, filesystems(5)");
    let known = facts.text(File::KnownKinds).unwrap_or_default();
    if known.split_whitespace().any(|word| word == "overlay") {
        return Check::ok(subject, "built in or loaded");
    }
    if facts.overlay_module {
        return Check::ok(subject, "a module, loaded when it is first used");
    }
    Check::warn(
        subject,
        "the kernel has none",
        "nothing today: no tier uses an overlay yet; writable layers will need it",
        "boot a kernel with CONFIG_OVERLAY_FS",
    )
}
