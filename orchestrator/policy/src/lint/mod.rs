//! Warnings: what a profile may do and probably should not (NW-03, PR-24).

mod limits;
mod network;

use std::path::Path;

use serde::Serialize;

use crate::builtin::builtin;
use crate::error::Error;
use crate::extends::tier_word;
use crate::load::{Context, Loaded};
use crate::paths;
use crate::profile::{Access, Profile};
use crate::yaml::locate::Place;

/// One warning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// Stable name of the kind of warning.
    pub code: &'static str,
    /// Key of the profile.
    pub field: String,
    /// File or shipped profile in which the value stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Where in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// What is doubtful.
    pub message: String,
    /// What to write instead.
    pub remediation: String,
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}:")?;
            if let Some(at) = self.place {
                write!(f, "{}:{}:", at.line, at.column)?;
            }
            f.write_str(" ")?;
        }
        write!(f, "{}: {}", self.field, self.message)
    }
}

/// Everything doubtful about a profile, in the order of the file. The shipped
/// profiles give none.
///
/// # Errors
/// Those of [`builtin`], which is what limits are measured against.
pub fn lint(loaded: &Loaded, home: &Path) -> Result<Vec<Warning>, Error> {
    let profile = &loaded.profile;
    let shipped = builtin(tier_word(profile.tier), home)?.profile;
    let mut lint = Lint {
        loaded,
        warnings: Vec::new(),
    };
    if profile.description.trim().is_empty() {
        lint.warn(
            "no_description",
            "description",
            None,
            "nothing says what the profile is for",
            "add one sentence",
        );
    }
    lint.folders(profile);
    lint.hidden(profile, &shipped);
    lint.network(profile);
    lint.limits(profile, &shipped);
    lint.environment(profile);
    if profile.uid == 0 || profile.gid == 0 {
        lint.warn(
            "root_inside",
            "user",
            None,
            "the task is uid or gid 0 inside, which widens what the kernel lets it try",
            "write user: 1000:1000",
        );
    }
    Ok(lint.warnings)
}

struct Lint<'a> {
    loaded: &'a Loaded,
    warnings: Vec<Warning>,
}

impl Lint<'_> {
    fn warn(
        &mut self,
        code: &'static str,
        field: &str,
        item: Option<usize>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        let origin = self.loaded.origins.iter().find(|o| o.field == field);
        let layer = origin.and_then(|o| o.layer);
        let (file, place) = match (origin, layer) {
            (Some(origin), Some(i)) => {
                let layer = &self.loaded.chain.layers[i];
                let path = item.map_or_else(|| origin.path.clone(), |i| origin.path.item(i));
                let place = layer.place(&path).or_else(|| layer.place(&origin.path));
                (Some(layer.label.to_string()), place)
            }
            // Nothing is written, so the file that could say it is meant.
            _ => (Some(self.loaded.chain.layers[0].label.to_string()), None),
        };
        self.warnings.push(Warning {
            code,
            field: field.to_owned(),
            file,
            place,
            message: message.into(),
            remediation: remedy.into(),
        });
    }

    fn folders(&mut self, profile: &Profile) {
        for (field, path) in [
            ("sandbox.workspace", &profile.workspace),
            ("sandbox.tmpdir", &profile.tmpdir),
        ] {
            if let Some(path) = path
                && path.components().count() <= 2
            {
                self.warn(
                    "shallow_folder",
                    field,
                    None,
                    format!("{path:?} is a whole top-level folder"),
                    "name a folder made for this, further down",
                );
            }
        }
        for mount in &profile.mounts {
            let Some(source) = &mount.source else {
                continue;
            };
            let sockets = ["/run", "/var/run"].iter().any(|t| source.starts_with(t));
            if sockets {
                self.warn(
                    "socket_folder",
                    "sandbox.mounts",
                    None,
                    format!("{source:?} may hold sockets of services that run as root"),
                    "mount the file that is needed, never a service's socket",
                );
            }
            if mount.mode == Access::Rw {
                self.warn(
                    "writable_mount",
                    "sandbox.mounts",
                    None,
                    format!("{source:?} can be written from inside"),
                    "mount it read-only and take results from /tmp/out, where that will do",
                );
            }
        }
    }

    /// A second belt with fewer hooks than the shipped one (PR-16).
    fn hidden(&mut self, profile: &Profile, shipped: &Profile) {
        let missing: Vec<String> = shipped
            .deny_paths
            .iter()
            .filter(|path| {
                let own = &profile.deny_paths;
                !matches!(
                    paths::exposure(path, own, &[]),
                    Some(paths::Exposure::Inside(_))
                )
            })
            .map(|path| format!("{path:?}"))
            .collect();
        if !missing.is_empty() {
            self.warn(
                "fewer_denied_paths",
                "sandbox.deny_paths",
                None,
                format!(
                    "the list replaces the shipped one and leaves out {}",
                    missing.join(", ")
                ),
                "add them, unless a mount needs them",
            );
        }
    }

    /// What may come in from the caller's environment (PX-03).
    fn environment(&mut self, profile: &Profile) {
        const SECRETS: [&str; 7] = [
            "KEY",
            "TOKEN",
            "SECRET",
            "PASSW",
            "CREDENTIAL",
            "AUTH",
            "COOKIE",
        ];
        for (i, name) in profile.env.allow.iter().enumerate() {
            let upper = name.to_ascii_uppercase();
            let field = "env.allow";
            if SECRETS.iter().any(|word| upper.contains(word)) {
                self.warn(
                    "secret_variable",
                    field,
                    Some(i),
                    format!("{name} looks like a secret, and the task could print or send it"),
                    "remove it, or hand over something that is worth less",
                );
            }
            if upper.starts_with("LD_") || upper == "BASH_ENV" || upper == "PYTHONSTARTUP" {
                self.warn(
                    "loader_variable",
                    field,
                    Some(i),
                    format!("{name} makes programs load code that the caller's session named"),
                    "remove it, or set it to a fixed value under env.set",
                );
            }
        }
    }
}

