//! What bad flags, commands and hosts get.

use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::process::Stdio;

use crate::call::{Call, ensure, orch};
use crate::harness::{Test, Verdict, test};
use crate::place::{Place, names};
use crate::refusal::{one_of, refused};

pub fn tests() -> Vec<Test> {
    vec![
        test("flags::limits_that_are_none_h13", limits),
        test("flags::limits_above_the_profile", above_profile),
        test("flags::limits_above_the_machine", above_machine),
        test("flags::variables_users_labels", values),
        test("flags::images_that_are_none", images),
        test("flags::command_lines_that_are_none", usage),
        test("flags::a_missing_command_is_127", missing),
        test("flags::a_command_that_cannot_run_is_126", not_executable),
        test("flags::a_workdir_that_is_not_there", workdir),
        test("flags::a_receipt_that_cannot_be_written", receipt),
        test("flags::a_full_disk", full_disk),
        test("flags::no_room_for_receipt_or_results", no_room),
        test("flags::no_right_to_make_namespaces", no_rights),
        test("flags::an_ordinary_user", ordinary_user),
        test("flags::a_state_directory_of_somebody_else", foreign_state),
        test("flags::a_dry_run_starts_nothing", dry_run),
    ]
}

fn flag(flag: &str, value: &str, code: &str, words: &[&str]) -> Result<(), String> {
    let make = || Ok(Call::new("standard")?.args([format!("{flag}={value}")]));
    refused(make, code, words).map_err(|why| format!("{flag}={value}: {why}"))
}

fn limits() -> Result<Verdict, String> {
    for name in [
        "--memory",
        "--cpus",
        "--pids",
        "--output-limit",
        "--timeout",
    ] {
        for value in ["0", "-1", "many", "99999999999999999999999"] {
            flag(name, value, "limit_invalid", &[name])?;
        }
    }
    flag("--memory", "1k", "limit_invalid", &["small"])?;
    Ok(Verdict::Held)
}

fn above_profile() -> Result<Verdict, String> {
    for (name, value, key) in [
        ("--memory", "1Ti", "limits.memory_mb"),
        ("--cpus", "64", "limits.cpus"),
        ("--pids", "100000", "limits.processes"),
        ("--output-limit", "1Gi", "limits.output_mb"),
        ("--timeout", "24h", "timeout_seconds"),
    ] {
        flag(name, value, "limit_invalid", &[key, "standard"])?;
    }
    Ok(Verdict::Held)
}

/// Refused by the name of the limit, not by the kernel in the middle of a start.
fn above_machine() -> Result<Verdict, String> {
    let place = Place::new()?;
    let path = place.profile("tier: loose\nlimits:\n  open_files: 1048576\n")?;
    let make = || Ok(Call::new(&path)?.args(["--network", "none"]));
    one_of(
        make,
        &["limit_unavailable", "profile_too_loose"],
        &["open_files"],
    )?;
    // The most that a profile can say; some hosts have as many process ids.
    const MOST: u64 = 4_194_304;
    let pids = std::fs::read_to_string("/proc/sys/kernel/pid_max").unwrap_or_default();
    let fewer = pids.trim().parse().is_ok_and(|pids: u64| pids < MOST);
    let processes = format!("processes: {MOST}");
    let above = [
        ("memory_mb: 16777216", "limits.memory_mb"),
        (processes.as_str(), "limits.processes"),
    ];
    for (limit, key) in above.into_iter().take(if fewer { 2 } else { 1 }) {
        let path = place.profile(&format!("tier: loose\nlimits:\n  {limit}\n"))?;
        let make = || Ok(Call::new(&path)?.args(["--network", "none"]));
        one_of(make, &["limit_unavailable"], &[key])?;
    }
    for (resource, most, key) in [
        (libc::RLIMIT_NOFILE, 300, "limits.open_files"),
        (libc::RLIMIT_FSIZE, 1 << 26, "limits.file_size_mb"),
        (libc::RLIMIT_STACK, 1 << 21, "limits.stack_mb"),
        (libc::RLIMIT_CPU, 100, "limits.cpu_seconds"),
    ] {
        let call = Call::new("standard")?.cmd(["echo", "ran"]);
        let mut command = call.command();
        // SAFETY: a plain system call between fork and exec.
        unsafe {
            command.pre_exec(move || {
                let limit = libc::rlimit {
                    rlim_cur: most,
                    rlim_max: most,
                };
                libc::setrlimit(resource, &raw const limit);
                Ok(())
            });
        }
        let done = command
            .stdin(Stdio::null())
            .output()
            .map_err(|e| e.to_string())?;
        let said = String::from_utf8_lossy(&done.stderr);
        ensure!(
            done.status.code() == Some(125)
                && done.stdout.is_empty()
                && said.contains("code: limit_unavailable")
                && said.contains(key),
            "{key}: {} {said}",
            done.status
        );
    }
    Ok(Verdict::Held)
}

