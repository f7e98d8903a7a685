//! Whether the controls of a tier hold on this kernel, found out by trying.
//!
//! A task goes the way that every task goes and looks around; what it sees is
//! compared with what the tier promises. `standard` and `strict` are not served
//! where anything differs (H3).

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use orch_policy::limits;
use orch_policy::profile::{Access, Image, Tier};
use orch_policy::task::Task;
use orch_policy::{Code, Error, Profile};

use crate::launcher::Engine;
use crate::request::{Request, Silent, Streams};

/// One control, as it was found.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Finding {
    /// Name of the control.
    pub control: &'static str,
    /// Whether it holds.
    pub holds: bool,
    /// What was seen.
    pub seen: String,
}

/// Only what every shell has built in, so that it runs in any image with one.
const SCRIPT: &str = r#"
while read -r line; do echo "status $line"; done < /proc/self/status
while read -r line; do echo "net $line"; done < /proc/net/dev
for dir in / /etc /usr /workspace /tmp; do
  if (: > "$dir/.orch-selftest") 2>/dev/null; then echo "writable $dir"; fi
done
for pid in /proc/[0-9]*; do echo "process $pid"; done
for file in /proc/sys/kernel/hostname /proc/sysrq-trigger; do
  if (: >> "$file") 2>/dev/null; then echo "writable $file"; fi
done
if read -r line < /proc/kcore 2>/dev/null; then echo "readable /proc/kcore"; fi
echo "files $(ulimit -n)"
echo "core $(ulimit -c)"
"#;

/// Tries every control of the profile's tier once.
///
/// # Errors
/// The task could not be run at all.
pub fn check(engine: &mut Engine, profile: &Profile) -> Result<Vec<Finding>, Error> {
    let mut profile = profile.clone();
    // The host's own shell, and nothing of the caller's: what is tried is the tier.
    profile.image = Image::Host;
    profile.workspace = None;
    profile.mounts.clear();
    profile.network.allow.clear();
    profile.network.default = orch_policy::profile::NetworkDefault::Deny;
    let task = Task {
        argv: ["/bin/sh", "-c", SCRIPT].map(OsString::from).to_vec(),
        ..Task::default()
    };
    let request = Request {
        effective: limits::effective(&profile, &task)?,
        profile_sha256: String::new(),
        profile: profile.clone(),
        task,
        inherited: Vec::new(),
        streams: Streams::nothing(),
        out: None,
        artifacts: None,
        audit: None,
        reserved: Vec::new(),
    };
    let outcome = engine.run_unchecked(request, Vec::new(), &mut Silent, &mut None)?;
    let text = String::from_utf8_lossy(&outcome.stdout.unwrap_or_default()).into_owned();
    Ok(compare(&profile, &text, own_filters()))
}

/// Filters that every task has besides those around orch itself: the guest's, the
/// lease's and its own.
const FILTERS: u64 = 3;

/// Filters around this process, which everything that it starts inherits: inside
/// another container `Seccomp: 2` alone would prove nothing.
fn own_filters() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = status
        .lines()
        .find_map(|line| line.strip_prefix("Seccomp_filters:"));
    field.and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// Compares what was seen with what the profile promises.
fn compare(profile: &Profile, text: &str, own_filters: u64) -> Vec<Finding> {
    let under = |prefix: &str| -> Vec<&str> {
        text.lines()
            .filter_map(|line| line.strip_prefix(prefix)?.strip_prefix(' '))
            .collect()
    };
    let status: BTreeMap<&str, &str> = under("status")
        .into_iter()
        .filter_map(|line| line.split_once(':'))
        .map(|(key, value)| (key, value.trim()))
        .collect();
    let equal = |control, key: &str, wanted: &str| {
        let seen = status.get(key).copied().unwrap_or("nothing");
        Finding {
            control,
            holds: seen == wanted,
            seen: format!("{key}: {seen}"),
        }
    };
    let exactly = |control, seen: Vec<&str>, wanted: &[&str]| Finding {
        control,
        holds: seen == wanted,
        seen: seen.join(" "),
    };
    let no_caps = "0000000000000000";
    let uid = profile.uid;
    let ids = status
        .get("Uid")
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .unwrap_or_default();
    let devices: Vec<&str> = under("net")
        .into_iter()
        .filter_map(|line| Some(line.split_once(':')?.0.trim()))
        .collect();
    let mut writable = Vec::new();
    if profile.root == Access::Rw {
        writable.push("/");
    }
    if profile.workspace_mode == Access::Rw {
        writable.push("/workspace");
    }
    writable.push("/tmp");
    // A task that is not root cannot write to the root of a writable `/` either.
    let allowed = under("writable")
        .into_iter()
        .filter(|path| !writable.contains(path))
        .collect();
    let must = if under("writable").contains(&"/tmp") {
        vec!["/tmp"]
    } else {
        vec![]
    };
    let others = under("process")
        .into_iter()
        .filter(|path| *path != "/proc/1")
        .collect::<Vec<_>>();
    vec![
        equal("system-call filter", "Seccomp", "2"),
        equal(
            "filters of guest, lease and task",
            "Seccomp_filters",
            &(own_filters + FILTERS).to_string(),
        ),
        equal("no new privileges", "NoNewPrivs", "1"),
        equal("effective capabilities", "CapEff", no_caps),
        equal("permitted capabilities", "CapPrm", no_caps),
        equal("inheritable capabilities", "CapInh", no_caps),
        equal("bounding capabilities", "CapBnd", no_caps),
        equal("ambient capabilities", "CapAmb", no_caps),
        equal("supplementary groups", "Groups", ""),
        Finding {
            control: "user id",
            holds: !ids.is_empty() && ids.iter().all(|id| *id == uid.to_string()),
            seen: ids.join(" "),
        },
        exactly("network devices", devices, &["lo"]),
        exactly("read-only file systems", allowed, &[]),
        exactly("writable /tmp", must, &["/tmp"]),
        exactly("masked /proc/kcore", under("readable"), &[]),
        Finding {
            control: "own processes only",
            holds: !others.is_empty() && others.len() < 8,
            seen: others.join(" "),
        },
        exactly(
            "open files",
            under("files"),
            &[&profile.limits.open_files.to_string()],
        ),
        exactly("core dumps", under("core"), &["0"]),
    ]
}

