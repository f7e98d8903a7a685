//! The executables that this one carries, built by `build.rs`.

/// The privileged process (design §3.1).
pub const LAUNCHER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/orch-launcher"));
/// PID 1 of a container and of a lease (design §3.4).
pub const GUEST: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/orch-guest"));

#[cfg(test)]
mod tests {
    use super::*;

    /// Design §2: the guest is in every container, so it stays small.
    #[test]
    fn the_guest_is_at_most_1_5_mb() {
        assert!(GUEST.len() <= 1_500_000, "{} bytes", GUEST.len());
    }

    /// Both run where there is no loader and no library: no program header asks
    /// for an interpreter (ELF-64: header size at 54, count at 56, type first).
    #[test]
    fn both_are_static_executables_of_this_machine() {
        for program in [LAUNCHER, GUEST] {
            assert_eq!(&program[..5], b"\x7fELF\x02");
            let half = |at: usize| usize::from(u16::from_le_bytes([program[at], program[at + 1]]));
            let table = u64::from_le_bytes(program[32..40].try_into().unwrap());
            let table = usize::try_from(table).unwrap();
            let (size, count) = (half(54), half(56));
            assert!(count > 0);
            for header in program[table..].chunks(size).take(count) {
                let interpreter = 3_u32.to_le_bytes();
                assert_ne!(header[..4], interpreter);
            }
        }
    }
}
