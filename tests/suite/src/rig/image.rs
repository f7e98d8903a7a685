//! Root file systems made by a test, with the probe program as all there is.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::place::{self, Place};
use super::{Result, at};

/// An image that holds `/bin/orch-probe`, an `/etc`, and nothing else.
///
/// # Errors
/// What the kernel says.
pub fn plain(place: &Place) -> Result<PathBuf> {
    let image = place.dir("image")?;
    for dir in ["bin", "etc", "usr"] {
        place.dir(&format!("image/{dir}"))?;
    }
    let program = image.join("bin/orch-probe");
    std::fs::copy(place::probe()?, &program).map_err(at("copy the probe program"))?;
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755))
        .map_err(at(program.display()))?;
    Ok(image)
}

/// The same with a link at `name`; its parents are directories.
///
/// # Errors
/// What the kernel says.
pub fn with_link(place: &Place, name: &str, target: &Path) -> Result<PathBuf> {
    let image = plain(place)?;
    let link = image.join(name);
    if let Some(parent) = link.parent() {
        std::fs::create_dir_all(parent).map_err(at(parent.display()))?;
    }
    symlink(target, &link).map_err(at(link.display()))?;
    Ok(image)
}
