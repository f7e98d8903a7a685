//! User-id ranges of containers, and where the locks on them are.

/// Ids of one container. A range is named by its first id divided by this.
pub const COUNT: u32 = 65_536;
/// First range of the block that is used where none is configured: above what
/// subordinate ids and systemd hand out.
pub const FIRST: u32 = 0x7000_0000 / COUNT;
/// How many ranges that block has.
pub const RANGES: u32 = 4_095;
/// Number of ranges that there are at all.
pub const ALL: u32 = 65_535;

/// File whose byte `n` is locked (F_OFD_SETLK, fcntl(2)) as long as range `n` is in
/// use. One file for the whole host: two state directories must not share ids.
///
/// Where orch is not root, every container has the one range that its user has, and
/// the file (in the state directory) only tells which containers live.
pub const LOCKS: &str = "/run/orch-ids.lock";

/// Number of the range that starts at this id.
#[must_use]
pub fn number(host_id: u32) -> u32 {
    host_id / COUNT
}
