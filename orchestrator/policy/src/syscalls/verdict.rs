//! What a table says about one call.

/// A test of one argument. Only its low 32 bits are read, because the kernel
/// reads no more of the arguments that rules look at; comparing all 64 would let
/// `0x1_0000_5412` pass for an ioctl that is not TIOCSTI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Compare {
    /// Index of the argument, 0–5.
    pub(super) arg: u8,
    /// Bits that are looked at.
    pub(super) mask: u32,
    /// What makes it true.
    pub(super) test: Test,
}

/// When a comparison is true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Test {
    /// A bit of the mask is set.
    Any,
    /// The masked value is one of these.
    In(Vec<u32>),
    /// The masked value is none of these.
    NotIn(Vec<u32>),
}

/// A reason to refuse: every comparison is true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Check {
    pub(super) when: Vec<Compare>,
    pub(super) errno: u16,
}

/// What happens to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The kernel performs it.
    Allow,
    /// It gives this errno.
    Refuse(u16),
    /// The listener of the filter decides (`SECCOMP_RET_USER_NOTIF`).
    Ask,
    /// The first check that holds refuses it; otherwise it is performed.
    Check(Vec<Check>),
}

impl Verdict {
    /// A verdict that allows at least what either of the two allows.
    ///
    /// Of two lists of checks only those in both remain: a call that one list
    /// lets through fails none of its checks, hence none of the common ones.
    pub(super) fn union(&self, other: &Verdict) -> Verdict {
        match (self, other) {
            (Verdict::Allow, _) | (_, Verdict::Allow) => Verdict::Allow,
            (Verdict::Ask, Verdict::Check(_)) | (Verdict::Check(_), Verdict::Ask) => Verdict::Allow,
            (Verdict::Ask, _) | (_, Verdict::Ask) => Verdict::Ask,
            (Verdict::Refuse(_), rest) => rest.clone(),
            (rest, Verdict::Refuse(_)) => rest.clone(),
            (Verdict::Check(one), Verdict::Check(two)) => {
                let both: Vec<_> = one.iter().filter(|c| two.contains(c)).cloned().collect();
                if both.is_empty() {
                    Verdict::Allow
                } else {
                    Verdict::Check(both)
                }
            }
        }
    }
}
