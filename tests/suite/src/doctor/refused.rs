//! Calls that a filter around orch refuses, capabilities that are not held, a limit.

use super::call::{Doctor, baseline, check, differs, has};
use crate::harness::{Test, Verdict, test};
use crate::rig::{Result, ensure, filter};

/// Calls that are refused, each in two ways.
const CALLS: &[(&str, i64)] = &[
    ("clone3", libc::SYS_clone3),
    ("unshare", libc::SYS_unshare),
    ("setns", libc::SYS_setns),
    ("mount", libc::SYS_mount),
    ("umount2", libc::SYS_umount2),
    ("pivot_root", libc::SYS_pivot_root),
    ("open_tree", libc::SYS_open_tree),
    ("move_mount", libc::SYS_move_mount),
    ("mount_setattr", libc::SYS_mount_setattr),
    ("fsopen", libc::SYS_fsopen),
    ("openat2", libc::SYS_openat2),
    ("pidfd_open", libc::SYS_pidfd_open),
    ("close_range", libc::SYS_close_range),
    ("memfd_create", libc::SYS_memfd_create),
    ("seccomp", libc::SYS_seccomp),
];
/// Capabilities by number (`linux/capability.h`).
const CAPABILITIES: &[(&str, libc::c_ulong)] = &[
    ("CHOWN", 0),
    ("DAC_OVERRIDE", 1),
    ("KILL", 5),
    ("SETGID", 6),
    ("SETUID", 7),
    ("SYS_ADMIN", 21),
];

pub fn tests() -> Vec<Test> {
    let mut tests = Vec::new();
    for (name, number) in CALLS {
        tests.push(test(format!("doctor::refused::{name}_op01"), || {
            call(name, *number)
        }));
    }
    for (name, number) in CAPABILITIES {
        let title = format!("doctor::without::{name}_op01");
        tests.push(test(title, || capability(name, *number)));
    }
    tests.push(test("doctor::refused::keyctl_op01", keyctl));
    tests.push(test("doctor::refused::id_maps_fs26", id_maps));
    tests.push(test("doctor::refused::exit_codes", exit_code));
    tests.push(test("doctor::refused::clone_h3", clone));
    tests.push(test("doctor::refused::adjtimex", clock));
    tests.push(test("doctor::limits::open_files_pr21", open_files));
    tests.push(test("doctor::limits::of_one_process_pr19", other_limits));
    tests.push(test("doctor::as_another_user_op01", another_user));
    tests
}

fn call(name: &'static str, number: i64) -> Result<Verdict> {
    for (errno, word) in [(libc::ENOSYS, "ENOSYS"), (libc::EPERM, "EPERM")] {
        let mut doctor = Doctor::new()?;
        let errno = u16::try_from(errno).unwrap_or_default();
        filter::answer(doctor.command(), number, errno);
        let said = doctor.run()?;
        differs(
            &said,
            "system calls",
            "missing",
            &format!("{name} ({word})"),
        )?;
        differs(&said, "outer filter", "warn", "seccomp=unconfined")?;
        ensure(said.code == 3, || format!("exit code {}", said.code))?;
        if number == libc::SYS_clone3 {
            // On version 1 it is done without.
            let line = said.check("clone into a group")?;
            ensure(line["state"] != "ok" && line["by"] == "tried", || {
                format!("{line}")
            })?;
        }
    }
    Ok(Verdict::Held)
}

/// mount_setattr(2) is there, and no file system can show other owners: what older
/// kernels say to a tmpfs.
fn id_maps() -> Result<Verdict> {
    let mut doctor = Doctor::new()?;
    filter::answer(doctor.command(), libc::SYS_mount_setattr, 22);
    let said = doctor.run()?;
    ensure(said.check("system calls")?["state"] == "ok", || {
        format!("{}", said.document)
    })?;
    has(&said, "id-mapped tmpfs", "warn", "not there (tried)")?;
    differs(
        &said,
        "folder",
        "missing",
        "cannot show files with other owners",
    )?;
    Ok(Verdict::Held)
}

/// ioctl(2) as it is before Linux 6.13: pidfds have none.
fn exit_code() -> Result<Verdict> {
    const ENOTTY: u16 = 25;
    let mut doctor = Doctor::new()?;
    filter::answer(doctor.command(), libc::SYS_ioctl, ENOTTY);
    let said = doctor.run()?;
    has(
        &said,
        "exit code from the kernel",
        "warn",
        "not there (tried)",
    )?;
    Ok(Verdict::Held)
}

