//! B5: typing into the caller's terminal. A null pointer in place of the character
//! makes the kernel answer EFAULT where it would have typed.

use super::Probe;
use crate::outcome::Outcome;
use crate::raw;

const TIOCSTI: i64 = 0x5412;
const TIOCLINUX: i64 = 0x541c;
/// The kernel takes the request as 32 bits; a filter that compares 64 misses it.
const BIT_32: i64 = 1 << 32;

pub(super) fn probes() -> Vec<Probe> {
    [
        ("B5.tiocsti", TIOCSTI),
        ("B5.tiocsti_bit32", TIOCSTI | BIT_32),
        ("B5.tioclinux", TIOCLINUX),
        ("B5.tioclinux_bit32", TIOCLINUX | BIT_32),
    ]
    .into_iter()
    .map(|(id, request)| {
        Probe::new(id, move || {
            let terminal = own_terminal();
            let answer = raw::call(libc::SYS_ioctl, [i64::from(terminal), request, 0, 0, 0, 0]);
            let where_to = if terminal == 0 {
                "standard input"
            } else {
                "a pty of its own"
            };
            let outcome = Outcome::of_call(answer);
            let detail = format!("{} on {where_to}", outcome.detail);
            outcome.detailed(detail.trim_start())
        })
    })
    .collect()
}

/// The slave of a new pty, which becomes the child's controlling terminal (the child
/// leads a session and has none); standard input where there are no ptys.
fn own_terminal() -> i32 {
    // SAFETY: plain calls on a descriptor made here; `name` has room for the path
    // and is only used when it was filled. Descriptors end with the child.
    unsafe {
        let master = libc::open(c"/dev/ptmx".as_ptr(), libc::O_RDWR | libc::O_NOCTTY);
        if master < 0 || libc::unlockpt(master) != 0 {
            return 0;
        }
        let mut name = [0; 64];
        if libc::ptsname_r(master, name.as_mut_ptr(), name.len()) != 0 {
            return 0;
        }
        libc::open(name.as_ptr(), libc::O_RDWR).max(0)
    }
}
