//! What a container and its leases are made of.

use std::path::{Component, Path, PathBuf};

use serde::Serialize;

use super::layout;
use crate::error::{Code, Error};
use crate::profile::{Access, Image, Profile, Tier};
use crate::task::Task;

/// One entry of an image, as somebody who looked at it found it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageEntry {
    /// A directory or a file: shown through a read-only bind.
    Node(PathBuf),
    /// A symbolic link: made again, with what it says.
    Link(PathBuf, PathBuf),
}

/// What the image holds: paths inside, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ImageFacts {
    /// Entries that become visible.
    pub entries: Vec<ImageEntry>,
    /// Number of CPUs of the host.
    pub cpus: u32,
}

/// A host path that becomes visible at a path inside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Bind {
    /// Path on the host.
    pub source: PathBuf,
    /// Path inside.
    pub target: PathBuf,
    /// Read-only or writable.
    pub mode: Access,
    /// Whether ids are translated: for an input or folder its owner becomes the
    /// task, for an image its ids become those of the container.
    pub idmap: bool,
    /// Whether it is a directory that is made where it is missing (FS-07).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub make: bool,
}

/// An in-memory file system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tmpfs {
    /// Path inside.
    pub target: PathBuf,
    /// Bytes.
    pub bytes: u64,
    /// Files and directories.
    pub inodes: u64,
    /// Permission bits of its root.
    pub mode: u32,
    /// Whether programs can be run from it.
    pub exec: bool,
}

/// A file with these contents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct File {
    /// Path inside.
    pub path: PathBuf,
    /// What it holds.
    pub content: String,
}

/// What a container is made of, and how its leases are staged. The order of the
/// lists is the order in which they are done; a later mount shadows an earlier
/// one, and masks come last (FS-06).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ContainerSpec {
    /// Host name of a lease.
    pub hostname: String,
    /// Binds of the image, read-only.
    pub image: Vec<Bind>,
    /// Links of the image.
    pub links: Vec<(PathBuf, PathBuf)>,
    /// Synthesised files, owned by root, 0644.
    pub files: Vec<File>,
    /// Directories, owned by root, 0755.
    pub directories: Vec<PathBuf>,
    /// Where set, the workspace is an in-memory file system.
    pub workspace: Option<Tmpfs>,
    /// Inputs and folders.
    pub binds: Vec<Bind>,
    /// Where set, each lease has a writable `/` of that many bytes and inodes.
    pub writable_root: Option<(u64, u64)>,
    /// In-memory file systems of a lease.
    pub lease: Vec<Tmpfs>,
    /// Directories of a lease that the task owns, 0700.
    pub lease_directories: Vec<PathBuf>,
    /// Paths that a lease makes read-only.
    pub readonly: Vec<PathBuf>,
    /// Paths that a lease hides.
    pub masked: Vec<PathBuf>,
}

/// The spec of a container for this profile and task.
///
/// Sources of mounts are expected to be absolute and free of links; whether they
/// exist, and whether they may be shown, has been checked where files can be seen.
///
/// # Errors
/// Two mounts on one target, a target that is relative, holds `..`, or lies where
/// every lease mounts something of its own.
pub fn container(
    profile: &Profile,
    task: &Task,
    image: &ImageFacts,
) -> Result<ContainerSpec, Error> {
    let (uid, gid) = super::task::ids(profile, task);
    let (binds, workspace) = binds(profile, task)?;
    let limits = &profile.limits;
    let own_image = matches!(profile.image, Image::Dir(_));
    let prefix = match &profile.image {
        Image::Host => PathBuf::from("/"),
        Image::Dir(path) => path.clone(),
    };
    let (mut nodes, mut links) = (Vec::new(), Vec::new());
    for entry in &image.entries {
        match entry {
            ImageEntry::Node(path) => nodes.push(Bind {
                source: prefix.join(path.strip_prefix("/").unwrap_or(path)),
                target: path.clone(),
                mode: Access::Ro,
                idmap: own_image,
                make: false,
            }),
            ImageEntry::Link(path, target) => links.push((path.clone(), target.clone())),
        }
    }
    let memory = |target: &str, mode, exec| Tmpfs {
        target: PathBuf::from(target),
        bytes: limits.tmp_bytes,
        inodes: limits.tmp_inodes,
        mode,
        exec,
    };
    Ok(ContainerSpec {
        hostname: profile.hostname.clone(),
        image: nodes,
        links,
        files: if own_image {
            Vec::new()
        } else {
            synthesised(uid, gid, &profile.hostname)
        },
        directories: directories(own_image),
        workspace,
        binds,
        writable_root: (profile.root == Access::Rw)
            .then_some((limits.tmp_bytes, limits.tmp_inodes)),
        lease: vec![
            memory("/tmp", 0o1777, true),
            memory("/run", 0o755, false),
            memory("/dev/shm", 0o1777, false),
        ],
        lease_directories: vec![layout::HOME.into(), layout::OUT.into()],
        readonly: layout::READONLY.iter().map(PathBuf::from).collect(),
        masked: masked(profile, image.cpus),
    })
}

fn directories(image_has_its_own: bool) -> Vec<PathBuf> {
    let always = [
        "/dev",
        "/dev/pts",
        "/dev/shm",
        "/dev/mqueue",
        "/proc",
        "/tmp",
        "/run",
        layout::WORKSPACE,
    ];
    let host = ["/etc", "/var", "/root", "/home", "/opt", "/srv", "/mnt"];
    let host = if image_has_its_own {
        &[][..]
    } else {
        &host[..]
    };
    always.iter().chain(host).map(PathBuf::from).collect()
}