/// Loads and lints in one go, for callers that want only the warnings.
///
/// # Errors
/// Those of [`crate::load::load`].
pub fn lint_source(
    source: crate::layer::Source,
    cx: &mut Context<'_>,
) -> Result<Vec<Warning>, Error> {
    let loaded = crate::load::load(source, cx)?;
    lint(&loaded, cx.home)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::NAMES;
    use crate::layer::Source;

    fn warnings(text: &str) -> Vec<String> {
        let source = Source::file("p.yaml", text.into()).unwrap();
        let list = lint_source(source, &mut Context::new(Path::new("/home/me"))).unwrap();
        list.iter().map(|w| format!("{} {w}", w.code)).collect()
    }

    fn codes(rest: &str) -> Vec<String> {
        let text = format!("description: a test\n{rest}");
        let first = |w: String| w.split(' ').next().map(str::to_owned);
        warnings(&text).into_iter().filter_map(first).collect()
    }

    #[test]
    fn shipped_profiles_give_none() {
        let home = Path::new("/home/me");
        for name in NAMES {
            let list = lint(&builtin(name, home).unwrap(), home).unwrap();
            assert_eq!(list, [], "{name}");
        }
        assert!(codes("").is_empty());
    }

    /// NW-03, each with its place.
    #[test]
    fn wide_rules_are_named_with_their_place() {
        let list = warnings(
            "description: d\nsandbox:\n  network:\n    allow:\n      - good.example.com:443\n      - bare.example.com\n      - '*.example.com:443'\n      - 10.0.0.0/8:443\n      - 10.0.0.1\n      - a.example.com:1-1000\n      - dead.example.com:80\n      - good.example.com:443\n    deny: [dead.example.com]\n",
        );
        let want = [
            "bare_name p.yaml:6:9: sandbox.network.allow: bare.example.com",
            "star_rule p.yaml:7:9: sandbox.network.allow: *.example.com:443",
            "wide_range p.yaml:8:9: sandbox.network.allow: 10.0.0.0/8:443",
            "bare_address p.yaml:9:9: sandbox.network.allow: 10.0.0.1",
            "wide_ports p.yaml:10:9: sandbox.network.allow: a.example.com:1-1000",
            "dead_rule p.yaml:11:9: sandbox.network.allow: dead.example.com:80",
            "repeated_rule p.yaml:12:9: sandbox.network.allow: good.example.com:443",
        ];
        assert_eq!(list.len(), want.len(), "{list:#?}");
        for (warning, want) in list.iter().zip(want) {
            assert!(warning.starts_with(want), "{warning}");
        }
    }

    #[test]
    fn doubtful_values_are_named() {
        for (text, want) in [
            ("limits: {memory_mb: 100000}", "high_limit"),
            ("timeout_seconds: 2h", "high_limit"),
            ("limits: {memory_mb: 64}", "tmp_over_memory"),
            ("user: 0", "root_inside"),
            ("sandbox: {workspace: /data}", "shallow_folder"),
            ("sandbox: {deny_paths: [~/.ssh]}", "fewer_denied_paths"),
            (
                "sandbox: {mounts: [{path: /s, source: /run/x}]}",
                "socket_folder",
            ),
            (
                "sandbox: {mounts: [{path: /s, source: /d/x, mode: rw}]}",
                "writable_mount",
            ),
            ("env: {allow: [OPENAI_API_KEY]}", "secret_variable"),
            ("env: {allow: [LD_PRELOAD]}", "loader_variable"),
            (
                "tier: strict\nsandbox: {network: {allow: ['10.0.0.1:443']}}",
                "strict_network",
            ),
        ] {
            assert_eq!(codes(text), [want], "{text}");
        }
        assert!(warnings("name: x")[0].starts_with("no_description p.yaml: description: "));
    }
}
