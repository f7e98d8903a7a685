//! The output of a task while it is written (EV-05).

use std::fs::File;
use std::io;

use orch_policy::digest;
use orch_policy::{Code, Error};
use rustix::fs::ftruncate;
use rustix::io::Errno;

/// A log to which every byte is added as soon as it is read: whatever becomes of this
/// process, what was read until then is there.
#[derive(Debug)]
pub struct Log {
    file: File,
    bytes: u64,
    hash: digest::Running,
}

impl Log {
    /// A log in this empty file.
    #[must_use]
    pub fn new(file: File) -> Self {
        Self {
            file,
            bytes: 0,
            hash: digest::Running::default(),
        }
    }

    /// Adds these bytes.
    ///
    /// # Errors
    /// [`Code::ArtifactsFailed`] where not all of them could be written. No more may
    /// be added then: there would be a hole.
    pub fn add(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        while !bytes.is_empty() {
            match rustix::io::write(&self.file, bytes) {
                Ok(0) => return Err(cut(io::ErrorKind::WriteZero.into())),
                Ok(written) => {
                    self.hash.add(&bytes[..written]);
                    self.bytes += u64::try_from(written).unwrap_or(u64::MAX);
                    bytes = &bytes[written..];
                }
                Err(Errno::INTR) => {}
                Err(e) => return Err(cut(e.into())),
            }
        }
        Ok(())
    }

    /// Gives back the room that was not needed; bytes and SHA-256 of what is there.
    ///
    /// # Errors
    /// [`Code::ArtifactsFailed`] with what ftruncate(2) says.
    pub fn end(self) -> Result<(u64, String), Error> {
        ftruncate(&self.file, self.bytes).map_err(|e| cut(e.into()))?;
        Ok((self.bytes, self.hash.end()))
    }
}

fn cut(e: io::Error) -> Error {
    Error::new(
        Code::ArtifactsFailed,
        "the output cannot be kept any further, so the task was ended",
        "make room where the artifacts are, or keep them elsewhere with --artifacts",
    )
    .because(e)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_has_the_bytes_their_number_and_their_hash() {
        let path = std::env::temp_dir().join(format!("orch-log-{}", std::process::id()));
        let mut log = Log::new(File::create_new(&path).unwrap());
        for part in [&b"a\0b"[..], b"", "\u{e9}\n".as_bytes()] {
            log.add(part).unwrap();
        }
        let ended = log.end().unwrap();
        let there = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(there, "a\0b\u{e9}\n");
        assert_eq!(ended, (6, digest::sha256_text(&there)));
    }

    /// Never a log that is shorter in silence.
    #[test]
    fn what_cannot_be_written_is_an_error() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut log = Log::new(full);
        log.add(b"").unwrap();
        let error = log.add(b"x").unwrap_err();
        assert_eq!(error.code, Code::ArtifactsFailed);
        assert!(error.cause.is_some_and(|cause| cause.contains("No space")));
    }
}
