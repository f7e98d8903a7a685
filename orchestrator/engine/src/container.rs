//! From a container spec to a running container.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use orch_policy::profile::Access;
use orch_policy::spec::container::{Bind, ContainerSpec, Tmpfs};
use orch_policy::spec::layout::WORKSPACE;
use orch_policy::spec::oci::{Ids, UserNamespace, for_libcontainer};
use orch_policy::spec::task::TaskSpec;
use orch_policy::{Code, Error, syscalls};
use orch_wire::Channel;
use orch_wire::channel::MAX_FDS;
use orch_wire::guest::{self, Lease};
use orch_wire::launch::{CgroupLimits, Create, ROOTFS, Request, USER_NAMESPACE_FD};
use orch_wire::rootfs::{Entry, IdMap, MountFlags};

use crate::failure;
use crate::launcher::{Engine, pair};
use crate::lease::LEASE_ID;
use crate::range::{self, Range};
use crate::scratch::{self, Owner};
use crate::source::{self, Rules, Source};

/// Group that owns terminals, as in the synthesised `/etc/group`.
const TTY_GID: u32 = 5;
/// Room for the links, directories and small files of the root itself.
const ROOT_BYTES: u64 = 16 << 20;
const ROOT_INODES: u64 = 16_384;

/// A container that is being made: the request is on its way.
#[derive(Debug)]
pub struct Container {
    /// Unguessable id.
    pub id: String,
    /// Control socket of its guest.
    pub control: Channel,
}

/// Everything of a container that was checked and opened before anything starts.
#[derive(Debug)]
pub struct Prepared {
    binds: Vec<(Bind, Source)>,
    image: Vec<(Bind, Source)>,
}

impl Prepared {
    /// Folders and files of the host that the task can write: the path as it was
    /// named, and the handle.
    pub(crate) fn writable(&self) -> impl Iterator<Item = (&Path, &OwnedFd)> {
        let writable = self
            .binds
            .iter()
            .filter(|(bind, _)| bind.mode == Access::Rw);
        writable.map(|(bind, source)| (bind.source.as_path(), &source.handle))
    }
}

/// Resolves, checks and opens every source.
///
/// A directory that is made where it is missing comes last of all, when nothing else
/// can be wrong (FS-07).
///
/// # Errors
/// As [`source::resolve`], [`source::take`] and [`scratch::make`].
pub fn prepare(spec: &ContainerSpec, rules: &Rules<'_>) -> Result<Prepared, Error> {
    let mut image = Vec::new();
    for bind in &spec.image {
        // A directory that is named as an image shows no more than a mount would
        // (FS-21); the parts of the host are chosen, not named.
        let rules = Rules {
            denied: if bind.idmap { rules.denied } else { &[] },
            allow_root_owned: true,
        };
        image.push((
            bind.clone(),
            source::take(&bind.source, Access::Ro, &rules)?,
        ));
    }
    let mut binds = Vec::new();
    let mut workspace: Option<PathBuf> = None;
    let (mut owner, mut last) = (Owner::caller(), None);
    for bind in &spec.binds {
        let path = match bind.make {
            true => scratch::locate(&bind.source)?,
            false => source::resolve(&bind.source)?,
        };
        // The workspace comes first (FS-21).
        match &workspace {
            Some(workspace) if workspace.starts_with(&path) || path.starts_with(workspace) => {
                return Err(Error::new(
                    Code::MountDenied,
                    format!(
                        "{} lies inside or above the workspace {}",
                        path.display(),
                        workspace.display()
                    ),
                    "what is inside is there already; what is above would show its neighbours",
                ));
            }
            None if bind.target == Path::new(WORKSPACE) => workspace = Some(path.clone()),
            _ => {}
        }
        if bind.make {
            scratch::check(&path, owner, rules)?;
            last = Some((binds.len(), bind, path));
            continue;
        }
        let taken = take(bind, &path, rules)?;
        if bind.target == Path::new(WORKSPACE) {
            owner = Owner {
                uid: taken.uid,
                gid: taken.gid,
            };
        }
        binds.push((bind.clone(), taken));
    }
    if let Some((index, bind, path)) = last {
        scratch::make(&path, owner)?;
        // In its place in the order in which mounts are made.
        binds.insert(index, (bind.clone(), take(bind, &path, rules)?));
    }
    Ok(Prepared { binds, image })
}

fn take(bind: &Bind, path: &Path, rules: &Rules<'_>) -> Result<Source, Error> {
    let taken = source::take(path, bind.mode, rules)?;
    if let (Access::Rw, Some(reason)) = (bind.mode, source::unfit(&taken.handle)) {
        return Err(Error::new(
            Code::MountInvalid,
            format!("{} cannot be a workspace: {reason}", path.display()),
            "copy it to a Linux file system such as ext4, xfs or btrfs",
        ));
    }
    Ok(taken)
}

