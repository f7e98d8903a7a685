//! User-id ranges of containers, and where the locks on them are.

/// First id of the block: above what subordinate ids and systemd hand out.
pub const FIRST: u32 = 0x7000_0000;
/// Ids of one container.
pub const COUNT: u32 = 65_536;
/// How many containers at once.
pub const RANGES: u32 = 4_095;

/// File whose byte `n` is locked (F_OFD_SETLK, fcntl(2)) as long as range `n` is in
/// use. One file for the whole host: two state directories must not share ids.
pub const LOCKS: &str = "/run/orch-ids.lock";

/// Number of the range that starts at this id.
#[must_use]
pub fn number(host_id: u32) -> u32 {
    host_id.wrapping_sub(FIRST) / COUNT
}
