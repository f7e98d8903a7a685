//! A2 (CVE-2024-21626): no working directory leads out through a descriptor.

use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;

use super::{PROGRAM, in_every_tier};
use crate::harness::{Test, Verdict};
use crate::rig::orch::Orch;
use crate::rig::{Result, at, ensure, lease};

pub fn tests() -> Vec<Test> {
    let mut tests = in_every_tier("A2_workdir_is_a_descriptor", first);
    tests.extend(in_every_tier("A2_workdir_is_a_descriptor_later", later));
    tests
}

fn paths(number: i32) -> [String; 2] {
    [
        format!("/proc/self/fd/{number}"),
        format!("/proc/self/fd/{number}/../../.."),
    ]
}

fn first(tier: &'static str) -> Result<Verdict> {
    for number in [3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 16, 20, 25, 30] {
        for path in paths(number) {
            let mut orch = Orch::new(tier)?.flag("--workdir", &path);
            // The host's root is open in orch at all of them, without close-on-exec.
            let root = OwnedFd::from(File::open("/").map_err(at("/"))?);
            // SAFETY: dup2 on descriptors of the child.
            unsafe {
                orch.command().pre_exec(move || {
                    let high = libc::fcntl(root.as_raw_fd(), libc::F_DUPFD, 200);
                    for target in 3..=30 {
                        libc::dup2(high, target);
                    }
                    Ok(())
                });
            }
            let ended = orch.run(&["/bin/pwd"])?;
            ended
                .refused(&["workdir_missing", "mount_invalid", "usage"])
                .map_err(|why| format!("{path}: {why}"))?;
        }
    }
    // Control: a directory that is there.
    let ended = Orch::new(tier)?
        .flag("--workdir", "/usr/bin")
        .run(&["/bin/pwd"])?
        .clean()?;
    ensure(ended.stdout == "/usr/bin\n", || format!("{ended:?}"))?;
    Ok(Verdict::Held)
}

fn later(tier: &'static str) -> Result<Verdict> {
    lease::session(tier, |open| {
        open.exec(&[PROGRAM, "status"])?;
        for number in 3..=30 {
            for path in paths(number) {
                let ran = open.exec_in(&["/bin/pwd"], Some(&path));
                let refused = match &ran {
                    Ok(ran) => ran.code != Some(0) && ran.stdout.is_empty(),
                    Err(_) => true,
                };
                ensure(refused, || format!("{path}: {ran:?}"))?;
            }
        }
        let ran = open.exec_in(&["/bin/pwd"], Some("/usr/bin"))?;
        ensure(ran.stdout == "/usr/bin\n", || format!("{ran:?}"))
    })?;
    Ok(Verdict::Held)
}
