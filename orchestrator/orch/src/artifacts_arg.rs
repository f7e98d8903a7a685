//! `--artifacts DIR`, for those who keep output and those who read it.

use std::path::PathBuf;

use clap::Args;
use orch_policy::Error;

use crate::flag_or_variable;
use crate::task_args::Cwd;

/// Variable that names the directory where no flag does.
const VARIABLE: &str = "ORCH_ARTIFACTS";

/// Where artifacts are.
#[derive(Debug, Args)]
pub struct ArtifactsArg {
    /// Directory below which all output and the receipt of a task are kept [default:
    /// $ORCH_ARTIFACTS].
    ///
    /// DIR/ID/output.log is all output of task ID, standard output and standard error in the
    /// order in which orch read them; DIR/ID/receipt.json is its receipt, there when the task
    /// has ended. `orch run` makes DIR where it is missing, and keeps nothing without it.
    #[arg(long, value_name = "DIR", help_heading = "Files")]
    artifacts: Option<PathBuf>,
}

impl ArtifactsArg {
    /// The directory, absolute, where one is named.
    ///
    /// # Errors
    /// As [`Cwd::absolute`].
    pub fn path(&self, cwd: &Cwd) -> Result<Option<PathBuf>, Error> {
        flag_or_variable::path(self.artifacts.as_deref(), std::env::var_os(VARIABLE))
            .map(|dir| cwd.absolute(&dir))
            .transpose()
    }
}
