//! orch without root (design §3.6): what works, what is refused and in which words,
//! and never a limit less without saying so (H18).

use std::ffi::OsStr;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;

use crate::call::{Call, Ended, ensure};
use crate::harness::{Test, Verdict, test};
use crate::left;
use crate::user::{Delegated, UID, User};

mod host;

pub fn tests() -> Vec<Test> {
    let mut tests = host::tests();
    tests.extend([
        test(
            "rootless::works_without_delegation_and_says_so",
            undelegated,
        ),
        test("rootless::strict_is_refused_without_delegation", strict),
        test("rootless::subtree_keeps_every_tier", delegated),
        test("rootless::subtree_in_part_names_the_rest", partly),
        test(
            "rootless::runs_in_one_group_let_each_other_live",
            neighbours,
        ),
        test(
            "rootless::folder_belongs_to_the_caller_inside_and_outside",
            folder,
        ),
        test("rootless::results_belong_to_the_caller", results),
        test("rootless::any_user_inside", users),
        test("rootless::files_of_others_stay_theirs", others),
        test("rootless::as_many_mounts_as_there_can_be", many),
        test("rootless::mounts_below_a_folder", below),
        test("rootless::what_shows_the_host_below_a_folder", kernel_below),
        test("rootless::timeout_ends_the_whole_tree", timeout),
        test("rootless::sigkill_of_orch_leaves_nothing_px09", killed),
        test("rootless::controls_are_those_of_root", controls),
    ]);
    tests
}

/// All that limits need, by the names of version 1.
const CONTROLLERS: &[&str] = &["memory", "pids", "cpu", "cpuacct", "freezer", "blkio"];

fn call(profile: &str) -> Result<Call, String> {
    Ok(Call::new(profile)?.args(["--network", "none"]))
}

fn missing(ended: &Ended) -> Vec<String> {
    let list = ended
        .fact("missing")
        .as_array()
        .cloned()
        .unwrap_or_default();
    list.iter()
        .filter_map(|name| Some(name.as_str()?.to_owned()))
        .collect()
}

fn undelegated() -> Result<Verdict, String> {
    for tier in ["loose", "standard"] {
        let ended = call(tier)?
            .by_user(|user| user)
            .sh("echo ran")
            .run()?
            .says("ran")?;
        for name in ["memory", "processes", "cpus"] {
            ensure!(
                missing(&ended).iter().any(|m| m == name),
                "{tier}: {ended:?}"
            );
            ensure!(ended.stderr.contains(name), "not told: {ended:?}");
        }
        // The control: root has them all.
        let root = call(tier)?.sh("echo ran").run()?.says("ran")?;
        ensure!(!missing(&root).iter().any(|m| m == "memory"), "{root:?}");
        ensure!(!root.stderr.contains("did not limit"), "{root:?}");
    }
    Ok(Verdict::Held)
}

fn strict() -> Result<Verdict, String> {
    let make = || Ok(Call::new("strict")?.by_user(|user| user));
    let words = ["memory", "systemd-run --user --scope -p Delegate=yes"];
    crate::refusal::refused(make, "limit_unavailable", &words)?;
    Ok(Verdict::Held)
}

fn in_subtree<T>(
    controllers: &[&str],
    work: impl FnOnce(&dyn Fn(User) -> User) -> Result<T, String>,
) -> Result<T, String> {
    let group = Delegated::new(controllers)?;
    let done = work(&|user| group.start(user))?;
    match group.left().first() {
        None => Ok(done),
        Some(path) => Err(format!("{} is left", path.display())),
    }
}

/// Limits bite, counters count, the self-test of the tier passes.
fn delegated() -> Result<Verdict, String> {
    in_subtree(CONTROLLERS, |there| {
        for tier in ["loose", "standard", "strict"] {
            let ended = call(tier)?
                .by_user(there)
                .sh("echo ran")
                .run()?
                .says("ran")?;
            ensure!(!ended.stderr.contains("did not limit"), "{tier}: {ended:?}");
            ensure!(
                ended.fact("/usage/memory_peak_bytes").is_u64(),
                "{tier}: {ended:?}"
            );

            let hog = call(tier)?.by_user(there).args(["--memory", "32Mi"]);
            hog.cmd(["tail", "/dev/zero"])
                .run()?
                .is(137, "exited", "oom")?;
            let many = "for i in 1 2 3 4 5 6 7 8 9; do sleep 0.2 & done; wait";
            let bomb = call(tier)?
                .by_user(there)
                .args(["--pids", "5"])
                .sh(many)
                .run()?;
            ensure!(
                bomb.fact("/limits/limits.processes/hits").as_u64() > Some(0),
                "{tier}: {bomb:?}"
            );
        }
        Ok(Verdict::Held)
    })
}

