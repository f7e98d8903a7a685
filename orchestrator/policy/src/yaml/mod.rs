//! Reading YAML so that every complaint can name its line, column and key.
//!
//! - [`node`]: text to a tree; duplicate keys are refused here.
//! - [`read`]: tree to a typed value, with structured errors that carry a path.
//! - [`locate`]: path to line and column, asked only when something is wrong.
//! - [`suggest`]: what the writer may have meant.

pub mod locate;
pub mod node;
pub mod read;
pub mod suggest;
