//! A task measured against its profile, ready for the engine.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use orch_policy::limits::{Effective, effective};
use orch_policy::profile::{Image, NetworkDefault};
use orch_policy::task::Task;
use orch_policy::{Code, Error, Profile, digest};

use crate::home::home;
use crate::profile_arg;
use crate::task_args::{Cwd, NetworkArg, TaskArgs};

/// Everything about a task that is known before anything is started.
#[derive(Debug)]
pub struct Prepared {
    /// Effective profile, with what the flags change of it.
    pub profile: Profile,
    /// SHA-256 of that.
    pub sha256: String,
    /// What is asked.
    pub task: Task,
    /// Limits in force.
    pub effective: Effective,
    /// What the profile lets through of the caller's environment.
    pub inherited: Vec<(OsString, OsString)>,
}

impl Prepared {
    /// Reads the profile and settles the task. `state` is orch's own directory,
    /// which no task may see (FS-21).
    ///
    /// # Errors
    /// What loading the profile, the flags, or the limits complain of.
    pub fn new(args: &TaskArgs, cwd: &Cwd, state: &Path) -> Result<Self, Error> {
        let reserved = [state.to_owned()];
        let loaded = profile_arg::by_name(&args.profile, &home()?, &reserved)?;
        let mut profile = loaded.profile;
        match &args.image {
            None => {}
            Some(image) if image == Path::new("host") => profile.image = Image::Host,
            Some(image) => profile.image = Image::Dir(image_dir(image, cwd)?),
        }
        if args.network == NetworkArg::None {
            cut_off(&mut profile);
        }
        let task = args.task(cwd, |name| std::env::var_os(name))?;
        let effective = effective(&profile, &task)?;
        let inherited = profile
            .env
            .allow
            .iter()
            .filter_map(|name| Some((name.into(), std::env::var_os(name)?)))
            .collect();
        Ok(Self {
            sha256: digest::sha256(&profile)?,
            profile,
            task,
            effective,
            inherited,
        })
    }

    /// Refuses a profile that lets its task out: its filter would be missing.
    ///
    /// # Errors
    /// [`Code::EgressUnavailable`].
    pub fn check_egress(&self) -> Result<(), Error> {
        if !self.profile.network.needs_egress() {
            return Ok(());
        }
        Err(Error::new(
            Code::EgressUnavailable,
            format!(
                "profile {} lets its task out to a network, and there is no gateway to watch over it",
                self.profile.name
            ),
            "run it without a network: --network none",
        ))
    }
}

fn image_dir(image: &Path, cwd: &Cwd) -> Result<PathBuf, Error> {
    cwd.absolute(image).map_err(|error| Error {
        code: Code::ImageInvalid,
        ..error
    })
}

/// `--network none`: nothing gets out, and no rule is left that says otherwise.
fn cut_off(profile: &mut Profile) {
    profile.network.default = NetworkDefault::Deny;
    profile.network.allow.clear();
    profile.network.deny.clear();
}
