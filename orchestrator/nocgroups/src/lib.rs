//! What libcontainer sees instead of `libcgroups`: no control group, whatever the
//! host has. Those of orch are made, joined and removed by the launcher
//! (docs/decisions/0005-cgroups.md), and libcontainer has no way to one of them.
//!
//! The names and signatures are those of `libcgroups` 0.7 as far as libcontainer 0.7
//! uses them. What would have to touch a control group is an error and never
//! passed over in silence (H18).
#![forbid(unsafe_code)]

pub mod common;

/// Counters of a control group.
pub mod stats {
    /// Nothing is counted here; the launcher reads the counters of an exec.
    #[derive(Debug, Default, serde::Serialize)]
    pub struct Stats {}
}

/// Version 1.
pub mod v1 {
    /// Where it is mounted.
    pub mod util {
        use std::path::PathBuf;

        use crate::common::AnyManagerError;

        /// For mounts of type `cgroup`, which orch does not ask for.
        ///
        /// # Errors
        /// Always.
        pub fn list_subsystem_mount_points() -> Result<Vec<PathBuf>, AnyManagerError> {
            Err(AnyManagerError)
        }
    }
}

/// Version 2.
pub mod v2 {
    /// Where it is mounted.
    pub mod util {
        use std::path::PathBuf;

        use crate::common::AnyManagerError;

        /// For mounts of type `cgroup`, which orch does not ask for.
        ///
        /// # Errors
        /// Always.
        pub fn get_unified_mount_point() -> Result<PathBuf, AnyManagerError> {
            Err(AnyManagerError)
        }
    }
}
