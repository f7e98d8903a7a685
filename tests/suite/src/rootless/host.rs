//! What a host may keep from its users: refused by name, with the remedy (OP-01).

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{CONTROLLERS, call, in_subtree};
use crate::call::ensure;
use crate::doctor::record::keep;
use crate::harness::{Test, Verdict, test};
use crate::place::Place;
use crate::user::{self, User};
use crate::{left, pace};

/// What doctor may take on a busy machine; a launcher that does not answer takes 30 s.
const SOON: Duration = Duration::from_secs(15);

pub fn tests() -> Vec<Test> {
    vec![
        test("rootless::without_newuidmap", without_newuidmap),
        test("rootless::without_subordinate_ids", without_ids),
        test(
            "rootless::where_the_host_allows_no_user_namespaces",
            switched_off,
        ),
        test(
            "rootless::every_tier_of_doctor_has_the_same_reason",
            reasons,
        ),
        test("rootless::doctor_says_which_tiers_op01", doctor),
    ]
}

fn without_newuidmap() -> Result<Verdict, String> {
    for program in ["newuidmap", "newgidmap"] {
        let path = format!("/usr/bin/{program}");
        let make = || {
            let call = call("standard")?;
            Ok(call.by_user(|user| user.file(&path, "", 0o644)))
        };
        crate::refusal::refused(
            make,
            "host_unsupported",
            &[program, "apt-get install uidmap"],
        )?;
    }
    Ok(Verdict::Held)
}

fn without_ids() -> Result<Verdict, String> {
    for (file, flag) in [
        ("/etc/subuid", "--add-subuids"),
        ("/etc/subgid", "--add-subgids"),
    ] {
        for content in [
            "",
            "somebody-else:100000:65536\n",
            "orch-suite-user:100000:1000\n",
        ] {
            let make = || {
                let call = call("standard")?;
                Ok(call.by_user(|user| user.file(file, content, 0o644)))
            };
            crate::refusal::refused(make, "host_unsupported", &[file, flag])?;
        }
    }
    Ok(Verdict::Held)
}

/// Each switch by name, where the kernel refuses because of it.
fn switched_off() -> Result<Verdict, String> {
    let limit = "/proc/sys/user/max_user_namespaces";
    let make = || {
        let call = call("standard")?;
        Ok(call.by_user(|user| {
            user.file(limit, "0\n", 0o644)
                .refuse(libc::SYS_unshare, libc::ENOSPC)
        }))
    };
    crate::refusal::refused(
        make,
        "host_unsupported",
        &["user.max_user_namespaces", "sysctl"],
    )?;
    // Without a switch that would explain it, the kernel's own words.
    let make = || {
        let call = call("standard")?;
        Ok(call.by_user(|user| user.refuse(libc::SYS_unshare, libc::EPERM)))
    };
    crate::refusal::refused(
        make,
        "host_unsupported",
        &["make a user namespace", "doctor"],
    )?;
    Ok(Verdict::Held)
}

/// One launcher is asked for every tier. Where it could not get its ids the first
/// time, the second asks another one, and not this one for what it has said already.
fn reasons() -> Result<Verdict, String> {
    type Change = fn(User) -> User;
    let hosts: [(&str, Change); 5] = [
        ("", |user| user),
        ("/etc/subuid", |user| user.file("/etc/subuid", "", 0o644)),
        ("/etc/subgid", |user| user.file("/etc/subgid", "", 0o644)),
        ("newgidmap", |user| {
            user.file("/usr/bin/newgidmap", "", 0o644)
        }),
        ("user namespace", |user| {
            user.refuse(libc::SYS_unshare, libc::EPERM)
        }),
    ];
    for (reason, change) in hosts {
        let place = Place::new()?;
        let mut command = Command::new(user::program()?);
        let state = place.join("state");
        command.env("ORCH_STATE_DIR", &state).stdin(Stdio::null());
        command.args(["doctor", "--format", "json"]);
        change(User::new(left::first_id(&state)))
            .starts(&mut command, &place)
            .map_err(|e| e.to_string())?;
        let begun = Instant::now();
        let ended = command.output().map_err(|e| e.to_string())?;
        let took = begun.elapsed();
        let said: serde_json::Value =
            serde_json::from_slice(&ended.stdout).map_err(|e| format!("{e}: {ended:?}"))?;
        for tier in 0..3 {
            let told = said.pointer(&format!("/tiers/{tier}"));
            let why = told.and_then(|told| told.pointer("/error/message")?.as_str());
            // The control: with its ids it gets as far as the limits, which strict wants.
            let held = match reason {
                "" => (tier == 2) == why.is_some_and(|why| why.contains("memory")),
                reason => why.is_some_and(|why| why.contains(reason)),
            };
            ensure!(held, "{reason:?}: {told:?}");
        }
        ensure!(took < pace::here(SOON), "{reason:?}: after {took:?}");
    }
    Ok(Verdict::Held)
}

/// Exit code 1: all but strict; 0: every tier; 3: none.
fn doctor() -> Result<Verdict, String> {
    let ask = |host: &str, change: &dyn Fn(User) -> User| {
        let place = Place::new()?;
        let state = place.join("state");
        std::fs::create_dir(&state)
            .and_then(|()| {
                use std::os::unix::fs::PermissionsExt;
                std::fs::set_permissions(&state, std::fs::Permissions::from_mode(0o700))
            })
            .map_err(|e| e.to_string())?;
        let mut command = std::process::Command::new(user::program()?);
        command
            .args(["doctor", "--format", "json"])
            .env("ORCH_STATE_DIR", &state)
            .current_dir("/");
        // As useradd(8) gives them: in none of the blocks that root's containers have.
        let output = change(User::new(100_000))
            .starts(&mut command, &place)
            .and_then(|()| command.output())
            .map_err(|e| e.to_string())?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let document = serde_json::from_str(&said).map_err(|e| format!("{e}: {output:?}"))?;
        keep(host, &document)?;
        Ok::<_, String>((output.status.code().unwrap_or(-1), said))
    };
    let (code, said) = ask("first-user", &|user| user)?;
    ensure!(
        code == 1 && said.contains("not delegated to this user") && said.contains("Delegate=yes"),
        "without a group: {code} {said}"
    );
    let (code, said) = ask("first-user-without-ids", &|user| {
        user.file("/etc/subuid", "", 0o644)
    })?;
    ensure!(
        code == 3 && said.contains("usermod --add-subuids"),
        "without ids: {code} {said}"
    );
    in_subtree(CONTROLLERS, |there| {
        let (code, said) = ask("first-user-delegated", there)?;
        ensure!(code == 0, "in a group: {code} {said}");
        Ok(Verdict::Held)
    })
}
