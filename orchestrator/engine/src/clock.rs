//! How long each stage takes.

use std::time::Instant;

use crate::account::micros;

/// Time between one lap and the next, by name.
#[derive(Debug)]
pub struct Clock {
    last: Instant,
    /// Name and microseconds.
    pub laps: Vec<(String, u64)>,
}

impl Clock {
    /// Starts counting.
    #[must_use]
    pub fn start() -> Self {
        Self {
            last: Instant::now(),
            laps: Vec::new(),
        }
    }

    /// Ends a stage and begins the next.
    pub fn lap(&mut self, name: &str) {
        self.laps
            .push((name.to_owned(), micros(self.last.elapsed())));
        self.last = Instant::now();
    }
}
