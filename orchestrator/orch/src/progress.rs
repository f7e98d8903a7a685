//! A line on the terminal while a command runs and says nothing.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use orch_engine::request::Observer;

/// Back to the first column, and the line is empty: `\r` and EL (ECMA-48
/// §8.3.41). No colour, so nothing to switch off.
const ERASE: &str = "\r\x1b[K";

/// Shows how long a command has been running, until it says something itself.
#[derive(Debug)]
pub struct Progress<W: Write> {
    to: W,
    shown: bool,
    quiet: bool,
}

/// Progress on standard error; nothing where that is no terminal, or one that
/// cannot erase a line.
pub fn on_stderr(wanted: bool) -> Progress<std::io::Stderr> {
    let stderr = std::io::stderr();
    let able = std::env::var_os("TERM").is_some_and(|term| term != "dumb" && !term.is_empty());
    Progress {
        quiet: !(wanted && able && stderr.is_terminal()),
        to: stderr,
        shown: false,
    }
}

impl<W: Write> Progress<W> {
    /// Takes the line away.
    pub fn erase(&mut self) {
        if self.shown {
            self.shown = false;
            self.write(ERASE);
        }
    }

    /// Nobody is told where the terminal is gone; the command is what matters.
    fn write(&mut self, text: &str) {
        let _ = self.to.write_all(text.as_bytes());
        let _ = self.to.flush();
    }
}

impl<W: Write> Observer for Progress<W> {
    fn tick(&mut self, running: Duration) {
        let seconds = running.as_secs();
        if self.quiet || seconds == 0 {
            return;
        }
        self.shown = true;
        self.write(&format!("{ERASE}orch: running for {} s", seconds));
    }

    /// Output may leave the cursor in the middle of a line, which nobody may
    /// erase afterwards. From here on the output is the sign of life.
    fn before_output(&mut self) {
        self.erase();
        self.quiet = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(quiet: bool) -> Progress<Vec<u8>> {
        Progress {
            to: Vec::new(),
            shown: false,
            quiet,
        }
    }

    #[test]
    fn it_is_erased_before_output_and_stays_away() {
        let mut progress = progress(false);
        progress.tick(Duration::from_millis(900));
        assert_eq!(progress.to, b"");
        progress.tick(Duration::from_millis(1_000));
        progress.before_output();
        progress.tick(Duration::from_secs(2));
        progress.erase();
        let written = String::from_utf8(progress.to).unwrap();
        assert_eq!(written, "\r\x1b[Korch: running for 1 s\r\x1b[K");
    }

    #[test]
    fn quiet_writes_nothing() {
        let mut progress = progress(true);
        progress.tick(Duration::from_secs(5));
        progress.before_output();
        assert_eq!(progress.to, b"");
    }
}