/// Checks a tier unless it has been found to hold since this machine started,
/// with this executable.
///
/// # Errors
/// [`Code::ControlMissing`] with every control that does not hold.
pub fn ensure(engine: &mut Engine, profile: &Profile) -> Result<(), Error> {
    let marker = marker(engine, profile.tier);
    if marker.as_ref().is_some_and(|path| path.exists()) {
        return Ok(());
    }
    let shipped = orch_policy::builtin::builtin(tier_name(profile.tier), "/".as_ref())?.profile;
    let missing: Vec<String> = check(engine, &shipped)?
        .into_iter()
        .filter(|finding| !finding.holds)
        .map(|finding| format!("{} ({})", finding.control, finding.seen))
        .collect();
    if !missing.is_empty() {
        return Err(Error::new(
            Code::ControlMissing,
            format!(
                "tier {} cannot be kept on this machine",
                tier_name(profile.tier)
            ),
            "run `orch doctor` to see what each control needs",
        )
        .because(missing.join(", ")));
    }
    if let Some(path) = marker {
        // Without the note the next run checks again, which is safe.
        let _ = std::fs::write(path, "");
    }
    Ok(())
}

fn tier_name(tier: Tier) -> &'static str {
    match tier {
        Tier::Loose => "loose",
        Tier::Standard => "standard",
        Tier::Strict => "strict",
    }
}

/// Named after this boot, this executable and the tier.
fn marker(engine: &Engine, tier: Tier) -> Option<PathBuf> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let own = std::fs::metadata("/proc/self/exe").ok()?;
    let name = format!(
        "held-{}-{}-{}-{}-{}",
        tier_name(tier),
        boot.trim(),
        own.ino(),
        own.size(),
        own.mtime_nsec() ^ own.mtime(),
    );
    Some(engine.state().path().join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strict() -> Profile {
        orch_policy::builtin::builtin("strict", "/".as_ref())
            .unwrap()
            .profile
    }

    const GOOD: &str = "\
status Uid:\t1000\t1000\t1000\t1000
status Groups:\t
status CapInh:\t0000000000000000
status CapPrm:\t0000000000000000
status CapEff:\t0000000000000000
status CapBnd:\t0000000000000000
status CapAmb:\t0000000000000000
status NoNewPrivs:\t1
status Seccomp:\t2
status Seccomp_filters:\t3
net Inter-|   Receive
net lo:       0
writable /tmp
process /proc/1
process /proc/2
files 256
core 0
";

    #[test]
    fn what_every_task_should_see_passes() {
        let findings = compare(&strict(), GOOD, 0);
        let bad: Vec<_> = findings.iter().filter(|f| !f.holds).collect();
        assert!(bad.is_empty(), "{bad:?}");
    }

    /// In a container of Docker everything has a filter already.
    #[test]
    fn filters_around_orch_do_not_count() {
        let findings = compare(&strict(), GOOD, 1);
        let bad: Vec<_> = findings.iter().filter(|f| !f.holds).collect();
        assert_eq!(bad.len(), 1, "{bad:?}");
        assert_eq!(bad[0].control, "filters of guest, lease and task");
    }

    #[test]
    fn each_control_that_is_taken_away_is_found() {
        for (from, to, control) in [
            ("Seccomp:\t2", "Seccomp:\t0", "system-call filter"),
            (
                "Seccomp_filters:\t3",
                "Seccomp_filters:\t2",
                "filters of guest, lease and task",
            ),
            ("NoNewPrivs:\t1", "NoNewPrivs:\t0", "no new privileges"),
            ("CapBnd:\t0", "CapBnd:\t8", "bounding capabilities"),
            ("Groups:\t", "Groups:\t27", "supplementary groups"),
            ("Uid:\t1000\t1000", "Uid:\t1000\t0", "user id"),
            ("net lo:", "net eth0: 1\nnet lo:", "network devices"),
            (
                "writable /tmp",
                "writable /etc\nwritable /tmp",
                "read-only file systems",
            ),
            ("writable /tmp\n", "", "writable /tmp"),
            ("files 256", "files 1024", "open files"),
            ("core 0", "core unlimited", "core dumps"),
            (
                "core 0",
                "core 0\nreadable /proc/kcore",
                "masked /proc/kcore",
            ),
        ] {
            let findings = compare(&strict(), &GOOD.replacen(from, to, 1), 0);
            let bad: Vec<_> = findings
                .iter()
                .filter(|f| !f.holds)
                .map(|f| f.control)
                .collect();
            assert_eq!(bad, [control]);
        }
        assert!(
            compare(&strict(), "", 0)
                .iter()
                .filter(|f| !f.holds)
                .count()
                > 8
        );
    }
}
