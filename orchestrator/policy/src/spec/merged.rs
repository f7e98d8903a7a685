//! Container and task as one OCI configuration, for `orch spec`.
//!
//! orch itself makes a container and a lease in it (design §4). Other runtimes
//! know one container, so here both are one: the same files, limits, masks and
//! system calls, on the namespaces of the container. What a configuration cannot
//! say stands in its annotations:
//!
//! - `dev.orch.idmap.N`: mount N is shown with translated ids; runc before 1.2 has
//!   no such mounts.
//! - `dev.orch.limit.*`: bounds that orch keeps from outside.
//! - `dev.orch.writable-root`: a writable `/` is thrown away by orch only.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use oci_spec::OciSpecError;
use oci_spec::runtime::{
    Linux, LinuxBuilder, LinuxCapabilitiesBuilder, LinuxCpuBuilder, LinuxDeviceCgroupBuilder,
    LinuxIdMappingBuilder, LinuxMemoryBuilder, LinuxNamespaceBuilder, LinuxNamespaceType,
    LinuxPidsBuilder, LinuxResources, LinuxResourcesBuilder, Mount, MountBuilder, PosixRlimit,
    PosixRlimitBuilder, PosixRlimitType, Process, ProcessBuilder, RootBuilder, Spec, SpecBuilder,
    UserBuilder,
};
use serde_json::Value;

use super::container::{Bind, ContainerSpec, Tmpfs};
use super::oci::Ids;
use super::task::TaskSpec;
use crate::error::{Code, Error};
use crate::profile::{Access, Limits};
use crate::syscalls;

/// Period of the CPU quota, microseconds (sched-bwc(7) default).
const CPU_PERIOD_US: u64 = 100_000;

/// The merge, for a bundle whose root file system lies in `rootfs` beside it and
/// holds what [`mount_points`] names.
///
/// # Errors
/// [`Code::FormatImpossible`] for an argument, variable or path that is not
/// UTF-8, which JSON cannot hold; [`Code::ControlMissing`] where the table of
/// system calls cannot be read.
pub fn merged(container: &ContainerSpec, task: &TaskSpec, ids: Ids) -> Result<Spec, Error> {
    let seccomp = syscalls::oci(task.syscalls)?;
    check_text(container, task)?;
    build(container, task, ids, seccomp).map_err(|e| {
        Error::new(
            Code::FormatImpossible,
            "this task cannot be written as an OCI configuration",
            "report this as a bug",
        )
        .because(e)
    })
}

/// The configuration as text, in the same order every time.
///
/// # Errors
/// [`Code::FormatImpossible`], which [`merged`] has excluded.
pub fn text(spec: &Spec) -> Result<String, Error> {
    let impossible = |e: serde_json::Error| {
        let message = "this task cannot be written as JSON";
        Error::new(Code::FormatImpossible, message, "report this as a bug").because(e)
    };
    let mut value = serde_json::to_value(spec).map_err(impossible)?;
    if let Some(annotations) = value.get_mut("annotations").and_then(Value::as_object_mut) {
        let sorted: BTreeMap<String, Value> = std::mem::take(annotations).into_iter().collect();
        annotations.extend(sorted);
    }
    Ok(format!("{value:#}\n"))
}

/// What a mount point in the root file system has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MountPoint<'a> {
    /// Of the kind (file or directory) of this path on the host.
    Host(&'a Path),
    /// A directory with these permission bits: runc gives an in-memory file system
    /// those of the directory under it, whatever its `mode` says.
    Directory(u32),
}

/// Paths in the root file system on which something is mounted.
pub fn mount_points(container: &ContainerSpec) -> impl Iterator<Item = (&Path, MountPoint<'_>)> {
    let host = container.image.iter().chain(&container.binds).map(|bind| {
        let point = match bind.make {
            // It need not be there yet.
            true => MountPoint::Directory(0o755),
            false => MountPoint::Host(&bind.source),
        };
        (bind.target.as_path(), point)
    });
    let memory = container
        .workspace
        .iter()
        .chain(&container.lease)
        .map(|tmpfs| (tmpfs.target.as_path(), MountPoint::Directory(tmpfs.mode)));
    let kernel =
        ["/proc", "/sys", "/dev"].map(|path| (Path::new(path), MountPoint::Directory(0o755)));
    kernel.into_iter().chain(host).chain(memory)
}

