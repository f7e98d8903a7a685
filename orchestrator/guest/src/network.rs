//! The loopback device of a lease.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::syscall::check;

const LOOPBACK_INDEX: i32 = 1;

#[repr(C)]
struct SetLink {
    header: libc::nlmsghdr,
    link: libc::ifinfomsg,
}

/// Brings `lo` up, through rtnetlink(7): a netlink socket is the only kind that
/// the filter of the guest allows.
pub fn loopback_up() -> io::Result<()> {
    // SAFETY: plain numbers; the descriptor is owned by nobody else.
    let socket = unsafe {
        let fd = libc::socket(
            libc::AF_NETLINK,
            libc::SOCK_RAW | libc::SOCK_CLOEXEC,
            libc::NETLINK_ROUTE,
        );
        check(libc::c_long::from(fd))?;
        OwnedFd::from_raw_fd(fd)
    };
    let len = size_of::<SetLink>();
    // SAFETY: both are plain C structures for which all zeroes is a valid value.
    let mut request: SetLink = unsafe { std::mem::zeroed() };
    request.header.nlmsg_len = u32::try_from(len).unwrap_or(0);
    request.header.nlmsg_type = libc::RTM_NEWLINK;
    request.header.nlmsg_flags = u16::try_from(libc::NLM_F_REQUEST | libc::NLM_F_ACK).unwrap_or(0);
    request.link.ifi_index = LOOPBACK_INDEX;
    request.link.ifi_flags = libc::IFF_UP as libc::c_uint;
    request.link.ifi_change = libc::IFF_UP as libc::c_uint;
    // SAFETY: the structure is `len` bytes long.
    check(unsafe { libc::send(socket.as_raw_fd(), (&raw const request).cast(), len, 0) } as i64)?;

    #[repr(C)]
    struct Answer {
        header: libc::nlmsghdr,
        error: i32,
        rest: [u8; 256],
    }
    // SAFETY: as above.
    let mut answer: Answer = unsafe { std::mem::zeroed() };
    // SAFETY: the structure is as long as it says.
    check(unsafe {
        libc::recv(
            socket.as_raw_fd(),
            (&raw mut answer).cast(),
            size_of::<Answer>(),
            0,
        )
    } as i64)?;
    if answer.error != 0 {
        return Err(io::Error::from_raw_os_error(-answer.error));
    }
    Ok(())
}
