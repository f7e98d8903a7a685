//! Profile + task → container spec and task spec: pure, with golden files (PR-12).
//!
//! - [`mod@container`]: what the container and its leases are made of.
//! - [`mod@task`]: what one command gets.
//! - [`layout`]: paths that are the same in every sandbox.
//! - [`oci`]: the configuration that libcontainer gets.
//! - [`merged`]: both specs as one configuration, which `orch spec` prints.

pub mod container;
pub mod layout;
pub mod merged;
pub mod oci;
pub mod task;

pub use container::{ContainerSpec, ImageFacts, container};
pub use task::{TaskSpec, task};
