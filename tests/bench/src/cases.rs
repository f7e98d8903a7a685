//! Every case, by what it is about. A new number gets its case here.

mod count;
mod run;
mod stages;

use std::cell::OnceCell;
use std::path::PathBuf;
use std::rc::Rc;

use anyhow::{Result, anyhow};

use crate::bundle::Bundle;
use crate::case::Case;

/// The command that does nothing: what remains is the cost around it.
pub const NOTHING: &str = "/bin/true";

/// What the cases share.
#[derive(Debug, Clone)]
pub struct Stand {
    /// The binary under test.
    pub orch: PathBuf,
    bundle: Rc<OnceCell<Result<Bundle, String>>>,
}

impl Stand {
    /// A stand around one binary.
    #[must_use]
    pub fn new(orch: PathBuf) -> Self {
        Self {
            orch,
            bundle: Rc::default(),
        }
    }

    /// The bundle of `orch spec --profile strict -- /bin/true`, made when it
    /// is first asked for.
    ///
    /// # Errors
    /// When it could not be made; every later call says the same.
    pub fn bundle(&self) -> Result<&Bundle> {
        self.bundle
            .get_or_init(|| {
                Bundle::from_orch(&self.orch, "strict", &[NOTHING])
                    .map_err(|error| format!("{error:#}"))
            })
            .as_ref()
            .map_err(|reason| anyhow!("no bundle: {reason}"))
    }
}

/// All cases that `wants` wants, in the order of the table.
pub fn all(stand: &Stand, wants: &dyn Fn(&str) -> bool) -> Vec<Case> {
    let mut cases = run::cases(stand, wants);
    cases.extend(stages::cases(stand));
    cases.extend(count::cases(stand, wants));
    cases.retain(|case| wants(&case.name));
    cases
}
