//! What a profile may not expose or allow.

use super::*;

/// PR-16, PR-20, FS-20, FS-21.
#[test]
fn mounts_that_expose_something_are_refused() {
    let mount = |rest: &str| format!("sandbox:\n  workspace: /srv/ws/a\n  mounts:\n    - {rest}\n");
    for (rest, code, key) in [
        ("{path: /k, source: ~/.ssh}", Code::MountDenied, "source"),
        ("{path: /k, source: ~/.ssh/id}", Code::MountDenied, "source"),
        ("{path: /k, source: '~'}", Code::MountDenied, "source"),
        ("{path: /k, source: /home}", Code::MountDenied, "source"),
        ("{path: /k, source: /}", Code::MountDenied, "source"),
        ("{path: /k, source: /srv}", Code::MountDenied, "source"),
        ("{path: /k, source: /srv/ws}", Code::MountDenied, "source"),
        ("{path: /k, source: /proc/1}", Code::MountDenied, "source"),
        ("{path: /k, source: /dev/sda}", Code::MountDenied, "source"),
        (
            "{path: /k, source: /etc, mode: rw}",
            Code::MountDenied,
            "source",
        ),
        (
            "{path: /k, source: /srv/../etc}",
            Code::MountInvalid,
            "source",
        ),
        ("{path: /k, source: data}", Code::MountInvalid, "source"),
        ("{path: k, source: /data}", Code::MountInvalid, "path"),
        ("{path: ~/k, source: /data}", Code::MountInvalid, "path"),
        ("{path: /proc/x, source: /data}", Code::MountInvalid, "path"),
        ("{path: /tmp, source: /data}", Code::MountInvalid, "path"),
        ("{path: /srv/data}", Code::MountInvalid, "path"),
        ("{path: /usr, mode: rw}", Code::MountInvalid, "mode"),
    ] {
        let column = 7 + rest.find(&format!("{key}:")).unwrap();
        refused(
            &mount(rest),
            code,
            &format!("4:{column}"),
            &format!("sandbox.mounts[0].{key}: "),
        );
    }
    refused(
        "sandbox: {mounts: [{path: /a, source: /x}, {path: /a, source: /y}]}",
        Code::MountConflict,
        "1:45",
        "sandbox.mounts[1].path",
    );
    let good = ok(&mount("{path: /data, source: ~/project}"));
    assert_eq!(
        good.mounts[0].source.as_deref(),
        Some(Path::new("/home/me/project"))
    );
    assert_eq!(good.mounts[0].mode, Access::Ro, "FS-14");
    assert_eq!(
        ok("extends: loose\nsandbox: {mounts: [{path: /usr, mode: rw}]}")
            .mounts
            .len(),
        1
    );
}

#[test]
fn workspace_and_tmpdir_are_folders_of_their_own() {
    for (text, code, place) in [
        ("sandbox: {workspace: ~/.ssh}", Code::MountDenied, "1:11"),
        ("sandbox: {workspace: '~'}", Code::MountDenied, "1:11"),
        ("sandbox: {workspace: /etc/x}", Code::ProfileInvalid, "1:11"),
        ("sandbox: {workspace: srv}", Code::ProfileInvalid, "1:11"),
        ("sandbox: {image: /}", Code::MountDenied, "1:11"),
        ("sandbox: {image: '~'}", Code::MountDenied, "1:11"),
        (
            "sandbox: {workspace: /srv/a, tmpdir: /srv/a}",
            Code::ProfileInvalid,
            "1:30",
        ),
        (
            "sandbox: {workspace: /srv, tmpdir: /srv/a}",
            Code::MountDenied,
            "1:11",
        ),
        ("sandbox: {deny_paths: [/]}", Code::ProfileInvalid, "1:24"),
        (
            "sandbox: {workspace_mode: ro, workspace: /w/x, mounts: [{path: /w/x, mode: rw}]}",
            Code::MountConflict,
            "1:57",
        ),
        (
            "sandbox: {tmpdir: /w/x, mounts: [{path: /w/x, mode: ro}]}",
            Code::MountInvalid,
            "1:47",
        ),
    ] {
        refused(text, code, place, "sandbox.");
    }
    let reserved = [PathBuf::from("/var/lib/orch")];
    for source in ["/var/lib/orch/x", "/var/lib"] {
        let text = format!("sandbox: {{mounts: [{{path: /x, source: {source}}}]}}");
        let mut cx = Context::new(Path::new("/root")).with_reserved(&reserved);
        let error = load(Source::file("p", text.into_bytes()).unwrap(), &mut cx).unwrap_err();
        assert_eq!(error.code, Code::MountDenied, "AU-06");
    }
}

/// PR-37: spaces, other scripts and line breaks are only names.
#[test]
fn odd_paths_work() {
    let profile = ok(
        "sandbox: {workspace: \"/srv/my 目录\\n\", mounts: [{path: \"/a b\", source: '/c \"d'}]}",
    );
    assert_eq!(
        profile.workspace.as_deref(),
        Some(Path::new("/srv/my 目录\n"))
    );
    assert_eq!(profile.mounts[0].path, Path::new("/a b"));
}

/// PR-17, PR-18, PR-31.
#[test]
fn network_values_are_closed() {
    let error = refused(
        "sandbox: {network: {default: dney}}",
        Code::ProfileInvalid,
        "1:21",
        "sandbox.network.default: ",
    );
    assert!(error.remediation.contains("`deny`"), "{error:?}");
    refused(
        "sandbox: {network: {allow: [a.example.com, 'https://x']}}",
        Code::ProfileInvalid,
        "1:44",
        "sandbox.network.allow[1]: ",
    );
    for tier in ["standard", "strict"] {
        refused(
            &format!("tier: {tier}\nsandbox: {{network: {{default: allow}}}}"),
            Code::ProfileTooLoose,
            "2:21",
            "sandbox.network.default: ",
        );
    }
    // A tier set over a looser parent is caught although this file says nothing.
    refused(
        "extends: loose\ntier: standard\n",
        Code::ProfileTooLoose,
        "2:1",
        "tier: ",
    );
    let allowed = ok("sandbox: {network: {allow: [B.Example.com.]}}");
    assert_eq!(allowed.network.allow, ["b.example.com"]);
}

/// PR-28: a profile cannot wear a tier that it does not keep.
#[test]
fn a_profile_keeps_its_tier() {
    for (text, place, key) in [
        ("tier: strict\nreuse: tenant\n", "2:1", "reuse: "),
        ("reuse: pool\n", "1:1", "reuse: "),
        ("syscalls: loose\n", "1:1", "syscalls: "),
        ("sandbox: {root: rw}\n", "1:11", "sandbox.root: "),
        (
            "tier: strict\nsandbox: {workspace_mode: rw}\n",
            "2:11",
            "sandbox.workspace_mode: ",
        ),
        (
            "tier: strict\nsandbox: {workspace: /w/x, mounts: [{path: /w/x, mode: rw}]}\n",
            "2:50",
            "sandbox.mounts[0].mode: ",
        ),
        ("tier: strict\nuser: 0\n", "2:1", "user: "),
        ("extends: standard\ntier: strict\n", "2:1", "tier: "),
    ] {
        refused(text, Code::ProfileTooLoose, place, key);
    }
    let raised = ok(
        "tier: strict\nlimits: {memory_mb: 65536}\nsandbox: {network: {allow: [pypi.org:443]}}\n",
    );
    assert_eq!(raised.limits.memory_bytes, 65_536 << 20);
    assert!(raised.network.needs_egress());
}
