//! `--profile NAME|FILE`: a shipped profile by name, or a file.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use orch_policy::builtin;
use orch_policy::layer::{MAX_BYTES, Source};
use orch_policy::load::{Context, Loaded, load};
use orch_policy::{Code, Error, paths};

/// Loads a profile: a shipped name or one of its aliases (PR-35) comes first,
/// then a file. `reserved` are host paths of orch itself (FS-21).
///
/// # Errors
/// [`Code::ProfileUnknown`] with the nearest name, or what loading complains of.
pub fn by_name(name: &OsStr, home: &Path, reserved: &[PathBuf]) -> Result<Loaded, Error> {
    let path = Path::new(name);
    if let Some(text) = name.to_str() {
        if builtin::canonical(text).is_some() {
            return builtin::builtin(text, home);
        }
        let looks_like_a_file =
            text.contains('/') || text.ends_with(".yaml") || text.ends_with(".yml");
        if !looks_like_a_file && !path.is_file() {
            return Err(builtin::unknown(text));
        }
    }
    from_file(path, home, reserved)
}

/// Loads a profile file. What it extends is looked for beside it.
///
/// # Errors
/// [`Code::ProfileUnknown`] where it cannot be read, or what loading complains of.
pub fn from_file(path: &Path, home: &Path, reserved: &[PathBuf]) -> Result<Loaded, Error> {
    // Messages show a path as text; the file behind it need not have such a name.
    let mut opened = HashMap::from([(shown(path), path.to_owned())]);
    let first = read(path)?;
    let open = |reference: &str, from: &str| {
        let from = opened.get(from).map_or(Path::new(from), PathBuf::as_path);
        let next = beside(from, reference, home)?;
        let source = read(&next)?;
        opened.insert(shown(&next), next);
        Ok(source)
    };
    let mut cx = Context::new(home).with_reserved(reserved).with_open(open);
    load(first, &mut cx)
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn read(path: &Path) -> Result<Source, Error> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(MAX_BYTES).unwrap_or(u64::MAX);
    File::open(path)
        // One more than allowed, so that too much can be told from just enough.
        .and_then(|file| file.take(limit + 1).read_to_end(&mut bytes))
        .map_err(|e| {
            Error::new(
                Code::ProfileUnknown,
                format!("profile {} cannot be read", path.display()),
                format!(
                    "name a readable file, or one of {}",
                    builtin::NAMES.join(", ")
                ),
            )
            .because(e)
        })?;
    Source::file(shown(path), bytes)
}

/// Where a reference in the file `from` leads. `./a` and `a` are the same file,
/// so that a circle is seen as one.
fn beside(from: &Path, reference: &str, home: &Path) -> Result<PathBuf, Error> {
    if reference.starts_with('~') {
        return paths::host(reference, home).map_err(|(cause, remedy)| {
            let message = format!("{reference:?} is not a path");
            Error::new(Code::ProfileUnknown, message, remedy).because(cause)
        });
    }
    let dir = from.parent().unwrap_or(Path::new(""));
    Ok(dir.join(reference).components().collect())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    /// A directory with a name that is not UTF-8 and has a space and a newline.
    fn directory(test: &str) -> PathBuf {
        let mut name = format!("orch {test}\n{}", std::process::id()).into_bytes();
        name.push(0xff);
        let dir = std::env::temp_dir().join(OsString::from_vec(name));
        std::fs::create_dir_all(&dir).unwrap();
        dir
    }

    /// PR-37, and `extends` beside the file.
    #[test]
    fn files_are_found_under_any_name() {
        let dir = directory("extends");
        let write = |name: &str, text: &str| std::fs::write(dir.join(name), text).unwrap();
        write("a.yaml", "extends: ./b.yaml\n");
        write("b.yaml", "extends: strict\nlimits: {processes: 7}\n");
        let loaded = by_name(dir.join("a.yaml").as_os_str(), Path::new("/home/me"), &[]);
        std::fs::remove_dir_all(&dir).unwrap();
        assert_eq!(loaded.unwrap().profile.limits.processes, 7);
    }

    #[test]
    fn a_circle_is_refused() {
        let dir = directory("circle");
        std::fs::write(dir.join("a.yaml"), "extends: ./a.yaml\n").unwrap();
        let error = from_file(&dir.join("a.yaml"), Path::new("/home/me"), &[]).unwrap_err();
        std::fs::remove_dir_all(&dir).unwrap();
        assert_eq!(error.code, Code::ProfileInvalid);
        assert!(error.message.contains("extends itself"), "{error}");
    }

    /// PR-36.
    #[test]
    fn what_is_not_there_is_named() {
        let ask = |name: &str| by_name(OsStr::new(name), Path::new("/home/me"), &[]).unwrap_err();
        let error = ask("strickt");
        assert!(error.remediation.contains("did you mean strict?"));
        let error = ask("/nonexistent/p.yaml");
        assert_eq!(error.code, Code::ProfileUnknown);
        assert!(error.message.contains("/nonexistent/p.yaml"));
    }

    /// PR-35.
    #[test]
    fn aliases_are_names() {
        let loaded = by_name(OsStr::new("read-only"), Path::new("/home/me"), &[]).unwrap();
        assert_eq!(loaded.profile.name, "strict");
    }
}
