//! What the fuzz targets are made of; each target is a file of `fuzz_targets`.
//!
//! - [`allocation`]: how much memory a call takes.
//! - [`generate`]: any message from bytes, without the decoder under test.
//! - [`written`]: a profile as `orch profile show` has it, written as a file.

pub mod allocation;
pub mod generate;
pub mod written;