/// Sends the request for a container and the first lease in it; both go their way
/// while the caller does something else.
///
/// # Errors
/// What the kernel says, or that the launcher is gone.
pub fn begin(
    engine: &Engine,
    id: String,
    spec: &ContainerSpec,
    task: &TaskSpec,
    prepared: &Prepared,
    first: Option<(u32, CgroupLimits)>,
) -> Result<(Container, Channel), Error> {
    let Range {
        number,
        first: host_id,
        lock,
    } = range::take(engine)?;
    let user = if engine.is_rootless() {
        UserNamespace::Path(format!("/proc/self/fd/{USER_NAMESPACE_FD}").into())
    } else {
        UserNamespace::New(Ids {
            first: host_id,
            count: range::COUNT,
        })
    };
    let config = for_libcontainer(Path::new(ROOTFS), &user)
        .map_err(|e| e.to_string())
        .and_then(|spec| serde_json::to_vec(&spec).map_err(|e| e.to_string()))
        .map_err(|e| internal("write the runtime configuration", &e))?;
    let translate = !engine.is_rootless();
    let (entries, sources) = entries(spec, task, prepared, host_id, translate);
    let (ours, theirs) = pair()?;
    let create = Create {
        id: id.clone(),
        number,
        host_id,
        ids: range::COUNT,
        config,
        entries,
        root_bytes: ROOT_BYTES,
        root_inodes: ROOT_INODES,
        guest_filter: syscalls::guest()?.bytes().to_vec(),
        first,
    };
    if sources.len() + 3 > MAX_FDS {
        return Err(Error::new(
            Code::MountInvalid,
            format!(
                "{} mounts are more than one container can have",
                sources.len()
            ),
            format!(
                "mount at most {} things: folders instead of files",
                MAX_FDS - 3
            ),
        ));
    }
    let mut fds = vec![theirs.as_fd(), lock.as_fd(), engine.guest().as_fd()];
    fds.extend(sources.iter().map(|source| source.as_fd()));
    engine.send(&Request::Create(Box::new(create)), &fds)?;

    // The guest reads this as soon as it is there.
    let control = Channel::with_limit(ours, 4096);
    let (host_end, lease_end) = pair()?;
    control
        .send(&lease(spec, task)?, &[lease_end.as_fd()])
        .map_err(|e| failure::lost("guest", &e))?;
    Ok((
        Container { id, control },
        Channel::with_limit(host_end, 4096),
    ))
}

fn internal(step: &str, cause: &str) -> Error {
    Error::new(
        Code::RuntimeFailed,
        format!("cannot {step}"),
        "report this with the cause",
    )
    .because(cause)
}

fn bytes(path: &Path) -> Vec<u8> {
    path.as_os_str().as_bytes().to_vec()
}

fn all(paths: &[PathBuf]) -> Vec<Vec<u8>> {
    paths.iter().map(|path| bytes(path)).collect()
}

/// The steps of the launcher's worker, and the handles that they name by number.
///
/// Where the kernel does not let this user translate the owners of a mount, the map
/// of the container does: the caller's files are those of the task.
fn entries<'a>(
    spec: &ContainerSpec,
    task: &TaskSpec,
    prepared: &'a Prepared,
    host_id: u32,
    translate: bool,
) -> (Vec<Entry>, Vec<&'a OwnedFd>) {
    let mut entries = Vec::new();
    let mut sources = Vec::new();
    entries.extend(
        spec.directories
            .iter()
            .map(|path| Entry::Dir { path: bytes(path) }),
    );
    let mut bind = |bind: &Bind, source: &'a Source, idmap: Option<IdMap>| {
        let number = u32::try_from(sources.len()).unwrap_or(u32::MAX);
        sources.push(&source.handle);
        Entry::Bind {
            source: number,
            path: bytes(&bind.target),
            flags: MountFlags {
                readonly: bind.mode == Access::Ro,
                noexec: false,
            },
            idmap,
        }
    };
    for (image, source) in &prepared.image {
        // An image of its own shows its root as root; the host's files keep owners
        // that nobody inside has.
        let idmap = (image.idmap && translate).then_some(IdMap {
            disk_uid: 0,
            disk_gid: 0,
            host_uid: host_id,
            host_gid: host_id,
            count: range::COUNT,
        });
        entries.push(bind(image, source, idmap));
    }
    entries.extend(spec.files.iter().map(|file| Entry::File {
        path: bytes(&file.path),
        content: file.content.clone().into_bytes(),
    }));
    entries.extend(spec.links.iter().map(|(path, target)| Entry::Symlink {
        path: bytes(path),
        target: bytes(target),
    }));
    if let Some(Tmpfs {
        target,
        bytes: size,
        inodes,
        mode,
        ..
    }) = &spec.workspace
    {
        entries.push(Entry::Tmpfs {
            path: bytes(target),
            size: *size,
            inodes: *inodes,
            mode: *mode,
            uid: task.uid,
            gid: task.gid,
        });
    }
    for (asked, source) in &prepared.binds {
        // The owner of the source is the task, and nobody else's files are anybody's.
        let idmap = (asked.idmap && translate).then_some(IdMap {
            disk_uid: source.uid,
            disk_gid: source.gid,
            host_uid: host_id + task.uid,
            host_gid: host_id + task.gid,
            count: 1,
        });
        entries.push(bind(asked, source, idmap));
    }
    (entries, sources)
}

fn lease(spec: &ContainerSpec, task: &TaskSpec) -> Result<Lease, Error> {
    Ok(Lease {
        hostname: spec.hostname.clone().into_bytes(),
        tmpfs: spec
            .lease
            .iter()
            .map(|t| guest::Tmpfs {
                path: bytes(&t.target),
                size: t.bytes,
                inodes: t.inodes,
                mode: t.mode,
                exec: t.exec,
            })
            .collect(),
        dirs: spec
            .lease_directories
            .iter()
            .map(|path| (bytes(path), 0o700, task.uid, task.gid))
            .collect(),
        readonly: all(&spec.readonly),
        masked: all(&spec.masked),
        writable_root: spec.writable_root,
        filter: syscalls::lease(task.syscalls.tier())?.bytes().to_vec(),
        id: LEASE_ID,
        tty_gid: TTY_GID,
    })
}
