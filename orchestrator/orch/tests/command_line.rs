//! The binary from outside, as far as it goes without privileges: what is written
//! where, and the exit codes.
#![expect(
    clippy::unwrap_used,
    reason = "what does not unwrap is a failed test, also outside of #[test]"
)]

use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn orch(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_orch"))
        .args(args)
        .env("HOME", "/home/me")
        .env_remove("ORCH_ARTIFACTS")
        // Refused by whatever would use it, so that nothing here runs or is made.
        .env("ORCH_STATE_DIR", "not/absolute")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// The one error shape: words on standard error, with JSON also on standard output.
fn refused(args: &[&str], code: &str) -> String {
    let output = orch(args);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{args:?}: {stderr}");
    assert!(stderr.starts_with("orch: "), "{args:?}: {stderr}");
    assert!(stderr.contains("\n  do:   "), "{args:?}: {stderr}");
    assert!(
        stderr.ends_with(&format!("\n  code: {code}\n")),
        "{args:?}: {stderr}"
    );
    stderr.to_owned()
}

/// The id of no task.
const ID: &str = "0123456789abcdef0123456789abcdef";

/// "What bad input gets".
#[test]
fn bad_input_is_refused_with_125_and_a_code() {
    for (args, code) in [
        (&["frobnicate"][..], "usage"),
        (&["run", "true"], "usage"),
        (&["run", "--"], "usage"),
        (&["run", "--memory", "0", "--", "true"], "limit_invalid"),
        (&["run", "--cpus", "-1", "--", "true"], "limit_invalid"),
        (&["run", "--user", "root", "--", "true"], "user_invalid"),
        (&["run", "--env", "A-B", "--", "true"], "env_invalid"),
        (&["run", "--mount", "a:b", "--", "true"], "mount_invalid"),
        (&["run", "--", "true"], "state_invalid"),
        (
            &["spec", "--profile", "nope", "--", "true"],
            "profile_unknown",
        ),
        (&["spec", "--memory", "9T", "--", "true"], "limit_invalid"),
        (
            &["spec", "--mount", "/nonexistent/x", "--", "true"],
            "mount_source_missing",
        ),
        (&["spec", "--mount", "../x", "--", "true"], "mount_invalid"),
        (
            &["spec", "--mount", "/proc/self", "--", "true"],
            "mount_denied",
        ),
        (
            &["spec", "--mount", "/usr:/proc/x", "--", "true"],
            "mount_invalid",
        ),
        (
            &["spec", "--mount", "/usr", "--mount", "/usr", "--", "true"],
            "mount_conflict",
        ),
        (
            &["spec", "--image", "/nonexistent", "--", "true"],
            "image_invalid",
        ),
        (
            &["spec", "--workdir", "..", "--", "true"],
            "workdir_missing",
        ),
        (
            &["spec", "--env", "NOBODY_HAS_SET_THIS", "--", "true"],
            "env_invalid",
        ),
        (&["output", ID], "usage"),
        (&["output", "../x", "--artifacts", "/"], "usage"),
        (&["output", ID, "--artifacts", "../x"], "mount_invalid"),
        (
            &["output", ID, "--artifacts", "/nonexistent"],
            "artifacts_failed",
        ),
        (&["output", ID, "--artifacts", "/"], "artifacts_unknown"),
        (
            &["output", ID, "--artifacts", "/", "--limit", "64001"],
            "usage",
        ),
        (
            &["output", ID, "--artifacts", "/", "--offset", "-1"],
            "usage",
        ),
        (&["profile", "show", "nope"], "profile_unknown"),
        (&["profile", "lint", "/nonexistent"], "profile_unknown"),
    ] {
        refused(args, code);
    }
}

/// Row "egress": never without its filter, and the remedy is named.
#[test]
fn a_profile_that_needs_egress_is_refused() {
    let args = ["run", "--dry-run", "--tier", "loose", "--", "true"];
    let words = refused(&args, "egress_unavailable");
    assert!(words.contains("--network none"), "{words}");
    let output = orch(&[
        "run",
        "--dry-run",
        "--tier",
        "loose",
        "--network",
        "none",
        "--",
        "true",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

#[test]
fn errors_are_one_json_document_where_json_is_asked_for() {
    for args in [
        &["run", "--json", "--memory", "x", "--", "true"][..],
        &["run", "--json", "--nope"],
        &["run", "--json", "--", "true"],
        &["profile", "show", "nope", "--format", "json"],
        &["profile", "show", "--format=json"],
    ] {
        let output = orch(args);
        assert_eq!(output.status.code(), Some(125), "{args:?}");
        let value: Value = serde_json::from_slice(&output.stdout).unwrap();
        for field in ["code", "message", "cause", "remediation"] {
            assert!(value["error"].get(field).is_some(), "{args:?}: {field}");
        }
        assert!(text(&output.stderr).starts_with("orch: "));
    }
}

#[test]
fn a_dry_run_shows_limits_and_both_specs() {
    let output = orch(&[
        "run",
        "--dry-run",
        "--tier",
        "read-only",
        "--timeout",
        "5s",
        "--",
        "true",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value["profile"], "strict");
    assert_eq!(value["limits"]["timeout_seconds"]["value"], 5_000);
    assert_eq!(value["limits"]["timeout_seconds"]["source"], "task");
    assert_eq!(value["task"]["argv"][0], "true");
    assert_eq!(value["container"]["writable_root"], Value::Null);
}

#[test]
fn listings_are_json_where_asked_for() {
    let json = |args: &[&str]| -> Value {
        let output = orch(args);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let list = json(&["profile", "ls", "--format", "json"]);
    assert_eq!(list.as_array().unwrap().len(), 5);
    let shown = json(&["profile", "show", "strict", "--format", "json"]);
    assert_eq!(shown["tier"], "strict");
    assert_eq!(shown["sha256"].as_str().unwrap().len(), 64);
    assert!(shown["fields"].as_array().unwrap().len() > 25);
    let schema = json(&["profile", "schema", "--format", "json"]);
    assert!(schema["properties"]["sandbox"].is_object());
    assert!(json(&["spec", "--", "true"])["linux"]["seccomp"].is_object());
}

/// Design §5: the order of the tiers, as exit codes.
#[test]
fn compare_says_with_its_exit_code_whether_more_is_allowed() {
    let compare = |a: &str, b: &str| orch(&["profile", "compare", a, b]).status.code();
    assert_eq!(compare("strict", "standard"), Some(0));
    assert_eq!(compare("standard", "loose"), Some(0));
    assert_eq!(compare("standard", "standard"), Some(0));
    assert_eq!(compare("loose", "strict"), Some(1));
}

/// NO_COLOR, and no colour where there is no terminal.
#[test]
fn help_is_plain_text_on_standard_output() {
    let output = orch(&["run", "--help"]);
    assert_eq!(output.status.code(), Some(0));
    let help = text(&output.stdout);
    assert!(help.contains("Examples:") && help.contains("--output-limit"));
    assert!(!help.contains('\u{1b}'));
}

/// Somebody who stops reading has what they wanted.
#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let status = Command::new(env!("CARGO_BIN_EXE_orch"))
        .args(["profile", "schema"])
        .stdout(writer)
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(0));
}
