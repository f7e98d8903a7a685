//! The end of an audit log.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use orch_policy::audit::line;

/// How much is read first, backwards from the end; then twice as much each time.
const PIECE: u64 = 16 << 10;

/// What the next record comes after.
#[derive(Debug, PartialEq, Eq)]
pub enum Tail {
    /// Nothing.
    Empty,
    /// A whole line.
    Whole {
        /// Its number.
        seq: u64,
        /// Its hash.
        hash: String,
    },
    /// A line without its end.
    Cut {
        /// Number that the next record has.
        seq: u64,
        /// Hash of what is there.
        hash: String,
        /// Length of that.
        bytes: u64,
    },
}

/// Reads the last line, and the one before where the last one was cut short.
///
/// # Errors
/// What read(2) says, or that this is no audit log.
pub fn read(file: &File) -> io::Result<Tail> {
    let end = file.metadata()?.len();
    if end == 0 {
        return Ok(Tail::Empty);
    }
    let (start, last) = line_before(file, end)?;
    if let Some(whole) = last.strip_suffix(b"\n") {
        let seq = line::seq(whole).ok_or_else(foreign)?;
        let hash = line::hash(whole);
        return Ok(Tail::Whole { seq, hash });
    }
    if !line::may_be_cut(&last) {
        return Err(foreign());
    }
    let seq = match start {
        0 => 0,
        _ => {
            let (_, before) = line_before(file, start)?;
            let whole = before.strip_suffix(b"\n").unwrap_or(&before);
            line::seq(whole).ok_or_else(foreign)? + 1
        }
    };
    Ok(Tail::Cut {
        seq,
        hash: line::hash(&last),
        bytes: u64::try_from(last.len()).unwrap_or(u64::MAX),
    })
}

fn foreign() -> io::Error {
    io::Error::other("its last line is none that orch has written")
}

/// The line that ends here, with its newline where it has one, and where it begins.
fn line_before(file: &File, end: u64) -> io::Result<(u64, Vec<u8>)> {
    let mut bytes = Vec::new();
    let (mut start, mut next) = (end, PIECE);
    loop {
        let piece = next.min(start);
        next = next.saturating_mul(2);
        let mut read = vec![0; usize::try_from(piece).unwrap_or(0)];
        file.read_exact_at(&mut read, start - piece)?;
        start -= piece;
        read.extend_from_slice(&bytes);
        bytes = read;
        // The newline of the line itself does not count.
        let body = &bytes[..bytes.len().saturating_sub(1)];
        if let Some(at) = body.iter().rposition(|byte| *byte == b'\n') {
            let line = bytes.split_off(at + 1);
            let length = u64::try_from(line.len()).unwrap_or(u64::MAX);
            return Ok((end - length, line));
        }
        if start == 0 {
            return Ok((0, bytes));
        }
    }
}
