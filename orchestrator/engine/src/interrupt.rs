//! Signals to this process, as a descriptor.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// What somebody outside wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interrupt {
    /// An end (SIGINT, SIGTERM, SIGHUP, SIGQUIT).
    End(i32),
    /// The size of the terminal has changed (SIGWINCH).
    Resized,
}

/// Signals that are taken instead of acted upon, as long as this lives.
#[derive(Debug)]
pub struct Interrupts {
    fd: OwnedFd,
    before: libc::sigset_t,
}

const TAKEN: &[i32] = &[
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGWINCH,
];

impl Interrupts {
    /// Blocks the signals and gives their descriptor. To be called before other
    /// threads start, since a mask belongs to a thread.
    ///
    /// # Errors
    /// What signalfd(2) says.
    pub fn take() -> io::Result<Self> {
        let set = set();
        let mut before = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: the set is initialised, the new descriptor is ours alone, and the
        // mask from before is only read where the call has filled it.
        unsafe {
            if libc::sigprocmask(libc::SIG_BLOCK, &raw const set, before.as_mut_ptr()) != 0 {
                return Err(io::Error::last_os_error());
            }
            let fd = libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(Self {
                fd: OwnedFd::from_raw_fd(fd),
                before: before.assume_init(),
            })
        }
    }

    /// The next signal, where there is one.
    #[must_use]
    pub fn next(&self) -> Option<Interrupt> {
        let mut info = MaybeUninit::<libc::signalfd_siginfo>::uninit();
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: the buffer is `size` bytes long, and is read only where the
        // kernel has filled all of it.
        let number = unsafe {
            let got = libc::read(self.fd.as_raw_fd(), info.as_mut_ptr().cast(), size);
            if usize::try_from(got) != Ok(size) {
                return None;
            }
            info.assume_init().ssi_signo
        };
        let number = i32::try_from(number).ok()?;
        Some(match number {
            libc::SIGWINCH => Interrupt::Resized,
            other => Interrupt::End(other),
        })
    }
}

impl AsFd for Interrupts {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        // What came too late to end the command must not end this process before it
        // has said how the command ended.
        while self.next().is_some() {}
        // SAFETY: the mask is the one that was there before; somebody around this may
        // still hold the signals back.
        unsafe {
            libc::sigprocmask(
                libc::SIG_SETMASK,
                &raw const self.before,
                std::ptr::null_mut(),
            )
        };
    }
}

/// Whether the caller has had this signal ignored, as nohup(1) does.
fn is_ignored(signal: i32) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: a null new action only asks; the answer is read where it was given.
    unsafe {
        libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

fn set() -> libc::sigset_t {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset initialises it, and the numbers are valid.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in TAKEN.iter().filter(|signal| !is_ignored(**signal)) {
            libc::sigaddset(set.as_mut_ptr(), *signal);
        }
        set.assume_init()
    }
}