/// A kernel without keys has none to share; one that refuses them is in the way.
fn keyctl() -> Result<Verdict> {
    let mut doctor = Doctor::new()?;
    filter::answer(doctor.command(), libc::SYS_keyctl, 1);
    let said = doctor.run()?;
    differs(&said, "system calls", "missing", "keyctl (EPERM)")?;
    let mut doctor = Doctor::new()?;
    filter::answer(doctor.command(), libc::SYS_keyctl, 38);
    let said = doctor.run()?;
    ensure(
        said.check("system calls")?["state"] == "ok" && said.kept("strict"),
        || format!("a kernel without keys: {}", said.document),
    )?;
    Ok(Verdict::Held)
}

/// Whoever claims that there is a child although there is none is not waited for.
fn clone() -> Result<Verdict> {
    for (errno, word) in [(libc::EPERM, "EPERM"), (0, "ENOSYS")] {
        let mut doctor = Doctor::new()?;
        let errno = u16::try_from(errno).unwrap_or_default();
        filter::answer(doctor.command(), libc::SYS_clone, errno);
        let said = doctor.run()?;
        for name in ["user", "mnt", "pid", "net", "ipc", "uts", "cgroup"] {
            differs(&said, "namespaces", "missing", &format!("{name} ({word})"))?;
        }
        ensure(said.code == 3, || format!("exit code {}", said.code))?;
    }
    Ok(Verdict::Held)
}

fn clock() -> Result<Verdict> {
    let mut doctor = Doctor::new()?;
    filter::answer(doctor.command(), libc::SYS_adjtimex, 1);
    // What the C library may call instead.
    filter::answer(doctor.command(), libc::SYS_clock_adjtime, 1);
    has(&doctor.run()?, "clock", "warn", "does not say")?;
    Ok(Verdict::Held)
}

fn capability(name: &'static str, number: libc::c_ulong) -> Result<Verdict> {
    // Dropping one takes CAP_SETPCAP, which goes like any other.
    let said = Doctor::new()?
        .after(move || {
            // SAFETY: plain numbers.
            check(unsafe { libc::prctl(libc::PR_CAPBSET_DROP, number, 0, 0, 0) })
        })
        .run()?;
    differs(
        &said,
        "privileges",
        "missing",
        &format!("root without {name}"),
    )?;
    ensure(said.code == 3, || format!("exit code {}", said.code))?;
    Ok(Verdict::Held)
}

fn open_files() -> Result<Verdict> {
    for (limit, kept, code) in [
        (2000, [false, true, true], 3),
        (500, [false, false, true], 3),
        (100, [false, false, false], 3),
    ] {
        let said = Doctor::new()?
            .after(move || {
                let both = libc::rlimit {
                    rlim_cur: limit,
                    rlim_max: limit,
                };
                // SAFETY: the structure outlives the call.
                check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const both) })
            })
            .run()?;
        differs(&said, "open files", "missing", &format!("up to {limit}"))?;
        let tiers = ["loose", "standard", "strict"];
        let found = tiers.map(|tier| said.kept(tier));
        let before = baseline()?;
        let kept = [0, 1, 2].map(|tier| kept[tier] && before.kept(tiers[tier]));
        ensure(found == kept && said.code == code, || {
            format!("{limit}: {found:?}, exit code {}", said.code)
        })?;
    }
    Ok(Verdict::Held)
}

/// The other limits of a task, each lowered by itself.
fn other_limits() -> Result<Verdict> {
    for (resource, limit, what) in [
        // The launcher, which is sealed into memory first, has to fit.
        (libc::RLIMIT_FSIZE, 32 << 20, "bytes of a file"),
        (libc::RLIMIT_STACK, 1 << 20, "bytes of stack"),
        (libc::RLIMIT_CPU, 20, "seconds of CPU time"),
    ] {
        let said = Doctor::new()?
            .after(move || {
                let both = libc::rlimit {
                    rlim_cur: limit,
                    rlim_max: limit,
                };
                // SAFETY: the structure outlives the call.
                check(unsafe { libc::setrlimit(resource, &raw const both) })
            })
            .run()?;
        let line = "limits of one process";
        differs(&said, line, "missing", "strict asks for")?;
        differs(&said, line, "missing", &format!("up to {limit} {what}"))?;
        ensure(said.code == 3 && !said.kept("strict"), || {
            format!("{}", said.document)
        })?;
    }
    Ok(Verdict::Held)
}

fn another_user() -> Result<Verdict> {
    let said = Doctor::new()?
        .after(|| {
            // SAFETY: plain numbers.
            check(unsafe { libc::setuid(1234) })
        })
        .run()?;
    differs(&said, "privileges", "missing", "user 1234")?;
    has(
        &said,
        "rootless tools",
        "warn",
        "subordinate user ids of 1234",
    )?;
    ensure(said.code == 3, || format!("exit code {}", said.code))?;
    Ok(Verdict::Held)
}