fn values() -> Result<Verdict, String> {
    for env in ["", "=x", "1A=x", "A B=x", "NOT_SET_ANYWHERE_HERE"] {
        flag("--env", env, "env_invalid", &[])?;
    }
    flag(
        "--env-file",
        "/nonexistent",
        "env_invalid",
        &["/nonexistent"],
    )?;
    let place = Place::new()?;
    let file = place.file("env", "A=1\n# c\nB-C=2\n")?;
    flag(
        "--env-file",
        &file.display().to_string(),
        "env_invalid",
        &["env:3"],
    )?;
    for user in ["", "root", "-1", "65534", "1:65534", "1:2:3", "4294967296"] {
        flag("--user", user, "user_invalid", &[])?;
    }
    for label in ["x", "=x", ""] {
        flag("--label", label, "usage", &["--label"])?;
    }
    Ok(Verdict::Held)
}

fn images() -> Result<Verdict, String> {
    let place = Place::new()?;
    flag(
        "--image",
        "/nonexistent",
        "image_invalid",
        &["/nonexistent"],
    )?;
    let file = place.file("file", "x")?;
    let file = file.display().to_string();
    flag("--image", &file, "image_invalid", &[&file])?;
    flag("--image", "/a/../b", "image_invalid", &[])?;
    Ok(Verdict::Held)
}

fn usage() -> Result<Verdict, String> {
    for args in [
        &["run"][..],
        &["run", "--"],
        &["run", "--no-such-flag", "--", "true"],
        &["run", "--network", "some", "--", "true"],
        &["run", "--json", "-t", "--", "true"],
        &["nonsense"],
        &["run", "--", ""],
    ] {
        let place = Place::new()?;
        let done = std::process::Command::new(orch())
            .args(args)
            .env("ORCH_STATE_DIR", place.join("state"))
            .env(
                "ORCH_UID_BLOCK",
                crate::left::uid_block(&place.join("state")),
            )
            .stdin(Stdio::null())
            .output()
            .map_err(|e| e.to_string())?;
        let said = String::from_utf8_lossy(&done.stderr);
        ensure!(
            done.status.code() == Some(125) && said.contains("code: usage") && said.contains("do:"),
            "{args:?}: {} {said}",
            done.status
        );
    }
    Ok(Verdict::Held)
}

fn missing() -> Result<Verdict, String> {
    for name in [
        "no-such-command",
        "/no/such/file",
        "./here",
        "/etc/hostname/x",
    ] {
        for tier in ["standard", "strict"] {
            let ended = Call::new(tier)?.cmd([name]).run()?;
            ended
                .is(127, "exited", "not_found")?
                .mentions(&format!("{name} was not found"))?;
        }
    }
    // The shell's own word for the same is an ordinary exit.
    let ended = Call::new("standard")?.sh("no-such-command").run()?;
    ended.is(127, "exited", "exit")?;
    Ok(Verdict::Held)
}

fn not_executable() -> Result<Verdict, String> {
    let place = Place::new()?;
    let text = place.file("text", "echo hello\n")?;
    let broken = place.file("broken", b"\x7fELF broken")?;
    std::fs::set_permissions(&broken, std::fs::Permissions::from_mode(0o755))
        .map_err(|e| e.to_string())?;
    for (name, more) in [
        ("/etc/hostname", None),
        ("/usr", None),
        ("/workspace/text", Some(&text)),
        ("/workspace/broken", Some(&broken)),
    ] {
        let mut call = Call::new("strict")?.cmd([name]);
        if let Some(source) = more {
            call = call.mount(source, "");
        }
        call.run()?
            .is(126, "exited", "not_executable")?
            .mentions("cannot be executed")?;
    }
    let script = place.file("script", "#!/bin/sh\necho script\n")?;
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755))
        .map_err(|e| e.to_string())?;
    let call = Call::new("strict")?.mount(&script, "");
    call.cmd(["/workspace/script"]).run()?.says("script")?;
    Ok(Verdict::Held)
}

