//! The two sides of a command's streams.

use std::io;
use std::os::fd::OwnedFd;

use orch_policy::Error;

use crate::lease::Running;
use crate::request::{Input, Sink, Streams as Asked, Terminal};
use crate::stream::{Feed, Output};
use crate::supervise::Streams;
use crate::{failure, terminal};

/// The host's side of the streams, and the command's until it has started.
#[derive(Debug)]
pub struct Wiring {
    /// What is watched.
    pub streams: Streams,
    /// What the command is given.
    pub command: Vec<OwnedFd>,
    terminal: Option<Terminal>,
    raw: Option<terminal::Raw>,
}

impl Wiring {
    /// Makes the pipes.
    ///
    /// # Errors
    /// What pipe2(2) says.
    pub fn new(asked: Asked) -> Result<Self, Error> {
        let broken = |e: io::Error| failure::kernel("make the streams of the command", e);
        match asked {
            Asked::Pipes {
                stdin,
                stdout,
                stderr,
            } => {
                let (feed, input) = Feed::new(stdin).map_err(broken)?;
                let (out, out_end) = Output::new(stdout).map_err(broken)?;
                let (err, err_end) = Output::new(stderr).map_err(broken)?;
                Ok(Self {
                    streams: Streams::new(feed, vec![out, err]),
                    command: vec![input, out_end, err_end],
                    terminal: None,
                    raw: None,
                })
            }
            Asked::Terminal(terminal) => {
                let (feed, _) = Feed::new(Input::Null).map_err(broken)?;
                Ok(Self {
                    streams: Streams::new(feed, Vec::new()),
                    command: Vec::new(),
                    terminal: Some(terminal),
                    raw: None,
                })
            }
        }
    }

    /// Connects the caller's terminal to the command's.
    ///
    /// # Errors
    /// What ioctl_tty(2) says.
    pub fn connect(&mut self, running: &Running) -> io::Result<()> {
        let (Some(asked), Some(own)) = (self.terminal.take(), &running.terminal) else {
            return Ok(());
        };
        rustix::io::ioctl_fionbio(own, true)?;
        terminal::copy_size(own);
        self.raw = Some(terminal::Raw::enter(asked.input.try_clone()?)?);
        self.streams.feed = Feed::into(asked.input, own.try_clone()?);
        let output = Output::from(own.try_clone()?, Sink::Pass(asked.output));
        self.streams.outputs = vec![output];
        Ok(())
    }

    /// Gives the caller's terminal back as it was.
    pub fn restore(&mut self) {
        self.raw = None;
    }
}
