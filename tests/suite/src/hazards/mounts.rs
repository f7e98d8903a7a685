//! A14 and H17: mounts neither reach in nor out, and what is read-only stays so,
//! whoever in the lease tries.

use std::path::Path;
use std::process::Command;

use super::{PROGRAM, in_every_tier, judged};
use crate::harness::{Test, Verdict};
use crate::rig::host::PATIENCE;
use crate::rig::orch::Orch;
use crate::rig::place::Place;
use crate::rig::{Result, at, ensure};

pub fn tests() -> Vec<Test> {
    let mut tests = in_every_tier("A14_propagation", propagation);
    tests.extend(in_every_tier(
        "H17_nobody_in_the_lease_can_mount",
        capabilities,
    ));
    tests
}

fn mount(arguments: &[&str], path: &Path) -> Result<()> {
    let output = Command::new("mount")
        .args(arguments)
        .arg(path)
        .output()
        .map_err(at("mount"))?;
    ensure(output.status.success(), || {
        format!(
            "mount {arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        )
    })
}

/// Takes this thread, and whatever it starts, into a mount namespace of its own;
/// everything that a test mounts there is gone with it.
fn private_mounts<T: Send + 'static>(
    body: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    std::thread::spawn(move || {
        // SAFETY: of this thread alone; a file-system context of its own is what
        // a mount namespace of its own needs.
        let alone = unsafe { libc::unshare(libc::CLONE_FS | libc::CLONE_NEWNS) };
        ensure(alone == 0, || {
            format!("unshare: {}", std::io::Error::last_os_error())
        })?;
        mount(&["--make-rprivate"], Path::new("/"))?;
        body()
    })
    .join()
    .map_err(|_| "the test's thread failed".to_owned())?
}

fn propagation(tier: &'static str) -> Result<Verdict> {
    // Outside, so that it is removed when the mounts in it are gone.
    let place = std::sync::Arc::new(Place::new("propagation")?);
    let below = std::sync::Arc::clone(&place);
    private_mounts(move || propagate(tier, &below))
}

fn propagate(tier: &str, place: &Place) -> Result<Verdict> {
    // A mount that shares with everybody who has a copy of it; not a tmpfs, whose
    // owners kernels before 6.3 cannot translate.
    let parent = place.dir("parent")?;
    mount(&["--bind", &parent.display().to_string()], &parent)?;
    mount(&["--make-shared"], &parent)?;
    let folder = place.dir("parent/folder")?;
    for sub in ["parent/folder/sub", "parent/folder/sub/before"] {
        place.owned(sub)?;
    }
    let own = || std::fs::read_to_string("/proc/thread-self/mountinfo").map_err(at("mountinfo"));
    let before = own()?;
    let script = "grep -c shared: /proc/self/mountinfo; echo ready; read -r line; \
                  ls /workspace/folder/sub; grep -c orch-late /proc/self/mountinfo; true";
    let mut live = Orch::new(tier)?
        .mount(&folder, "/workspace/folder")
        .start(&["/bin/sh", "-c", script])?;
    live.expect("0")?;
    live.expect("ready")?;
    // Nothing of the sandbox among the host's mounts.
    ensure(own()? == before, || {
        "a mount of the sandbox is seen outside".to_owned()
    })?;
    // Nothing new of the host's in the sandbox; control: here it is seen.
    let sub = folder.join("sub");
    mount(&["-t", "tmpfs", "orch-late"], &sub)?;
    std::fs::write(sub.join("late"), "").map_err(at("late"))?;
    ensure(own()?.contains("orch-late"), || {
        "the mount is not even here".to_owned()
    })?;
    live.say("")?;
    let ended = live.end(PATIENCE)?.clean()?;
    ensure(ended.stdout == "before\n0\n", || {
        format!("seen inside after the mount: {:?}", ended.stdout)
    })?;
    // Control: a copy of the same folder that keeps sharing does get it.
    let copy = place.dir("copy")?;
    mount(&["--bind", &parent.display().to_string()], &copy)?;
    let other = place.dir("parent/folder/other")?;
    mount(&["-t", "tmpfs", "orch-late"], &other)?;
    let copies = own()?
        .lines()
        .filter(|line| line.contains("/folder/other "))
        .count();
    ensure(copies == 2, || {
        format!("the parent does not share: {copies} copies")
    })?;
    Ok(Verdict::Held)
}

/// CAP_SYS_ADMIN, capabilities(7).
const SYS_ADMIN: u64 = 1 << 21;

fn capabilities(tier: &'static str) -> Result<Verdict> {
    let place = Place::new("readonly")?;
    let folder = place.owned("folder")?;
    let script = format!("{PROGRAM} run A19 A25.writable_mounts A8; echo ready; read -r line");
    let mut live = Orch::new(tier)?
        .probe()?
        .mount(&folder, "/workspace/folder")
        .start(&["/bin/sh", "-c", &script])?;
    let mut lines = String::new();
    loop {
        match live.line()? {
            line if line == "ready" => break,
            line => lines = lines + &line + "\n",
        }
    }
    judged(tier, &lines, &["A19", "A8"])?;

    let (_, task) = live.task()?;
    let first = task.first().ok_or("no task")?;
    let lease = first.link("ns/pid").ok_or("no pid namespace")?;
    let seen: Vec<_> = live
        .processes()
        .into_iter()
        .filter(|process| process.link("ns/pid") == Some(lease.clone()))
        .collect();
    ensure(seen.len() >= 2, || format!("PID 1 and the task: {seen:?}"))?;
    for process in &seen {
        for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
            let held = process.capabilities(set);
            ensure(held & SYS_ADMIN == 0, || {
                format!("{} has {set} {held:#x}", process.field("Name"))
            })?;
        }
        ensure(process.field("NoNewPrivs") == "1", || {
            format!("{} may gain privileges", process.field("Name"))
        })?;
        ensure(process.field("Seccomp") == "2", || {
            format!("{} has no filter", process.field("Name"))
        })?;
    }
    // The drill: even root of the container, in the lease, cannot make what was
    // mounted before the user namespace was entered writable again.
    let pid = first.pid.to_string();
    let drill = |arguments: &[&str]| -> Result<bool> {
        let output = Command::new("nsenter")
            .args([
                "-t", &pid, "--user", "--mount", "--setuid", "0", "--setgid", "0",
            ])
            .args(["--", "mount"])
            .args(arguments)
            .output()
            .map_err(at("nsenter"))?;
        Ok(output.status.success())
    };
    for target in ["/workspace/folder", PROGRAM, "/usr"] {
        ensure(!drill(&["-o", "remount,bind,rw", target])?, || {
            format!("{target} could be made writable by root of the container")
        })?;
    }
    // Control: it is root there, and may change what the lease itself mounted.
    ensure(
        drill(&["-o", "remount,bind,ro,nosuid,nodev", "/dev/shm"])?,
        || "the drill has no rights at all, so it says nothing".to_owned(),
    )?;
    live.say("")?;
    live.end(PATIENCE)?.clean()?;
    Ok(Verdict::Held)
}
