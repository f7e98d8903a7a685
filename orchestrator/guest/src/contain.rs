//! The container's PID 1.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use orch_wire::Channel;
use orch_wire::guest::Lease;
use rustix::event::{PollFd, PollFlags, poll};

use crate::syscall::prctl;
use crate::{signals, stage};

/// Stages leases as they are asked for, and reaps. Ends when the daemon's end of
/// the control socket is closed; the kernel then ends everything in here (§3.5).
pub fn run(control: OwnedFd) -> io::Result<()> {
    prctl(libc::PR_SET_DUMPABLE, 0, 0, 0)?;
    let control = Channel::new(control);
    let ended = signals::child_ended()?;
    loop {
        let mut ready = [
            PollFd::new(&control, PollFlags::IN),
            PollFd::new(&ended, PollFlags::IN),
        ];
        match poll(&mut ready, None) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(e) => return Err(e.into()),
        }
        let (asked, died) = (
            !ready[0].revents().is_empty(),
            !ready[1].revents().is_empty(),
        );
        if died {
            signals::drain(&ended);
            while signals::reap().is_some() {}
        }
        if asked {
            let Ok((lease, mut fds)) = control.recv::<Lease>() else {
                return Ok(());
            };
            if let Some(socket) = fds.pop() {
                start(&lease, socket, &control, &ended);
            }
        }
    }
}

/// Forks the lease's PID 1. What goes wrong is said on the lease's own socket.
fn start(lease: &Lease, socket: OwnedFd, control: &Channel, ended: &OwnedFd) {
    let channel = Channel::new(socket);
    match stage::fork_into_namespaces() {
        Ok(stage::Side::Lease) => {
            stage::close_inherited(&[control.as_fd(), ended.as_fd()]);
            let code = i32::from(stage::run(lease, &channel).is_err());
            // SAFETY: nothing of this copy of the process is to run any further.
            unsafe { libc::_exit(code) }
        }
        Ok(stage::Side::Container) => {}
        Err(e) => stage::report_broken(&channel, "namespaces", &e),
    }
}
