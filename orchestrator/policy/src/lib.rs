//! Values and pure functions: what a profile allows, and what a task gets.
//!
//! No clock, no files, no environment, no unsafe code: everything in here takes
//! values and returns values, so that it can be tested without root.
//!
//! From text to a profile: [`layer`] reads one file of the shape in [`mod@file`],
//! [`extends`] chains files, `resolve` makes one [`profile`] of them, [`compare`]
//! measures it against its tier; [`load`] does all of that, [`builtin`] does it
//! for the shipped ones. The rest:
//!
//! - [`network`], [`reserved`]: rules for destinations, and what is not public.
//! - [`mount`], [`paths`], [`quantity`], [`variable`]: how mounts, paths, amounts and
//!   variables are written.
//! - [`lint`]: what a profile may do and probably should not.
//! - [`limits`]: what is in force for one task, and who set it.
//! - [`fields`], [`provenance`], [`schema`], [`digest`]: a profile shown, explained,
//!   described and named.
//! - [`yaml`]: YAML with the place of every complaint.
//! - [`task`]: what somebody asks to be run.
//! - [`receipt`], [`receipt_words`]: what is known about it afterwards, and in words.
//! - [`audit`]: what the log outside every sandbox says about it.
//! - [`error`]: the one error shape, with the catalogue of its codes.
#![forbid(unsafe_code)]

pub mod audit;
pub mod builtin;
pub mod compare;
pub mod digest;
pub mod error;
pub mod extends;
pub mod fields;
pub mod file;
pub mod layer;
pub mod limits;
pub mod lint;
pub mod load;
pub mod mount;
pub mod network;
pub mod paths;
pub mod profile;
pub mod provenance;
pub mod quantity;
pub mod receipt;
pub mod receipt_words;
pub mod reserved;
mod resolve;
pub mod schema;
pub mod spec;
pub mod syscalls;
pub mod task;
pub mod variable;
pub mod yaml;

pub use error::{Code, Error};
pub use profile::{Profile, Tier};
