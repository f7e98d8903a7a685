//! An OCI bundle on disk: `config.json` and the root file system under its mounts.

use std::fs::{DirBuilder, File, Permissions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use orch_policy::spec::ContainerSpec;
use orch_policy::spec::merged::{self, MountPoint};
use orch_policy::{Code, Error};

/// Writes a bundle into a directory that does not exist yet or is empty.
///
/// # Errors
/// [`Code::Usage`] where something is there already, [`Code::HostExhausted`] where
/// it cannot be written; what was written until then is removed.
pub fn write(dir: &Path, config: &str, container: &ContainerSpec) -> Result<(), Error> {
    let existed = dir.exists();
    if existed && std::fs::read_dir(dir).map_or(true, |mut list| list.next().is_some()) {
        return Err(Error::new(
            Code::Usage,
            format!("bundle {} is not an empty directory", dir.display()),
            "name a directory that does not exist yet",
        ));
    }
    let written = fill(dir, config, container);
    if written.is_err() {
        // The reason is what the caller needs; what cannot be removed is seen there.
        let _ = std::fs::remove_dir_all(dir.join("rootfs"));
        let _ = std::fs::remove_file(dir.join("config.json"));
        if !existed {
            let _ = std::fs::remove_dir(dir);
        }
    }
    written.map_err(|(path, e)| {
        Error::new(
            Code::HostExhausted,
            format!("bundle entry {} cannot be made", path.display()),
            "name a directory that you can write, with room in it",
        )
        .because(e)
    })
}

type Failure = (PathBuf, std::io::Error);

fn fill(dir: &Path, config: &str, container: &ContainerSpec) -> Result<(), Failure> {
    directory(dir)?;
    let rootfs = dir.join("rootfs");
    directory(&rootfs)?;
    for path in &container.directories {
        walk(&rootfs, path)?;
    }
    for file in &container.files {
        place(&rootfs, &file.path, file.content.as_bytes())?;
    }
    for (target, point) in merged::mount_points(container) {
        match point {
            MountPoint::Host(source) if !source.is_dir() => place(&rootfs, target, b"")?,
            MountPoint::Host(_) => drop(walk(&rootfs, target)?),
            MountPoint::Directory(mode) => {
                let made = walk(&rootfs, target)?;
                std::fs::set_permissions(&made, Permissions::from_mode(mode))
                    .map_err(|e| (made, e))?;
            }
        }
    }
    // Last, so that nothing above was made through one of them.
    for (path, target) in &container.links {
        if let Some(parent) = path.parent() {
            let link = walk(&rootfs, parent)?.join(path.file_name().unwrap_or_default());
            if link.symlink_metadata().is_err() {
                symlink(target, &link).map_err(|e| (link, e))?;
            }
        }
    }
    place(dir, Path::new("config.json"), config.as_bytes())
}

/// A file with these contents; one that is there stays, as an earlier mount point
/// may have the same path.
fn place(root: &Path, path: &Path, content: &[u8]) -> Result<(), Failure> {
    let parent = walk(root, path.parent().unwrap_or(Path::new("")))?;
    let path = parent.join(path.file_name().unwrap_or_default());
    if path.symlink_metadata().is_ok() {
        return Ok(());
    }
    File::create_new(&path)
        .and_then(|mut file| {
            file.set_permissions(Permissions::from_mode(0o644))?;
            file.write_all(content)
        })
        .map_err(|e| (path, e))
}

/// Makes a directory below `root` and every one above it.
fn walk(root: &Path, path: &Path) -> Result<PathBuf, Failure> {
    let mut made = root.to_owned();
    for part in path.components() {
        if let Component::Normal(name) = part {
            made.push(name);
            directory(&made)?;
        }
    }
    Ok(made)
}

/// A directory that everybody can enter, whatever the umask: the container's root
/// is nobody in particular outside.
fn directory(path: &Path) -> Result<(), Failure> {
    match path.symlink_metadata() {
        Ok(meta) if meta.is_dir() => return Ok(()),
        Ok(_) => return Err((path.to_owned(), std::io::ErrorKind::NotADirectory.into())),
        Err(_) => {}
    }
    DirBuilder::new()
        .mode(0o755)
        .create(path)
        .and_then(|()| std::fs::set_permissions(path, Permissions::from_mode(0o755)))
        .map_err(|e| (path.to_owned(), e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use orch_policy::builtin::builtin;
    use orch_policy::spec::container;
    use orch_policy::spec::container::{ImageEntry, ImageFacts};
    use orch_policy::task::Task;

    fn spec() -> ContainerSpec {
        let profile = builtin("strict", Path::new("/home/me")).unwrap().profile;
        let facts = ImageFacts {
            entries: vec![
                ImageEntry::Node("/usr".into()),
                ImageEntry::Link("/bin".into(), "usr/bin".into()),
                ImageEntry::Node("/etc/os-release".into()),
            ],
            cpus: 1,
        };
        container(&profile, &Task::default(), &facts).unwrap()
    }

    fn directory_for(test: &str) -> PathBuf {
        std::env::temp_dir().join(format!("orch bundle {test} {}", std::process::id()))
    }

    #[test]
    fn every_mount_has_a_place_and_every_link_is_there() {
        let dir = directory_for("fill");
        write(&dir, "{}", &spec()).unwrap();
        let rootfs = dir.join("rootfs");
        let facts = (
            rootfs.join("usr").is_dir(),
            std::fs::read_link(rootfs.join("bin")).unwrap(),
            rootfs.join("etc/passwd").is_file(),
            rootfs.join("proc").is_dir(),
            rootfs.join("tmp").metadata().unwrap().permissions().mode() & 0o7777,
            std::fs::read_to_string(dir.join("config.json")).unwrap(),
        );
        let again = write(&dir, "{}", &spec()).unwrap_err();
        std::fs::remove_dir_all(&dir).unwrap();
        assert_eq!(
            facts,
            (true, "usr/bin".into(), true, true, 0o1777, "{}".into())
        );
        assert_eq!(again.code, Code::Usage);
    }

    #[test]
    fn what_fails_leaves_nothing() {
        let dir = directory_for("fail");
        let mut spec = spec();
        // A link below a file cannot be made; everything else is there by then.
        spec.links.push(("/etc/passwd/link".into(), "x".into()));
        let error = write(&dir, "{}", &spec).unwrap_err();
        assert_eq!(error.code, Code::HostExhausted);
        assert!(!dir.exists());
    }
}
