//! The interface that libcontainer calls.

use std::path::PathBuf;

use nix::unistd::Pid;
use oci_spec::runtime::LinuxResources;

use crate::stats::Stats;

/// Where control groups are mounted.
pub const DEFAULT_CGROUP_ROOT: &str = "/sys/fs/cgroup";

/// What cannot be had from libcontainer here.
#[derive(Debug, thiserror::Error)]
#[error("control groups belong to orch and not to libcontainer")]
pub struct AnyManagerError;

/// Part of the interface; making a manager does not fail.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct CreateCgroupSetupError(#[from] AnyManagerError);

/// The layout of the host is not looked at.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct GetCgroupSetupError(#[from] AnyManagerError);

/// How control groups are mounted.
#[derive(Debug)]
pub enum CgroupSetup {
    /// Version 1, with version 2 beside it.
    Hybrid,
    /// Version 1.
    Legacy,
    /// Version 2.
    Unified,
}

/// What a group is to do with its processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FreezerState {
    /// Not known.
    Undefined,
    /// Stop them.
    Frozen,
    /// Let them go on.
    Thawed,
}

/// Which group is meant.
#[derive(Debug, Clone)]
pub struct CgroupConfig {
    /// Below the root.
    pub cgroup_path: PathBuf,
    /// Whether systemd would have to make it.
    pub systemd_cgroup: bool,
    /// Whose it is.
    pub container_name: String,
}

/// Limits for a group.
#[derive(Debug, Clone)]
pub struct ControllerOpt<'a> {
    /// Those of an OCI configuration.
    pub resources: &'a LinuxResources,
    /// Whether running out of memory stops a process instead of killing it.
    pub disable_oom_killer: bool,
    /// Preference in the choice of what is killed.
    pub oom_score_adj: Option<i32>,
    /// Whether the group stands still.
    pub freezer_state: Option<FreezerState>,
}

/// What libcontainer does with a group.
pub trait CgroupManager {
    /// Why it could not be done.
    type Error;

    /// A process of a new container stays in the group in which it was started.
    ///
    /// # Errors
    /// None here.
    fn add_task(&self, pid: Pid) -> Result<(), Self::Error>;

    /// Sets limits.
    ///
    /// # Errors
    /// Always here: a limit that is not kept has to be seen.
    fn apply(&self, limits: &ControllerOpt<'_>) -> Result<(), Self::Error>;

    /// Removes the group.
    ///
    /// # Errors
    /// None here: there is none to remove.
    fn remove(&self) -> Result<(), Self::Error>;

    /// Stops a group or lets it go on.
    ///
    /// # Errors
    /// Always here.
    fn freeze(&self, state: FreezerState) -> Result<(), Self::Error>;

    /// Reads counters.
    ///
    /// # Errors
    /// Always here.
    fn stats(&self) -> Result<Stats, Self::Error>;

    /// Lists the processes of a group.
    ///
    /// # Errors
    /// Always here.
    fn get_all_pids(&self) -> Result<Vec<Pid>, Self::Error>;
}

/// The manager of no group.
#[derive(Debug)]
pub struct AnyCgroupManager;

impl AnyCgroupManager {
    /// The same: nothing that is read-only to somebody is written here.
    #[must_use]
    pub fn with_rootless(self, _: bool) -> Self {
        self
    }
}

impl CgroupManager for AnyCgroupManager {
    type Error = AnyManagerError;

    fn add_task(&self, _: Pid) -> Result<(), Self::Error> {
        Ok(())
    }

    fn apply(&self, _: &ControllerOpt<'_>) -> Result<(), Self::Error> {
        Err(AnyManagerError)
    }

    fn remove(&self) -> Result<(), Self::Error> {
        Ok(())
    }

    fn freeze(&self, _: FreezerState) -> Result<(), Self::Error> {
        Err(AnyManagerError)
    }

    fn stats(&self) -> Result<Stats, Self::Error> {
        Err(AnyManagerError)
    }

    fn get_all_pids(&self) -> Result<Vec<Pid>, Self::Error> {
        Err(AnyManagerError)
    }
}

/// A manager, whatever is asked for.
///
/// # Errors
/// None here.
pub fn create_cgroup_manager(_: CgroupConfig) -> Result<AnyCgroupManager, CreateCgroupSetupError> {
    Ok(AnyCgroupManager)
}

/// For mounts of type `cgroup` and for freezing, which orch does not ask for.
///
/// # Errors
/// Always.
pub fn get_cgroup_setup() -> Result<CgroupSetup, GetCgroupSetupError> {
    Err(AnyManagerError.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manager() -> AnyCgroupManager {
        let config = CgroupConfig {
            cgroup_path: "/x".into(),
            systemd_cgroup: false,
            container_name: "x".to_owned(),
        };
        create_cgroup_manager(config).unwrap()
    }

    /// H18: what cannot be kept is refused; making a container without limits is not.
    #[test]
    fn a_limit_is_refused_and_a_process_without_one_is_not() {
        let resources = LinuxResources::default();
        let limits = ControllerOpt {
            resources: &resources,
            disable_oom_killer: false,
            oom_score_adj: None,
            freezer_state: None,
        };
        assert!(manager().apply(&limits).is_err());
        manager().add_task(Pid::this()).unwrap();
        manager().remove().unwrap();
    }
}
