mod bounds;
mod family;

use super::*;
use crate::profile::{Access, NetworkDefault, Reuse, Tier};

fn at(file: &str, text: &str) -> Result<Loaded, Error> {
    let source = Source::file(file, text.as_bytes().to_vec())?;
    load(source, &mut Context::new(Path::new("/home/me")))
}

fn ok(text: &str) -> Profile {
    at("p.yaml", text)
        .unwrap_or_else(|e| panic!("{e}\n{text}"))
        .profile
}

/// The refusal of `text`: its code, and that it stands at `place` with `key`.
#[track_caller]
fn refused(text: &str, code: Code, place: &str, key: &str) -> Error {
    let error = match at("p.yaml", text) {
        Ok(loaded) => panic!("loaded: {:?}\n{text}", loaded.profile),
        Err(error) => error,
    };
    assert_eq!(error.code, code, "{error:?}");
    let want = format!("p.yaml:{place}: {key}");
    assert!(error.message.starts_with(&want), "{want:?} ≠ {error:?}");
    assert!(!error.remediation.is_empty());
    error
}

/// PR-13…PR-23, seed 004 §3.2: loads as it stands.
#[test]
fn the_seed_loads_as_it_stands() {
    let text = include_str!("../../tests/fixtures/seed-004.yaml");
    let profile = at("seed-004.yaml", text).unwrap().profile;
    assert_eq!(profile.name, "seed-004");
    assert_eq!(profile.tier, Tier::Standard);
    assert_eq!(
        profile.workspace.as_deref(),
        Some(Path::new("/srv/agent-workspace"))
    );
    assert_eq!(profile.workspace_mode, Access::Rw);
    assert_eq!(profile.tmpdir.as_deref(), Some(Path::new("/srv/agent-tmp")));
    let mounts: Vec<_> = profile
        .mounts
        .iter()
        .map(|m| (m.path.to_str().unwrap(), m.source.is_some(), m.mode))
        .collect();
    assert_eq!(
        mounts,
        [("/usr", false, Access::Ro), ("/etc", false, Access::Ro)]
    );
    let denied: Vec<_> = profile
        .deny_paths
        .iter()
        .map(|p| p.to_str().unwrap())
        .collect();
    assert_eq!(
        denied,
        ["/home/me/.ssh", "/home/me/.aws", "/home/me/.config"]
    );
    assert_eq!(profile.network.default, NetworkDefault::Deny);
    assert_eq!(
        profile.network.allow,
        ["internal-pypi.local", "api.internal.svc"]
    );
    assert_eq!(profile.limits.cpu_seconds, 300);
    assert_eq!(profile.limits.memory_bytes, 2048 << 20);
    assert_eq!(profile.limits.open_files, 1024);
    assert_eq!(profile.limits.processes, 64);
    assert_eq!(profile.timeout_ms, 600_000);
    assert_eq!(profile.command_timeout_ms, 600_000);
}

#[test]
fn limits_may_stand_in_either_place_but_not_in_both() {
    let top = ok("limits: {memory_mb: 64}\ntimeout_seconds: 10\n");
    let inside = ok("sandbox:\n  limits: {memory_mb: 64}\n  timeout_seconds: 10s\n");
    assert_eq!(top, inside);
    let error = refused(
        "sandbox:\n  limits: {memory_mb: 64}\nlimits: {processes: 3}\n",
        Code::ProfileInvalid,
        "3:1",
        "limits: ",
    );
    assert!(error.message.contains("sandbox.limits (line 2)"), "{error}");
    refused(
        "timeout_seconds: 1\nsandbox: {timeout_seconds: 1}",
        Code::ProfileInvalid,
        "1:1",
        "timeout_seconds: ",
    );
}

