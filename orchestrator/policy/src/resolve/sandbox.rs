//! Image, workspace, temporary directory, mounts and denied paths
//! (PR-13…PR-16, FS-20, FS-21).

use std::path::{Path, PathBuf};

use super::{Pick, Resolver};
use crate::error::{Code, Error};
use crate::file::{MountFile, ProfileFile, SandboxFile};
use crate::load::Context;
use crate::paths::{self, Exposure};
use crate::profile::{Access, Image, Mount};
use crate::yaml::locate::Path as KeyPath;

pub(super) struct Parts {
    pub image: Image,
    pub root: Access,
    pub workspace: Option<PathBuf>,
    pub workspace_mode: Access,
    pub tmpdir: Option<PathBuf>,
    pub mounts: Vec<Mount>,
    pub deny_paths: Vec<PathBuf>,
}

/// Trees that the `host` image has; elsewhere a path without a source is a slip.
const HOST_TREES: [&str; 8] = [
    "/usr", "/etc", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32",
];

/// Paths inside that orch fills itself.
const OWN_TARGETS: [&str; 5] = ["/", "/workspace", "/tmp", "/run", "/dev/shm"];

/// What no host path of the profile may expose.
struct Hidden {
    denied: Vec<PathBuf>,
    places: Vec<PathBuf>,
}

impl Hidden {
    fn check(&self, layer: &crate::layer::Layer, at: &KeyPath, source: &Path) -> Result<(), Error> {
        if paths::is_kernel_tree(source) {
            return Err(layer.refuse(
                Code::MountDenied,
                at,
                format!("{source:?} is the kernel's or the whole machine"),
                "name the folder that is needed",
            ));
        }
        let (how, path) = match paths::exposure(source, &self.denied, &self.places) {
            None => return Ok(()),
            Some(Exposure::Inside(path)) => ("lies in", path),
            Some(Exposure::Above(path)) => ("lies above", path),
        };
        Err(layer.refuse(
            Code::MountDenied,
            at,
            format!("{source:?} {how} {path:?}, which must stay hidden"),
            "name a folder beside it, or one further down",
        ))
    }
}

impl<'c> Resolver<'c> {
    pub(super) fn sandbox(&mut self, cx: &Context<'_>) -> Result<Parts, Error> {
        fn sandbox(file: &ProfileFile) -> Option<&SandboxFile> {
            file.sandbox.as_ref()
        }
        let deny_paths = match self.pick("sandbox.deny_paths", |f| sandbox(f)?.deny_paths.as_ref())
        {
            Some(pick) => denied(&pick, cx)?,
            None => Vec::new(),
        };
        let image_pick = self.need("sandbox.image", |f| sandbox(f)?.image.as_ref())?;
        let root = self.need("sandbox.root", |f| sandbox(f)?.root.as_ref())?;
        let workspace_pick = self.pick("sandbox.workspace", |f| sandbox(f)?.workspace.as_ref());
        let mode = self.need("sandbox.workspace_mode", |f| {
            sandbox(f)?.workspace_mode.as_ref()
        })?;
        let tmpdir_pick = self.pick("sandbox.tmpdir", |f| sandbox(f)?.tmpdir.as_ref());
        let mounts = self.pick("sandbox.mounts", |f| sandbox(f)?.mounts.as_ref());

        let workspace = workspace_pick.as_ref().map(|p| host(p, cx)).transpose()?;
        let tmpdir = tmpdir_pick.as_ref().map(|p| host(p, cx)).transpose()?;
        let mut denied = deny_paths.clone();
        denied.extend_from_slice(cx.reserved);
        let hidden = Hidden {
            denied,
            places: workspace.iter().chain(&tmpdir).cloned().collect(),
        };
        for (pick, path) in [(&workspace_pick, &workspace), (&tmpdir_pick, &tmpdir)] {
            if let (Some(pick), Some(path)) = (pick, path) {
                hidden.check(pick.layer, &pick.path, path)?;
                if paths::is_system_tree(path) {
                    return Err(pick.refuse(
                        Code::ProfileInvalid,
                        format!("{path:?} belongs to the system"),
                        "name a folder made for this",
                    ));
                }
            }
        }
        if let (Some(pick), true) = (&tmpdir_pick, workspace == tmpdir) {
            return Err(pick.refuse(
                Code::ProfileInvalid,
                "it is the workspace too, and would be wiped after each task",
                "name a folder of its own",
            ));
        }
        let image = match image_pick.value.as_str() {
            "host" => Image::Host,
            _ => {
                let dir = host(&image_pick, cx)?;
                hidden.check(image_pick.layer, &image_pick.path, &dir)?;
                Image::Dir(dir)
            }
        };
        let mut parts = Parts {
            image,
            root: *root.value,
            workspace,
            workspace_mode: *mode.value,
            tmpdir,
            mounts: Vec::new(),
            deny_paths,
        };
        if let Some(pick) = mounts {
            self.mounts(&pick, &mode, &mut parts, &hidden, cx)?;
        }
        Ok(parts)
    }

