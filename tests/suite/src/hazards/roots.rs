//! PX-08, ES-05: no process that a task sees has a root, a working directory or a
//! descriptor that leads to the host.

use super::in_every_tier;
use crate::harness::{Test, Verdict};
use crate::rig::orch::Orch;
use crate::rig::place::{self, Place};
use crate::rig::{Result, at, ensure};

pub fn tests() -> Vec<Test> {
    in_every_tier("PX-08_ES-05_roots_of_other_processes", roots)
}

fn roots(tier: &'static str) -> Result<Verdict> {
    let place = Place::new("root")?;
    let marked = place.dir("marked")?;
    // Anybody could write there, if they came there at all.
    std::fs::set_permissions(&marked, std::os::unix::fs::PermissionsExt::from_mode(0o777))
        .map_err(at("marked"))?;
    let path = marked.display().to_string();
    let before = place::manifest(&marked)?;
    let attack = format!(
        "for p in /proc/[0-9]*; do for way in root cwd cwd/../../../.. fd/3 fd/4 fd/5 fd/6 fd/7; do \
           if ( : > $p/$way{path}/escaped ) 2>/dev/null; then echo wrote $p/$way; fi; \
           if [ -e $p/$way{path} ]; then echo sees $p/$way; fi; \
         done; echo tried $p; done; \
         if ( : > {path}/escaped ) 2>/dev/null; then echo wrote; fi"
    );
    let ended = Orch::new(tier)?.run(&["/bin/sh", "-c", &attack])?.clean()?;
    let (tried, found): (Vec<_>, Vec<_>) = ended
        .stdout
        .lines()
        .partition(|line| line.starts_with("tried "));
    ensure(tried.contains(&"tried /proc/1"), || format!("{ended:?}"))?;
    ensure(found.is_empty(), || format!("ways to the host: {found:?}"))?;
    ensure(before == place::manifest(&marked)?, || {
        "the marked directory has changed".to_owned()
    })?;
    // Control: the same words outside do reach it.
    let output = std::process::Command::new("/bin/sh")
        .arg("-c")
        .arg(format!(
            "for p in /proc/$$; do ( : > $p/root{path}/escaped ) && echo wrote; done"
        ))
        .output()
        .map_err(at("sh"))?;
    ensure(output.stdout == b"wrote\n", || format!("{output:?}"))?;
    Ok(Verdict::Held)
}
