//! Framing over a connected Unix stream socket, with descriptors.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Most descriptors that one message carries: what the kernel takes (unix(7)).
pub const MAX_FDS: usize = 253;

/// Largest message, bytes. Room for the kernel's own limit on arguments and
/// environment (execve(2): 6 MiB at most) and for the rest of the message.
pub const MAX_MESSAGE: usize = 8 << 20;

/// Why a message could not be sent or received.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The other side has closed its end.
    #[error("the other side has closed the connection")]
    Closed,
    /// The socket failed.
    #[error("socket: {0}")]
    Io(#[from] Errno),
    /// The message is larger than [`MAX_MESSAGE`] or than the receiver allows.
    #[error("message of {0} bytes is over the limit")]
    TooLarge(usize),
    /// The bytes are not a message of the expected kind.
    #[error("malformed message: {0}")]
    Malformed(#[from] postcard::Error),
    /// Descriptors are missing or were cut off.
    #[error("descriptors are missing")]
    MissingFds,
}

/// One end of a connected Unix stream socket.
#[derive(Debug)]
pub struct Channel {
    socket: OwnedFd,
    limit: usize,
}

impl Channel {
    /// Takes a connected socket; messages over [`MAX_MESSAGE`] are refused.
    #[must_use]
    pub fn new(socket: OwnedFd) -> Self {
        Self {
            socket,
            limit: MAX_MESSAGE,
        }
    }

    /// The same channel with a lower limit on what it accepts, for a peer that
    /// is not trusted.
    #[must_use]
    pub fn with_limit(socket: OwnedFd, limit: usize) -> Self {
        Self { socket, limit }
    }

    /// Sends one message with its descriptors; blocks until all of it is taken.
    ///
    /// # Errors
    /// [`WireError::Closed`] when the peer is gone, [`WireError::Io`] otherwise.
    pub fn send<T: Serialize>(&self, message: &T, fds: &[BorrowedFd<'_>]) -> Result<(), WireError> {
        let mut bytes = vec![0; 4];
        bytes = postcard::to_extend(message, bytes)?;
        let len = bytes.len() - 4;
        let header = u32::try_from(len)
            .ok()
            .filter(|_| len <= MAX_MESSAGE && fds.len() <= MAX_FDS)
            .ok_or(WireError::TooLarge(len))?;
        bytes[..4].copy_from_slice(&header.to_le_bytes());

        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() {
            ancillary.push(SendAncillaryMessage::ScmRights(fds));
        }
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            match sendmsg(
                &self.socket,
                &[IoSlice::new(rest)],
                &mut ancillary,
                SendFlags::NOSIGNAL,
            ) {
                Ok(n) => {
                    rest = &rest[n..];
                    ancillary.clear();
                }
                Err(Errno::INTR) => {}
                Err(Errno::PIPE | Errno::CONNRESET) => return Err(WireError::Closed),
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }

    /// Receives one message and the descriptors that came with it (close-on-exec).
    ///
    /// # Errors
    /// [`WireError::Closed`] at end of stream, [`WireError::TooLarge`] and
    /// [`WireError::Malformed`] for what the peer got wrong.
    pub fn recv<T: DeserializeOwned>(&self) -> Result<(T, Vec<OwnedFd>), WireError> {
        let mut fds = Vec::new();
        let mut header = [0; 4];
        self.fill(&mut header, &mut fds)?;
        let len = usize::try_from(u32::from_le_bytes(header)).unwrap_or(usize::MAX);
        if len > self.limit {
            return Err(WireError::TooLarge(len));
        }
        let mut body = vec![0; len];
        self.fill(&mut body, &mut fds)?;
        Ok((postcard::from_bytes(&body)?, fds))
    }

    fn fill(&self, mut rest: &mut [u8], fds: &mut Vec<OwnedFd>) -> Result<(), WireError> {
        while !rest.is_empty() {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
            let mut ancillary = RecvAncillaryBuffer::new(&mut space);
            let got = match recvmsg(
                &self.socket,
                &mut [IoSliceMut::new(rest)],
                &mut ancillary,
                RecvFlags::CMSG_CLOEXEC,
            ) {
                Ok(got) => got,
                Err(Errno::INTR) => continue,
                Err(Errno::CONNRESET) => return Err(WireError::Closed),
                Err(e) => return Err(e.into()),
            };
            for message in ancillary.drain() {
                if let RecvAncillaryMessage::ScmRights(rights) = message {
                    fds.extend(rights);
                }
            }
            if got.flags.contains(rustix::net::ReturnFlags::CTRUNC) {
                return Err(WireError::MissingFds);
            }
            if got.bytes == 0 {
                return Err(WireError::Closed);
            }
            rest = &mut rest[got.bytes..];
        }
        Ok(())
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    fn pair(limit: usize) -> (Channel, Channel) {
        let (a, b) = socketpair(
            AddressFamily::UNIX,
            SocketType::STREAM,
            SocketFlags::CLOEXEC,
            None,
        )
        .unwrap();
        (Channel::new(a), Channel::with_limit(b, limit))
    }

    #[test]
    fn a_message_larger_than_the_socket_buffer_arrives_whole() {
        let (a, b) = pair(MAX_MESSAGE);
        let sent = vec![7_u8; 3 << 20];
        let copy = sent.clone();
        let writer = std::thread::spawn(move || a.send(&copy, &[]));
        let (got, fds) = b.recv::<Vec<u8>>().unwrap();
        writer.join().unwrap().unwrap();
        assert!(got == sent && fds.is_empty());
    }

    #[test]
    fn descriptors_arrive_with_their_message() {
        let (a, b) = pair(64);
        let (read, write) = rustix::pipe::pipe().unwrap();
        a.send(&1_u8, &[write.as_fd()]).unwrap();
        a.send(&2_u8, &[]).unwrap();
        drop(write);
        let (one, fds) = b.recv::<u8>().unwrap();
        let (two, none) = b.recv::<u8>().unwrap();
        assert_eq!((one, fds.len(), two, none.len()), (1, 1, 2, 0));
        rustix::io::write(&fds[0], b"x").unwrap();
        let mut byte = [0; 1];
        assert_eq!(rustix::io::read(&read, &mut byte).unwrap(), 1);
    }

    #[test]
    fn what_is_over_the_limit_malformed_or_cut_off_is_an_error() {
        let (a, b) = pair(16);
        a.send(&vec![0_u8; 100], &[]).unwrap();
        assert!(matches!(b.recv::<Vec<u8>>(), Err(WireError::TooLarge(101))));

        let (a, b) = pair(16);
        a.send(&[255_u8; 2], &[]).unwrap();
        assert!(matches!(b.recv::<bool>(), Err(WireError::Malformed(_))));

        let (a, b) = pair(16);
        rustix::io::write(&a, &[9, 0]).unwrap();
        drop(a);
        assert!(matches!(b.recv::<u8>(), Err(WireError::Closed)));
    }
}