fn check_text(container: &ContainerSpec, task: &TaskSpec) -> Result<(), Error> {
    let words = task.argv.iter().chain(&task.env).map(|s| s.as_os_str());
    let paths = container
        .image
        .iter()
        .chain(&container.binds)
        .flat_map(|bind| [&bind.source, &bind.target])
        .chain(&container.masked)
        .chain([&task.cwd])
        .map(|path| path.as_os_str());
    match words.chain(paths).find(|word| word.to_str().is_none()) {
        None => Ok(()),
        Some(bad) => Err(Error::new(
            Code::FormatImpossible,
            format!("{} is not UTF-8", bad.to_string_lossy()),
            "run it with orch run, which passes bytes: an OCI configuration is JSON",
        )),
    }
}

fn build(
    container: &ContainerSpec,
    task: &TaskSpec,
    ids: Ids,
    seccomp: oci_spec::runtime::LinuxSeccomp,
) -> Result<Spec, OciSpecError> {
    let mounts = mounts(container, task)?;
    let annotations = annotations(container, task, &mounts);
    SpecBuilder::default()
        .version("1.0.2")
        .hostname(container.hostname.clone())
        .root(
            RootBuilder::default()
                .path("rootfs")
                .readonly(container.writable_root.is_none())
                .build()?,
        )
        .mounts(mounts)
        .process(process(task)?)
        .linux(linux(container, task, ids, seccomp)?)
        .annotations(annotations)
        .build()
}

fn process(task: &TaskSpec) -> Result<Process, OciSpecError> {
    let words = |list: &[std::ffi::OsString]| -> Vec<String> {
        list.iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect()
    };
    let none = HashSet::new;
    ProcessBuilder::default()
        .terminal(task.tty)
        .args(words(&task.argv))
        .env(words(&task.env))
        .cwd(&task.cwd)
        .user(
            UserBuilder::default()
                .uid(task.uid)
                .gid(task.gid)
                .umask(task.umask)
                .build()?,
        )
        .no_new_privileges(true)
        .capabilities(
            LinuxCapabilitiesBuilder::default()
                .bounding(none())
                .effective(none())
                .permitted(none())
                .inheritable(none())
                .ambient(none())
                .build()?,
        )
        .rlimits(rlimits(task)?)
        .build()
}

fn rlimits(task: &TaskSpec) -> Result<Vec<PosixRlimit>, OciSpecError> {
    task.rlimits
        .iter()
        .map(|limit| {
            let kind: PosixRlimitType = serde_json::from_value(limit.name.into())?;
            PosixRlimitBuilder::default()
                .typ(kind)
                .soft(limit.soft)
                .hard(limit.hard)
                .build()
        })
        .collect()
}

fn linux(
    container: &ContainerSpec,
    task: &TaskSpec,
    ids: Ids,
    seccomp: oci_spec::runtime::LinuxSeccomp,
) -> Result<Linux, OciSpecError> {
    use LinuxNamespaceType as Kind;
    let mapping = LinuxIdMappingBuilder::default()
        .container_id(0_u32)
        .host_id(ids.first)
        .size(ids.count)
        .build()?;
    let namespaces = [
        Kind::User,
        Kind::Mount,
        Kind::Pid,
        Kind::Ipc,
        Kind::Uts,
        Kind::Network,
        Kind::Cgroup,
    ]
    .into_iter()
    .map(|kind| LinuxNamespaceBuilder::default().typ(kind).build())
    .collect::<Result<Vec<_>, _>>()?;
    let paths = |list: &[PathBuf]| -> Vec<String> {
        list.iter()
            .map(|path| path.to_string_lossy().into_owned())
            .collect()
    };
    LinuxBuilder::default()
        .namespaces(namespaces)
        .uid_mappings(vec![mapping])
        .gid_mappings(vec![mapping])
        .masked_paths(paths(&container.masked))
        .readonly_paths(paths(&container.readonly))
        .rootfs_propagation("private")
        .resources(resources(&task.limits)?)
        .seccomp(seccomp)
        .build()
}

fn resources(limits: &Limits) -> Result<LinuxResources, OciSpecError> {
    let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    LinuxResourcesBuilder::default()
        // First of all, because the default is to deny nothing (H12). Runtimes add
        // null, zero, full, random, urandom, tty and ptmx.
        .devices(vec![
            LinuxDeviceCgroupBuilder::default()
                .allow(false)
                .access("rwm")
                .build()?,
        ])
        .memory(
            LinuxMemoryBuilder::default()
                .limit(signed(limits.memory_bytes))
                // Memory and swap together: the same number is no swap (PR-20).
                .swap(signed(limits.memory_bytes))
                .build()?,
        )
        .pids(
            LinuxPidsBuilder::default()
                .limit(signed(limits.processes))
                .build()?,
        )
        .cpu(
            LinuxCpuBuilder::default()
                .period(CPU_PERIOD_US)
                .quota(signed(limits.cpu_milli * (CPU_PERIOD_US / 1000)))
                .build()?,
        )
        .build()
}

