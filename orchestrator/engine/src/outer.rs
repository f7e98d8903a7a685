//! What something around orch has taken from it: a container, a unit, a filter. The
//! kernel says EPERM to all of that; here it is told apart.

/// The capabilities of root without which nothing can be made (capabilities(7)). An
/// ordinary container does not have the first one.
const NEEDED: [(u32, &str); 5] = [
    (21, "SYS_ADMIN"),
    (7, "SETUID"),
    (6, "SETGID"),
    (0, "CHOWN"),
    (1, "DAC_OVERRIDE"),
];

/// Which control is missing and how to give it, where this process is root and its own
/// status says so; nothing where the reason must be another one.
#[must_use]
pub fn explain() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    reason(&status)
}

/// Of proc_pid_status(5).
fn reason(status: &str) -> Option<String> {
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim_start_matches(':').trim().to_owned())
    };
    if field("Uid")?.split_whitespace().nth(1) != Some("0") {
        return None;
    }
    let effective = u64::from_str_radix(&field("CapEff")?, 16).ok()?;
    let missing: Vec<&str> = NEEDED
        .into_iter()
        .filter(|(bit, _)| effective & (1 << bit) == 0)
        .map(|(_, name)| name)
        .collect();
    if !missing.is_empty() {
        let flags: Vec<String> = missing
            .iter()
            .map(|name| format!("--cap-add {name}"))
            .collect();
        return Some(format!(
            "root lacks CAP_{} here: in a container start that with {}, and see what else \
             is missing with `orch doctor`",
            missing.join(" and CAP_"),
            flags.join(" ")
        ));
    }
    (field("Seccomp")? == "2").then(|| {
        "a system-call filter around orch may have refused it: in a container start that with \
         --security-opt seccomp=unconfined, in a unit take SystemCallFilter= away, and see what \
         else is missing with `orch doctor`"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "Name:\torch\nUid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\nSeccomp:\t0\n";

    #[test]
    fn what_is_missing_is_named() {
        assert_eq!(reason(ROOT), None);
        let docker = ROOT.replace("000001ffffffffff", "00000000a80425fb");
        let said = reason(&docker).unwrap();
        assert!(
            said.contains("--cap-add SYS_ADMIN,") || said.contains("--cap-add SYS_ADMIN and"),
            "{said}"
        );
        let one = ROOT.replace("000001ffffffffff", "000001ffffffff7f");
        let said = reason(&one).unwrap();
        assert!(
            !said.contains("SYS_ADMIN") && said.contains("--cap-add SETUID"),
            "{said}"
        );
        let filtered = ROOT.replace("Seccomp:\t0", "Seccomp:\t2");
        assert!(reason(&filtered).unwrap().contains("seccomp=unconfined"));
    }

    /// Somebody who is not root has other reasons.
    #[test]
    fn others_than_root_are_not_told_about_capabilities() {
        let user = ROOT.replace("Uid:\t0\t0", "Uid:\t1000\t1000");
        assert_eq!(reason(&user.replace("1ffffffffff", "00000000000")), None);
    }
}
