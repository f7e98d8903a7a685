//! `orch spec`.

use std::path::PathBuf;

use clap::Args;
use orch_engine::StateDir;
use orch_policy::Error;
use orch_policy::spec::merged;
use orch_policy::spec::oci::Ids;

use crate::bundle;
use crate::prepare::Prepared;
use crate::print;
use crate::sandbox;
use crate::task_args::{Cwd, TaskArgs};

/// Host ids of the printed container: beyond those of users, of subordinate ids
/// and of systemd's containers (systemd UIDS-GIDS).
const IDS: Ids = Ids {
    first: 1_879_048_192,
    count: 65_536,
};

/// Print the sandbox as one OCI configuration that runc and crun can run.
///
/// What orch does and no configuration can say stands in its annotations: id-mapped
/// inputs, time-outs, output limits. Whatever the profile's network rules are, the
/// printed container has a loopback device only.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  orch spec --profile strict -- true > config.json
  orch spec --bundle /tmp/b -- python3 --version && runc run --bundle /tmp/b demo")]
pub struct SpecArgs {
    #[command(flatten)]
    task: TaskArgs,

    /// Write DIR/config.json and DIR/rootfs, ready to be run, instead of printing.
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    bundle: Option<PathBuf>,

    /// How errors are written; the configuration is JSON anyway.
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    format: print::Format,
}

impl SpecArgs {
    /// Whether errors are wanted as JSON.
    pub fn json(&self) -> bool {
        self.format == print::Format::Json
    }
}

/// Prints or writes the configuration.
///
/// # Errors
/// What the task or its profile complains of, or the file system.
pub fn run(args: &SpecArgs) -> Result<u8, Error> {
    let cwd = Cwd::of_process();
    let state = StateDir::default_path();
    let prepared = Prepared::new(&args.task, &cwd, &state)?;
    let (container, command) = sandbox::specs(&prepared, &state)?;
    let config = merged::text(&merged::merged(&container, &command, IDS)?)?;
    match &args.bundle {
        None => print::text(&config)?,
        Some(dir) => bundle::write(&cwd.absolute(dir)?, &config, &container)?,
    }
    Ok(0)
}
