//! Containers, leases and commands, on Linux.
//!
//! - [`request`]: what is asked, and what comes back.
//! - [`state`], [`range`]: what is kept on the host, and who has which user ids.
//! - [`sealed`], [`launcher`]: the privileged process and how to talk to it;
//!   `rootless` and `subordinate`: whose ids it gets where orch is not root.
//! - [`image`], [`source`], [`scratch`], [`container`]: from a spec to a container.
//! - [`lease`]: one task's share of a container, and commands in it.
//! - [`supervise`], [`stream`], [`ending`]: a running command, its streams, its end.
//! - [`merged`], [`artifacts`]: both output streams as one, and all of it kept.
//! - [`copy_out`]: results, taken without trusting whoever left them.
//! - [`account`]: the receipt; [`audit`]: the log of what happens, for longer.
//! - [`delegation`]: where control groups are made.
//! - [`plan`], [`session`], [`run`]: all of that for one task, or for several commands.
//! - [`feature`], [`filesystem`]: what this kernel and its file systems can do.
//! - [`selftest`]: whether the controls of a tier hold here.

pub mod account;
pub mod artifacts;
pub mod audit;
pub mod clock;
pub mod container;
pub mod copy_out;
pub mod delegation;
pub mod ending;
pub mod feature;
pub mod filesystem;
pub mod image;
pub mod interrupt;
pub mod launcher;
pub mod lease;
pub mod merged;
pub mod plan;
pub mod range;
pub mod request;
pub mod run;
pub mod scratch;
pub mod sealed;
pub mod selftest;
pub mod session;
pub mod source;
pub mod state;
pub mod stream;
pub mod supervise;
pub mod terminal;
pub mod wiring;

mod ancestry;
mod destination;
mod failure;
mod interop;
mod outer;
mod patience;
mod random;
mod rootless;
mod subordinate;

pub use launcher::Engine;
pub use state::StateDir;
