//! Directories of a test, and where the programs are.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use sha2::{Digest, Sha256};

use super::{Result, at};

/// Owner of what tests mount: anybody but root.
pub const OWNER: u32 = 1234;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A directory of one test, removed with it. Everybody may pass through.
#[derive(Debug)]
pub struct Place {
    path: PathBuf,
}

impl Place {
    /// An empty directory.
    ///
    /// # Errors
    /// What mkdir(2) says.
    pub fn new(name: &str) -> Result<Self> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("orch-suite-{}-{name}-{number}", std::process::id()));
        std::fs::DirBuilder::new()
            .mode(0o755)
            .create(&path)
            .map_err(at(path.display()))?;
        Ok(Self { path })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A directory below, with its parents.
    ///
    /// # Errors
    /// What mkdir(2) says.
    pub fn dir(&self, name: &str) -> Result<PathBuf> {
        let path = self.path.join(name);
        std::fs::create_dir_all(&path).map_err(at(path.display()))?;
        Ok(path)
    }

    /// A directory below that belongs to [`OWNER`].
    ///
    /// # Errors
    /// What mkdir(2) or chown(2) say.
    pub fn owned(&self, name: &str) -> Result<PathBuf> {
        let path = self.dir(name)?;
        std::os::unix::fs::chown(&path, Some(OWNER), Some(OWNER)).map_err(at(path.display()))?;
        Ok(path)
    }

    /// A file below.
    ///
    /// # Errors
    /// What open(2) or write(2) say.
    pub fn file(&self, name: &str, content: &str) -> Result<PathBuf> {
        let path = self.path.join(name);
        std::fs::write(&path, content).map_err(at(path.display()))?;
        Ok(path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // A directory that stays is seen by whoever looks at /tmp; a test that
        // failed has said why already.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// A program: what the environment names, else its place below the target directory.
fn program(variable: &str, below: &str) -> Result<PathBuf> {
    if let Some(path) = std::env::var_os(variable) {
        return Ok(path.into());
    }
    // <target>/<triple>/debug/orch-suite
    let own = std::env::current_exe().map_err(at("find this program"))?;
    let found = own
        .ancestors()
        .nth(3)
        .map(|target| target.join(below))
        .filter(|path| path.is_file());
    found.ok_or_else(|| format!("set {variable}: there is no {below} below the target directory"))
}

/// The binary under test.
///
/// # Errors
/// It is not there.
pub fn orch() -> Result<PathBuf> {
    program("ORCH_BIN", "x86_64-unknown-linux-gnu/release/orch")
}

/// The probe program.
///
/// # Errors
/// It is not there.
pub fn probe() -> Result<PathBuf> {
    program("ORCH_PROBE", "x86_64-unknown-linux-gnu/debug/orch-probe")
}

/// The launcher that the engine seals.
///
/// # Errors
/// It is not there.
pub fn launcher() -> Result<PathBuf> {
    program("ORCH_LAUNCHER", "sealed/orch-launcher")
}

/// The guest that the engine seals.
///
/// # Errors
/// It is not there.
pub fn guest() -> Result<PathBuf> {
    program("ORCH_GUEST", "sealed/orch-guest")
}

/// One state directory for all of this process's runs, so that no other run of
/// orch on this machine is disturbed; [`forget_state`] removes it.
pub fn state() -> PathBuf {
    std::env::temp_dir().join(format!("orch-suite-state-{}", std::process::id()))
}

/// Removes the state directory, at the end of this process.
pub fn forget_state() {
    // Nothing is there when no test has run orch.
    let _ = std::fs::remove_dir_all(state());
}

/// SHA-256 of a file, in hex.
///
/// # Errors
/// What read(2) says.
pub fn sha256(path: &Path) -> Result<String> {
    let bytes = std::fs::read(path).map_err(at(path.display()))?;
    Ok(format!("{:x}", Sha256::digest(bytes)))
}

/// Everything below a directory that a write would change: path, kind, mode,
/// owner, size, change time.
///
/// # Errors
/// What lstat(2) says.
pub fn manifest(path: &Path) -> Result<Vec<String>> {
    use std::os::unix::fs::MetadataExt;
    let meta = std::fs::symlink_metadata(path).map_err(at(path.display()))?;
    let mut found = vec![format!(
        "{} {:o} {} {} {} {}.{}",
        path.display(),
        meta.mode(),
        meta.uid(),
        meta.gid(),
        meta.size(),
        meta.ctime(),
        meta.ctime_nsec(),
    )];
    if meta.is_dir() {
        let mut below = std::fs::read_dir(path)
            .map_err(at(path.display()))?
            .filter_map(std::result::Result::ok)
            .map(|entry| entry.path())
            .collect::<Vec<_>>();
        below.sort();
        for entry in below {
            found.extend(manifest(&entry)?);
        }
    }
    Ok(found)
}
