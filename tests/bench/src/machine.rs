//! Where the numbers come from: a ratio travels, a millisecond does not.

use std::path::Path;

use crate::program::{find, version};

/// One paragraph: processors, kernel, cgroups, and the version of each side.
#[must_use]
pub fn description(orch: &Path) -> String {
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    let system = rustix::system::uname();
    let cgroups = if Path::new("/sys/fs/cgroup/cgroup.controllers").exists() {
        "v2"
    } else {
        "v1 or hybrid"
    };
    let mut text = format!(
        "{cpus} processors, {} {}, cgroup {cgroups}",
        system.sysname().to_string_lossy(),
        system.release().to_string_lossy(),
    );
    let peers = ["runc", "crun", "youki", "bwrap", "docker"];
    let programs = std::iter::once(orch.to_owned()).chain(peers.iter().filter_map(|p| find(p)));
    for line in programs.filter_map(|program| version(&program)) {
        text.push_str("; ");
        text.push_str(&line);
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_kernel_is_named() {
        let text = super::description("/no/such/orch".as_ref());
        assert!(
            text.contains("Linux") && text.contains("processors"),
            "{text}"
        );
    }
}
