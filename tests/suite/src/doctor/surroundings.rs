//! Control groups and file systems around orch.

use std::ffi::CString;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use super::call::{Doctor, baseline, c_path, check, differs, has, mount};
use crate::harness::{Test, Verdict, test};
use crate::rig::place::{OWNER, Place};
use crate::rig::{Result, at, ensure};

const GROUPS: &str = "/sys/fs/cgroup";

pub fn tests() -> Vec<Test> {
    let mut tests = vec![
        test("doctor::groups::covered_h18", covered),
        test("doctor::groups::read_only_h18", read_only),
        test("doctor::groups::gone_h18", gone),
        test("doctor::masks::kernel_files", masks),
        test("doctor::folder::that_cannot_be_translated_fs26", translated),
        test("doctor::folder::read_only_fs26", read_only_folder),
        test("doctor::folder::missing", missing_folder),
        test("doctor::state::entered_by_others_fs21", open_state),
        test("doctor::overlay::not_there", overlay),
    ];
    // The machine of the lane for version 2 has a kernel without it.
    if Path::new("/dev/fuse").exists() {
        tests.push(test("doctor::folder::fuse_fs26", fuse_folder));
        tests.push(test("doctor::state::fuse_fs26", fuse_state));
    }
    // What can only be taken away where it is: each version has its own.
    if Path::new(GROUPS).join("cgroup.controllers").exists() {
        tests.push(test("doctor::groups::crowded_h18", crowded));
    } else {
        let not_counted = "doctor::groups::swap_that_is_not_counted_pr20";
        tests.push(test(not_counted, swap));
        tests.push(test("doctor::groups::a_controller_gone_h18", one_gone));
    }
    tests
}

/// Where control groups are mounted.
fn points() -> Result<Vec<PathBuf>> {
    let text = std::fs::read_to_string("/proc/self/mountinfo").map_err(at("mountinfo"))?;
    let points: Vec<PathBuf> = text
        .lines()
        .filter(|line| line.contains(" - cgroup ") || line.contains(" - cgroup2 "))
        .filter_map(|line| Some(PathBuf::from(line.split(' ').nth(4)?)))
        .collect();
    ensure(!points.is_empty(), || "no control groups here".to_owned())?;
    Ok(points)
}

fn none_kept(said: &super::call::Said) -> Result<()> {
    ensure(
        said.code == 3 && !said.kept("loose") && !said.kept("strict"),
        || format!("exit code {}", said.code),
    )
}

/// An empty directory where they should be, as in a container without any.
fn covered() -> Result<Verdict> {
    let place = Place::new("doctor")?;
    let empty = place.dir("empty")?;
    let said = Doctor::new()?.cover(&empty, Path::new(GROUPS))?.run()?;
    differs(&said, "groups can be made", "missing", "cannot be seen")?;
    none_kept(&said)?;
    Ok(Verdict::Held)
}

/// As Docker shows them.
fn read_only() -> Result<Verdict> {
    let points = points()?
        .iter()
        .map(|point| c_path(point))
        .collect::<Result<Vec<CString>>>()?;
    let said = Doctor::new()?
        .after(move || {
            let flags = libc::MS_BIND | libc::MS_REMOUNT | libc::MS_RDONLY;
            points
                .iter()
                .try_for_each(|point| mount(None, point, None, flags))
        })
        .run()?;
    differs(&said, "groups can be made", "missing", "cannot be written")?;
    none_kept(&said)?;
    Ok(Verdict::Held)
}

fn unmounted(points: Vec<CString>) -> Result<super::call::Said> {
    Doctor::new()?
        .after(move || {
            points.iter().try_for_each(|point| {
                // SAFETY: the string outlives the call.
                check(unsafe { libc::umount2(point.as_ptr(), libc::MNT_DETACH) })
            })
        })
        .run()
}

fn gone() -> Result<Verdict> {
    let said = unmounted(vec![c_path(Path::new(GROUPS))?])?;
    has(&said, "control groups", "missing", "none")?;
    none_kept(&said)?;
    Ok(Verdict::Held)
}

/// Only where each controller has a mount of its own.
fn one_gone() -> Result<Verdict> {
    let found = baseline()?.check("control groups")?["found"].to_string();
    let pids = Path::new(GROUPS).join("pids");
    if !found.contains("v1") || !points()?.contains(&pids) {
        return Ok(Verdict::Skipped(
            "controllers are not mounted one by one".into(),
        ));
    }
    let said = unmounted(vec![c_path(&pids)?])?;
    has(&said, "control groups", "missing", "not there: pids")?;
    none_kept(&said)?;
    Ok(Verdict::Held)
}

