//! Messages between daemon, launcher and guest, their framing and size limits.
//!
//! Values only: nothing in here opens, reads or changes anything except the
//! socket it is given. A message is a 32-bit little-endian length and that many
//! bytes of `postcard`; descriptors travel with the first byte (`SCM_RIGHTS`,
//! unix(7)).
#![forbid(unsafe_code)]

pub mod channel;
pub mod delegation;
pub mod guest;
pub mod launch;
pub mod range;
pub mod rootfs;

pub use channel::{Channel, WireError};