/// Whose locks lie elsewhere, because it has another state directory or is root,
/// does not take a container that lives for one that is left over: it is not killed,
/// and keeps its limits and counters.
fn neighbours() -> Result<Verdict, String> {
    let group = Delegated::new(CONTROLLERS)?;
    for root in [false, true] {
        let mut same = None;
        let first = call("standard")?.by_user(|user| same.insert(group.start(user)).clone());
        let folder = first.place().join("folder");
        std::fs::create_dir(&folder)
            .and_then(|()| chown(&folder, Some(UID), Some(UID)))
            .map_err(|e| e.to_string())?;
        let first = first.args([OsStr::new("--folder"), folder.as_os_str()]);
        let script = "echo > up; until [ -e go ]; do sleep 0.05; done; echo lives";
        let first = first.sh(script).start()?;
        left::eventually(crate::call::PATIENCE, || {
            Ok((!folder.join("up").exists()).then(|| "not up".to_owned()))
        })?;
        let mut second = call("standard")?.no_receipt().sh("echo ran");
        if !root {
            second = second.by_user(|other| same.unwrap_or(other));
        }
        let mut command = second.command();
        if root {
            group.enter(&mut command);
        }
        let ended = command.output().map_err(|e| e.to_string())?;
        std::fs::write(folder.join("go"), "").map_err(|e| e.to_string())?;
        let first = first.wait(crate::call::PATIENCE)?;
        ensure!(ended.stdout == b"ran\n", "root {root}: {ended:?}");
        ensure!(
            first.out() == "lives" && first.fact("/usage/memory_peak_bytes").is_u64(),
            "beside root {root}: {first:?}"
        );
    }
    match group.left().first() {
        None => Ok(Verdict::Held),
        Some(path) => Err(format!("{} is left", path.display())),
    }
}

fn partly() -> Result<Verdict, String> {
    in_subtree(&["pids", "freezer"], |there| {
        let ended = call("standard")?
            .by_user(there)
            .sh("echo ran")
            .run()?
            .says("ran")?;
        let missing = missing(&ended);
        ensure!(
            missing.iter().any(|name| name == "memory")
                && missing.iter().any(|name| name == "cpus")
                && !missing.iter().any(|name| name == "processes"),
            "{ended:?}"
        );
        let make = || Ok(Call::new("strict")?.by_user(there));
        crate::refusal::one_of(make, &["cgroup_failed", "limit_unavailable"], &["memory"])?;
        Ok(Verdict::Held)
    })
}

/// Owner and bits of what a task has written.
fn folder() -> Result<Verdict, String> {
    let make = call("standard")?.by_user(|user| user);
    let folder = make.place().join("folder");
    std::fs::create_dir(&folder)
        .and_then(|()| std::os::unix::fs::chown(&folder, Some(UID), Some(UID)))
        .and_then(|()| std::fs::write(folder.join("given"), "given"))
        .map_err(|e| e.to_string())?;
    let script = "stat -c %u:%g . && cat given && echo made > made && chmod 600 made";
    let ended = make
        .args([std::ffi::OsStr::new("--folder"), folder.as_os_str()])
        .sh(script);
    let running = ended.start()?;
    let ended = running.wait(crate::call::PATIENCE)?;
    ensure!(ended.out() == "1000:1000\ngiven", "{ended:?}");
    Ok(Verdict::Held)
}

