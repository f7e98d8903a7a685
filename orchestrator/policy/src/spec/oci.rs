//! OCI runtime configurations (runtime-spec 1.0.2).

use std::path::{Path, PathBuf};

use oci_spec::OciSpecError;
use oci_spec::runtime::{
    LinuxBuilder, LinuxIdMappingBuilder, LinuxNamespaceBuilder, LinuxNamespaceType, MountBuilder,
    ProcessBuilder, RootBuilder, Spec, SpecBuilder, UserBuilder,
};

/// First host id of a container's range, and how many follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ids {
    /// First id on the host.
    pub first: u32,
    /// How many.
    pub count: u32,
}

/// Where a container's user namespace comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserNamespace {
    /// libcontainer makes it, with these ids.
    New(Ids),
    /// It is there already.
    Path(PathBuf),
}

/// What libcontainer makes: a user, a mount and a pid namespace around a root
/// that stands already. No resources, no cgroup path, no id-mapped mounts and no
/// seccomp: those are the engine's and the guest's (design §4, H3, H18).
///
/// # Errors
/// A value that the OCI types refuse.
pub fn for_libcontainer(root: &Path, user: &UserNamespace) -> Result<Spec, OciSpecError> {
    let kind = LinuxNamespaceBuilder::default().typ(LinuxNamespaceType::User);
    let (own, mapping) = match user {
        UserNamespace::New(ids) => {
            let mapping = LinuxIdMappingBuilder::default()
                .container_id(0_u32)
                .host_id(ids.first)
                .size(ids.count)
                .build()?;
            (kind.build()?, vec![mapping])
        }
        UserNamespace::Path(path) => (kind.path(path).build()?, Vec::new()),
    };
    let others = [LinuxNamespaceType::Mount, LinuxNamespaceType::Pid]
        .into_iter()
        .map(|kind| LinuxNamespaceBuilder::default().typ(kind).build())
        .collect::<Result<Vec<_>, _>>()?;
    let mut linux = LinuxBuilder::default()
        .namespaces([vec![own], others].concat())
        .uid_mappings(mapping.clone())
        .gid_mappings(mapping)
        .masked_paths(Vec::new())
        .readonly_paths(Vec::new())
        .rootfs_propagation("private")
        .build()?;
    // The builder's defaults have device rules, which would need a control group.
    linux.set_resources(None);
    let process = ProcessBuilder::default()
        .args(vec!["orch-guest".to_owned()])
        // The guest gets neither; libcontainer would look for a home directory.
        .env(vec!["HOME=/".to_owned()])
        .cwd("/")
        .user(UserBuilder::default().uid(0_u32).gid(0_u32).build()?)
        .no_new_privileges(true)
        .capabilities(guest_capabilities()?)
        .rlimits(Vec::new())
        .build()?;
    let mut spec = SpecBuilder::default()
        .version("1.0.2")
        .root(RootBuilder::default().path(root).readonly(true).build()?)
        .mounts(vec![
            MountBuilder::default()
                .destination(PathBuf::from("/proc"))
                .typ("proc")
                .source("proc")
                .options(["nosuid", "nodev", "noexec"].map(str::to_owned).to_vec())
                .build()?,
        ])
        .process(process)
        .linux(linux)
        .build()?;
    // The builder's defaults have one, and a container has no namespace for it:
    // each lease gets its own.
    spec.set_hostname(None);
    Ok(spec)
}

/// What staging a lease needs, all of it only within the container's own user
/// namespace; nothing is inheritable or ambient (H13).
fn guest_capabilities() -> Result<oci_spec::runtime::LinuxCapabilities, OciSpecError> {
    use oci_spec::runtime::{Capability, LinuxCapabilitiesBuilder};
    let set: std::collections::HashSet<Capability> = [
        Capability::Chown,
        Capability::DacOverride,
        Capability::Fowner,
        Capability::Kill,
        Capability::NetAdmin,
        Capability::Setgid,
        Capability::Setpcap,
        Capability::Setuid,
        Capability::SysAdmin,
        Capability::SysChroot,
    ]
    .into();
    LinuxCapabilitiesBuilder::default()
        .bounding(set.clone())
        .effective(set.clone())
        .permitted(set)
        .inheritable(std::collections::HashSet::new())
        .ambient(std::collections::HashSet::new())
        .build()
}
