//! `orch doctor`.

use std::path::PathBuf;

use clap::Args;
use orch_policy::Error;

use crate::doctor::examine;
use crate::doctor_text;
use crate::print::{self, Format};

/// Say what this machine can keep of each tier, and how to fix the rest.
///
/// Looks at the kernel, namespaces, control groups, file systems, a container around
/// orch, and the pools that sandboxes share; then tries each tier once, in a sandbox of
/// its own. Leaves nothing behind but the state directory.
///
/// `ok`: as it should be. `WARN`: it works, and something is less good than elsewhere.
/// `MISSING`: what needs it is refused; the line says what that is.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes:
  0    every tier can be kept
  1    loose and standard can be kept, strict cannot
  2    loose alone can be kept
  3    none can be kept (also for users other than root)
  125  doctor itself failed

Examples:
  sudo orch doctor
  sudo orch doctor --folder /srv/project
  sudo orch doctor --format json | jq '.checks[] | select(.state != \"ok\")'")]
pub struct DoctorArgs {
    /// How to write it.
    #[arg(long, value_enum, default_value_t)]
    format: Format,

    /// Folder that is to be given to a task: can its file system carry that?
    #[arg(long, value_name = "DIR", default_value = ".")]
    folder: PathBuf,
}

impl DoctorArgs {
    /// Whether errors are wanted as JSON.
    pub fn json(&self) -> bool {
        self.format == Format::Json
    }
}

/// Examines the machine and says what was found.
///
/// # Errors
/// Where standard output cannot be written.
pub fn run(args: &DoctorArgs) -> Result<u8, Error> {
    let report = examine(&args.folder);
    match args.format {
        Format::Json => print::json(&report)?,
        Format::Text => print::text(&doctor_text::text(&report, print::colour()))?,
    }
    Ok(report.exit_code)
}