    fn mounts(
        &mut self,
        pick: &Pick<'c, Vec<MountFile>>,
        workspace_mode: &Pick<'c, Access>,
        parts: &mut Parts,
        hidden: &Hidden,
        cx: &Context<'_>,
    ) -> Result<(), Error> {
        let layer = pick.layer;
        for (i, entry) in pick.value.iter().enumerate() {
            let at = pick.path.item(i);
            let bad = |key: &str, (cause, remedy): paths::Refusal| {
                layer.refuse(Code::MountInvalid, &at.key(key), cause, remedy)
            };
            let mode = entry.mode.unwrap_or(Access::Ro);
            let path = paths::host(&entry.path, cx.home).map_err(|e| bad("path", e))?;

            if entry.source.is_none() && Some(&path) == parts.workspace.as_ref() {
                // The seed writes the workspace's mode here. Where the same file
                // says it in both ways, they have to agree.
                let same_file = std::ptr::eq(workspace_mode.layer, layer);
                if same_file && *workspace_mode.value != mode {
                    return Err(layer.refuse(
                        Code::MountConflict,
                        &at,
                        "it is the workspace, whose workspace_mode says otherwise",
                        "keep one of the two",
                    ));
                }
                let nearer = position(self, layer) <= position(self, workspace_mode.layer);
                if nearer {
                    parts.workspace_mode = mode;
                    let written = match entry.mode {
                        Some(_) => at.key("mode"),
                        None => at,
                    };
                    self.origin("sandbox.workspace_mode", layer, written);
                }
                continue;
            }
            if entry.source.is_none() && Some(&path) == parts.tmpdir.as_ref() {
                if mode == Access::Ro && entry.mode.is_some() {
                    return Err(bad(
                        "mode",
                        (
                            "a directory for temporary files has to be writable",
                            "write rw, or remove the entry",
                        ),
                    ));
                }
                continue;
            }
            // Inside there is no home to mean.
            if entry.path.starts_with('~') {
                return Err(bad(
                    "path",
                    (
                        "a path inside the sandbox cannot begin with ~",
                        "write the path inside as path, and the path on the host as source",
                    ),
                ));
            }
            let source = match &entry.source {
                None => None,
                Some(text) => Some(paths::host(text, cx.home).map_err(|e| bad("source", e))?),
            };
            match &source {
                Some(source) => {
                    target(layer, &at, &path)?;
                    hidden.check(layer, &at.key("source"), source)?;
                    if mode == Access::Rw && paths::is_system_tree(source) {
                        return Err(layer.refuse(
                            Code::MountDenied,
                            &at.key("source"),
                            format!("{source:?} belongs to the system"),
                            "mount it read-only",
                        ));
                    }
                }
                None => image_tree(layer, &at, &path, mode, parts)?,
            }
            if parts.mounts.iter().any(|mount| mount.path == path) {
                return Err(layer.refuse(
                    Code::MountConflict,
                    &at.key("path"),
                    format!("{path:?} is mounted twice"),
                    "keep one of the two",
                ));
            }
            parts.mounts.push(Mount { path, source, mode });
        }
        Ok(())
    }

    fn origin(&mut self, field: &str, layer: &crate::layer::Layer, path: KeyPath) {
        let index = position(self, layer);
        if let Some(origin) = self.origins.iter_mut().find(|o| o.field == field) {
            origin.layer = Some(index);
            origin.path = path;
        }
    }
}

fn position(resolver: &Resolver<'_>, layer: &crate::layer::Layer) -> usize {
    let layers = &resolver.chain.layers;
    layers
        .iter()
        .position(|known| std::ptr::eq(known, layer))
        .unwrap_or(layers.len())
}

fn host(pick: &Pick<'_, String>, cx: &Context<'_>) -> Result<PathBuf, Error> {
    paths::host(pick.value, cx.home)
        .map_err(|(cause, remedy)| pick.refuse(Code::ProfileInvalid, cause, remedy))
}

fn denied(pick: &Pick<'_, Vec<String>>, cx: &Context<'_>) -> Result<Vec<PathBuf>, Error> {
    let mut list: Vec<PathBuf> = Vec::new();
    for (i, text) in pick.value.iter().enumerate() {
        let at = pick.path.item(i);
        let refuse = |cause: &str, remedy: &str| {
            pick.layer
                .refuse(Code::ProfileInvalid, &at, cause, remedy.to_owned())
        };
        let path = paths::host(text, cx.home).map_err(|(cause, remedy)| refuse(cause, remedy))?;
        if path == Path::new("/") {
            return Err(refuse(
                "with / denied nothing could be mounted",
                "name the folders that must stay hidden",
            ));
        }
        if !list.contains(&path) {
            list.push(path);
        }
    }
    Ok(list)
}

/// A place inside where a host path may appear.
fn target(layer: &crate::layer::Layer, at: &KeyPath, path: &Path) -> Result<(), Error> {
    let own = OWN_TARGETS.iter().any(|own| path == Path::new(own));
    let kernel = ["/proc", "/sys", "/dev"]
        .iter()
        .any(|t| path.starts_with(t));
    if own || kernel {
        return Err(layer.refuse(
            Code::MountInvalid,
            &at.key("path"),
            format!("{path:?} is made by orch inside"),
            "choose another path inside, such as /data",
        ));
    }
    Ok(())
}

/// An entry without a source means the image's own tree (PR-15).
fn image_tree(
    layer: &crate::layer::Layer,
    at: &KeyPath,
    path: &Path,
    mode: Access,
    parts: &Parts,
) -> Result<(), Error> {
    let here = HOST_TREES.iter().any(|tree| path.starts_with(tree));
    if parts.image == Image::Host && !here {
        return Err(layer.refuse(
            Code::MountInvalid,
            &at.key("path"),
            format!(
                "without a source {path:?} means the image's own tree, which the host image does not have"
            ),
            format!("add `source: {path:?}` to mount the folder of this machine"),
        ));
    }
    if mode == Access::Rw && parts.root == Access::Ro {
        return Err(layer.refuse(
            Code::MountInvalid,
            &at.key("mode"),
            format!("{path:?} is part of a root that is read-only"),
            "write ro, or set sandbox.root to rw in a profile of tier loose",
        ));
    }
    Ok(())
}
