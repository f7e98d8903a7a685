//! The shipped profiles, part of the program.

use std::path::Path;

use crate::error::{Code, Error};
use crate::layer::Source;
use crate::load::{Context, Loaded, load_source};
use crate::yaml::suggest::nearest;

/// Names of the shipped profiles, in the order of listings.
pub const NAMES: [&str; 5] = ["loose", "standard", "strict", "offline", "python"];

/// The shipped profile behind a name or an alias (PR-35), if there is one.
#[must_use]
pub fn canonical(name: &str) -> Option<&'static str> {
    match name {
        "loose" | "danger-full-access" => Some("loose"),
        "standard" | "workspace-write" => Some("standard"),
        "strict" | "read-only" => Some("strict"),
        "offline" => Some("offline"),
        "python" => Some("python"),
        _ => None,
    }
}

/// Text of a shipped profile as it stands in `profiles/`, comments included.
#[must_use]
pub fn text(name: &str) -> Option<&'static str> {
    Some(match canonical(name)? {
        "loose" => include_str!("../../../profiles/loose.yaml"),
        "standard" => include_str!("../../../profiles/standard.yaml"),
        "strict" => include_str!("../../../profiles/strict.yaml"),
        "offline" => include_str!("../../../profiles/offline.yaml"),
        _ => include_str!("../../../profiles/python.yaml"),
    })
}

/// A shipped profile by name or alias, resolved for the owner of `home`.
///
/// # Errors
/// [`Code::ProfileUnknown`] with the nearest name; [`Code::ProfileInvalid`]
/// where `home` is not absolute.
pub fn builtin(name: &str, home: &Path) -> Result<Loaded, Error> {
    load_source(source(name)?, &mut Context::new(home))
}

pub(crate) fn source(name: &str) -> Result<Source, Error> {
    match (canonical(name), text(name)) {
        (Some(name), Some(text)) => Ok(Source::builtin(name, text)),
        _ => Err(unknown(name)),
    }
}

/// The refusal of a name that is neither shipped nor a file.
#[must_use]
pub fn unknown(name: &str) -> Error {
    let shipped = NAMES.join(", ");
    let remedy = match nearest(name, NAMES) {
        Some(near) => format!("did you mean {near}? Shipped are {shipped}; a file needs its path"),
        None => format!("name one of {shipped}, or the path of a file"),
    };
    Error::new(
        Code::ProfileUnknown,
        format!("no profile is called {name:?}"),
        remedy,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Access, NetworkDefault, Reuse, SyscallTable, Tier};

    fn get(name: &str) -> crate::Profile {
        builtin(name, Path::new("/home/me")).unwrap().profile
    }

    /// PR-02, PR-05, PR-08, PR-11: shipped, named, described.
    #[test]
    fn every_shipped_profile_loads() {
        for name in NAMES {
            let profile = get(name);
            assert_eq!(profile.name, name);
            assert!(profile.description.len() > 20, "{name}");
            assert_eq!(profile.network.deny, Vec::<String>::new());
            assert_eq!(profile.deny_paths[0], Path::new("/home/me/.ssh"));
        }
    }

    /// PR-03, PR-04, PR-06, PR-07, PR-09, PR-10, PR-32.
    #[test]
    fn tiers_say_what_the_rows_say() {
        let loose = get("loose");
        assert_eq!(loose.tier, Tier::Loose);
        assert_eq!((loose.root, loose.workspace_mode), (Access::Rw, Access::Rw));
        assert_eq!(loose.network.default, NetworkDefault::Allow);
        assert_eq!(loose.reuse, Reuse::Pool);

        let standard = get("standard");
        assert_eq!(standard.tier, Tier::Standard);
        assert_eq!(
            (standard.root, standard.workspace_mode),
            (Access::Ro, Access::Rw)
        );
        assert!(!standard.network.needs_egress());
        assert_eq!(standard.reuse, Reuse::Tenant);

        let strict = get("strict");
        assert_eq!(strict.tier, Tier::Strict);
        assert_eq!(
            (strict.root, strict.workspace_mode),
            (Access::Ro, Access::Ro)
        );
        assert!(!strict.network.needs_egress());
        assert_eq!(strict.reuse, Reuse::Never);

        assert!(!get("offline").network.needs_egress());

        // PX-11: strict in all but the table of system calls.
        let python = get("python");
        assert_eq!(python.syscalls, SyscallTable::Python);
        assert_eq!(
            python,
            crate::Profile {
                name: python.name.clone(),
                description: python.description.clone(),
                syscalls: SyscallTable::Python,
                ..strict
            }
        );
    }

    /// PR-19…PR-23: the seed's numbers are standard's.
    #[test]
    fn standard_has_the_limits_of_the_seed() {
        let profile = get("standard");
        assert_eq!(profile.limits.cpu_seconds, 300);
        assert_eq!(profile.limits.memory_bytes, 2048 << 20);
        assert_eq!(profile.limits.open_files, 1024);
        assert_eq!(profile.limits.processes, 64);
        assert_eq!(profile.timeout_ms, 600_000);
        assert_eq!(profile.limits.output_bytes, 16 << 20);
    }

    /// PR-35.
    #[test]
    fn aliases_name_the_tiers() {
        assert_eq!(get("read-only"), get("strict"));
        assert_eq!(get("workspace-write"), get("standard"));
        assert_eq!(get("danger-full-access"), get("loose"));
    }

    #[test]
    fn an_unknown_name_gets_a_suggestion() {
        let error = builtin("strikt", Path::new("/root")).unwrap_err();
        assert_eq!(error.code, Code::ProfileUnknown);
        assert!(error.remediation.contains("did you mean strict?"));
    }
}
