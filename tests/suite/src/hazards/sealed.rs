//! A1, H4 (CVE-2019-5736): nothing that a task does reaches the program that made
//! its sandbox.

use std::os::fd::AsRawFd;
use std::path::Path;

use super::{PROGRAM, in_every_tier, judged};
use crate::harness::{Test, Verdict};
use crate::rig::host::PATIENCE;
use crate::rig::orch::Orch;
use crate::rig::place;
use crate::rig::{Result, at, ensure};

pub fn tests() -> Vec<Test> {
    in_every_tier("A1_H4_programs_of_orch", programs)
}

/// Tries to write to the program of every process that it sees, all the time, and
/// to be executed again by way of it.
const ATTACK: &str = r##"
cd /tmp
ln -sf /proc/self/exe x
printf '#!/proc/self/exe\n' > y; chmod +x y
n=0
while [ $n -lt 40 ]; do
  for p in /proc/[0-9]*; do
    ( : >> $p/exe ) 2>/dev/null && echo "wrote $p"
  done
  ( : >> x ) 2>/dev/null && echo "wrote x"
  ./y >/dev/null 2>&1
  n=$((n+1))
done
echo ready
read -r line
"##;

fn programs(tier: &'static str) -> Result<Verdict> {
    let orch = place::orch()?;
    let before = (place::sha256(&orch)?, place::manifest(&orch)?);
    let script = format!("{PROGRAM} run A1; {ATTACK}");
    let mut live = Orch::new(tier)?
        .probe()?
        .start(&["/bin/sh", "-c", &script])?;
    let mut lines = String::new();
    loop {
        let line = live.line()?;
        match line.as_str() {
            "ready" => break,
            line if line.starts_with('{') => lines = lines + line + "\n",
            other => return Err(format!("a program could be opened for writing: {other}")),
        }
    }
    judged(tier, &lines, &["A1"])?;
    // What holds privileges or made the sandbox runs from sealed memory.
    let mut sealed = 0;
    for process in live.processes() {
        let exe = process.link("exe").unwrap_or_default();
        ensure(exe != orch, || {
            format!("{} runs {}", process.pid, exe.display())
        })?;
        let name = exe.to_string_lossy().into_owned();
        if !name.starts_with("/memfd:orch-") {
            continue;
        }
        /// fcntl(2); nothing can be written from now on (Linux 5.1).
        const F_SEAL_FUTURE_WRITE: i32 = 0x10;
        sealed += 1;
        let seals = seals(&Path::new("/proc").join(process.pid.to_string()).join("exe"))?;
        let wanted =
            F_SEAL_FUTURE_WRITE | libc::F_SEAL_GROW | libc::F_SEAL_SHRINK | libc::F_SEAL_SEAL;
        ensure(seals & wanted == wanted, || {
            format!("{name} has seals {seals:#x}")
        })?;
    }
    ensure(sealed >= 3, || {
        format!("launcher, guest and lease should run from memory, {sealed} do")
    })?;
    // Control: orch itself is a file, and is not sealed.
    ensure(
        seals(&Path::new("/proc").join(live.pid().to_string()).join("exe")).is_err(),
        || "the file of orch has seals".to_owned(),
    )?;
    live.say("")?;
    live.end(PATIENCE)?.clean()?;
    let after = (place::sha256(&orch)?, place::manifest(&orch)?);
    ensure(after == before, || {
        format!("orch has changed: {before:?} {after:?}")
    })?;
    Ok(Verdict::Held)
}

/// fcntl(2) `F_GET_SEALS`; an error for what cannot be sealed.
fn seals(path: &Path) -> Result<i32> {
    let file = std::fs::File::open(path).map_err(at(path.display()))?;
    // SAFETY: plain numbers on an open descriptor.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) } {
        -1 => Err(format!(
            "{}: {}",
            path.display(),
            std::io::Error::last_os_error()
        )),
        seals => Ok(seals),
    }
}
