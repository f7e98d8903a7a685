//! B1–B4: system calls that no task needs and past escapes went through.
//!
//! Where the hazards table gives zeros that would do something as root, the
//! argument here is one that fails *after* the check of the right: a pointer
//! that answers EFAULT, unknown flags, a wrong magic number.

use super::Probe;
use crate::outcome::Outcome;
use crate::raw;

/// A pointer into the never-mapped first page: EFAULT, once the kernel looks.
const BAD: i64 = 1;
/// A descriptor that is never open: EBADF, once the kernel looks.
const NO_FD: i64 = -1;
/// Flags that no call knows: EINVAL, once the kernel looks.
const ODD: i64 = 0x7fff_0000;

/// Id, number, arguments.
type Call = (&'static str, i64, [i64; 6]);

const CALLS: &[Call] = &[
    ("B1.ptrace", 101, [0, 0, 0, 0, 0, 0]),
    ("B1.process_vm_readv", 310, [1, 0, 0, 0, 0, 0]),
    ("B1.process_vm_writev", 311, [1, 0, 0, 0, 0, 0]),
    ("B1.pidfd_getfd", 438, [0, 0, 0, 0, 0, 0]),
    ("B1.bpf", 321, [5, 0, 0, 0, 0, 0]),
    ("B1.perf_event_open", 298, [0, 0, -1, -1, 0, 0]),
    // Zero segments would unload the crash kernel.
    ("B1.kexec_load", 246, [0, -1, 0, ODD, 0, 0]),
    ("B1.kexec_file_load", 320, [NO_FD, NO_FD, 0, 0, ODD, 0]),
    ("B1.init_module", 175, [0, 0, 0, 0, 0, 0]),
    ("B1.finit_module", 313, [NO_FD, 0, 0, 0, 0, 0]),
    ("B1.delete_module", 176, [BAD, 0, 0, 0, 0, 0]),
    // A null name would turn accounting off.
    ("B1.acct", 163, [BAD, 0, 0, 0, 0, 0]),
    ("B1.swapon", 167, [BAD, 0, 0, 0, 0, 0]),
    ("B1.swapoff", 168, [BAD, 0, 0, 0, 0, 0]),
    ("B1.iopl", 172, [3, 0, 0, 0, 0, 0]),
    ("B1.ioperm", 173, [0, 0, 0, 0, 0, 0]),
    // No process has id 0: ESRCH, once the kernel looks.
    ("B1.kcmp", 312, [0, 0, 0, 0, 0, 0]),
    ("B1.fanotify_init", 300, [0, 0, 0, 0, 0, 0]),
    ("B1.move_pages", 279, [0, 0, 0, 0, 0, 0]),
    ("B1.migrate_pages", 256, [0, 0, 0, 0, 0, 0]),
    ("B1.setns", 308, [NO_FD, 0, 0, 0, 0, 0]),
    ("B1.mount", 165, [0, 0, 0, 0, 0, 0]),
    ("B1.umount2", 166, [0, 0, 0, 0, 0, 0]),
    // Both magic numbers wrong: the kernel only checks the right.
    ("B1.reboot", 169, [0, 0, 0, 0, 0, 0]),
    // The child is a session leader without a terminal, so nothing hangs up.
    ("B1.vhangup", 153, [0, 0, 0, 0, 0, 0]),
    ("B1.sethostname", 170, [0, -1, 0, 0, 0, 0]),
    ("B1.setdomainname", 171, [0, -1, 0, 0, 0, 0]),
    ("B1.quotactl", 179, [ODD, BAD, 0, 0, 0, 0]),
    ("B1.quotactl_fd", 443, [NO_FD, 0, 0, 0, 0, 0]),
    ("B1.fanotify_mark", 301, [NO_FD, 0, 0, NO_FD, 0, 0]),
    ("B1.name_to_handle_at", 303, [-100, BAD, 0, 0, 0, 0]),
    ("B1.fsopen", 430, [BAD, 0, 0, 0, 0, 0]),
    ("B1.fsconfig", 431, [NO_FD, 0, 0, 0, 0, 0]),
    ("B1.fsmount", 432, [NO_FD, 0, 0, 0, 0, 0]),
    ("B1.fspick", 433, [-100, BAD, 0, 0, 0, 0]),
    ("B1.process_madvise", 440, [NO_FD, 0, 0, 0, 0, 0]),
    // ADDR_NO_RANDOMIZE; the child is gone before it matters.
    ("B1.personality", 135, [0x004_0000, 0, 0, 0, 0, 0]),
    ("B1.file_setattr", 469, [-100, BAD, 0, 0, 0, 0]),
    ("B2.io_uring_setup", 425, [8, 0, 0, 0, 0, 0]),
    ("B2.io_uring_enter", 426, [NO_FD, 0, 0, 0, 0, 0]),
    ("B2.io_uring_register", 427, [NO_FD, 0, 0, 0, 0, 0]),
    ("B3.userfaultfd", 323, [1, 0, 0, 0, 0, 0]),
    ("B4.keyctl_session_id", 250, [0, -3, 0, 0, 0, 0]),
    ("B4.keyctl_join", 250, [1, 0, 0, 0, 0, 0]),
    ("B4.add_key", 248, [0, 0, 0, 0, -2, 0]),
    ("B4.request_key", 249, [0, 0, 0, -2, 0, 0]),
];

pub(super) fn probes() -> Vec<Probe> {
    CALLS
        .iter()
        .map(|&(id, number, args)| {
            Probe::new(id, move || Outcome::of_call(raw::call(number, args)))
        })
        .collect()
}
