//! What was found on this machine, as values: reading is done before judging, so
//! that every judgement can be tested with one value taken away.
//!
//! Paths are fixed. Nothing in the environment decides where is looked.

mod groups;
mod read;

use std::collections::BTreeMap;

use orch_engine::feature::Asked;
use orch_engine::filesystem::Kind;

pub use groups::{Groups, Hierarchy};
pub use read::read;

/// Declares the files whose text is read, each with its path.
macro_rules! files {
    ($($name:ident = $path:literal,)*) => {
        /// A file of the kernel or of the system.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum File { $(#[doc = $path] $name,)* }

        impl File {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Where it is.
            pub fn path(self) -> &'static str {
                match self { $(Self::$name => $path,)* }
            }
        }
    };
}

files! {
    Release = "/proc/sys/kernel/osrelease",
    Status = "/proc/self/status",
    Mounts = "/proc/self/mountinfo",
    UidMap = "/proc/self/uid_map",
    Label = "/proc/self/attr/current",
    Actions = "/proc/sys/kernel/seccomp/actions_avail",
    MemfdNoexec = "/proc/sys/vm/memfd_noexec",
    UnprivilegedClone = "/proc/sys/kernel/unprivileged_userns_clone",
    AppArmorUserns = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
    MaxUser = "/proc/sys/user/max_user_namespaces",
    MaxMnt = "/proc/sys/user/max_mnt_namespaces",
    MaxPid = "/proc/sys/user/max_pid_namespaces",
    MaxNet = "/proc/sys/user/max_net_namespaces",
    MaxIpc = "/proc/sys/user/max_ipc_namespaces",
    MaxUts = "/proc/sys/user/max_uts_namespaces",
    MaxCgroup = "/proc/sys/user/max_cgroup_namespaces",
    PidMax = "/proc/sys/kernel/pid_max",
    ThreadsMax = "/proc/sys/kernel/threads-max",
    Load = "/proc/loadavg",
    OpenFiles = "/proc/sys/fs/file-nr",
    InotifyInstances = "/proc/sys/fs/inotify/max_user_instances",
    InotifyWatches = "/proc/sys/fs/inotify/max_user_watches",
    KeysMax = "/proc/sys/kernel/keys/maxkeys",
    KeysBytes = "/proc/sys/kernel/keys/maxbytes",
    MountMax = "/proc/sys/fs/mount-max",
    PtyMax = "/proc/sys/kernel/pty/max",
    PtyReserve = "/proc/sys/kernel/pty/reserve",
    PtyNr = "/proc/sys/kernel/pty/nr",
    Memory = "/proc/meminfo",
    Swaps = "/proc/swaps",
    KnownKinds = "/proc/filesystems",
    ClockSource = "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    Smt = "/sys/devices/system/cpu/smt/active",
    Ksm = "/sys/kernel/mm/ksm/run",
    WslInterop = "/proc/sys/fs/binfmt_misc/WSLInterop",
    WslInteropLate = "/proc/sys/fs/binfmt_misc/WSLInterop-late",
    Binfmt = "/proc/sys/fs/binfmt_misc/status",
    DockerMarker = "/.dockerenv",
    PodmanMarker = "/run/.containerenv",
    ContainerMarker = "/run/systemd/container",
    KubernetesMarker = "/var/run/secrets/kubernetes.io/serviceaccount/namespace",
    Passwd = "/etc/passwd",
    SubUid = "/etc/subuid",
    SubGid = "/etc/subgid",
}

/// Everything that was found.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// Text of the files that are there.
    pub texts: BTreeMap<File, String>,
    /// System calls, asked.
    pub calls: Vec<Asked>,
    /// Whether a process can be cloned into a group.
    pub clone_into_cgroup: bool,
    /// Whether process numbers are not the machine's own: something made a pid
    /// namespace around orch.
    pub own_processes: bool,
    /// Namespaces that are built in.
    pub built_in: Vec<&'static str>,
    /// Error number of making each namespace; 0 where it can be made.
    pub namespaces: Vec<(&'static str, i32)>,
    /// Error number of mapping a container's ids; 0 where they can be.
    pub id_map: i32,
    /// Whether a tmpfs can be id-mapped; `None` where that could not be tried.
    pub tmpfs: Option<bool>,
    /// Whether an overlay can lie on id-mapped layers.
    pub overlay: Option<bool>,
    /// Whether overlays are a module of this kernel that is not loaded.
    pub overlay_module: bool,
    /// Whether the kernel keeps exit codes.
    pub exit_code: Option<bool>,
    /// Control groups.
    pub groups: Groups,
    /// The state directory.
    pub state: Place,
    /// The folder that was asked about.
    pub folder: Place,
    /// Hard limits of this process.
    pub hard: Hard,
    /// First id and number of the ranges for containers; `None` where what is configured makes no sense.
    pub ids: Option<(u32, u32)>,
    /// Programs that rootless containers take.
    pub tools: Vec<Tool>,
    /// Whether somebody corrects the clock.
    pub clock_corrected: Option<bool>,
    /// Seconds since 1970.
    pub now: u64,
    /// What the shipped tiers ask for.
    pub needs: Vec<Need>,
}