fn workdir() -> Result<Verdict, String> {
    for dir in ["/nowhere", "sub", "/etc/hostname", "../etc"] {
        let make = || Ok(Call::new("standard")?.args(["--workdir", dir]));
        refused(make, "workdir_missing", &[]).map_err(|why| format!("{dir}: {why}"))?;
    }
    for (dir, seen) in [
        ("/usr", "/usr"),
        (".", "/workspace"),
        ("/tmp/home", "/tmp/home"),
    ] {
        let call = Call::new("standard")?.args(["--workdir", dir]);
        call.cmd(["/bin/sh", "-c", "pwd"]).run()?.says(seen)?;
    }
    Ok(Verdict::Held)
}

fn receipt() -> Result<Verdict, String> {
    for file in ["/nonexistent/receipt", "/"] {
        let make = || {
            Ok(Call::new("standard")?
                .no_receipt()
                .args(["--receipt", file]))
        };
        refused(make, "receipt_failed", &[file])?;
    }
    Ok(Verdict::Held)
}

/// A state directory on a file system without room, in a mount namespace that ends
/// with the call.
fn full_disk() -> Result<Verdict, String> {
    let place = Place::new()?;
    let state = place.folder("state")?;
    // A state directory that cannot be made; one that is there needs no room.
    for (below, ran) in [("/state", false), ("", true)] {
        let script = format!(
            "mount -t tmpfs -o size=4k,nr_inodes=1,mode=700 none \"$1\" && ORCH_STATE_DIR=\"$1{below}\" exec \"$2\" run -- echo ran"
        );
        let done = std::process::Command::new("unshare")
            .args([
                "--mount",
                "--propagation",
                "private",
                "sh",
                "-c",
                &script,
                "sh",
            ])
            .args([state.as_os_str(), &orch()])
            .stdin(Stdio::null())
            .output()
            .map_err(|e| format!("unshare: {e}"))?;
        let said = String::from_utf8_lossy(&done.stderr);
        if ran {
            ensure!(done.stdout == b"ran\n", "{} {said}", done.status);
            continue;
        }
        ensure!(
            done.status.code() == Some(125)
                && done.stdout.is_empty()
                && ["host_exhausted", "state_invalid"]
                    .iter()
                    .any(|code| said.contains(&format!("code: {code}")))
                && said.contains("No space left"),
            "{} {said}",
            done.status
        );
    }
    ensure!(names(&state)?.is_empty(), "something is in {state:?}");
    Ok(Verdict::Held)
}

/// Where the receipt goes, found out before anything is started; and where the
/// results go: the command has run by then, and that is no success without them.
fn no_room() -> Result<Verdict, String> {
    let receipt = "--receipt \"$1/receipt\" -- echo ran";
    let results = "--out \"$1/out\" -- sh -c 'head -c 100000 /dev/zero > /tmp/out/x; echo ran'";
    for (options, args, code, out, word) in [
        ("nr_inodes=1", receipt, 125, "", "code: receipt_failed"),
        ("size=1m", receipt, 0, "ran\n", "exited with code 0"),
        ("size=16k", results, 125, "ran\n", "code: copy_out_failed"),
        ("size=1m", results, 0, "ran\n", "1 file"),
    ] {
        let place = Place::new()?;
        let dir = place.folder("dir")?;
        let script =
            format!("mount -t tmpfs -o {options},mode=700 none \"$1\" && exec \"$2\" run {args}");
        let done = std::process::Command::new("unshare")
            .args(["--mount", "--propagation", "private"])
            .args(["sh", "-c", &script, "sh"])
            .args([dir.as_os_str(), &orch()])
            .env("ORCH_STATE_DIR", place.join("state"))
            .env(
                "ORCH_UID_BLOCK",
                crate::left::uid_block(&place.join("state")),
            )
            .stdin(Stdio::null())
            .output()
            .map_err(|e| format!("unshare: {e}"))?;
        let said = String::from_utf8_lossy(&done.stderr);
        ensure!(
            done.status.code() == Some(code)
                && done.stdout == out.as_bytes()
                && said.contains(word),
            "{options}: {} {said}",
            done.status
        );
    }
    Ok(Verdict::Held)
}

