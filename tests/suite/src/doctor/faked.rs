//! Files of the kernel that say something else: another file is bound over each.

use std::path::Path;

use super::call::{Doctor, baseline, differs, has};
use crate::harness::{Test, Verdict, test};
use crate::rig::place::Place;
use crate::rig::{Result, at, ensure};

/// File, what it says instead, line, state, a word of that line, exit code.
type Fake = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    i32,
);

const SYS: &str = "/proc/sys";

const FAKES: &[Fake] = &[
    (
        "/proc/sys/kernel/osrelease",
        "5.14.21\n",
        "kernel",
        "missing",
        "5.15",
        3,
    ),
    (
        "/proc/sys/kernel/seccomp/actions_avail",
        "log allow\n",
        "system-call filters",
        "missing",
        "errno",
        3,
    ),
    (
        "/proc/sys/vm/memfd_noexec",
        "2\n",
        "sealed memory",
        "missing",
        "memfd_noexec=1",
        3,
    ),
    (
        "/proc/sys/user/max_user_namespaces",
        "0\n",
        "namespaces",
        "missing",
        "max_user_namespaces is 0",
        3,
    ),
    (
        "/proc/sys/user/max_mnt_namespaces",
        "0\n",
        "namespaces",
        "missing",
        "max_mnt_namespaces is 0",
        3,
    ),
    (
        "/proc/sys/user/max_pid_namespaces",
        "0\n",
        "namespaces",
        "missing",
        "max_pid_namespaces is 0",
        3,
    ),
    (
        "/proc/sys/user/max_net_namespaces",
        "0\n",
        "namespaces",
        "missing",
        "max_net_namespaces is 0",
        3,
    ),
    (
        "/proc/sys/user/max_ipc_namespaces",
        "0\n",
        "namespaces",
        "missing",
        "max_ipc_namespaces is 0",
        3,
    ),
    (
        "/proc/sys/user/max_uts_namespaces",
        "0\n",
        "namespaces",
        "missing",
        "max_uts_namespaces is 0",
        3,
    ),
    (
        "/proc/sys/user/max_cgroup_namespaces",
        "0\n",
        "namespaces",
        "missing",
        "max_cgroup_namespaces is 0",
        3,
    ),
    (
        "/proc/sys/user/max_pid_namespaces",
        "7\n",
        "namespace limits",
        "warn",
        "room for 3",
        0,
    ),
    (
        "/proc/self/uid_map",
        "0 100000 65536\n",
        "user ids",
        "missing",
        "--userns=host",
        3,
    ),
    (
        "/etc/subuid",
        "jo:1879048192:65536\n",
        "user ids",
        "warn",
        "jo:1879048192",
        0,
    ),
    (
        "/proc/sys/kernel/pid_max",
        "450\n",
        "processes",
        "missing",
        "pid_max",
        3,
    ),
    (
        "/proc/sys/kernel/threads-max",
        "2000\n",
        "processes",
        "warn",
        "2000 on the host",
        0,
    ),
    (
        "/proc/sys/fs/file-nr",
        "990\t0\t1000\n",
        "open files of the host",
        "missing",
        "file-max",
        3,
    ),
    (
        "/proc/sys/fs/inotify/max_user_instances",
        "5\n",
        "inotify",
        "warn",
        "room for 5",
        0,
    ),
    (
        "/proc/sys/fs/inotify/max_user_watches",
        "1000\n",
        "inotify",
        "missing",
        "1000 watches",
        3,
    ),
    (
        "/proc/sys/kernel/keys/maxkeys",
        "0\n",
        "keys",
        "missing",
        "maxkeys",
        3,
    ),
    (
        "/proc/sys/kernel/keys/maxbytes",
        "1\n",
        "keys",
        "missing",
        "maxbytes",
        3,
    ),
    (
        "/proc/sys/fs/mount-max",
        "20\n",
        "mounts",
        "missing",
        "mount-max",
        3,
    ),
    (
        "/proc/sys/kernel/pty/max",
        "1030\n",
        "terminals",
        "warn",
        "pty.max",
        0,
    ),
    (
        "/proc/sys/kernel/pty/max",
        "10\n",
        "terminals",
        "missing",
        "run -t",
        0,
    ),
    (
        "/proc/meminfo",
        "MemTotal: 90000000 kB\nMemAvailable: 9 kB\n",
        "memory",
        "warn",
        "room for 0",
        0,
    ),
    (
        "/proc/meminfo",
        "MemTotal: 3000000 kB\nMemAvailable: 2900000 kB\n",
        "memory",
        "missing",
        "loose asks for 4096",
        3,
    ),
    (
        "/sys/devices/system/clocksource/clocksource0/current_clocksource",
        "acpi_pm\n",
        "clock source",
        "warn",
        "acpi_pm",
        0,
    ),
    (
        "/sys/devices/system/cpu/smt/active",
        "1\n",
        "hyper-threads",
        "warn",
        "nosmt",
        0,
    ),
    (
        "/sys/kernel/mm/ksm/run",
        "1\n",
        "shared memory pages",
        "warn",
        "KSM",
        0,
    ),
    (
        "/proc/self/attr/current",
        "docker-default (enforce)\n",
        "outer security module",
        "missing",
        "apparmor=unconfined",
        3,
    ),
];

