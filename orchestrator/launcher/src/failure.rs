//! Failures on their way to the daemon.

use std::io;

use orch_wire::launch::Failure;

/// Names the step at which something failed.
pub trait During<T> {
    /// The failure, with its step and its cause.
    ///
    /// # Errors
    /// Always the error that was there, in its wire form.
    fn during(self, step: impl FnOnce() -> String) -> Result<T, Failure>;
}

impl<T, E: Into<io::Error>> During<T> for Result<T, E> {
    fn during(self, step: impl FnOnce() -> String) -> Result<T, Failure> {
        self.map_err(|e| {
            let e: io::Error = e.into();
            Failure {
                step: step(),
                cause: e.to_string(),
                errno: e.raw_os_error(),
            }
        })
    }
}