fn synthesised(uid: u32, gid: u32, hostname: &str) -> Vec<File> {
    let user = if uid == 0 {
        String::new()
    } else {
        format!("agent:x:{uid}:{gid}:agent:{}:/bin/sh\n", layout::HOME)
    };
    let group = if gid == 0 {
        String::new()
    } else {
        format!("agent:x:{gid}:\n")
    };
    let file = |path: &str, content: String| File {
        path: PathBuf::from(path),
        content,
    };
    vec![
        file(
            "/etc/passwd",
            format!(
                "root:x:0:0:root:/root:/bin/sh\n{user}nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
            ),
        ),
        file(
            "/etc/group",
            format!("root:x:0:\ntty:x:5:\n{group}nogroup:x:65534:\n"),
        ),
        file("/etc/hostname", format!("{hostname}\n")),
        file(
            "/etc/hosts",
            format!("127.0.0.1\tlocalhost {hostname}\n::1\tlocalhost ip6-localhost\n"),
        ),
        file("/etc/resolv.conf", String::new()),
        file(
            "/etc/nsswitch.conf",
            "passwd: files\ngroup: files\nhosts: files dns\n".to_owned(),
        ),
    ]
}

fn masked(profile: &Profile, cpus: u32) -> Vec<PathBuf> {
    let per_cpu = (0..cpus).map(|cpu| {
        PathBuf::from(format!(
            "/sys/devices/system/cpu/cpu{cpu}/{}",
            layout::MASKED_PER_CPU
        ))
    });
    layout::MASKED
        .iter()
        .map(PathBuf::from)
        .chain(per_cpu)
        .chain(profile.deny_paths.iter().cloned())
        .collect()
}

type Binds = (Vec<Bind>, Option<Tmpfs>);

/// The workspace and the scratch directory first, then what lies in them or elsewhere.
fn binds(profile: &Profile, task: &Task) -> Result<Binds, Error> {
    let mut binds = Vec::new();
    let folder = task.folder.as_ref().or(profile.workspace.as_ref());
    if let Some(source) = folder {
        binds.push(Bind {
            source: source.clone(),
            target: layout::WORKSPACE.into(),
            mode: profile.workspace_mode,
            idmap: true,
            make: false,
        });
    }
    if let Some(source) = &task.scratch {
        binds.push(Bind {
            source: source.clone(),
            target: layout::SCRATCH.into(),
            mode: Access::Rw,
            idmap: true,
            make: true,
        });
    }
    let own = profile.mounts.iter().filter_map(|mount| {
        Some(Bind {
            source: mount.source.clone()?,
            target: mount.path.clone(),
            mode: mount.mode,
            idmap: true,
            make: false,
        })
    });
    binds.extend(own);
    for asked in &task.mounts {
        let target = match &asked.target {
            Some(target) => target.clone(),
            None => {
                Path::new(layout::WORKSPACE).join(asked.source.file_name().ok_or_else(|| {
                    Error::new(
                        Code::MountInvalid,
                        format!("mount of {} needs a target", asked.source.display()),
                        "name one: --mount SRC:/workspace/NAME",
                    )
                })?)
            }
        };
        binds.push(Bind {
            source: asked.source.clone(),
            target,
            mode: asked.mode,
            idmap: true,
            make: false,
        });
    }
    for (index, bind) in binds.iter().enumerate() {
        check_target(&bind.target)?;
        if bind.mode == Access::Rw && profile.tier == Tier::Strict {
            return Err(Error::new(
                Code::MountInvalid,
                format!(
                    "tier strict lets nothing be written but /tmp, and {} is to be writable",
                    bind.target.display()
                ),
                "mount it read-only and leave results in /tmp/out (--out DIR), or use --tier standard",
            ));
        }
        if let Some(other) = binds[..index].iter().find(|b| b.target == bind.target) {
            return Err(Error::new(
                Code::MountConflict,
                format!(
                    "{} and {} are both to be mounted on {}",
                    other.source.display(),
                    bind.source.display(),
                    bind.target.display()
                ),
                "give one of them another target: --mount SRC:/workspace/OTHER",
            ));
        }
    }
    let in_memory = folder.is_none() && profile.workspace_mode == Access::Rw;
    let workspace = in_memory.then(|| Tmpfs {
        target: layout::WORKSPACE.into(),
        bytes: profile.limits.tmp_bytes,
        inodes: profile.limits.tmp_inodes,
        mode: 0o755,
        exec: true,
    });
    Ok((binds, workspace))
}

fn check_target(target: &Path) -> Result<(), Error> {
    let plain = target.is_absolute()
        && target
            .components()
            .all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    if !plain || target == Path::new("/") {
        return Err(Error::new(
            Code::MountInvalid,
            format!(
                "mount target {} is not an absolute path without . and ..",
                target.display()
            ),
            "name a path below /workspace, or another absolute path",
        ));
    }
    if let Some(own) = layout::LEASE_OWNED
        .iter()
        .find(|own| target.starts_with(own))
    {
        return Err(Error::new(
            Code::MountInvalid,
            format!(
                "nothing can be mounted on {}: every task has a {own} of its own",
                target.display()
            ),
            "name a path below /workspace",
        ));
    }
    Ok(())
}