/// orch started by this program, which takes rights away.
fn started_by(
    tool: &[&str],
    state: &std::path::Path,
) -> Result<(Option<i32>, String, String), String> {
    let done = std::process::Command::new(tool[0])
        .args(&tool[1..])
        .arg(orch())
        .args(["run", "--", "echo", "ran"])
        .env("ORCH_STATE_DIR", state)
        .env("ORCH_UID_BLOCK", crate::left::uid_block(state))
        .env("HOME", "/nonexistent")
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("{tool:?}: {e}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok((done.status.code(), text(&done.stdout), text(&done.stderr)))
}

fn no_rights() -> Result<Verdict, String> {
    let place = Place::new()?;
    let state = place.join("state");
    let tool = [
        "setpriv",
        "--bounding-set=-sys_admin",
        "--inh-caps=-sys_admin",
    ];
    let (code, out, said) = started_by(&tool, &state)?;
    ensure!(
        code == Some(125) && out.is_empty() && said.contains("code: host_unsupported"),
        "{code:?} {out} {said}"
    );
    ensure!(said.contains("  do:   "), "no remedy: {said}");
    match crate::left::left(&state, None) {
        None => Ok(Verdict::Held),
        Some(what) => Err(what),
    }
}

/// Design §3.6: what is missing is said by name, or it works.
fn ordinary_user() -> Result<Verdict, String> {
    let place = Place::new()?;
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(place.path(), open).map_err(|e| e.to_string())?;
    let state = place.join("state");
    std::fs::create_dir(&state)
        .and_then(|()| std::fs::set_permissions(&state, std::fs::Permissions::from_mode(0o700)))
        .and_then(|()| chown(&state, Some(1000), Some(1000)))
        .map_err(|e| e.to_string())?;
    let tool = ["setpriv", "--reuid=1000", "--regid=1000", "--clear-groups"];
    let reached = std::process::Command::new(tool[0])
        .args(&tool[1..])
        .args(["test".as_ref(), "-x".as_ref(), orch().as_os_str()])
        .status()
        .map_err(|e| e.to_string())?;
    if !reached.success() {
        return Ok(Verdict::Skipped(
            "uid 1000 cannot reach ORCH_BIN".to_owned(),
        ));
    }
    let (code, out, said) = started_by(&tool, &state)?;
    let works = code == Some(0) && out == "ran\n";
    let refused = code == Some(125)
        && out.is_empty()
        && ["host_unsupported", "control_missing", "cgroup_failed"]
            .iter()
            .any(|code| said.contains(&format!("code: {code}")))
        && said.contains("  do:   ");
    ensure!(works || refused, "{code:?} {out} {said}");
    match crate::left::left(&state, None) {
        None => Ok(Verdict::Held),
        Some(what) => Err(what),
    }
}

fn foreign_state() -> Result<Verdict, String> {
    let place = Place::new()?;
    let foreign = place.folder("foreign")?;
    let open = place.join("open");
    std::fs::create_dir(&open).map_err(|e| e.to_string())?;
    let file = place.file("file", "")?;
    for path in [foreign, open, file, "relative".into()] {
        let make = || Ok(Call::new("standard")?.env("ORCH_STATE_DIR", &path));
        refused(make, "state_invalid", &["ORCH_STATE_DIR"])
            .map_err(|why| format!("{}: {why}", path.display()))?;
    }
    Ok(Verdict::Held)
}

fn dry_run() -> Result<Verdict, String> {
    let place = Place::new()?;
    let out = place.join("out");
    let call = Call::new("strict")?
        .no_receipt()
        .args(["--dry-run", "--out"]);
    let ended = call.args([&out]).cmd(["echo", "ran"]).run()?;
    let document: serde_json::Value =
        serde_json::from_slice(&ended.stdout).map_err(|e| format!("{e}: {ended:?}"))?;
    ensure!(
        ended.code() == 0 && document["tier"] == "strict" && !out.exists(),
        "{ended:?}"
    );
    Ok(Verdict::Held)
}
