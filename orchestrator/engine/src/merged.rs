//! Both output streams as one, in the order in which they were read.

use orch_policy::Error;

use crate::artifacts::Log;
use crate::stream::TAIL;

/// The end of the output for the receipt (EV-04), and all of it where that is asked
/// for (EV-05).
#[derive(Debug, Default)]
pub struct Merged {
    tail: Vec<u8>,
    log: Option<Log>,
    failure: Option<Error>,
}

impl Merged {
    /// Keeps everything in this log from now on.
    pub fn keep(&mut self, log: Log) {
        self.log = Some(log);
    }

    /// Whether everything is kept. What is in the pipes when nobody takes the output
    /// any more is read for its sake.
    #[must_use]
    pub fn keeps_all(&self) -> bool {
        self.log.is_some() && self.failure.is_none()
    }

    /// Takes what was read. A log that fails gets no more: there would be a hole.
    pub fn take(&mut self, bytes: &[u8]) {
        if self.failure.is_none()
            && let Some(log) = &mut self.log
        {
            self.failure = log.add(bytes).err();
        }
        let new = &bytes[bytes.len().saturating_sub(TAIL)..];
        self.tail.extend(new);
        let over = self.tail.len().saturating_sub(TAIL);
        self.tail.drain(..over);
    }

    /// The last bytes.
    #[must_use]
    pub fn tail(&self) -> &[u8] {
        &self.tail
    }

    /// Whether the log could not be written: the command is not to go on.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Ends the log: its bytes and SHA-256 where there is one, and why it is not
    /// whole where it is not.
    pub fn end(&mut self) -> (Option<(u64, String)>, Option<Error>) {
        match self.log.take().map(Log::end) {
            None => (None, None),
            Some(Ok(kept)) => (Some(kept), self.failure.take()),
            Some(Err(error)) => (None, self.failure.take().or(Some(error))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_bytes_stay() {
        let mut merged = Merged::default();
        merged.take(&vec![b'a'; 4000]);
        merged.take(&vec![b'b'; 3000]);
        assert_eq!(merged.tail().len(), TAIL);
        assert!(merged.tail().starts_with(b"a") && merged.tail().ends_with(b"b"));
        merged.take(&vec![b'c'; 20_000]);
        assert_eq!(merged.tail(), vec![b'c'; TAIL]);
    }
}
