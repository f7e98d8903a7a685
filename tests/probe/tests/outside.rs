//! The positive controls: outside every sandbox, as root, the attempts succeed
//! (PB-11), and what the suite plants is seen.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test may fail loudly"
)]

mod rig;

use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use orch_probe::{Verdict, expected, judge, judge_control};
use rig::{by_id, is_root, lines, probe, skip_unless};

/// A path that is removed at the end of the test.
struct Planted(PathBuf);

impl Drop for Planted {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn as_root_outside_every_control_comes_out_as_the_tables_say() {
    if skip_unless(is_root(), "root") {
        return;
    }
    let lines = lines(&mut probe(&["run"]));
    let table = expected("strict").unwrap();
    let findings = judge_control(&lines, &table);
    assert!(
        findings.is_empty(),
        "{}",
        findings
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("\n")
    );
    // And what is right outside is wrong inside, in every tier.
    for tier in ["loose", "standard", "strict"] {
        assert!(
            judge(&lines, &expected(tier).unwrap()).len() > 100,
            "{tier}"
        );
    }
}

#[test]
fn nothing_is_left_behind() {
    if skip_unless(is_root(), "root") {
        return;
    }
    let folder = tmp("left-behind");
    std::fs::create_dir_all(&folder).unwrap();
    let all = lines(probe(&["run", "A25", "A21.mknod_block", "A23", "B10"]).env("TMPDIR", &folder));
    assert!(all.len() > 20);
    if !Path::new("/workspace").exists() {
        let left = std::fs::read_dir(&folder).unwrap().count();
        assert_eq!(left, 0, "{} is not empty", folder.display());
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_planted_secret_is_seen_by_name_and_by_value() {
    for (name, value) in [
        ("SOME_API_KEY", "x"),
        ("HARMLESS", "http://ORCH-CANARY.internal"),
    ] {
        let line = by_id(lines(probe(&["run", "PX-04"]).env(name, value)));
        assert_eq!(line["PX-04.secrets"].outcome.result, Verdict::Visible);
        assert!(line["PX-04.secrets"].outcome.detail.contains(name));
        assert!(!line["PX-04.secrets"].outcome.detail.contains("CANARY"));
    }
    let clean = by_id(lines(&mut probe(&["run", "PX-04"])));
    assert_eq!(clean["PX-04.secrets"].outcome.result, Verdict::Hidden);
}

#[test]
fn a_leaked_directory_is_seen() {
    // SAFETY: the descriptor is new; without O_CLOEXEC the child inherits it.
    let leak = unsafe { OwnedFd::from_raw_fd(libc::open(c"/usr/bin".as_ptr(), libc::O_PATH)) };
    let lines = by_id(lines(&mut probe(&["run", "A2.fd_walk", "PX-07"])));
    assert_eq!(lines["A2.fd_walk"].outcome.result, Verdict::Visible);
    assert_ne!(lines["PX-07.fds"].outcome.detail, "0,1,2");
    drop(leak);
}

#[test]
fn a_planted_control_socket_is_seen() {
    let path = Planted(tmp("control.sock"));
    let _ = std::fs::remove_file(&path.0);
    let _listener = UnixListener::bind(&path.0).unwrap();
    let lines = by_id(lines(&mut probe(&["run", "A15"])));
    let outcome = &lines["A15.socket_files"].outcome;
    assert_eq!(outcome.result, Verdict::Visible, "{outcome:?}");
    assert_eq!(lines["A15.socket_names"].outcome.result, Verdict::Visible);
}

#[test]
fn a_program_with_file_capabilities_is_seen() {
    if skip_unless(is_root(), "root") {
        return;
    }
    let path = Planted(PathBuf::from("/tmp/orch-probe-capable"));
    std::fs::copy(rig::PROGRAM, &path.0).unwrap();
    std::fs::set_permissions(&path.0, std::fs::Permissions::from_mode(0o755)).unwrap();
    // cap_net_bind_service, permitted and effective, version 2.
    let value: [u32; 5] = [0x0200_0001_u32.to_le(), (1_u32 << 10).to_le(), 0, 0, 0];
    // SAFETY: the strings and the 20 bytes outlive the call.
    let set = unsafe {
        libc::setxattr(
            c"/tmp/orch-probe-capable".as_ptr(),
            c"security.capability".as_ptr(),
            value.as_ptr().cast(),
            20,
            0,
        )
    };
    assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
    let lines = by_id(lines(&mut probe(&["run", "A11.file_caps_program"])));
    let outcome = &lines["A11.file_caps_program"].outcome;
    assert_eq!(outcome.result, Verdict::Allowed, "{outcome:?}");
}

#[test]
fn an_unknown_name_is_refused() {
    let output = probe(&["run", "Z9"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
}

/// The tests run at once, so each name carries the process.
fn tmp(name: &str) -> PathBuf {
    PathBuf::from(format!("/tmp/orch-test-{}-{name}", std::process::id()))
}
