//! Reading it all: files, calls that change nothing, file systems.

use std::os::fd::AsFd;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use orch_engine::{StateDir, feature, filesystem, range};
use orch_policy::builtin::builtin;
use rustix::process::{Resource, getrlimit};

use super::{Facts, File, Groups, Hard, Need, Place, Tool};
use crate::doctor::TIERS;

/// Directories that newuidmap(1) is looked for in.
const PROGRAMS: [&str; 3] = ["/usr/bin", "/bin", "/usr/local/bin"];

/// The pid namespace of the machine itself has this number on every kernel
/// (`PROC_PID_INIT_INO`, `linux/proc_ns.h`).
const FIRST_PIDS: &str = "pid:[4026531836]";

/// Looks at the machine, and at one folder that is to be given to a task.
pub fn read(folder: &Path) -> Facts {
    let mut facts = Facts {
        calls: feature::calls(),
        clone_into_cgroup: feature::clone_into_cgroup(),
        namespaces: feature::namespaces(),
        built_in: feature::NAMESPACES
            .iter()
            .map(|(name, _)| *name)
            .filter(|name| Path::new("/proc/self/ns").join(name).exists())
            .collect(),
        own_processes: std::fs::read_link("/proc/self/ns/pid")
            .is_ok_and(|name| name != Path::new(FIRST_PIDS)),
        exit_code: feature::exit_code(),
        clock_corrected: feature::clock_is_corrected(),
        hard: Hard {
            open_files: getrlimit(Resource::Nofile).maximum,
            file_size: getrlimit(Resource::Fsize).maximum,
            stack: getrlimit(Resource::Stack).maximum,
            cpu: getrlimit(Resource::Cpu).maximum,
        },
        ids: range::block().ok(),
        tools: ["newuidmap", "newgidmap"].map(tool).to_vec(),
        now: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs()),
        needs: needs(),
        ..Facts::default()
    };
    for file in File::ALL {
        // What is not text is nothing that is asked for here.
        if let Ok(text) = std::fs::read_to_string(file.path()) {
            facts.texts.insert(*file, text);
        }
    }
    facts.groups = Groups::read(facts.text(File::Mounts).unwrap_or_default());
    facts.overlay_module = overlay_module(facts.text(File::Release).unwrap_or_default());
    let (first, _) = facts.ids.unwrap_or((0, 0));
    let map = feature::id_map(first, range::COUNT);
    facts.id_map = map
        .as_ref()
        .err()
        .map_or(0, |e| e.raw_os_error().unwrap_or(-1));
    if let Ok(map) = &map {
        facts.tmpfs = tried(feature::id_mapped_tmpfs(map));
        if has_overlay(&facts) {
            facts.overlay = tried(feature::id_mapped_overlay(map));
        }
    }
    facts.folder = place(folder, map.as_ref().ok());
    facts.state = state();
    facts
}

/// `EINVAL` is a no; anything else says nothing about the feature itself.
fn tried<T>(result: std::io::Result<T>) -> Option<bool> {
    match result {
        Ok(_) => Some(true),
        Err(e) if e.raw_os_error() == Some(rustix::io::Errno::INVAL.raw_os_error()) => Some(false),
        Err(_) => None,
    }
}

/// Whether the kernel knows overlays now.
pub fn has_overlay(facts: &Facts) -> bool {
    let known = facts.text(File::KnownKinds).unwrap_or_default();
    known.split_whitespace().any(|word| word == "overlay")
}

fn overlay_module(release: &str) -> bool {
    // A release with a slash would lead elsewhere.
    if release.is_empty() || release.contains('/') {
        return false;
    }
    std::fs::read_to_string(format!("/lib/modules/{release}/modules.dep"))
        .is_ok_and(|text| text.lines().any(|line| line.contains("/overlay.ko")))
}

fn place(path: &Path, map: Option<&std::os::fd::OwnedFd>) -> Place {
    let mut place = Place {
        path: path.to_string_lossy().into_owned(),
        ..Place::default()
    };
    match filesystem::handle(path) {
        Ok(handle) => {
            if let Ok(real) = filesystem::path(&handle) {
                place.path = real.to_string_lossy().into_owned();
            }
            place.kind = filesystem::kind(&handle).ok();
            // What is refused anyway is not asked: a program may have to answer.
            let fit = place
                .kind
                .as_ref()
                .is_some_and(|kind| kind.unfit().is_none());
            if let (true, Some(map)) = (fit, map) {
                place.id_mapped = tried(feature::id_mapped(handle.as_fd(), map));
            }
        }
        Err(e) => {
            let fix = "name a folder that is there with --folder";
            place.error = Some((e.to_string(), fix.to_owned()));
        }
    }
    place
}

fn state() -> Place {
    let path = StateDir::default_path();
    let opened = StateDir::open(&path);
    let mut place = place(&path, None);
    place.error = opened
        .err()
        .map(|error| (error.to_string(), error.remediation));
    place
}

fn tool(name: &'static str) -> Tool {
    use std::os::unix::fs::MetadataExt;
    let found = PROGRAMS.iter().find_map(|dir| {
        let path = Path::new(dir).join(name);
        Some((std::fs::metadata(&path).ok()?, path))
    });
    let Some((meta, path)) = found else {
        return Tool {
            name,
            path: None,
            setuid: false,
            capabilities: false,
        };
    };
    let mut value = [0_u8; 64];
    Tool {
        name,
        setuid: meta.mode() & 0o4000 != 0 && meta.uid() == 0,
        capabilities: rustix::fs::getxattr(&path, c"security.capability", &mut value)
            .is_ok_and(|length| length > 0),
        path: Some(path.to_string_lossy().into_owned()),
    }
}

fn needs() -> Vec<Need> {
    // The shipped profiles load; a test of theirs says so.
    TIERS
        .iter()
        .filter_map(|tier| {
            let limits = builtin(tier, Path::new("/nonexistent"))
                .ok()?
                .profile
                .limits;
            Some(Need {
                tier,
                open_files: limits.open_files,
                file_size: limits.file_size_bytes,
                stack: limits.stack_bytes,
                // The hard limit lies a second above the soft one.
                cpu: limits.cpu_seconds + 1,
                processes: limits.processes,
                memory: limits.memory_bytes,
            })
        })
        .collect()
}
