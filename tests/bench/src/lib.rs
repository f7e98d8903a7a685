//! One harness for every number that the project promises.
//!
//! A [`case::Case`] names what is measured, against whom, at which pace and
//! under which bar. The [`cases`] module lists them; [`measure`] runs subject
//! and peer by turns, so that a slow minute of the machine hits both;
//! [`record`] keeps the raw samples and the results; [`table`] prints them.
#![forbid(unsafe_code)]

pub mod bundle;
pub mod case;
pub mod cases;
pub mod docker;
pub mod invocation;
pub mod machine;
pub mod measure;
pub mod options;
pub mod program;
pub mod record;
pub mod scratch;
pub mod statistics;
pub mod table;
