//! How a command is connected to whoever called orch.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use orch_engine::request::{Input, Sink, Streams, Terminal};
use orch_policy::{Code, Error};
use rustix::fs::{FileType, fstat};

/// What the caller wants of the streams.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// `-i`: pass standard input whatever it is.
    pub interactive: bool,
    /// `-t`.
    pub tty: bool,
    /// `--json`: keep the output.
    pub keep: bool,
}

/// The streams of a command.
///
/// # Errors
/// [`Code::Usage`] where a terminal is wanted and standard input is none;
/// [`Code::HostExhausted`] where no descriptor is left.
pub fn streams(wanted: Wanted) -> Result<Streams, Error> {
    let (stdin, stdout, stderr) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
    if wanted.tty {
        if !rustix::termios::isatty(&stdin) {
            return Err(Error::new(
                Code::Usage,
                "-t needs a terminal, and standard input is none",
                "leave out -t, or run it in a terminal",
            ));
        }
        return Ok(Streams::Terminal(Terminal {
            input: own(stdin.as_fd())?,
            output: own(stdout.as_fd())?,
        }));
    }
    let sink = |fd: BorrowedFd<'_>| match wanted.keep {
        true => Ok(Sink::Keep),
        false => own(fd).map(Sink::Pass),
    };
    Ok(Streams::Pipes {
        stdin: if wanted.interactive || carries_data(stdin.as_fd()) {
            Input::Relay(own(stdin.as_fd())?)
        } else {
            Input::Null
        },
        stdout: sink(stdout.as_fd())?,
        stderr: sink(stderr.as_fd())?,
    })
}

/// Whether somebody has put something there on purpose: a pipe, a file, a
/// socket. A terminal is just where orch was called, and its line would be
/// taken away from the shell.
fn carries_data(fd: BorrowedFd<'_>) -> bool {
    fstat(fd).is_ok_and(|stat| {
        matches!(
            FileType::from_raw_mode(stat.st_mode),
            FileType::Fifo | FileType::RegularFile | FileType::Socket
        )
    })
}

fn own(fd: BorrowedFd<'_>) -> Result<OwnedFd, Error> {
    fd.try_clone_to_owned().map_err(|e| {
        Error::new(
            Code::HostExhausted,
            "no file descriptor is left",
            "raise the limit on open files (ulimit -n)",
        )
        .because(e)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PX-06: what is a pipe or a file is passed, a device is not.
    #[test]
    fn pipes_and_files_carry_data() {
        let (reader, _writer) = std::io::pipe().unwrap();
        assert!(carries_data(reader.as_fd()));
        let file = std::fs::File::open("/proc/self/exe").unwrap();
        assert!(carries_data(file.as_fd()));
        let null = std::fs::File::open("/dev/null").unwrap();
        assert!(!carries_data(null.as_fd()));
    }
}