/// A directory, and the file system that it lies on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// Path.
    pub path: String,
    /// Why it cannot be used, and what to do about it.
    pub error: Option<(String, String)>,
    /// The file system; `None` where it cannot be looked at.
    pub kind: Option<Kind>,
    /// Whether its files can be shown with other owners; `None` where that could not
    /// be tried.
    pub id_mapped: Option<bool>,
}

/// newuidmap or newgidmap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    /// Name.
    pub name: &'static str,
    /// Where it is.
    pub path: Option<String>,
    /// Whether it is setuid root.
    pub setuid: bool,
    /// Whether it has capabilities of its own (`security.capability`).
    pub capabilities: bool,
}

/// Hard limits of one process (getrlimit(2)); `None` for no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hard {
    /// Open files.
    pub open_files: Option<u64>,
    /// Size of a file, bytes.
    pub file_size: Option<u64>,
    /// Stack, bytes.
    pub stack: Option<u64>,
    /// CPU time, seconds.
    pub cpu: Option<u64>,
}

/// What one sandbox of a shipped tier may use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Need {
    /// Tier.
    pub tier: &'static str,
    /// Open files of one process.
    pub open_files: u64,
    /// Size of a file, bytes.
    pub file_size: u64,
    /// Stack of one process, bytes.
    pub stack: u64,
    /// CPU time, seconds.
    pub cpu: u64,
    /// Processes and threads.
    pub processes: u64,
    /// Memory, bytes.
    pub memory: u64,
}

impl Facts {
    /// Text of a file, without the white space around it; `None` where there is none.
    pub fn text(&self, file: File) -> Option<&str> {
        self.texts.get(&file).map(|text| text.trim())
    }

    /// Whether a file is there.
    pub fn has(&self, file: File) -> bool {
        self.texts.contains_key(&file)
    }

    /// A file that holds one number.
    pub fn number(&self, file: File) -> Option<u64> {
        self.text(file)?.parse().ok()
    }

    /// A line of `/proc/self/status`.
    pub fn status(&self, name: &str) -> Option<&str> {
        field(self.text(File::Status)?, name)
    }

    /// Effective user id.
    pub fn uid(&self) -> Option<u32> {
        let ids = self.status("Uid")?;
        ids.split_whitespace().nth(1)?.parse().ok()
    }

    /// Whether this is root.
    pub fn is_root(&self) -> bool {
        self.uid() == Some(0)
    }

    /// Whether an effective capability is held.
    pub fn holds(&self, capability: u32) -> bool {
        self.status("CapEff")
            .and_then(|hex| u64::from_str_radix(hex, 16).ok())
            .is_some_and(|held| held & (1 << capability) != 0)
    }

    /// First two numbers of the kernel's version.
    pub fn version(&self) -> Option<(u32, u32)> {
        let mut numbers = self
            .text(File::Release)?
            .split(|c: char| !c.is_ascii_digit());
        let mut next = || numbers.next()?.parse().ok();
        Some((next()?, next()?))
    }

    /// What the runtime of a container around orch is called.
    pub fn outer(&self) -> Option<&str> {
        if self.has(File::DockerMarker) {
            return Some("docker");
        }
        if self.has(File::PodmanMarker) {
            return Some("podman");
        }
        if self.has(File::KubernetesMarker) {
            return Some("kubernetes");
        }
        let named = self.text(File::ContainerMarker);
        named
            .filter(|name| !name.is_empty())
            .or(self.own_processes.then_some("unknown runtime"))
    }

    /// Whether ids are translated: this is not the machine's own user namespace
    /// (user_namespaces(7)).
    pub fn in_user_namespace(&self) -> bool {
        self.text(File::UidMap).is_some_and(|map| {
            map.split_whitespace().collect::<Vec<_>>() != ["0", "0", "4294967295"]
        })
    }
}

/// The value behind `name:` in lines of that shape.
pub fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
        .map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever starts orch must not be able to show it another machine. The block of ids
    /// and the state directory are the engine's, and what they lead to is looked at.
    #[test]
    fn nothing_in_the_environment_decides_where_is_looked() {
        let rooms = [
            include_str!("mod.rs"),
            include_str!("read.rs"),
            include_str!("groups.rs"),
        ];
        let variable = ["env", "::var"].concat();
        for text in rooms {
            assert!(!text.contains(&variable) && !text.contains("environ\")"));
        }
        for file in File::ALL {
            assert!(file.path().starts_with('/') && !file.path().contains(".."));
        }
    }

    #[test]
    fn versions_and_fields_are_read() {
        let mut facts = Facts::default();
        for (release, version) in [
            ("6.1.0-18-amd64\n", Some((6, 1))),
            ("5.15", Some((5, 15))),
            ("x", None),
        ] {
            facts.texts.insert(File::Release, release.into());
            assert_eq!(facts.version(), version);
        }
        let status = "Name:\tx\nUid:\t1\t1000\t0\t0\nCapEff:\t0000000000200000\n";
        facts.texts.insert(File::Status, status.into());
        assert_eq!(facts.uid(), Some(1000));
        assert!(facts.holds(21) && !facts.holds(12));
    }
}
