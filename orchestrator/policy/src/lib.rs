//! Values and pure functions: what a profile allows, and what a task gets.
//!
//! No clock, no files, no environment, no unsafe code: everything in here takes
//! values and returns values, so that it can be tested without root.
//!
//! - [`profile`]: the effective profile, every field resolved.
//! - [`task`]: what somebody asks to be run.
//! - [`receipt`]: what is known about it afterwards.
//! - [`error`]: the one error shape, with the catalogue of its codes.
#![forbid(unsafe_code)]

pub mod error;
pub mod profile;
pub mod receipt;
pub mod spec;
pub mod task;

pub use error::{Code, Error};
pub use profile::{Profile, Tier};