fn results() -> Result<Verdict, String> {
    let make = call("standard")?.by_user(|user| user);
    let out = make.place().join("results");
    let running = make
        .args([std::ffi::OsStr::new("--out"), out.as_os_str()])
        .sh("mkdir /tmp/out/d && echo result > /tmp/out/d/f")
        .start()?;
    // The directory is looked at before it goes with the call.
    let file = out.join("d/f");
    let mut seen = None;
    left::eventually(crate::call::PATIENCE, || {
        seen = std::fs::metadata(&file)
            .ok()
            .map(|meta| (meta.uid(), meta.mode() & 0o7777));
        Ok(seen.is_none().then(|| "no result".to_owned()))
    })?;
    let ended = running.wait(crate::call::PATIENCE)?;
    ensure!(ended.code() == 0, "{ended:?}");
    ensure!(seen == Some((UID, 0o644)), "{seen:?}");
    Ok(Verdict::Held)
}

fn users() -> Result<Verdict, String> {
    for (user, expected) in [
        ("0", "0 0"),
        ("1:1", "1 1"),
        ("1000:7", "1000 7"),
        ("65533", "65533 65533"),
    ] {
        let ended = call("loose")?.args(["--user", user]);
        ended
            .by_user(|user| user)
            .sh("echo $(id -u) $(id -g) $(id -G | wc -w | grep -v 1)")
            .run()?
            .says(expected)?;
    }
    Ok(Verdict::Held)
}

/// Nobody inside is the owner of what belongs to others outside.
fn others() -> Result<Verdict, String> {
    let make = call("loose")?.by_user(|user| user);
    let file = make.place().file("secret", "secret")?;
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600))
        .map_err(|e| e.to_string())?;
    let place = file.clone();
    let ended = make
        .mount(&place, ":/workspace/secret")
        .args(["--user", "0"])
        .sh("stat -c %u /workspace/secret; cat /workspace/secret || echo refused")
        .run()?;
    ensure!(ended.out() == "65534\nrefused", "{ended:?}");
    Ok(Verdict::Held)
}

/// More descriptors than any number that orch uses for itself; the names that are not
/// UTF-8 take the longer way.
fn many() -> Result<Verdict, String> {
    use std::os::unix::ffi::OsStrExt;
    // A mount takes one or two descriptors: with each of these numbers others have
    // those that the launcher wants for itself.
    for count in [60, 90, 180] {
        let mut call = call("standard")?;
        for number in 0..count {
            let mut name = format!("{number}-").into_bytes();
            // The last one has enough of them for both ways.
            if count < 180 || number > 60 {
                name.push(0xff);
            }
            let file = call
                .place()
                .file(OsStr::from_bytes(&name), number.to_string())?;
            call = call.mount(&file, &format!(":/data/{number}"));
        }
        let script = format!(
            "for n in $(seq 0 {}); do [ \"$(cat /data/$n)\" = $n ] || echo $n; done; echo all",
            count - 1
        );
        call.by_user(|user| user).sh(&script).run()?.says("all")?;
    }
    Ok(Verdict::Held)
}

/// What is mounted in a folder cannot be left out: shown where it cannot be written,
/// refused where it could.
fn below() -> Result<Verdict, String> {
    let make = |mode: &str| {
        let call = call("standard")?;
        let folder = call.place().join("folder");
        let prepared = std::fs::create_dir(&folder)
            .and_then(|()| std::fs::write(folder.join("below"), "under the mount"))
            .and_then(|()| std::os::unix::fs::chown(&folder, Some(UID), Some(UID)));
        prepared.map_err(|e| e.to_string())?;
        let target = format!(":/data{mode}");
        let call = call.mount(&folder, &target);
        Ok(call.by_user(|user| user.file(folder.join("below"), "mounted", 0o666)))
    };
    let script = "cat /data/below; (: >> /data/below) 2>/dev/null && echo written";
    let ended = make("")?.sh(script).run()?;
    ensure!(ended.out() == "mounted", "{ended:?}");
    crate::refusal::refused(
        || make(":rw"),
        "mount_invalid",
        &["mounted below", "read-only"],
    )?;
    Ok(Verdict::Held)
}

