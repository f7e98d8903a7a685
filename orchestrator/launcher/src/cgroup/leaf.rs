//! The rule of no internal processes (cgroups(7)): a group other than the root of all
//! hands controllers on only while no process is in it. Where orch is started right
//! in the group that was delegated, its processes move into a leaf beside the
//! containers. That takes place once for each delegation: whoever starts orch there
//! later is in the leaf already, so no later run writes `cgroup.procs`.

use std::io;
use std::path::Path;

use orch_wire::delegation::LEAF;

use super::{make, write};

/// How often the group is looked at again because somebody has forked meanwhile.
const ROUNDS: u32 = 100;

/// Moves every process of the group into its leaf.
///
/// # Errors
/// EBUSY when processes keep coming, or are there that cannot be seen from here;
/// what mkdir(2) and write(2) say.
pub fn evacuate(group: &Path) -> io::Result<()> {
    let leaf = group.join(LEAF);
    make(&leaf)?;
    let target = leaf.join("cgroup.procs");
    for _ in 0..ROUNDS {
        let members = std::fs::read_to_string(group.join("cgroup.procs"))?;
        if members.is_empty() {
            return Ok(());
        }
        for pid in members.lines() {
            match write(&target, pid) {
                // It has ended since.
                Err(e) if e.raw_os_error() == Some(libc::ESRCH) => {}
                // 0: a process of another pid namespace.
                Err(e) if e.raw_os_error() == Some(libc::EINVAL) || pid == "0" => {
                    return Err(io::Error::from_raw_os_error(libc::EBUSY));
                }
                other => other?,
            }
        }
    }
    Err(io::Error::from_raw_os_error(libc::EBUSY))
}