/// A memory controller of version 1 that does not count swap: another hierarchy in its
/// place, which has no such file.
fn swap() -> Result<Verdict> {
    let (memory, other) = (
        Path::new(GROUPS).join("memory"),
        Path::new(GROUPS).join("pids"),
    );
    let mounted = points()?;
    if !mounted.contains(&memory) || !mounted.contains(&other) {
        return Ok(Verdict::Skipped("version 2 always counts swap".into()));
    }
    let place = Place::new("doctor")?;
    let swaps = place.file("swaps", "Filename\tType\n/dev/vdb\tpartition\n")?;
    let said = Doctor::new()?
        .cover(&swaps, Path::new("/proc/swaps"))?
        .cover(&other, &memory)?
        .run()?;
    differs(&said, "swap", "missing", "swapaccount=1")?;
    none_kept(&said)?;
    Ok(Verdict::Held)
}

/// Version 2 as a container of Docker sees it: the root is a group of somebody else's,
/// with processes in it, and nothing is switched on below.
fn crowded() -> Result<Verdict> {
    let root = Path::new(GROUPS);
    if points()? != [root] || !root.join("cgroup.controllers").exists() {
        return Ok(Verdict::Skipped("version 2 is not alone here".into()));
    }
    let group = root.join(format!("orch-suite-{}", std::process::id()));
    std::fs::create_dir(&group).map_err(at(group.display()))?;
    let procs = c_path(&group.join("cgroup.procs"))?;
    let (source, target) = (c_path(Path::new("none"))?, c_path(root)?);
    let said = Doctor::new()?
        .after(move || {
            // SAFETY: strings and bytes that outlive the calls, and plain numbers.
            unsafe {
                let file = libc::open(procs.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
                check(file)?;
                let written = libc::write(file, c"0".as_ptr().cast(), 1);
                check(if written == 1 { 0 } else { -1 })?;
                check(libc::unshare(libc::CLONE_NEWCGROUP))?;
                check(libc::umount2(target.as_ptr(), libc::MNT_DETACH))?;
            }
            mount(Some(&source), &target, Some(c"cgroup2"), 0)
        })
        .run();
    // Whatever doctor made in it went with it, but for the leaf that it was moved to.
    for path in [group.join("main"), group] {
        std::fs::remove_dir(&path).map_err(at(path.display()))?;
    }
    let said = said?;
    differs(&said, "groups can be made", "warn", "not switched on")?;
    differs(&said, "groups can be made", "warn", "cpu memory pids")?;
    Ok(Verdict::Held)
}

/// Files of /proc that an outer runtime covers: named, and no tier is lost by them.
fn masks() -> Result<Verdict> {
    let null = Path::new("/dev/null");
    let said = Doctor::new()?
        .cover(null, Path::new("/proc/timer_list"))?
        .cover(null, Path::new("/proc/interrupts"))?
        .run()?;
    differs(
        &said,
        "outer masks",
        "warn",
        "/proc/timer_list /proc/interrupts",
    )?;
    let before = baseline()?.code;
    ensure(said.code == before, || format!("exit code {}", said.code))?;
    Ok(Verdict::Held)
}

/// A FUSE file system that nobody serves. It belongs to another user, so the kernel
/// answers what it is by itself.
fn fuse(doctor: Doctor, target: &Path) -> Result<Option<Doctor>> {
    let Ok(device) = File::options().read(true).write(true).open("/dev/fuse") else {
        return Ok(None);
    };
    let known = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    if !known
        .lines()
        .any(|line| line.trim_start_matches("nodev").trim() == "fuse")
    {
        return Ok(None);
    }
    let options = format!(
        "fd={},rootmode=40000,user_id={OWNER},group_id={OWNER}",
        device.as_raw_fd()
    );
    let options = CString::new(options).map_err(at("options"))?;
    let target = c_path(target)?;
    Ok(Some(doctor.after(move || {
        // The device is kept open by this closure until the mount has it.
        let _ = device.as_raw_fd();
        // SAFETY: the strings outlive the call.
        check(unsafe {
            libc::mount(
                c"orch-suite".as_ptr(),
                target.as_ptr(),
                c"fuse".as_ptr(),
                libc::MS_NOSUID | libc::MS_NODEV,
                options.as_ptr().cast(),
            )
        })
    })))
}

fn no_fuse() -> Verdict {
    Verdict::Skipped("this kernel has no FUSE, or there is no /dev/fuse".into())
}

fn fuse_folder() -> Result<Verdict> {
    let place = Place::new("doctor")?;
    let folder = place.dir("folder")?;
    // Control: the same folder without anything on it.
    let said = Doctor::new()?.folder(&folder).run()?;
    has(&said, "folder", "ok", "")?;
    let Some(doctor) = fuse(Doctor::new()?.folder(&folder), &folder)? else {
        return Ok(no_fuse());
    };
    let said = doctor.run()?;
    has(&said, "folder", "missing", "fuse is a program of some user")?;
    ensure(said.code == baseline()?.code, || {
        "a tier is lost by a folder".to_owned()
    })?;
    Ok(Verdict::Held)
}

fn fuse_state() -> Result<Verdict> {
    let place = Place::new("doctor")?;
    let state = place.dir("state")?;
    let Some(mut doctor) = fuse(Doctor::new()?, &state)? else {
        return Ok(no_fuse());
    };
    doctor.command().env("ORCH_STATE_DIR", &state);
    let said = doctor.run()?;
    differs(
        &said,
        "state file system",
        "missing",
        "fuse is a program of some user",
    )?;
    none_kept(&said)?;
    Ok(Verdict::Held)
}

fn open_state() -> Result<Verdict> {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new("doctor")?;
    let state = place.dir("state")?;
    for (mode, code) in [(0o755, 3), (0o700, baseline()?.code)] {
        std::fs::set_permissions(&state, std::fs::Permissions::from_mode(mode))
            .map_err(at(state.display()))?;
        let mut doctor = Doctor::new()?;
        doctor.command().env("ORCH_STATE_DIR", &state);
        let said = doctor.run()?;
        let wanted = if mode == 0o755 { "missing" } else { "ok" };
        has(&said, "state directory", wanted, "")?;
        ensure(said.code == code, || format!("exit code {}", said.code))?;
    }
    Ok(Verdict::Held)
}

/// The kernel's own files can be shown with no other owner.
fn translated() -> Result<Verdict> {
    let said = Doctor::new()?.folder(Path::new("/proc")).run()?;
    has(
        &said,
        "folder",
        "missing",
        "cannot show files with other owners",
    )?;
    ensure(said.check("folder")?["by"] == "tried", || {
        "not tried".to_owned()
    })?;
    differs(&said, "folder", "missing", "/proc")?;
    Ok(Verdict::Held)
}

fn read_only_folder() -> Result<Verdict> {
    let place = Place::new("doctor")?;
    let folder = place.dir("folder")?;
    let target = c_path(&folder)?;
    let said = Doctor::new()?
        .folder(&folder)
        .cover(&folder, &folder)?
        .after(move || {
            let flags = libc::MS_BIND | libc::MS_REMOUNT | libc::MS_RDONLY;
            mount(None, &target, None, flags)
        })
        .run()?;
    has(&said, "folder", "warn", "read-only")?;
    Ok(Verdict::Held)
}

fn missing_folder() -> Result<Verdict> {
    let said = Doctor::new()?.folder(Path::new("/nonexistent")).run()?;
    differs(&said, "folder", "missing", "/nonexistent")?;
    ensure(said.code == baseline()?.code, || {
        "a tier is lost by a folder".to_owned()
    })?;
    Ok(Verdict::Held)
}

/// A kernel without overlays, as far as it can be seen.
fn overlay() -> Result<Verdict> {
    if baseline()?.check("overlay")?["state"] != "ok" {
        return Ok(Verdict::Skipped(
            "this kernel has no overlays to be taken away".into(),
        ));
    }
    let place = Place::new("doctor")?;
    let known = place.file("filesystems", "\text4\n")?;
    let empty = place.dir("empty")?;
    let mut doctor = Doctor::new()?.cover(&known, Path::new("/proc/filesystems"))?;
    if Path::new("/lib/modules").is_dir() {
        doctor = doctor.cover(&empty, Path::new("/lib/modules"))?;
    }
    let said = doctor.run()?;
    differs(&said, "overlay", "warn", "CONFIG_OVERLAY_FS")?;
    let feature = said.check("id-mapped overlay layers")?;
    ensure(feature["by"] == "version", || format!("{feature}"))?;
    Ok(Verdict::Held)
}