/// Files of the kernel below a folder are not shown with it: root leaves them out, and
/// for a user the folder is refused.
fn kernel_below() -> Result<Verdict, String> {
    for (tree, host) in [("proc", "1"), ("sys", "class"), ("dev", "full")] {
        let make = |bind: bool| {
            let call = call("standard")?;
            let folder = call.place().join("a folder");
            std::fs::create_dir_all(folder.join(tree))
                .and_then(|()| chown(&folder, Some(UID), Some(UID)))
                .map_err(|e| e.to_string())?;
            let call = call.mount(&folder, ":/data").sh("ls -A /data/*");
            let below = folder.join(tree);
            let call = call.by_user(|user| match bind {
                true => user.bind(Path::new("/").join(tree), below),
                false => user,
            });
            Ok::<_, String>(call)
        };
        make(false)?.run()?.says("")?;
        let seen = Path::new("/").join(tree).join(host);
        ensure!(seen.exists(), "no control: {}", seen.display());
        crate::refusal::refused(|| make(true), "mount_invalid", &["below", "show the host"])?;
    }
    Ok(Verdict::Held)
}

fn timeout() -> Result<Verdict, String> {
    let tree =
        "trap '' TERM INT HUP; setsid sh -c 'trap \"\" TERM; sleep 600' & (sleep 600 &); sleep 600";
    for delegate in [false, true] {
        let controllers = if delegate { CONTROLLERS } else { &[] };
        in_subtree(controllers, |there| {
            let call = call("standard")?
                .by_user(there)
                .args(["--timeout", "500ms"]);
            let ended = call.sh(tree).run()?;
            ended.is(124, "timeout", "timeout").map(drop)
        })?;
    }
    Ok(Verdict::Held)
}

fn killed() -> Result<Verdict, String> {
    for (delegate, seconds) in [(false, "86401.25"), (true, "86402.25")] {
        let controllers = if delegate { CONTROLLERS } else { &[] };
        in_subtree(controllers, |there| {
            let running = call("standard")?
                .by_user(there)
                .sh(&format!(
                    "trap '' TERM; setsid sleep {seconds} & sleep {seconds}"
                ))
                .start()?;
            let state = running.state();
            let both = || Ok((sleeping(seconds) < 2).then(|| "not yet asleep".to_owned()));
            left::eventually(crate::call::PATIENCE, both)?;
            running.signal(libc::SIGKILL);
            running.wait(crate::call::PATIENCE)?;
            left::eventually(std::time::Duration::from_secs(5), || {
                let alive = left::alive(&state);
                let sleeping = sleeping(seconds);
                let gone = alive.is_empty() && sleeping == 0;
                Ok((!gone).then(|| format!("{alive:?} and {sleeping} of the task live on")))
            })?;
            Ok(())
        })?;
    }
    Ok(Verdict::Held)
}

/// Processes of the host that sleep for so long; the task's id is the caller's, so
/// that ids do not tell them apart.
fn sleeping(seconds: &str) -> usize {
    let wanted = format!("sleep\0{seconds}\0");
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter(|entry| {
            std::fs::read(entry.path().join("cmdline")).is_ok_and(|line| line == wanted.as_bytes())
        })
        .count()
}

/// What a task is: no capability, no new privileges, no groups, three filters, own
/// processes only; the same words from a task of root and from one of a user.
fn controls() -> Result<Verdict, String> {
    let script = "grep -E '^(Uid|Gid|Groups|Cap|NoNewPrivs|Seccomp)' /proc/self/status; \
        cat /proc/net/dev | wc -l; ls /dev /sys/class/net; \
        grep -v -E ' (/|/usr|/bin|/lib|/sbin|/etc)' /proc/self/mounts | cut -d' ' -f2- | sort; \
        (: > /usr/x) 2>&1 | tail -c 22; head -c 1 /proc/kcore 2>&1 | wc -c";
    in_subtree(CONTROLLERS, |there| {
        for tier in ["loose", "standard", "strict"] {
            let root = call(tier)?.sh(script).run()?;
            let user = call(tier)?.by_user(there).sh(script).run()?;
            ensure!(
                root.code() == 0 && root.out().contains("NoNewPrivs:\t1"),
                "{root:?}"
            );
            ensure!(
                root.out() == user.out(),
                "{tier}: root {}\nuser {}",
                root.out(),
                user.out()
            );
        }
        Ok(Verdict::Held)
    })
}
