//! The lease's PID 1: starts commands, reaps, reports.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;

use orch_wire::guest::{FromLease, ToLease};
use orch_wire::{Channel, WireError};
use rustix::event::{PollFd, PollFlags, poll};

use crate::gate::Gate;
use crate::{signals, task};

/// Serves until the daemon's end of the socket is closed; then this process
/// ends, and the kernel ends everything in the lease.
pub fn run(channel: &Channel) -> io::Result<()> {
    let ended = signals::child_ended()?;
    let mut running = HashMap::new();
    let mut gates: Vec<Gate> = Vec::new();
    loop {
        let mut ready = vec![
            PollFd::new(channel, PollFlags::IN),
            PollFd::new(&ended, PollFlags::IN),
        ];
        ready.extend(gates.iter().map(|gate| PollFd::new(gate, PollFlags::IN)));
        match poll(&mut ready, None) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(e) => return Err(e.into()),
        }
        let (asked, died) = (
            !ready[0].revents().is_empty(),
            !ready[1].revents().is_empty(),
        );
        let seen: Vec<_> = ready[2..].iter().map(PollFd::revents).collect();
        let mut seen = seen.into_iter();
        gates.retain(|gate| gate.serve(seen.next().unwrap_or(PollFlags::empty())));
        if died {
            signals::drain(&ended);
            reap(channel, &mut running);
        }
        if asked {
            match channel.recv::<ToLease>() {
                Ok((message, fds)) => {
                    gates.extend(obey(message, fds, channel, &mut running));
                }
                Err(WireError::Closed) => return Ok(()),
                Err(_) => return Err(io::Error::from_raw_os_error(libc::EPROTO)),
            }
        }
    }
}

/// Process id of the first process of a command → its number.
type Running = HashMap<libc::pid_t, u32>;

/// Gives what has to be answered for a command from now on.
fn obey(
    message: ToLease,
    fds: Vec<OwnedFd>,
    channel: &Channel,
    running: &mut Running,
) -> Option<Gate> {
    match message {
        ToLease::Exec(exec) => match task::start(&exec, fds) {
            Ok(started) => {
                running.insert(started.pid, exec.exec);
                started.announce(channel, exec.exec);
                started.gate
            }
            Err((step, errno)) => {
                let exec = exec.exec;
                say(channel, &FromLease::Failed { exec, step, errno });
                None
            }
        },
        ToLease::Signal { exec, signal } => {
            if let Some((pid, _)) = running.iter().find(|(_, number)| **number == exec) {
                // SAFETY: plain numbers; the process is a child that is not reaped yet.
                unsafe { libc::kill(*pid, signal) };
            }
            None
        }
    }
}

fn reap(channel: &Channel, running: &mut Running) {
    while let Some((pid, status)) = signals::reap() {
        // Orphans are adopted by this process and reaped without a word.
        if let Some(exec) = running.remove(&pid) {
            say(channel, &FromLease::Exited { exec, status });
        }
    }
}

fn say(channel: &Channel, message: &FromLease) {
    // Where the daemon is gone, the next poll ends this process.
    let _ = channel.send(message, &[]);
}