pub fn tests() -> Vec<Test> {
    let mut tests: Vec<Test> = FAKES
        .iter()
        .enumerate()
        // Came with Linux 6.3; all others are older than what is supported.
        .filter(|(_, fake)| !fake.0.ends_with("memfd_noexec") || Path::new(fake.0).exists())
        .map(|(number, fake)| {
            let name = fake.2.replace(' ', "_");
            test(format!("doctor::faked::{name}_{number}"), move || one(fake))
        })
        .collect();
    tests.push(test("doctor::faked::wsl_interop_cp13", wsl));
    tests.push(test(
        "doctor::faked::switches_for_other_users_op01",
        switches,
    ));
    tests.push(test("doctor::faked::older_kernels_by_version", older));
    tests
}

fn one((file, text, name, state, word, code): &'static Fake) -> Result<Verdict> {
    if !Path::new(file).exists() {
        return Ok(Verdict::Skipped(format!("this kernel has no {file}")));
    }
    let place = Place::new("doctor")?;
    let instead = place.file("instead", text)?;
    let said = Doctor::new()?.cover(&instead, Path::new(file))?.run()?;
    differs(&said, name, state, word)?;
    // A line that loses no tier leaves what the machine has lost by itself, at most.
    let before = baseline()?.code;
    let fits = if *code == 3 {
        said.code == 3
    } else {
        said.code <= before
    };
    ensure(fits && said.document["exit_code"] == said.code, || {
        format!("exit code {}, {before} before", said.code)
    })?;
    Ok(Verdict::Held)
}

/// binfmt_misc with the handler that WSL registers.
/// `orch run` where these handlers are registered: whether the task ran, and what was
/// said.
fn run_beside(handlers: &Path, target: &Path) -> Result<(bool, String)> {
    let script = "mount --bind \"$1\" \"$2\" && exec \"$3\" run --profile strict -- echo it ran";
    let output = std::process::Command::new("unshare")
        .args([
            "--mount",
            "--propagation",
            "private",
            "sh",
            "-c",
            script,
            "sh",
        ])
        .args([handlers, target, &crate::rig::place::orch()?])
        .env("ORCH_STATE_DIR", crate::rig::place::state())
        .stdin(std::process::Stdio::null())
        .output()
        .map_err(crate::rig::at("unshare"))?;
    let ran = output.stdout == b"it ran\n";
    Ok((ran, String::from_utf8_lossy(&output.stderr).into_owned()))
}

