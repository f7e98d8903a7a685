//! No control groups: orch is not root, and nobody has delegated one to its user.

use orch_wire::launch::{CgroupLimits, Failure};

use super::Joined;

/// Nothing to join. What cannot be kept is told by name, or is an error (H18).
///
/// # Errors
/// ENODEV where a ceiling is not optional.
pub fn create(limits: &CgroupLimits) -> Result<Joined, Failure> {
    let asked = [
        ("memory", limits.memory.is_some()),
        ("processes", limits.pids.is_some()),
        ("cpus", limits.cpu_milli.is_some()),
        // Each process is still bounded by RLIMIT_CPU.
        (
            "cpu_seconds of all processes together",
            limits.memory.is_some(),
        ),
        (
            "io",
            limits.read_bps.is_some() || limits.write_bps.is_some(),
        ),
    ];
    let missing: Vec<String> = asked
        .into_iter()
        .filter(|(_, asked)| *asked)
        .map(|(name, _)| name.to_owned())
        .collect();
    match missing.first() {
        Some(first) if !limits.optional => Err(Failure {
            step: format!("keep the limit of {first}"),
            cause: "no control group is delegated to this user".to_owned(),
            errno: Some(libc::ENODEV),
        }),
        _ => Ok(Joined {
            fds: Vec::new(),
            missing,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(optional: bool) -> CgroupLimits {
        CgroupLimits {
            memory: Some(1),
            pids: Some(1),
            optional,
            ..CgroupLimits::default()
        }
    }

    #[test]
    fn what_cannot_be_kept_is_told_or_refused_h18() {
        let missing = create(&limits(true)).ok().map(|joined| joined.missing);
        let names = [
            "memory",
            "processes",
            "cpu_seconds of all processes together",
        ];
        assert_eq!(missing, Some(names.map(str::to_owned).to_vec()));
        let refused = create(&limits(false)).err().unwrap();
        assert!(refused.step.contains("memory"), "{refused:?}");
        assert_eq!(refused.errno, Some(libc::ENODEV));
    }
}
