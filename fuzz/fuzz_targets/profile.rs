//! The loader of profiles: whatever stands in the files, it answers.
//!
//! An input is one file, or several with the bytes FF FF between them (no text has
//! them): the first extends the next under any name that is a path, and so on.
//!
//! - A refusal has one of the loader's codes, file, line and column, and a remedy.
//! - What loads is the same again when what `orch profile show` says is loaded.
//! - It allows what it allows: every field compares as equal with itself.
//! - Nothing that makes its tier is looser than in the shipped profile of the tier.
#![no_main]

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use orch_fuzz::written;
use orch_policy::builtin::builtin;
use orch_policy::compare::{Bounded, Relation, compare};
use orch_policy::extends::tier_word;
use orch_policy::fields::fields;
use orch_policy::layer::Source;
use orch_policy::load::{Context, Loaded, load};
use orch_policy::profile::{Access, Tier};
use orch_policy::provenance::{From, Row};
use orch_policy::{Code, Error, Profile, digest, lint, provenance};

const HOME: &str = "/home/me";

/// What `load` says that it may answer.
const CODES: [Code; 11] = [
    Code::ProfileSyntax,
    Code::ProfileUnknownKey,
    Code::ProfileUnknown,
    Code::ProfileInvalid,
    Code::ProfileTooLoose,
    Code::LimitInvalid,
    Code::MountInvalid,
    Code::MountDenied,
    Code::MountConflict,
    Code::EnvInvalid,
    Code::UserInvalid,
];

static SHIPPED: LazyLock<[Profile; 3]> = LazyLock::new(|| {
    [Tier::Loose, Tier::Standard, Tier::Strict].map(|tier| {
        builtin(tier_word(tier), Path::new(HOME))
            .expect("a shipped profile")
            .profile
    })
});

fuzz_target!(|data: &[u8]| {
    match family(data) {
        Ok(loaded) => {
            holds(&loaded);
            // Every place is looked up by reading the file once more, so only for some.
            if data.len().is_multiple_of(8) {
                explained(&loaded);
            }
        }
        Err(error) => placed(&error),
    }
});

fn family(data: &[u8]) -> Result<Loaded, Error> {
    let mut files = Vec::new();
    let mut rest = data;
    while let Some(at) = rest.windows(2).position(|two| two == b"\xff\xff") {
        files.push(rest[..at].to_vec());
        rest = &rest[at + 2..];
    }
    files.push(rest.to_vec());
    let mut files = files.into_iter().enumerate();
    let mut next = || {
        let (i, bytes) = files
            .next()
            .ok_or_else(|| Error::new(Code::ProfileUnknown, "there is no such file", "make it"))?;
        Source::file(format!("{i}.yaml"), bytes)
    };
    let first = next()?;
    let reserved = [PathBuf::from("/var/lib/orch")];
    let mut cx = Context::new(Path::new(HOME))
        .with_reserved(&reserved)
        .with_open(|_, _| next());
    load(first, &mut cx)
}

/// `N.yaml:LINE:COLUMN: `, but for a file that is too large to have a place.
fn placed(error: &Error) {
    assert!(CODES.contains(&error.code), "{error:?}");
    assert!(!error.remediation.is_empty(), "{error:?}");
    let mut parts = error.message.splitn(4, ':');
    let file = parts.next().unwrap_or_default();
    assert!(
        file.strip_suffix(".yaml").is_some_and(number),
        "no file: {error:?}"
    );
    if error.message.contains("are too many for a profile") {
        return;
    }
    assert!(
        parts.next().is_some_and(number) && parts.next().is_some_and(number),
        "no place: {error:?}"
    );
    assert!(
        parts.next().is_some_and(|text| text.len() > 1),
        "no words: {error:?}"
    );
}

fn number(text: &str) -> bool {
    text.parse::<u32>().is_ok()
}

fn holds(loaded: &Loaded) {
    let profile = &loaded.profile;
    for order in compare(profile, profile) {
        assert_eq!(order.relation, Relation::Equal, "{order:?} of {profile:?}");
    }
    bounded(profile);

    let rows: Vec<Row> = fields(profile)
        .into_iter()
        .map(|(field, value)| Row {
            field,
            value,
            from: From::Default,
        })
        .collect();
    let table = provenance::table(&rows);
    assert!(
        !table.contains(|c: char| c.is_control() && c != '\n'),
        "{table:?}"
    );
    let text = written::file(&rows);
    let shown = String::from_utf8_lossy(&text).into_owned();
    let again = match Source::file("0.yaml", text) {
        Ok(source) => load(source, &mut Context::new(Path::new(HOME))),
        // What is short to write may be long to show.
        Err(_) => return,
    };
    let again = again.unwrap_or_else(|error| panic!("{error:?} for {shown}"));
    assert_eq!(again.profile, *profile, "{shown}");
    assert_eq!(digest::sha256(&again.profile), digest::sha256(profile));
}

/// What is said about the profile: where each value stands, and the warnings.
fn explained(loaded: &Loaded) {
    for row in loaded.provenance() {
        if let From::File { line, column, .. } = &row.from {
            assert!(line.is_some() && column.is_some(), "{row:?}");
        }
    }
    if let Err(error) = lint::lint(loaded, Path::new(HOME)) {
        placed(&error);
    }
}

fn bounded(profile: &Profile) {
    let shipped = SHIPPED
        .iter()
        .find(|shipped| shipped.tier == profile.tier)
        .expect("a shipped profile of the tier");
    for order in compare(profile, shipped) {
        if order.bounded == Bounded::Tier {
            assert!(order.relation.allows_no_more(), "{order:?} of {profile:?}");
        }
    }
    if profile.tier == Tier::Strict {
        assert!(profile.mounts.iter().all(|mount| mount.mode == Access::Ro));
        assert_eq!(profile.workspace_mode, Access::Ro);
        assert!(profile.uid != 0 && profile.gid != 0);
    }
}