fn wsl() -> Result<Verdict> {
    let target = Path::new("/proc/sys/fs/binfmt_misc");
    if !target.is_dir() {
        return Ok(Verdict::Skipped("this kernel has no binfmt_misc".into()));
    }
    for (handler, text, state) in [
        (
            "WSLInterop",
            "enabled\ninterpreter /init\nflags: PF\n",
            "missing",
        ),
        (
            "WSLInterop-late",
            "enabled\ninterpreter /init\nflags: P\n",
            "missing",
        ),
        (
            "WSLInterop",
            "disabled\ninterpreter /init\nflags: PF\n",
            "ok",
        ),
        (
            "qemu-arm",
            "enabled\ninterpreter /usr/bin/qemu-arm\nflags: F\n",
            "ok",
        ),
    ] {
        let place = Place::new("doctor")?;
        let handlers = place.dir("handlers")?;
        place.file("handlers/status", "enabled\n")?;
        place.file(&format!("handlers/{handler}"), text)?;
        let said = Doctor::new()?.cover(&handlers, target)?.run()?;
        if state == "ok" {
            has(&said, "WSL interop", state, "")?;
        } else {
            differs(&said, "WSL interop", state, handler)?;
        }
        let lost = ["loose", "standard", "strict"]
            .iter()
            .all(|tier| !said.kept(tier));
        let (ran, words) = run_beside(&handlers, target)?;
        ensure(
            ran == (state == "ok") && (ran || words.contains("/etc/wsl.conf")),
            || format!("{handler}: ran {ran}: {words}"),
        )?;
        let before = baseline()?.code == 3;
        ensure(lost == (state == "missing") || before, || {
            format!("{handler}: {}", said.document)
        })?;
    }
    Ok(Verdict::Held)
}

/// Debian's and Ubuntu's sysctls, which this kernel may not have: a copy of the
/// directory with them in it.
fn switches() -> Result<Verdict> {
    let place = Place::new("doctor")?;
    let copy = place.dir("kernel")?;
    copied(Path::new(SYS).join("kernel").as_path(), &copy)?;
    place.file("kernel/unprivileged_userns_clone", "0\n")?;
    place.file("kernel/apparmor_restrict_unprivileged_userns", "1\n")?;
    let target = Path::new(SYS).join("kernel");
    let name = "unprivileged user namespaces";
    for (uid, state) in [(0, "ok"), (1234, "warn")] {
        let mut doctor = Doctor::new()?.cover(&copy, &target)?.after(move || {
            // SAFETY: plain numbers.
            super::call::check(unsafe { libc::setuid(uid) })
        });
        let state_dir = place.dir(&format!("state-{uid}"))?;
        doctor.command().env("ORCH_STATE_DIR", &state_dir);
        let said = doctor.run()?;
        has(&said, name, state, "unprivileged_userns_clone")?;
        has(&said, name, state, "apparmor_restrict_unprivileged_userns")?;
        has(&said, name, state, "concerns users other than root")?;
    }
    Ok(Verdict::Held)
}

/// Files below a directory of the kernel, as far as they can be read.
fn copied(from: &Path, to: &Path) -> Result<()> {
    for entry in std::fs::read_dir(from)
        .map_err(at(from.display()))?
        .flatten()
    {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            std::fs::create_dir(&target).map_err(at(target.display()))?;
            copied(&entry.path(), &target)?;
        } else if let Ok(text) = std::fs::read(entry.path()) {
            std::fs::write(&target, text).map_err(at(target.display()))?;
        }
    }
    Ok(())
}

/// What can be tried is tried, whatever the version says; the version decides only
/// where that is not possible.
fn older() -> Result<Verdict> {
    let place = Place::new("doctor")?;
    let release = place.file("release", "5.15.0-old\n")?;
    let file = Path::new("/proc/sys/kernel/osrelease");
    let said = Doctor::new()?.cover(&release, file)?.run()?;
    for name in [
        "id-mapped tmpfs",
        "exit code from the kernel",
        "id-mapped overlay layers",
    ] {
        let (now, before) = (said.check(name)?, baseline()?.check(name)?);
        if before["by"] == "tried" {
            ensure(now == before, || format!("{now} was {before}"))?;
        } else {
            has(&said, name, "warn", "by version")?;
        }
    }
    // As a user who can try nothing of it.
    let doctor = Doctor::new()?.cover(&release, file)?.after(|| {
        // SAFETY: plain numbers.
        super::call::check(unsafe { libc::setuid(1234) })
    });
    has(
        &doctor.run()?,
        "id-mapped tmpfs",
        "warn",
        "by version: Linux has it since 6.3",
    )?;
    Ok(Verdict::Held)
}
