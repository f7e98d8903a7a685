//! `--receipt FILE|-`.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use orch_policy::receipt::Receipt;
use orch_policy::{Code, Error};

use crate::print;

/// Where the receipt goes, known to be writable before anything is started.
#[derive(Debug)]
pub enum ReceiptFile {
    /// `-`: standard output, behind the command's own.
    Stdout,
    /// What is there and is no regular file: a pipe, a device.
    Stream(PathBuf, File),
    /// A file beside the one that is asked for, which takes its place when it is
    /// complete: nobody reads half a receipt, and a refused task leaves none.
    Beside(Pending),
}

/// Removed again unless it takes its place.
#[derive(Debug)]
pub struct Pending {
    file: File,
    temporary: PathBuf,
    target: PathBuf,
}

impl Pending {
    /// The directory may lie in a folder of the task, which must not put a receipt
    /// of its own in the place of this one.
    fn check_still_there(&self) -> std::io::Result<()> {
        let (ours, there) = (
            self.file.metadata()?,
            std::fs::symlink_metadata(&self.temporary)?,
        );
        if (ours.dev(), ours.ino()) == (there.dev(), there.ino()) {
            return Ok(());
        }
        Err(std::io::Error::other(
            "somebody has put another file in its place",
        ))
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        // Gone already where it has taken its place.
        let _ = std::fs::remove_file(&self.temporary);
    }
}

fn failed(path: &Path, e: std::io::Error) -> Error {
    Error::new(
        Code::ReceiptFailed,
        format!("receipt {} cannot be written", path.display()),
        "name a file in a directory that exists and that you can write",
    )
    .because(e)
}

impl ReceiptFile {
    /// Makes ready to write there.
    ///
    /// # Errors
    /// [`Code::ReceiptFailed`] where it cannot be written.
    pub fn open(path: &Path) -> Result<Self, Error> {
        if path == Path::new("-") {
            return Ok(Self::Stdout);
        }
        // Through a link, so that the link stays and its target is replaced.
        let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if std::fs::metadata(&target).is_ok_and(|meta| !meta.is_file()) {
            let file = File::options()
                .write(true)
                .open(&target)
                .map_err(|e| failed(path, e))?;
            return Ok(Self::Stream(path.to_owned(), file));
        }
        let mut name = target.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.part", std::process::id()));
        let temporary = target.with_file_name(name);
        let file = File::create_new(&temporary).map_err(|e| failed(path, e))?;
        Ok(Self::Beside(Pending {
            file,
            temporary,
            target,
        }))
    }

    /// Writes the receipt.
    ///
    /// # Errors
    /// [`Code::ReceiptFailed`] where it cannot be written.
    pub fn write(self, receipt: &Receipt) -> Result<(), Error> {
        let text = receipt.document()?;
        match self {
            Self::Stdout => print::text(&text),
            Self::Stream(path, mut file) => file
                .write_all(text.as_bytes())
                .map_err(|e| failed(&path, e)),
            Self::Beside(mut pending) => pending
                .file
                .write_all(text.as_bytes())
                .and_then(|()| pending.check_still_there())
                .and_then(|()| std::fs::rename(&pending.temporary, &pending.target))
                .map_err(|e| failed(&pending.target, e)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_task_leaves_no_receipt() {
        let dir = std::env::temp_dir().join(format!("orch-receipt-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let entries = || std::fs::read_dir(&dir).unwrap().count();
        let file = ReceiptFile::open(&dir.join("r.json")).unwrap();
        let while_open = entries();
        drop(file);
        let afterwards = entries();
        std::fs::remove_dir_all(&dir).unwrap();
        assert_eq!((while_open, afterwards), (1, 0));
    }

    #[test]
    fn a_file_put_in_its_place_does_not_become_the_receipt() {
        let dir = std::env::temp_dir().join(format!("orch-forged-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let ReceiptFile::Beside(pending) = ReceiptFile::open(&dir.join("r.json")).unwrap() else {
            panic!("not beside");
        };
        let before = pending.check_still_there();
        std::fs::remove_file(&pending.temporary).unwrap();
        std::fs::write(&pending.temporary, "{}").unwrap();
        let after = pending.check_still_there();
        std::fs::remove_dir_all(&dir).unwrap();
        assert!(before.is_ok() && after.is_err());
    }

    #[test]
    fn a_directory_or_a_missing_one_is_refused() {
        for path in ["/", "/nonexistent/r.json"] {
            let error = ReceiptFile::open(Path::new(path)).unwrap_err();
            assert_eq!(error.code, Code::ReceiptFailed);
            assert!(error.message.contains(path));
        }
    }
}
