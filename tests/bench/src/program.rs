//! Finding programs once, before anything is timed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The first executable of that name in `PATH` or the system's directories.
/// The latter because `PATH` of a user who calls sudo often lacks `sbin`.
#[must_use]
pub fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/local/sbin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"].map(PathBuf::from))
        .map(|directory| directory.join(name))
        .find(|candidate| executable(candidate))
}

/// Whether `program args` ends with 0; whatever it says is dropped.
#[must_use]
pub fn answers(program: &Path, args: &[&str]) -> bool {
    Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The first line of `program --version`.
#[must_use]
pub fn version(program: &Path) -> Option<String> {
    let output = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    Some(text.lines().next()?.trim().to_owned())
}

fn executable(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_is_found_and_nonsense_is_not() {
        assert!(find("sh").is_some());
        assert!(find("no-such-program-anywhere").is_none());
    }
}
