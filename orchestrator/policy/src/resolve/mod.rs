//! A chain of files to one profile: the nearest file that has a key decides.
//!
//! - [`sandbox`]: image, workspace, temporary directory, mounts, denied paths.
//! - [`limits`]: ceilings and time-outs.
//! - [`task`]: environment, user, host name.

mod limits;
mod sandbox;
mod task;

use crate::error::{Code, Error};
use crate::extends::Chain;
use crate::file::{NetworkFile, ProfileFile};
use crate::layer::{Label, Layer};
use crate::load::Context;
use crate::network::Rule;
use crate::profile::{Network, NetworkDefault, Profile, SyscallTable, Tier};
use crate::yaml::locate::Path;

/// Where the value of one field came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    /// Key of the resolved profile, such as `limits.memory_mb`.
    pub field: String,
    /// Index into the chain; `None` where no file has the key.
    pub layer: Option<usize>,
    /// Where in that file.
    pub path: Path,
}

pub(crate) struct Resolved {
    pub profile: Profile,
    pub origins: Vec<Origin>,
}

/// A value and where it stands.
#[derive(Debug, Clone)]
struct Pick<'c, T> {
    value: &'c T,
    layer: &'c Layer,
    path: Path,
}

impl<T> Pick<'_, T> {
    fn refuse(
        &self,
        code: Code,
        message: impl std::fmt::Display,
        remedy: impl Into<String>,
    ) -> Error {
        self.layer.refuse(code, &self.path, message, remedy)
    }
}

struct Resolver<'c> {
    chain: &'c Chain,
    origins: Vec<Origin>,
}

impl<'c> Resolver<'c> {
    /// The value of `field` in the nearest file that has it.
    fn pick<T>(
        &mut self,
        field: &str,
        get: impl Fn(&'c ProfileFile) -> Option<&'c T>,
    ) -> Option<Pick<'c, T>> {
        self.pick_in(field, self.chain.layers.len(), get)
    }

    fn pick_in<T>(
        &mut self,
        field: &str,
        layers: usize,
        get: impl Fn(&'c ProfileFile) -> Option<&'c T>,
    ) -> Option<Pick<'c, T>> {
        let found = self.chain.layers[..layers]
            .iter()
            .enumerate()
            .find_map(|(i, layer)| Some((i, layer, get(&layer.file)?)));
        let (layer, path) = match &found {
            Some((i, layer, _)) => (Some(*i), layer.path(field)),
            None => (None, Path::default()),
        };
        self.origins.push(Origin {
            field: field.to_owned(),
            layer,
            path: path.clone(),
        });
        found.map(|(_, layer, value)| Pick { value, layer, path })
    }

    /// A value that the shipped profile at the end of every chain has.
    fn need<T>(
        &mut self,
        field: &str,
        get: impl Fn(&'c ProfileFile) -> Option<&'c T>,
    ) -> Result<Pick<'c, T>, Error> {
        self.pick(field, get).ok_or_else(|| {
            Error::new(
                Code::ProfileInvalid,
                format!("no profile of the chain sets {field}"),
                format!("set {field}"),
            )
        })
    }

    fn network(&mut self, tier: Tier) -> Result<Network, Error> {
        // A tier's own network is not a default: missing means deny (PR-17).
        let layers = self.chain.layers.len() - usize::from(self.chain.implied);
        let network = |file: &'c ProfileFile| file.sandbox.as_ref()?.network.as_ref();
        let default = self.pick_in("sandbox.network.default", layers, |file| {
            network(file)?.default.as_ref()
        });
        if let Some(pick) = &default
            && *pick.value == NetworkDefault::Allow
            && tier != Tier::Loose
        {
            // Inherited from a shipped profile, it is the file's tier that is wrong.
            let layers = &self.chain.layers;
            let own = matches!(pick.layer.label, Label::File(_));
            let (layer, path) = match layers.iter().find(|l| l.file.tier.is_some()) {
                Some(named) if !own => (named, Path::of("tier")),
                _ => (pick.layer, pick.path.clone()),
            };
            return Err(layer.refuse(
                Code::ProfileTooLoose,
                &path,
                format!(
                    "network.default is allow, which is for tier loose only (PR-31), in {}",
                    pick.layer.label
                ),
                "write `default: deny` and list the destinations under allow, or set `tier: loose`",
            ));
        }
        let mut rules = |field: &str, get: fn(&NetworkFile) -> Option<&Vec<String>>| {
            let pick = self.pick_in(field, layers, |file| get(network(file)?));
            pick.map_or(Ok(Vec::new()), |pick| canonical_rules(&pick))
        };
        Ok(Network {
            allow: rules("sandbox.network.allow", |n| n.allow.as_ref())?,
            deny: rules("sandbox.network.deny", |n| n.deny.as_ref())?,
            default: default.map_or(NetworkDefault::Deny, |pick| *pick.value),
        })
    }
}

fn canonical_rules(pick: &Pick<'_, Vec<String>>) -> Result<Vec<String>, Error> {
    let mut rules: Vec<String> = Vec::new();
    for (i, text) in pick.value.iter().enumerate() {
        let path = pick.path.item(i);
        let rule = text.parse::<Rule>().map_err(|error| {
            let remedy = error.remediation.clone();
            pick.layer.refuse(error.code, &path, error, remedy)
        })?;
        rules.push(rule.to_string());
    }
    Ok(rules)
}

pub(crate) fn resolve(chain: &Chain, cx: &Context<'_>) -> Result<Resolved, Error> {
    let mut resolver = Resolver {
        chain,
        origins: Vec::new(),
    };
    let r = &mut resolver;
    let leaf = &chain.layers[0];

    r.pick_in("name", 1, |file| file.name.as_ref());
    r.pick_in("description", 1, |file| file.description.as_ref());
    r.pick("tier", |file| file.tier.as_ref());
    let tier = chain.tier();
    let parts = r.sandbox(cx)?;
    let network = r.network(tier)?;
    let limits = r.limits()?;
    let (command_timeout_ms, timeout_ms) = r.timeouts()?;
    let env = r.env()?;
    let syscalls = SyscallTable::from(*r.need("syscalls", |file| file.syscalls.as_ref())?.value);
    let (uid, gid) = r.user()?;
    let hostname = r.hostname()?;
    let reuse = *r.need("reuse", |file| file.reuse.as_ref())?.value;

    let profile = Profile {
        name: match (&leaf.file.name, &leaf.label) {
            (Some(name), _) => name.clone(),
            (None, Label::Builtin(name)) => (*name).to_owned(),
            (None, Label::File(file)) => stem(file).to_owned(),
        },
        description: leaf.file.description.clone().unwrap_or_default(),
        tier,
        image: parts.image,
        root: parts.root,
        workspace: parts.workspace,
        workspace_mode: parts.workspace_mode,
        tmpdir: parts.tmpdir,
        mounts: parts.mounts,
        deny_paths: parts.deny_paths,
        network,
        limits,
        command_timeout_ms,
        timeout_ms,
        env,
        syscalls,
        uid,
        gid,
        hostname,
        reuse,
    };
    Ok(Resolved {
        profile,
        origins: resolver.origins,
    })
}

/// The name of a file without directories and extension.
fn stem(file: &str) -> &str {
    let name = file.rsplit('/').next().unwrap_or(file);
    match name.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem,
        _ => name,
    }
}
