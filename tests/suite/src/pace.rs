//! How fast this machine is. An emulated one takes ten times as long for everything,
//! so each limit on how long something may take is stretched by `ORCH_SLOW`: a whole
//! number from 1 to 100, and 1 where it is not set. None is ever left out.

use std::sync::OnceLock;
use std::time::Duration;

fn factor() -> u32 {
    static FACTOR: OnceLock<u32> = OnceLock::new();
    *FACTOR.get_or_init(|| {
        let said = std::env::var("ORCH_SLOW").ok();
        let factor = said.and_then(|text| text.parse().ok()).unwrap_or(1);
        u32::clamp(factor, 1, 100)
    })
}

/// What this limit of an ordinary machine is here.
pub fn here(limit: Duration) -> Duration {
    limit * factor()
}
