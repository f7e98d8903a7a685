//! Kernel, namespaces, system-call filters, privileges, limits.

use std::fs::read_to_string;
use std::path::Path;

use rustix::process::{Resource, getrlimit};

use super::{Check, State};

/// Oldest kernel that is supported (design §1).
const FLOOR: (u32, u32) = (5, 15);

/// What newer kernels add, and what is done without (design §1).
const NEWER: [((u32, u32), &str); 4] = [
    (
        (5, 19),
        "no id-mapped overlays: workspaces are bound directly",
    ),
    (
        (6, 3),
        "no id-mapped tmpfs: nothing that lies in one can be mounted inside",
    ),
    (
        (6, 11),
        "the peak number of processes is not known on cgroup v2, unless the distribution added it",
    ),
    (
        (6, 15),
        "exit codes come from the guest, which is inside, and not from the kernel",
    ),
];

/// Capabilities that making a sandbox takes: number (capability.h) and name.
const CAPABILITIES: [(u32, &str); 10] = [
    (0, "CHOWN"),
    (1, "DAC_OVERRIDE"),
    (3, "FOWNER"),
    (5, "KILL"),
    (6, "SETGID"),
    (7, "SETUID"),
    (8, "SETPCAP"),
    (12, "NET_ADMIN"),
    (18, "SYS_CHROOT"),
    (21, "SYS_ADMIN"),
];

/// Open files of one process in the shipped profiles, at most.
const OPEN_FILES: u64 = 1024;

/// Everything about the kernel but its control groups.
pub fn checks() -> Vec<Check> {
    let read = |path: &str| read_to_string(path).unwrap_or_default();
    vec![
        kernel(rustix::system::uname().release().to_string_lossy().as_ref()),
        namespaces(|name| Path::new("/proc/self/ns").join(name).exists(), read),
        seccomp(&read("/proc/sys/kernel/seccomp/actions_avail")),
        privileges(&read("/proc/self/status")),
        sealed_memory(&read("/proc/sys/vm/memfd_noexec")),
        open_files(getrlimit(Resource::Nofile).maximum),
    ]
}

/// `6.1.0-18-amd64` → (6, 1).
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    let mut next = || numbers.next()?.parse().ok();
    Some((next()?, next()?))
}

fn kernel(release: &str) -> Check {
    let found = format!("Linux {release}");
    let Some(version) = version(release).filter(|version| *version >= FLOOR) else {
        let (major, minor) = FLOOR;
        return Check::worse(
            State::Missing,
            "kernel",
            found,
            format!("nothing can be run: {major}.{minor} is the oldest that is supported"),
            format!("boot Linux {major}.{minor} or newer"),
        );
    };
    let without: Vec<&str> = NEWER
        .iter()
        .filter(|(since, _)| version < *since)
        .map(|(_, what)| *what)
        .collect();
    match NEWER.last() {
        Some(((major, minor), _)) if !without.is_empty() => Check::worse(
            State::Weaker,
            "kernel",
            found,
            without.join("; "),
            format!("boot Linux {major}.{minor} or newer"),
        ),
        _ => Check::ok("kernel", found),
    }
}

/// Built in, and allowed by the sysctls of user_namespaces(7).
fn namespaces(exists: impl Fn(&str) -> bool, read: impl Fn(&str) -> String) -> Check {
    let all = ["user", "mnt", "pid", "net", "ipc", "uts", "cgroup"];
    let bad: Vec<&str> = all
        .into_iter()
        .filter(|name| {
            let allowed = read(&format!("/proc/sys/user/max_{name}_namespaces"));
            !exists(name) || allowed.trim() == "0"
        })
        .collect();
    if bad.is_empty() {
        return Check::ok("namespaces", all.join(" "));
    }
    Check::worse(
        State::Missing,
        "namespaces",
        format!("not there: {}", bad.join(" ")),
        "nothing can be run",
        "raise user.max_*_namespaces (sysctl), or boot a kernel with these namespaces",
    )
}

fn seccomp(actions: &str) -> Check {
    let has = |action| actions.split_whitespace().any(|word| word == action);
    if has("errno") && has("kill_process") {
        return Check::ok("system-call filters", actions.trim());
    }
    Check::worse(
        State::Missing,
        "system-call filters",
        "the kernel has none",
        "nothing can be run",
        "boot a kernel with CONFIG_SECCOMP_FILTER",
    )
}

