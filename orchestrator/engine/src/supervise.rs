//! A running command: its streams, its clock, and who wants it to end.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use orch_policy::Error;
use orch_wire::launch::{Reply, Request};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::failure;
use crate::interrupt::{Interrupt, Interrupts};
use crate::launcher::Engine;
use crate::lease::{Lease, Running};
use crate::merged::Merged;
use crate::request::Observer;
use crate::stream::{Feed, Output};
use crate::terminal;

/// How often the clock of the whole tree is read and the observer is told.
const TICK: Duration = Duration::from_secs(1);
/// Time between the word that a command should end and its end by force.
const GRACE: Duration = Duration::from_secs(1);

/// After the end of a command, an output from which nothing comes for this long
/// is held open by somebody else.
const QUIET: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};
/// Reads after the end of a command: the largest pipe (pipe(7): 1 MiB) takes 16.
const READS: u32 = 64;

/// Why a command is not waited for any longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Its first process has ended.
    Ended,
    /// The wall clock has run out.
    Timeout,
    /// Its tree has used up its CPU seconds.
    CpuLimit,
    /// It has written more than it may.
    OutputLimit,
    /// Somebody outside wants its end, by this signal.
    Cancelled(i32),
    /// What it writes cannot be kept (EV-05).
    Unkept,
}

/// Streams of a command. With a terminal, everything comes on `outputs[0]`.
#[derive(Debug)]
pub struct Streams {
    /// What it reads.
    pub feed: Feed,
    /// What it writes.
    pub outputs: Vec<Output>,
    /// All outputs as one, in the order in which they were read (EV-04, EV-05).
    pub merged: Merged,
}

impl Streams {
    /// Streams that nothing has come from yet.
    #[must_use]
    pub fn new(feed: Feed, outputs: Vec<Output>) -> Self {
        Self {
            feed,
            outputs,
            merged: Merged::default(),
        }
    }
}

/// Bounds while a command runs.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Wall clock.
    pub timeout: Duration,
    /// CPU time of the whole tree, microseconds.
    pub cpu_us: u64,
    /// Merged output, bytes.
    pub output_bytes: u64,
}

/// What a command is watched with.
#[derive(Debug)]
pub struct Watch<'a> {
    /// Launcher, for the clock of the tree.
    pub engine: &'a Engine,
    /// Container.
    pub container: &'a str,
    /// Lease, for signals.
    pub lease: &'a Lease,
    /// The command.
    pub running: &'a Running,
    /// Signals to this process.
    pub interrupts: &'a Interrupts,
    /// Bounds.
    pub bounds: Bounds,
}

/// Watches until the command has ended or is not to be waited for any longer.
///
/// # Errors
/// What poll(2) or a stream says; the command is to be ended then.
pub fn watch(
    watch: &Watch<'_>,
    streams: &mut Streams,
    observer: &mut dyn Observer,
) -> Result<Stop, Error> {
    let start = Instant::now();
    let (mut next_tick, mut asked) = (start + TICK, None::<(Stop, Instant)>);
    loop {
        let now = Instant::now();
        match asked {
            Some((stop, force)) if now >= force => return Ok(stop),
            None if now >= start + watch.bounds.timeout => {
                asked = Some((Stop::Timeout, now + GRACE));
                watch.lease.signal(watch.running.exec, libc::SIGTERM);
            }
            _ => {}
        }
        if now >= next_tick {
            next_tick = now + TICK;
            observer.tick(now - start);
            if cpu_used(watch)? >= watch.bounds.cpu_us {
                return Ok(Stop::CpuLimit);
            }
        }
        let until = match asked {
            Some((_, force)) => force.min(next_tick),
            None => (start + watch.bounds.timeout).min(next_tick),
        };
        let (ended, interrupted) = wait(watch, streams, until, observer)?;
        if streams.merged.has_failed() {
            return Ok(Stop::Unkept);
        }
        if ended {
            return Ok(asked.map_or(Stop::Ended, |(stop, _)| stop));
        }
        if written(streams) > watch.bounds.output_bytes {
            return Ok(Stop::OutputLimit);
        }
        match interrupted {
            Some(Interrupt::End(signal)) => {
                // A second one does not wait for the grace of the first.
                if let Some((stop @ Stop::Cancelled(_), _)) = asked {
                    return Ok(stop);
                }
                asked = Some((Stop::Cancelled(signal), Instant::now() + GRACE));
                watch.lease.signal(watch.running.exec, signal);
            }
            Some(Interrupt::Resized) => {
                if let Some(terminal) = &watch.running.terminal {
                    terminal::copy_size(terminal);
                }
            }
            None => {}
        }
    }
}

