//! What the privileged tests share: the program, its lines, and the rule for skips.

#![allow(dead_code, reason = "each test file uses a part")]

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use orch_probe::Line;

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_orch-probe");

/// Runs `command` and reads its lines.
pub fn lines(command: &mut Command) -> Vec<Line> {
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}")))
        .collect()
}

/// The lines by id.
pub fn by_id(lines: Vec<Line>) -> BTreeMap<String, Line> {
    lines
        .into_iter()
        .map(|line| (line.id.clone(), line))
        .collect()
}

/// The probe program with a clean environment.
pub fn probe(args: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command
        .args(args)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .current_dir("/");
    command
}

/// What a plain box shows of the host: the system, and not whatever else lies on the
/// machine, through which a walk would not come in time.
const SYSTEM: [&str; 11] = [
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/run", "/sys", "/var",
];

/// The probe program in a plain bubblewrap box: namespaces, no capabilities, no filter.
pub fn boxed(args: &[&str]) -> Command {
    let mut command = Command::new("bwrap");
    command.args(["--unshare-all", "--cap-drop", "ALL"]);
    for path in SYSTEM {
        command.args(["--ro-bind-try", path, path]);
    }
    command
        .args(["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"])
        .args(["--ro-bind", PROGRAM, "/tmp/orch-probe", "/tmp/orch-probe"])
        .args(args)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .current_dir("/");
    command
}

pub fn is_root() -> bool {
    // SAFETY: takes no argument and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// Whether a test has to be skipped because `met` is false. With `ORCH_MUST_RUN=1` a
/// skip is a failure.
pub fn skip_unless(met: bool, needs: &str) -> bool {
    if met {
        return false;
    }
    assert!(
        std::env::var_os("ORCH_MUST_RUN").is_none_or(|value| value != "1"),
        "not run although ORCH_MUST_RUN=1: needs {needs}"
    );
    eprintln!("skipped: needs {needs}");
    true
}

/// Whether bubblewrap can make a box here.
pub fn has_bwrap() -> bool {
    Command::new("bwrap")
        .args(["--unshare-all", "--ro-bind", "/", "/", "true"])
        .stdin(Stdio::null())
        .output()
        .is_ok_and(|output| output.status.success())
}
