//! The chain of files behind a profile: child first, a shipped profile last.

use crate::builtin;
use crate::error::{Code, Error};
use crate::layer::{Label, Layer, Source};
use crate::load::Context;
use crate::profile::Tier;
use crate::yaml::locate::Path;

/// Most files in a chain, the shipped one included.
pub const MAX_DEPTH: usize = 8;

/// Everything a profile is made of.
#[derive(Debug)]
pub(crate) struct Chain {
    /// Child first.
    pub layers: Vec<Layer>,
    /// Whether the last layer was not named but is there for the defaults of the
    /// tier. The network of such a layer does not count (PR-17: missing is deny).
    pub implied: bool,
}

impl Chain {
    pub fn of(source: Source, cx: &mut Context<'_>) -> Result<Self, Error> {
        let mut layers = vec![Layer::read(source)?];
        while let Some(next) = parent(&layers, cx)? {
            layers.push(Layer::read(next)?);
        }
        let rooted =
            matches!(layers.last(), Some(layer) if matches!(layer.label, Label::Builtin(_)));
        let mut chain = Self {
            layers,
            implied: !rooted,
        };
        if !rooted {
            let base = builtin::source(tier_word(chain.tier()))?;
            chain.layers.push(Layer::read(base)?);
        }
        Ok(chain)
    }

    /// The tier that the nearest file names; standard where none does (PR-08).
    pub fn tier(&self) -> Tier {
        self.layers
            .iter()
            .find_map(|layer| layer.file.tier)
            .map_or(Tier::Standard, Tier::from)
    }
}

/// The name of a tier, which is the name of its shipped profile.
#[must_use]
pub const fn tier_word(tier: Tier) -> &'static str {
    match tier {
        Tier::Loose => "loose",
        Tier::Standard => "standard",
        Tier::Strict => "strict",
    }
}

fn parent(layers: &[Layer], cx: &mut Context<'_>) -> Result<Option<Source>, Error> {
    let Some(child) = layers.last() else {
        return Ok(None);
    };
    let Some(reference) = child.file.extends.as_deref() else {
        return Ok(None);
    };
    let key = Path::of("extends");
    let next = if let Some(name) = builtin::canonical(reference) {
        builtin::source(name)?
    } else if reference.contains('/') || reference.ends_with(".yaml") || reference.ends_with(".yml")
    {
        let from = match &child.label {
            Label::File(file) => file.as_str(),
            Label::Builtin(name) => name,
        };
        (cx.open)(reference, from).map_err(|error| {
            child
                .refuse(
                    error.code,
                    &key,
                    format!("{reference:?} cannot be read"),
                    error.remediation.clone(),
                )
                .because(error)
        })?
    } else {
        let error = builtin::unknown(reference);
        return Err(child.refuse(error.code, &key, error.message, error.remediation));
    };
    if layers.iter().any(|layer| layer.label == next.label) {
        let way: Vec<String> = layers.iter().map(|l| l.label.to_string()).collect();
        return Err(child
            .refuse(
                Code::ProfileInvalid,
                &key,
                format!("{} extends itself", next.label),
                "break the circle: remove one of the `extends`",
            )
            .because(way.join(" → ")));
    }
    if layers.len() >= MAX_DEPTH {
        return Err(child.refuse(
            Code::ProfileInvalid,
            &key,
            format!("more than {MAX_DEPTH} profiles extend each other"),
            "merge some of them into one file",
        ));
    }
    Ok(Some(next))
}