fn privileges(status: &str) -> Check {
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim_start_matches(':').trim())
    };
    let uid = field("Uid").and_then(|line| line.split_whitespace().nth(1));
    let held = field("CapEff").and_then(|hex| u64::from_str_radix(hex, 16).ok());
    let held = held.unwrap_or(0);
    let lacking: Vec<&str> = CAPABILITIES
        .iter()
        .filter(|(number, _)| held & (1 << number) == 0)
        .map(|(_, name)| *name)
        .collect();
    if uid == Some("0") && lacking.is_empty() {
        return Check::ok("privileges", "root, with the capabilities that are needed");
    }
    let found = match uid {
        Some("0") => format!("root without {}", lacking.join(" ")),
        Some(uid) => format!("user {uid}"),
        None => "not known".to_owned(),
    };
    Check::worse(
        State::Missing,
        "privileges",
        found,
        "nothing can be run: namespaces with their own user ids take root",
        "run it as root (sudo), or give these capabilities to the container it runs in",
    )
}

/// memfd_create(2): with 2, nothing in memory can be executed. The file is not
/// there before Linux 6.3.
fn sealed_memory(noexec: &str) -> Check {
    if noexec.trim() != "2" {
        return Check::ok("sealed memory", "can be executed");
    }
    Check::worse(
        State::Missing,
        "sealed memory",
        "vm.memfd_noexec is 2",
        "nothing can be run: the launcher is executed from sealed memory",
        "sysctl vm.memfd_noexec=1",
    )
}

fn open_files(hard: Option<u64>) -> Check {
    match hard {
        None => Check::ok("open files", "no limit"),
        Some(hard) if hard >= OPEN_FILES => Check::ok("open files", format!("up to {hard}")),
        Some(hard) => Check::worse(
            State::Missing,
            "open files",
            format!("up to {hard}"),
            format!("profiles that allow {OPEN_FILES} are refused"),
            "raise the hard limit (ulimit -Hn) of whatever starts orch",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels() {
        assert_eq!(version("6.1.0-18-amd64"), Some((6, 1)));
        assert_eq!(version("5.15"), Some((5, 15)));
        assert_eq!(version("x"), None);
        assert_eq!(kernel("5.14.9").state, State::Missing);
        assert_eq!(kernel("6.18.0").state, State::Ok);
        let debian = kernel("6.1.0-18-amd64");
        assert_eq!(debian.state, State::Weaker);
        let cost = debian.cost.unwrap();
        assert!(cost.contains("tmpfs") && cost.contains("exit codes"));
        assert!(!cost.contains("overlays"));
    }

    #[test]
    fn a_namespace_that_is_not_there_or_forbidden_is_named() {
        let none = |_: &str| String::new();
        assert_eq!(namespaces(|_| true, none).state, State::Ok);
        let gone = namespaces(|name| name != "cgroup", none);
        assert!(gone.state == State::Missing && gone.found.ends_with(": cgroup"));
        let zero = |path: &str| if path.contains("user_") { "0\n" } else { "9\n" }.to_owned();
        assert!(namespaces(|_| true, zero).found.ends_with(": user"));
    }

    #[test]
    fn privileges_are_root_and_capabilities() {
        let status = |uid, caps| format!("Name:\tx\nUid:\t{uid}\t{uid}\t0\t0\nCapEff:\t{caps}\n");
        let full = "000001ffffffffff";
        assert_eq!(privileges(&status(0, full)).state, State::Ok);
        assert_eq!(privileges(&status(1000, full)).found, "user 1000");
        // What Docker gives: no SYS_ADMIN, no NET_ADMIN.
        let docker = privileges(&status(0, "00000000a80425fb"));
        assert_eq!(docker.found, "root without NET_ADMIN SYS_ADMIN");
    }

    #[test]
    fn filters_memory_and_files() {
        assert_eq!(seccomp("kill_process trap errno allow\n").state, State::Ok);
        assert_eq!(seccomp("").state, State::Missing);
        assert_eq!(sealed_memory("").state, State::Ok);
        assert_eq!(sealed_memory("2\n").state, State::Missing);
        assert_eq!(open_files(Some(1023)).state, State::Missing);
        assert_eq!(open_files(Some(1024)).state, State::Ok);
    }
}
