//! Every message of `orch_wire`, from bytes that anybody may have sent.
//!
//! The first byte chooses the message and what the others are: a stream that is
//! received, or what a message is made of that is sent.
//!
//! - Whatever arrives, receiving ends without a panic, and holds no more memory
//!   than the largest frame; for what a lease says, than its small frame twice.
//! - What is received or made is the same after it was sent and received.
#![no_main]

use std::fmt::Debug;

use libfuzzer_sys::{Corpus, fuzz_target};
use orch_fuzz::allocation::{self, Counted};
use orch_fuzz::generate;
use orch_wire::Channel;
use orch_wire::channel::MAX_MESSAGE;
use orch_wire::guest::{FromLease, Lease, ToLease};
use orch_wire::launch::{Reply, Request};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, send, socketpair};
use serde::Serialize;
use serde::de::DeserializeOwned;

#[global_allocator]
static ALLOCATOR: Counted = Counted;

/// Most bytes of one input: what a socket takes before anybody reads.
const MAX_INPUT: usize = 32 << 10;

/// Limit of the frames that a lease may send, bytes (docs/concepts.md).
const LEASE_FRAME: usize = 4096;

fuzz_target!(|data: &[u8]| -> Corpus {
    let Some((first, rest)) = data.split_first() else {
        return Corpus::Reject;
    };
    if rest.len() > MAX_INPUT {
        return Corpus::Reject;
    }
    match first {
        0 => received::<Request>(rest, MAX_MESSAGE, MAX_MESSAGE),
        1 => received::<Reply>(rest, MAX_MESSAGE, MAX_MESSAGE),
        2 => received::<Lease>(rest, MAX_MESSAGE, MAX_MESSAGE),
        3 => received::<ToLease>(rest, MAX_MESSAGE, MAX_MESSAGE),
        4 => received::<FromLease>(rest, LEASE_FRAME, 2 * LEASE_FRAME),
        5 => same_again::<Request>(&generate::value(rest)),
        6 => same_again::<Reply>(&generate::value(rest)),
        7 => same_again::<Lease>(&generate::value(rest)),
        8 => same_again::<ToLease>(&generate::value(rest)),
        9 => same_again::<FromLease>(&generate::value(rest)),
        _ => return Corpus::Reject,
    }
    Corpus::Keep
});

fn pair() -> (std::os::fd::OwnedFd, std::os::fd::OwnedFd) {
    socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )
    .expect("a pair of sockets")
}

/// Receives messages from this stream until it ends or is no message.
fn received<T>(stream: &[u8], limit: usize, most: usize)
where
    T: Serialize + DeserializeOwned + PartialEq + Debug,
{
    let (ours, theirs) = pair();
    if !stream.is_empty() {
        let taken = send(&theirs, stream, SendFlags::DONTWAIT).expect("room in the socket");
        assert_eq!(taken, stream.len());
    }
    drop(theirs);
    let channel = Channel::with_limit(ours, limit);
    loop {
        let (message, held) = allocation::peak(|| channel.recv::<T>());
        assert!(held <= most, "{held} bytes held for {message:?}");
        let Ok((message, fds)) = message else {
            return;
        };
        assert!(fds.is_empty());
        same_again(&message);
    }
}

/// Sends this message and receives it.
fn same_again<T>(message: &T)
where
    T: Serialize + DeserializeOwned + PartialEq + Debug,
{
    let (ours, theirs) = pair();
    Channel::new(theirs)
        .send(message, &[])
        .expect("a message that can be sent");
    let channel = Channel::new(ours);
    let (again, fds) = channel.recv::<T>().expect("the message");
    assert_eq!(again, *message);
    assert!(fds.is_empty());
    channel.recv::<T>().expect_err("nothing behind the message");
}
