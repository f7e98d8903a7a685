//! Paths of the configuration: hygiene by spelling alone (PR-37, FS-20, FS-21).
//!
//! Nothing is looked up. A link that leads into a denied path is caught by the
//! engine, which asks [`exposure`] again with the path it really opened.

use std::path::{Component, Path, PathBuf};

/// Why a path is refused: cause and remedy.
pub type Refusal = (&'static str, &'static str);

/// A path on the host: absolute, or `~` and below.
///
/// # Errors
/// Empty, relative, with `..`, NUL, or another user's home.
pub fn host(text: &str, home: &Path) -> Result<PathBuf, Refusal> {
    let path = match text.strip_prefix('~') {
        None => PathBuf::from(text),
        Some("") => home.to_path_buf(),
        Some(rest) => match rest.strip_prefix('/') {
            Some(below) => home.join(below.trim_start_matches('/')),
            None => {
                return Err((
                    "only the caller's own home can be meant by ~",
                    "write the path in full",
                ));
            }
        },
    };
    absolute(&path)
}

/// The path without `.` and doubled slashes.
///
/// # Errors
/// Empty, relative, with `..` or NUL.
pub fn absolute(path: &Path) -> Result<PathBuf, Refusal> {
    if path.as_os_str().is_empty() {
        return Err(("the path is empty", "write an absolute path"));
    }
    if path.as_os_str().as_encoded_bytes().contains(&0) {
        return Err(("the path contains a NUL byte", "remove it"));
    }
    if !path.is_absolute() {
        return Err((
            "the path is not absolute",
            "begin it with / (or ~/ for a path on the host)",
        ));
    }
    let mut clean = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::Normal(name) => clean.push(name),
            Component::ParentDir => {
                return Err((
                    "the path has a `..` component",
                    "write the path that it leads to",
                ));
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    Ok(clean)
}

/// How a path touches one that must stay hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exposure<'a> {
    /// It is this denied path or lies inside it.
    Inside(&'a Path),
    /// It lies above this path, and would bring it along.
    Above(&'a Path),
}

/// Whether giving `source` to a sandbox exposes a denied path, or a place (the
/// workspace, the temporary directory) of which it is a parent.
#[must_use]
pub fn exposure<'a>(
    source: &Path,
    denied: &'a [PathBuf],
    places: &'a [PathBuf],
) -> Option<Exposure<'a>> {
    for hidden in denied {
        if source.starts_with(hidden) {
            return Some(Exposure::Inside(hidden));
        }
        if hidden.starts_with(source) {
            return Some(Exposure::Above(hidden));
        }
    }
    places
        .iter()
        .find(|place| place.starts_with(source) && *place != source)
        .map(|place| Exposure::Above(place))
}

/// Trees that the kernel makes up, or that are the machine itself.
#[must_use]
pub fn is_kernel_tree(path: &Path) -> bool {
    path == Path::new("/")
        || ["/proc", "/sys"].iter().any(|tree| path.starts_with(tree))
        || (path.starts_with("/dev") && !inside(path, "/dev/shm"))
}

/// Trees of the system that nothing may write from inside.
#[must_use]
pub fn is_system_tree(path: &Path) -> bool {
    [
        "/usr", "/etc", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/boot",
    ]
    .iter()
    .any(|tree| path.starts_with(tree))
        || ["/var", "/run", "/home", "/root", "/opt"]
            .iter()
            .any(|tree| path == Path::new(tree))
}

fn inside(path: &Path, tree: &str) -> bool {
    path.starts_with(tree) && path != Path::new(tree)
}

/// A path in JSON: text where it is UTF-8, else its bytes in hexadecimal, so that
/// no two paths look the same and none fails.
pub(crate) mod json {
    use std::fmt::Write as _;
    use std::path::{Path, PathBuf};

    use serde::Serialize;
    use serde::ser::{SerializeMap, Serializer};

    struct Shown<'a>(&'a Path);

    impl Serialize for Shown<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            match self.0.to_str() {
                Some(text) => serializer.serialize_str(text),
                None => {
                    let mut hex = String::new();
                    for byte in self.0.as_os_str().as_encoded_bytes() {
                        // Writing to a String cannot fail.
                        let _ = write!(hex, "{byte:02x}");
                    }
                    let mut map = serializer.serialize_map(Some(1))?;
                    map.serialize_entry("bytes", &hex)?;
                    map.end()
                }
            }
        }
    }

    pub fn path<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        Shown(path).serialize(serializer)
    }

    pub fn option<S: Serializer>(path: &Option<PathBuf>, s: S) -> Result<S::Ok, S::Error> {
        path.as_deref().map(Shown).serialize(s)
    }

    pub fn list<S: Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(paths.iter().map(|path| Shown(path)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOME: &str = "/home/me";

    #[test]
    fn home_and_spelling() {
        for (text, path) in [
            ("~", "/home/me"),
            ("~/.ssh", "/home/me/.ssh"),
            ("~//.ssh/", "/home/me/.ssh"),
            ("/srv//a/./b/", "/srv/a/b"),
            ("/srv/with space/目录", "/srv/with space/目录"),
            ("/srv/new\nline", "/srv/new\nline"),
            ("/srv/..a", "/srv/..a"),
        ] {
            assert_eq!(host(text, Path::new(HOME)).unwrap(), Path::new(path));
        }
        for text in [
            "",
            "srv",
            "./a",
            "/srv/../etc",
            "~/../you",
            "~root/x",
            "/a\0b",
            "C:/x",
        ] {
            assert!(host(text, Path::new(HOME)).is_err(), "{text:?}");
        }
    }

    /// FS-21, PR-16: by component, not by prefix of the text.
    #[test]
    fn exposure_is_by_component() {
        let denied = [PathBuf::from("/home/me/.ssh")];
        let places = [PathBuf::from("/srv/ws")];
        let ask = |source: &str| exposure(Path::new(source), &denied, &places).is_some();
        for source in ["/home/me/.ssh", "/home/me/.ssh/id", "/home/me", "/", "/srv"] {
            assert!(ask(source), "{source}");
        }
        for source in [
            "/home/me/.sshx",
            "/home/me/project",
            "/srv/ws",
            "/srv/ws/in",
            "/srv/w",
        ] {
            assert!(!ask(source), "{source}");
        }
    }

    #[test]
    fn trees() {
        for path in ["/", "/proc/1", "/sys", "/dev", "/dev/sda", "/dev/shm"] {
            assert!(is_kernel_tree(Path::new(path)), "{path}");
        }
        for path in ["/dev/shm/x", "/srv", "/process"] {
            assert!(!is_kernel_tree(Path::new(path)), "{path}");
        }
        assert!(is_system_tree(Path::new("/etc/x")));
        assert!(!is_system_tree(Path::new("/home/me/x")));
    }
}
