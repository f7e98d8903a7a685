//! Profile text to an effective profile. Files and the home directory come in
//! as arguments; nothing is read here.

use std::path::{Path, PathBuf};

use crate::builtin;
use crate::compare::check_tier;
use crate::error::{Code, Error};
use crate::extends::{Chain, tier_word};
use crate::layer::{Label, Source};
use crate::profile::Profile;
use crate::resolve::{Resolved, resolve};

/// Opens the file that `extends` names: the reference as written, and the name of
/// the file it stands in.
pub type Open<'a> = dyn FnMut(&str, &str) -> Result<Source, Error> + 'a;

/// What a profile is loaded with.
pub struct Context<'a> {
    /// Home directory of the caller, absolute; what `~` means.
    pub home: &'a Path,
    /// Host paths of orch itself (its state directory), never given to a sandbox
    /// (FS-21, AU-06).
    pub reserved: &'a [PathBuf],
    pub(crate) open: Box<Open<'a>>,
}

impl std::fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("home", &self.home)
            .field("reserved", &self.reserved)
            .finish_non_exhaustive()
    }
}

impl<'a> Context<'a> {
    /// A context in which `extends` can name shipped profiles only.
    #[must_use]
    pub fn new(home: &'a Path) -> Self {
        Self {
            home,
            reserved: &[],
            open: Box::new(|reference, _| {
                Err(Error::new(
                    Code::ProfileUnknown,
                    format!("{reference}: files cannot be opened here"),
                    "extend a shipped profile",
                ))
            }),
        }
    }

    /// The same with a way to open files.
    #[must_use]
    pub fn with_open(mut self, open: impl FnMut(&str, &str) -> Result<Source, Error> + 'a) -> Self {
        self.open = Box::new(open);
        self
    }

    /// The same with paths of orch that no profile may expose.
    #[must_use]
    pub fn with_reserved(mut self, reserved: &'a [PathBuf]) -> Self {
        self.reserved = reserved;
        self
    }
}

/// A profile that was loaded, with everything it was made of.
#[derive(Debug)]
pub struct Loaded {
    /// The effective profile.
    pub profile: Profile,
    pub(crate) chain: Chain,
    pub(crate) origins: Vec<crate::resolve::Origin>,
}

impl Loaded {
    /// The files behind the profile, child first, with their texts (PR-29).
    pub fn sources(&self) -> impl Iterator<Item = (String, &str)> {
        self.chain
            .layers
            .iter()
            .map(|layer| (layer.label.to_string(), layer.text.as_str()))
    }
}

/// Loads a profile file and measures it against its tier.
///
/// # Errors
/// [`Code::ProfileSyntax`], [`Code::ProfileUnknownKey`], [`Code::ProfileUnknown`],
/// [`Code::ProfileInvalid`], [`Code::ProfileTooLoose`], [`Code::LimitInvalid`],
/// [`Code::MountInvalid`], [`Code::MountDenied`], [`Code::MountConflict`],
/// [`Code::EnvInvalid`], [`Code::UserInvalid`]; each with file, line, column and
/// key (PR-36).
pub fn load(source: Source, cx: &mut Context<'_>) -> Result<Loaded, Error> {
    let loaded = load_source(source, cx)?;
    let base = builtin::builtin(tier_word(loaded.profile.tier), cx.home)?;
    check_tier(&loaded.profile, &base.profile).map_err(|loose| {
        let first = &loose[0];
        let more: Vec<String> = loose.iter().map(ToString::to_string).collect();
        loaded
            .refuse_at(
                first.field,
                Code::ProfileTooLoose,
                format!(
                    "tier {} does not allow this",
                    tier_word(loaded.profile.tier)
                ),
                format!(
                    "tighten the value, or use `tier: {}`",
                    tier_word(first.needs)
                ),
            )
            .because(more.join("; "))
    })?;
    Ok(loaded)
}

/// The same without the measure: the shipped profiles are the measure.
pub(crate) fn load_source(source: Source, cx: &mut Context<'_>) -> Result<Loaded, Error> {
    if !cx.home.is_absolute() {
        return Err(Error::new(
            Code::ProfileInvalid,
            format!("the home directory {:?} is not absolute", cx.home),
            "set HOME to an absolute path",
        ));
    }
    let chain = Chain::of(source, cx)?;
    let Resolved { profile, origins } = resolve(&chain, cx)?;
    Ok(Loaded {
        profile,
        chain,
        origins,
    })
}

impl Loaded {
    fn refuse_at(&self, field: &str, code: Code, message: String, remedy: String) -> Error {
        // The value may be inherited; then the file's own `tier` is the mismatch.
        let origin = self.origins.iter().find(|origin| origin.field == field);
        let at = origin.and_then(|origin| Some((origin.layer?, &origin.path)));
        match at {
            Some((i, path)) if matches!(self.chain.layers[i].label, Label::File(_)) => {
                self.chain.layers[i].refuse(code, path, message, remedy)
            }
            _ => {
                let tier = crate::yaml::locate::Path::of("tier");
                let named = self.chain.layers.iter().find(|l| l.file.tier.is_some());
                named
                    .unwrap_or(&self.chain.layers[0])
                    .refuse(code, &tier, message, remedy)
            }
        }
    }
}

#[cfg(test)]
#[path = "load_tests/mod.rs"]
mod tests;