/// PR-08, PR-17: what is absent is the tier's; a missing network is deny.
#[test]
fn absent_keys_come_from_the_tier_and_a_missing_network_is_deny() {
    for text in ["", "# nothing\n", "name: p\n"] {
        let profile = ok(text);
        assert_eq!(profile.tier, Tier::Standard, "{text:?}");
        assert_eq!(profile.reuse, Reuse::Tenant);
    }
    let loose = ok("tier: loose\n");
    assert_eq!(loose.root, Access::Rw);
    assert_eq!(loose.network.default, NetworkDefault::Deny, "PR-17");
    assert_eq!(
        ok("extends: loose\n").network.default,
        NetworkDefault::Allow
    );
    assert_eq!(ok("tier: read-only\n").tier, Tier::Strict, "PR-35");
    assert_eq!(ok("tier: strict\n").reuse, Reuse::Never);
}

/// PR-36: file, line, column, key and a suggestion.
#[test]
fn unknown_keys_are_refused_everywhere() {
    for (text, place, key, hint) in [
        ("sandbx: {}", "1:1", "sandbx: ", "`sandbox`"),
        ("a: 1\nname: x", "1:1", "a: ", "known here are version"),
        (
            "limits:\n  memry_mb: 1\n",
            "2:3",
            "limits.memry_mb: ",
            "`memory_mb`",
        ),
        ("memory_mb: 1\n", "1:1", "memory_mb: ", "under `limits`"),
        ("network: {}\n", "1:1", "network: ", "under `sandbox`"),
        (
            "sandbox:\n  network: {alow: []}",
            "2:13",
            "sandbox.network.alow: ",
            "`allow`",
        ),
        (
            "sandbox:\n  mounts:\n    - path: /usr\n      mod: ro\n",
            "4:7",
            "sandbox.mounts[0].mod: ",
            "`mode`",
        ),
        ("env: {sets: {}}", "1:7", "env.sets: ", "`set`"),
        ("<<: {}", "1:1", "<<: ", "known here are"),
    ] {
        let error = refused(text, Code::ProfileUnknownKey, place, key);
        assert!(error.remediation.contains(hint), "{text}: {error:?}");
    }
}

#[test]
fn yaml_and_type_errors_name_their_place() {
    for (text, place, key) in [
        ("name: a\nname: b\n", "2:1", "the key `name`"),
        (
            "limits: {cpus: 1, cpus: 2}",
            "1:19",
            "limits: the key `cpus`",
        ),
        ("a:\n\tb: 1\n", "2:1", ""),
        ("limits: [1]", "1:1", "limits: expected"),
        ("limits:", "1:1", "limits: expected"),
        (
            "limits:\n  memory_mb: lots",
            "2:3",
            "limits.memory_mb: expected",
        ),
        (
            "limits:\n  memory_mb: 1.5",
            "2:3",
            "limits.memory_mb: expected",
        ),
        (
            "limits:\n  memory_mb: true",
            "2:3",
            "limits.memory_mb: expected",
        ),
        ("name: [x]", "1:1", "name: expected"),
        (
            "sandbox: {mounts: [/usr]}",
            "1:20",
            "sandbox.mounts[0]: expected",
        ),
        ("env: {set: {A: 1.10}}", "1:13", "env.set.A: expected"),
    ] {
        refused(text, Code::ProfileSyntax, place, key);
    }
    let bare = refused(
        "sandbox: {workspace: ~}",
        Code::ProfileSyntax,
        "1:11",
        "sandbox.workspace: expected text, found nothing",
    );
    assert!(bare.remediation.contains("quotes"), "{bare:?}");
    for text in ["[]", "x", "a: !t b", "a: 1\n---\nb: 2\n", "a: *b"] {
        let error = at("p.yaml", text).unwrap_err();
        assert_eq!(error.code, Code::ProfileSyntax, "{text}: {error}");
        assert!(error.message.starts_with("p.yaml"), "{error}");
    }
    let error = Source::file("p.yaml", b"a: 1\nb: \xff".to_vec()).unwrap_err();
    assert!(error.message.starts_with("p.yaml:2:4: "), "{error}");
    assert!(Source::file("p.yaml", vec![b'#'; crate::layer::MAX_BYTES + 1]).is_err());
}