fn written(streams: &Streams) -> u64 {
    streams.outputs.iter().map(|output| output.bytes).sum()
}

/// CPU time of the whole tree so far: RLIMIT_CPU only sees one process (PX-19).
fn cpu_used(watch: &Watch<'_>) -> Result<u64, Error> {
    let request = Request::Usage {
        id: watch.container.to_owned(),
        exec: watch.running.exec,
    };
    match watch.engine.ask(&request)? {
        (Reply::Usage(usage), _) => Ok(usage.cpu_us.unwrap_or(0)),
        _ => Ok(0),
    }
}

/// One round: waits for anything to happen, and moves streams.
fn wait(
    watch: &Watch<'_>,
    streams: &mut Streams,
    until: Instant,
    observer: &mut dyn Observer,
) -> Result<(bool, Option<Interrupt>), Error> {
    let (ended, interrupted, ready) = {
        let mut fds = vec![
            PollFd::new(&watch.running.pidfd, PollFlags::IN),
            PollFd::new(watch.interrupts, PollFlags::IN),
        ];
        let waiting = waiting(streams);
        fds.extend(waiting.iter().flatten().map(poll_for));
        poll_until(&mut fds, until)?;
        let mut happened = fds.iter().map(|fd| !fd.revents().is_empty());
        let (ended, interrupted) = (happened.next() == Some(true), happened.next() == Some(true));
        let ready: Vec<bool> = waiting
            .iter()
            .map(|stream| stream.is_some() && happened.next() == Some(true))
            .collect();
        (ended, interrupted, ready)
    };
    if ready.iter().skip(1).any(|ready| *ready) {
        observer.before_output();
    }
    advance(streams, &ready, watch.bounds.output_bytes)?;
    let interrupted = interrupted.then(|| watch.interrupts.next()).flatten();
    Ok((ended, interrupted))
}

/// What each stream waits for, input first.
fn waiting(streams: &Streams) -> Vec<Option<(BorrowedFd<'_>, bool)>> {
    std::iter::once(streams.feed.waits_for())
        .chain(streams.outputs.iter().map(Output::waits_for))
        .collect()
}

fn poll_for<'a>((fd, write): &(BorrowedFd<'a>, bool)) -> PollFd<'a> {
    let flags = if *write {
        PollFlags::OUT
    } else {
        PollFlags::IN
    };
    PollFd::from_borrowed_fd(*fd, flags)
}