/// In the order in which they are mounted; a later one shadows an earlier one
/// (FS-06).
fn mounts(container: &ContainerSpec, task: &TaskSpec) -> Result<Vec<Mount>, OciSpecError> {
    let mut mounts = container
        .image
        .iter()
        .map(bind)
        .collect::<Result<Vec<_>, _>>()?;
    for (target, kind, options) in [
        ("/proc", "proc", "nosuid,noexec,nodev"),
        (
            "/dev",
            "tmpfs",
            "nosuid,noexec,strictatime,mode=755,size=64k",
        ),
        (
            "/dev/pts",
            "devpts",
            "nosuid,noexec,newinstance,ptmxmode=0666,mode=0620,gid=5",
        ),
        ("/dev/mqueue", "mqueue", "nosuid,noexec,nodev"),
        ("/sys", "sysfs", "nosuid,noexec,nodev,ro"),
    ] {
        mounts.push(mount(Path::new(target), kind, kind, split(options))?);
    }
    for memory in &container.lease {
        mounts.push(tmpfs(memory, None)?);
    }
    // orch makes these as directories in /tmp; no configuration can say that.
    for directory in &container.lease_directories {
        let inside = |tmpfs: &&Tmpfs| directory.starts_with(&tmpfs.target);
        if let Some(parent) = container.lease.iter().find(inside) {
            let own = Tmpfs {
                target: directory.clone(),
                mode: 0o700,
                ..parent.clone()
            };
            mounts.push(tmpfs(&own, Some(task))?);
        }
    }
    if let Some(workspace) = &container.workspace {
        mounts.push(tmpfs(workspace, Some(task))?);
    }
    for input in &container.binds {
        mounts.push(bind(input)?);
    }
    Ok(mounts)
}

fn split(options: &str) -> Vec<String> {
    options.split(',').map(str::to_owned).collect()
}

fn mount(
    target: &Path,
    kind: &str,
    source: impl Into<PathBuf>,
    options: Vec<String>,
) -> Result<Mount, OciSpecError> {
    MountBuilder::default()
        .destination(target)
        .typ(kind)
        .source(source)
        .options(options)
        .build()
}

fn bind(bind: &Bind) -> Result<Mount, OciSpecError> {
    let access = match bind.mode {
        Access::Ro => "ro",
        Access::Rw => "rw",
    };
    let options = split(&format!("rbind,rprivate,nosuid,nodev,{access}"));
    mount(&bind.target, "bind", &bind.source, options)
}

fn tmpfs(tmpfs: &Tmpfs, owner: Option<&TaskSpec>) -> Result<Mount, OciSpecError> {
    let mut options = split("nosuid,nodev");
    if !tmpfs.exec {
        options.push("noexec".to_owned());
    }
    options.push(format!("mode={:o}", tmpfs.mode));
    options.push(format!("size={}", tmpfs.bytes));
    options.push(format!("nr_inodes={}", tmpfs.inodes));
    if let Some(task) = owner {
        options.push(format!("uid={}", task.uid));
        options.push(format!("gid={}", task.gid));
    }
    mount(&tmpfs.target, "tmpfs", "tmpfs", options)
}

fn annotations(
    container: &ContainerSpec,
    task: &TaskSpec,
    mounts: &[Mount],
) -> HashMap<String, String> {
    let mut notes = HashMap::new();
    let mut note = |key: String, value: String| notes.insert(format!("dev.orch.{key}"), value);
    let inputs = mounts.len() - container.binds.len();
    for (index, bind) in container.binds.iter().enumerate() {
        if bind.idmap {
            let meaning = format!("owner becomes {}:{}", task.uid, task.gid);
            note(format!("idmap.{}", inputs + index), meaning);
        }
    }
    for (index, bind) in container.image.iter().enumerate() {
        if bind.idmap {
            let meaning = "ids become those of the container".to_owned();
            note(format!("idmap.{index}"), meaning);
        }
    }
    note("limit.timeout-ms".into(), task.timeout_ms.to_string());
    note(
        "limit.output-bytes".into(),
        task.limits.output_bytes.to_string(),
    );
    if let Some((bytes, inodes)) = container.writable_root {
        note(
            "writable-root".into(),
            format!("thrown away, {bytes} bytes, {inodes} inodes"),
        );
    }
    let Limits {
        io_read_bytes_per_second: read,
        io_write_bytes_per_second: write,
        ..
    } = task.limits;
    for (name, rate) in [("read", read), ("write", write)] {
        if let Some(rate) = rate {
            note(
                format!("limit.io-{name}-bytes-per-second"),
                rate.to_string(),
            );
        }
    }
    notes
}