/// PR-19…PR-23, H13: zero, negative and huge are refused by name.
#[test]
fn limits_out_of_range_are_refused() {
    let whole = [
        "cpu_seconds",
        "memory_mb",
        "open_files",
        "processes",
        "file_size_mb",
        "stack_mb",
        "tmp_mb",
        "tmp_inodes",
        "output_mb",
        "out_mb",
        "io_read_mb_per_second",
        "io_write_mb_per_second",
    ];
    for key in whole {
        for value in [
            "0",
            "-1",
            "99999999999",
            "18446744073709551616",
            "-9223372036854775809",
        ] {
            refused(
                &format!("limits:\n  {key}: {value}\n"),
                Code::LimitInvalid,
                "2:3",
                &format!("limits.{key}: "),
            );
        }
    }
    for value in ["0", "-1", "0.001", "2000", "1x", "0m", ".nan", ".inf", "5m"] {
        refused(
            &format!("limits:\n  cpus: {value}\n"),
            Code::LimitInvalid,
            "2:3",
            "limits.cpus: ",
        );
    }
    for key in ["timeout_seconds", "command_timeout_seconds"] {
        for value in ["0", "-1", "0s", "400d", "1w", "99999999999999999999"] {
            refused(
                &format!("sandbox:\n  {key}: {value}\n"),
                Code::LimitInvalid,
                "2:3",
                &format!("sandbox.{key}: "),
            );
        }
    }
    refused(
        "timeout_seconds: 10\ncommand_timeout_seconds: 11\n",
        Code::ProfileInvalid,
        "2:1",
        "command_timeout_seconds: ",
    );
}

#[test]
fn quantities_may_carry_units() {
    let profile =
        ok("limits: {cpus: 500m}\ntimeout_seconds: 10m\ncommand_timeout_seconds: 1500ms\n");
    assert_eq!(profile.limits.cpu_milli, 500);
    assert_eq!(profile.timeout_ms, 600_000);
    assert_eq!(profile.command_timeout_ms, 1_500);
    assert_eq!(ok("limits: {cpus: 1.5}").limits.cpu_milli, 1_500);
}

#[test]
fn users_and_names() {
    for (text, ids) in [("1000", (1000, 1000)), ("7:8", (7, 8)), ("'0:5'", (0, 5))] {
        let profile = ok(&format!("user: {text}"));
        assert_eq!((profile.uid, profile.gid), ids);
    }
    for text in ["root", "-1", "65534", "1:", ":1", "1:2:3", "1.5", "+1"] {
        refused(
            &format!("user: '{text}'"),
            Code::UserInvalid,
            "1:1",
            "user: ",
        );
    }
    for text in ["", "-a", "a-", "a.b", "a_b", "ü"] {
        refused(
            &format!("hostname: '{text}'"),
            Code::ProfileInvalid,
            "1:1",
            "hostname: ",
        );
    }
    refused(
        "env: {allow: [TZ, LC_*]}",
        Code::EnvInvalid,
        "1:19",
        "env.allow[1]: ",
    );
    refused(
        "env: {set: {A-B: x}}",
        Code::EnvInvalid,
        "1:13",
        "env.set.A-B: ",
    );
    refused("version: 2", Code::ProfileInvalid, "1:1", "version: ");
}

#[test]
fn a_relative_home_is_refused() {
    let source = Source::file("p", Vec::new()).unwrap();
    assert!(load(source, &mut Context::new(Path::new("me"))).is_err());
}

/// PR-34: the same text gives the same profile, every time.
#[test]
fn loading_is_a_function_of_its_arguments() {
    let text = include_str!("../../tests/fixtures/seed-004.yaml");
    assert_eq!(ok(text), ok(text));
}
