//! Streams between a command and its caller, with bounded memory.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, fcntl_getpipe_size, pipe_with};

use crate::merged::Merged;
use crate::request::{Input, Sink};

/// Most that is held between reading and writing, bytes.
const CHUNK: usize = 64 << 10;
/// A pipe that is ready takes at least this much without blocking (pipe(7)).
const PIPE_BUF: usize = 4096;
/// End of the output that is kept for the receipt (EV-04) and looked at for signs of
/// a refusal (PX-18), bytes.
pub const TAIL: usize = 6000;

/// One output stream of a command.
#[derive(Debug)]
pub struct Output {
    from: Option<OwnedFd>,
    to: Sink,
    pending: Vec<u8>,
    kept: Vec<u8>,
    tail: Vec<u8>,
    /// Bytes read from the command.
    pub bytes: u64,
    /// Whether something of it was not passed on.
    pub truncated: bool,
}

impl Output {
    /// A stream and the command's end of it.
    ///
    /// # Errors
    /// What pipe2(2) says.
    pub fn new(to: Sink) -> io::Result<(Self, OwnedFd)> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(&read, true)?;
        Ok((Self::from(read, to), write))
    }

    /// A stream that is read from this descriptor, which must not block.
    #[must_use]
    pub fn from(from: OwnedFd, to: Sink) -> Self {
        Self {
            from: Some(from),
            to,
            pending: Vec::new(),
            kept: Vec::new(),
            tail: Vec::new(),
            bytes: 0,
            truncated: false,
        }
    }

    /// What to wait for: bytes to read, or room to write what was read. While the
    /// caller does not take it, the command is not read from either.
    #[must_use]
    pub fn waits_for(&self) -> Option<(BorrowedFd<'_>, bool)> {
        match (&self.to, &self.from) {
            (Sink::Pass(to), _) if !self.pending.is_empty() => Some((to.as_fd(), true)),
            (_, Some(from)) => Some((from.as_fd(), false)),
            _ => None,
        }
    }

    /// Moves what can be moved; at most `room` more bytes of the command count, and
    /// those go to `merged` as well.
    ///
    /// # Errors
    /// What read(2) says, besides the ends of pipes and terminals.
    pub fn advance(&mut self, room: u64, merged: &mut Merged) -> io::Result<()> {
        if self.pending.is_empty() {
            return self.read(room, merged).map(drop);
        }
        if self.write() {
            return Ok(());
        }
        let swept = if merged.keeps_all() {
            self.sweep(room, merged)
        } else {
            Ok(())
        };
        self.truncated = true;
        self.give_up();
        swept
    }

    /// Gives the number of bytes read; `None` where nothing was there.
    fn read(&mut self, room: u64, merged: &mut Merged) -> io::Result<Option<u64>> {
        let Some(from) = &self.from else {
            return Ok(None);
        };
        let mut chunk = [0_u8; CHUNK];
        match rustix::io::read(from, &mut chunk) {
            // EIO: the last process on a terminal has closed it.
            Ok(0) | Err(Errno::IO) => {
                self.from = None;
                Ok(None)
            }
            Ok(read) => {
                let count = u64::try_from(read).unwrap_or(u64::MAX);
                let passed = read.min(usize::try_from(room).unwrap_or(usize::MAX));
                self.bytes += count;
                self.truncated |= passed < read;
                merged.take(&chunk[..passed]);
                self.take(&chunk[..passed]);
                Ok(Some(count))
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// Reads what the command has written by now, for the log alone: not more than
    /// its pipe holds, since a command that goes on writing would never come to an end.
    ///
    /// # Errors
    /// As [`Output::advance`].
    pub fn sweep(&mut self, room: u64, merged: &mut Merged) -> io::Result<()> {
        let Some(from) = &self.from else {
            return Ok(());
        };
        // A terminal is no pipe, and holds less than one chunk.
        let held = fcntl_getpipe_size(from).unwrap_or(CHUNK);
        let held = u64::try_from(held).unwrap_or(u64::MAX);
        let mut swept = 0;
        while swept < held {
            match self.read(room.saturating_sub(swept), merged)? {
                Some(read) => swept += read,
                None => break,
            }
            self.pending.clear();
        }
        Ok(())
    }

    fn take(&mut self, bytes: &[u8]) {
        self.tail.extend(bytes);
        let over = self.tail.len().saturating_sub(TAIL);
        self.tail.drain(..over);
        match &self.to {
            Sink::Keep => self.kept.extend(bytes),
            Sink::Pass(_) => self.pending.extend(bytes),
        }
    }

    /// Passes some of it on; false where the caller has gone away. The command is told
    /// in the same way: by a pipe without a reader.
    fn write(&mut self) -> bool {
        let Sink::Pass(to) = &self.to else {
            return true;
        };
        let part = &self.pending[..self.pending.len().min(PIPE_BUF)];
        match rustix::io::write(to, part) {
            Ok(written) => {
                self.pending.drain(..written);
                true
            }
            Err(Errno::INTR | Errno::AGAIN) => true,
            Err(_) => false,
        }
    }

    /// Whether everything has been read and passed on.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.from.is_none() && self.pending.is_empty()
    }

    /// Reads no further, for whoever would not come to an end otherwise.
    pub fn stop(&mut self) {
        self.from = None;
    }

    /// The same, where its end had not been reached.
    pub fn abandon(&mut self) {
        self.truncated |= self.from.take().is_some();
    }

    /// Passes nothing on any more, what has been read included.
    pub fn give_up(&mut self) {
        self.truncated |= !self.is_done();
        self.from = None;
        self.pending.clear();
    }

    /// Whether something is read and not passed on yet.
    #[must_use]
    pub fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// The last bytes, for a look at them.
    #[must_use]
    pub fn tail(&self) -> &[u8] {
        &self.tail
    }

    /// What was kept, where it was.
    #[must_use]
    pub fn into_kept(self) -> Option<Vec<u8>> {
        matches!(self.to, Sink::Keep).then_some(self.kept)
    }
}

/// Standard input of a command: copied, never handed over.
#[derive(Debug)]
pub struct Feed {
    from: Option<OwnedFd>,
    to: Option<OwnedFd>,
    pending: Vec<u8>,
}

impl Feed {
    /// A stream and the command's end of it.
    ///
    /// # Errors
    /// What pipe2(2) or open(2) say.
    pub fn new(input: Input) -> io::Result<(Self, OwnedFd)> {
        match input {
            Input::Null => {
                let null = rustix::fs::open(
                    "/dev/null",
                    rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CLOEXEC,
                    rustix::fs::Mode::empty(),
                )?;
                let nothing = Self {
                    from: None,
                    to: None,
                    pending: Vec::new(),
                };
                Ok((nothing, null))
            }
            Input::Relay(from) => {
                let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
                rustix::io::ioctl_fionbio(&write, true)?;
                Ok((Self::into(from, write), read))
            }
        }
    }

    /// A stream that is written to this descriptor.
    #[must_use]
    pub fn into(from: OwnedFd, to: OwnedFd) -> Self {
        Self {
            from: Some(from),
            to: Some(to),
            pending: Vec::new(),
        }
    }

    /// What to wait for: bytes to read, or room to write them.
    #[must_use]
    pub fn waits_for(&self) -> Option<(BorrowedFd<'_>, bool)> {
        match (&self.from, &self.to) {
            (_, Some(to)) if !self.pending.is_empty() => Some((to.as_fd(), true)),
            (Some(from), Some(_)) => Some((from.as_fd(), false)),
            _ => None,
        }
    }

    /// Moves what can be moved.
    pub fn advance(&mut self) {
        if self.pending.is_empty() {
            self.read();
        } else if let Some(to) = &self.to {
            match rustix::io::write(to, &self.pending) {
                Ok(written) => {
                    self.pending.drain(..written);
                }
                Err(Errno::AGAIN | Errno::INTR) => {}
                // The command reads no more.
                Err(_) => {
                    self.to = None;
                    self.from = None;
                    self.pending.clear();
                }
            }
        }
        if self.pending.is_empty() && self.from.is_none() {
            self.to = None;
        }
    }

    fn read(&mut self) {
        let Some(from) = &self.from else { return };
        let mut chunk = [0_u8; CHUNK];
        match rustix::io::read(from, &mut chunk) {
            Ok(0) => self.from = None,
            Ok(read) => self.pending.extend(&chunk[..read]),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.from = None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_over_the_room_is_counted_and_not_passed_on() {
        let (mut output, write) = Output::new(Sink::Keep).unwrap();
        rustix::io::write(&write, b"0123456789").unwrap();
        drop(write);
        let mut merged = Merged::default();
        output.advance(4, &mut merged).unwrap();
        output.advance(0, &mut merged).unwrap();
        assert_eq!(merged.tail(), b"0123");
        assert!(output.is_done() && output.truncated && output.bytes == 10);
        assert_eq!(output.into_kept().unwrap(), b"0123");
    }

    #[test]
    fn a_caller_that_has_gone_away_closes_the_pipe_of_the_command() {
        let (read, caller) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        drop(read);
        let (mut output, write) = Output::new(Sink::Pass(caller)).unwrap();
        rustix::io::write(&write, b"x").unwrap();
        let mut merged = Merged::default();
        output.advance(10, &mut merged).unwrap();
        output.advance(10, &mut merged).unwrap();
        assert!(output.is_done() && output.truncated);
        assert_eq!(rustix::io::write(&write, b"x"), Err(Errno::PIPE));
    }

    /// EV-05: whether anybody takes the output makes no difference to the log.
    #[test]
    fn a_log_has_what_was_written_before_the_caller_went_away() {
        let path = std::env::temp_dir().join(format!("orch-sweep-{}", std::process::id()));
        let (read, caller) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let (mut output, write) = Output::new(Sink::Pass(caller)).unwrap();
        let mut merged = Merged::default();
        merged.keep(crate::artifacts::Log::new(
            std::fs::File::create_new(&path).unwrap(),
        ));
        rustix::io::write(&write, b"passed on ").unwrap();
        output.advance(100, &mut merged).unwrap();
        // Still in the pipe when the caller turns out to be gone.
        rustix::io::write(&write, b"or not").unwrap();
        drop(read);
        output.advance(90, &mut merged).unwrap();
        let there = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(there, b"passed on or not");
        assert!(output.is_done() && output.truncated && output.bytes == 16);
        assert_eq!(rustix::io::write(&write, b"x"), Err(Errno::PIPE));
    }

    #[test]
    fn input_ends_for_the_command_when_it_ends_for_the_caller() {
        let (source, caller) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        rustix::io::write(&caller, b"abc").unwrap();
        drop(caller);
        let (mut feed, read) = Feed::new(Input::Relay(source)).unwrap();
        while feed.waits_for().is_some() {
            feed.advance();
        }
        let mut got = [0; 8];
        assert_eq!(rustix::io::read(&read, &mut got).unwrap(), 3);
        assert_eq!(rustix::io::read(&read, &mut got).unwrap(), 0);
    }
}
