//! What an image holds, looked at from outside.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use orch_policy::profile::Image;
use orch_policy::spec::container::{ImageEntry, ImageFacts};
use orch_policy::spec::layout;
use orch_policy::{Code, Error};

/// Top-level entries of an image that every sandbox has of its own; as links they
/// would lead elsewhere (H5, A6, A7).
const OWN: &[&str] = &["dev", "proc", "sys", "tmp", "run", "workspace"];

/// Looks at an image.
///
/// # Errors
/// [`Code::ImageInvalid`] where it is no directory, has none of the usual
/// entries, or has a link where a sandbox has something of its own.
pub fn facts(image: &Image) -> Result<ImageFacts, Error> {
    let entries = match image {
        Image::Host => host(),
        Image::Dir(path) => directory(path)?,
    };
    Ok(ImageFacts {
        entries,
        cpus: cpus(),
    })
}

fn host() -> Vec<ImageEntry> {
    let top = layout::HOST_ENTRIES.iter().map(PathBuf::from);
    let etc = layout::HOST_ETC
        .iter()
        .map(|name| Path::new("etc").join(name));
    top.chain(etc)
        .filter_map(|name| look(Path::new("/"), &name))
        .collect()
}

fn look(root: &Path, name: &Path) -> Option<ImageEntry> {
    let found = root.join(name);
    let inside = Path::new("/").join(name);
    let meta = std::fs::symlink_metadata(&found).ok()?;
    if meta.is_symlink() {
        let target = std::fs::read_link(&found).ok()?;
        Some(ImageEntry::Link(inside, target))
    } else if meta.is_dir() || meta.is_file() {
        Some(ImageEntry::Node(inside))
    } else {
        None
    }
}

fn directory(path: &Path) -> Result<Vec<ImageEntry>, Error> {
    let invalid = |message: String| {
        Error::new(
            Code::ImageInvalid,
            message,
            "name a directory that holds a root file system (usr, bin, lib, etc)",
        )
    };
    for own in OWN {
        let entry = path.join(own);
        match std::fs::symlink_metadata(&entry) {
            Ok(meta) if !meta.is_dir() => {
                return Err(invalid(format!(
                    "/{own} of image {} is not a directory",
                    path.display()
                )));
            }
            Err(e) if e.kind() != ErrorKind::NotFound => {
                return Err(invalid(format!("cannot read {}", entry.display())).because(e));
            }
            _ => {}
        }
    }
    let mut names: Vec<_> = std::fs::read_dir(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|e| invalid(format!("cannot read image {}", path.display())).because(e))?
        .into_iter()
        .map(|entry| entry.file_name())
        .filter(|name| !OWN.iter().any(|own| name == own))
        .collect();
    names.sort();
    let entries: Vec<_> = names
        .iter()
        .filter_map(|name| look(path, Path::new(name)))
        .collect();
    if entries.is_empty() {
        return Err(invalid(format!("image {} is empty", path.display())));
    }
    Ok(entries)
}

fn cpus() -> u32 {
    let listed = std::fs::read_to_string("/sys/devices/system/cpu/present").unwrap_or_default();
    let last = listed
        .trim()
        .rsplit(['-', ','])
        .next()
        .and_then(|last| last.parse::<u32>().ok());
    last.map_or(1, |last| last + 1)
}