fn poll_until(fds: &mut [PollFd<'_>], until: Instant) -> Result<(), Error> {
    let left = until.saturating_duration_since(Instant::now());
    let timeout = Timespec {
        tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(left.subsec_nanos()),
    };
    match poll(fds, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(e) => Err(failure::kernel("wait for the command", e)),
    }
}

fn advance(streams: &mut Streams, ready: &[bool], limit: u64) -> Result<(), Error> {
    if ready.first() == Some(&true) {
        streams.feed.advance();
    }
    for index in 0..streams.outputs.len() {
        if ready.get(index + 1) == Some(&true) {
            let room = limit.saturating_sub(written(streams));
            streams.outputs[index]
                .advance(room, &mut streams.merged)
                .map_err(|e| failure::kernel("read the output of the command", e))?;
        }
    }
    Ok(())
}

/// Passes on what was written before every writer was ended: what is still in the
/// pipes, and no more than the limit. A descriptor that a task has passed out of
/// its sandbox keeps nothing waiting (E3). A caller who does not read is waited for
/// until somebody wants an end.
///
/// # Errors
/// What poll(2) or a stream says.
pub fn drain(
    streams: &mut Streams,
    limit: u64,
    interrupts: &Interrupts,
    observer: &mut dyn Observer,
) -> Result<(), Error> {
    let mut reads = vec![0_u32; streams.outputs.len()];
    loop {
        if written(streams) > limit {
            streams.outputs.iter_mut().for_each(Output::stop);
        }
        // Whoever still writes is no process of this command.
        for (output, _) in streams
            .outputs
            .iter_mut()
            .zip(&reads)
            .filter(|(_, n)| **n >= READS)
        {
            output.abandon();
        }
        if streams.outputs.iter().all(Output::is_done) {
            return Ok(());
        }
        let (interrupted, ready) = {
            let waiting = waiting(streams);
            let mut fds = vec![PollFd::new(interrupts, PollFlags::IN)];
            fds.extend(waiting.iter().skip(1).flatten().map(poll_for));
            // No writer of the command is left, so a pipe is either readable or at its
            // end, unless a process elsewhere was given the other end.
            let reading = waiting.iter().skip(1).flatten().any(|(_, write)| !write);
            match poll(&mut fds, reading.then_some(&QUIET)) {
                Ok(0) => {
                    drop(fds);
                    drop(waiting);
                    streams
                        .outputs
                        .iter_mut()
                        .filter(|output| !output.has_pending())
                        .for_each(Output::abandon);
                    continue;
                }
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(failure::kernel("wait for the last output", e)),
            }
            let mut happened = fds.iter().map(|fd| !fd.revents().is_empty());
            let interrupted = happened.next() == Some(true);
            let outputs = waiting
                .iter()
                .skip(1)
                .map(|stream| stream.is_some() && happened.next() == Some(true));
            let ready = std::iter::once(false).chain(outputs).collect::<Vec<_>>();
            (interrupted, ready)
        };
        if interrupted && matches!(interrupts.next(), Some(Interrupt::End(_))) {
            return give_up(streams, limit);
        }
        if ready.contains(&true) {
            observer.before_output();
        }
        for (index, count) in reads.iter_mut().enumerate() {
            let reads_now = !streams.outputs[index].has_pending();
            *count += u32::from(reads_now && ready.get(index + 1) == Some(&true));
        }
        advance(streams, &ready, limit)?;
    }
}

/// Nobody takes the output any more. All of it is in the log nevertheless.
fn give_up(streams: &mut Streams, limit: u64) -> Result<(), Error> {
    let mut swept = Ok(());
    for index in 0..streams.outputs.len() {
        let room = limit.saturating_sub(written(streams));
        let output = &mut streams.outputs[index];
        if streams.merged.keeps_all() && swept.is_ok() {
            swept = output.sweep(room, &mut streams.merged);
        }
        output.give_up();
    }
    swept.map_err(|e| failure::kernel("read the last output of the command", e))
}

/// The wait status of an ended command: the guest's word, within this time.
///
/// # Errors
/// The lease is gone or silent.
pub fn status(lease: &Lease, running: &Running, patience: Duration) -> Result<i32, Error> {
    let until = Instant::now() + patience;
    loop {
        let mut fds = [PollFd::from_borrowed_fd(lease.socket(), PollFlags::IN)];
        poll_until(&mut fds, until)?;
        if !fds[0].revents().is_empty() {
            let (exec, status) = lease.exited()?;
            if exec == running.exec {
                return Ok(status);
            }
        } else if Instant::now() >= until {
            return Err(failure::lost("lease", &orch_wire::WireError::Closed));
        }
    }
}
