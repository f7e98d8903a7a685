//! What a process is: to compare the first task with a later one (A10), and both
//! with the profile.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::raw;

/// The limits by the names of the probes.
pub(crate) const RLIMITS: &[(&str, libc::__rlimit_resource_t)] = &[
    ("cpu", libc::RLIMIT_CPU),
    ("fsize", libc::RLIMIT_FSIZE),
    ("data", libc::RLIMIT_DATA),
    ("stack", libc::RLIMIT_STACK),
    ("core", libc::RLIMIT_CORE),
    ("nproc", libc::RLIMIT_NPROC),
    ("nofile", libc::RLIMIT_NOFILE),
    ("memlock", libc::RLIMIT_MEMLOCK),
    ("as", libc::RLIMIT_AS),
    ("locks", libc::RLIMIT_LOCKS),
    ("sigpending", libc::RLIMIT_SIGPENDING),
    ("msgqueue", libc::RLIMIT_MSGQUEUE),
    ("nice", libc::RLIMIT_NICE),
    ("rtprio", libc::RLIMIT_RTPRIO),
    ("rttime", libc::RLIMIT_RTTIME),
];

/// `soft:hard` of one limit, in its own unit, `unlimited` where there is none.
pub(crate) fn rlimit(resource: libc::__rlimit_resource_t) -> Option<String> {
    // SAFETY: `limit` is writable.
    let (answer, limit) = unsafe {
        let mut limit = std::mem::zeroed::<libc::rlimit>();
        (libc::getrlimit(resource, &raw mut limit), limit)
    };
    let text = |value: u64| match value {
        libc::RLIM_INFINITY => "unlimited".to_owned(),
        value => value.to_string(),
    };
    (answer == 0).then(|| format!("{}:{}", text(limit.rlim_cur), text(limit.rlim_max)))
}

/// Descriptors that are open, without the one that lists them.
pub(crate) fn open_fds() -> Vec<String> {
    fd_targets().into_keys().map(|fd| fd.to_string()).collect()
}

fn fd_targets() -> BTreeMap<u32, String> {
    // The list is complete before the first link is read, so the listing's own
    // descriptor is closed by then and has no target any more.
    let names = std::fs::read_dir("/proc/self/fd")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect::<Vec<u32>>();
    names
        .into_iter()
        .filter_map(|fd| Some((fd, link(&format!("/proc/self/fd/{fd}"))?)))
        .collect()
}

fn link(path: &str) -> Option<String> {
    Some(
        std::fs::read_link(path)
            .ok()?
            .to_string_lossy()
            .into_owned(),
    )
}

fn text(path: &str) -> Option<String> {
    let bytes = std::fs::read(path).ok()?;
    Some(String::from_utf8_lossy(&bytes).trim_end().to_owned())
}

/// Everything that a later exec must have like the first task, as one JSON document.
/// What cannot be read is null.
#[must_use]
pub fn document() -> Value {
    let fields = [
        "Uid",
        "Gid",
        "Groups",
        "CapInh",
        "CapPrm",
        "CapEff",
        "CapBnd",
        "CapAmb",
        "NoNewPrivs",
        "Seccomp",
        "Seccomp_filters",
        "SigBlk",
        "SigIgn",
    ];
    let fields = fields
        .into_iter()
        .map(|name| (name, raw::status_field(name)))
        .collect::<BTreeMap<_, _>>();
    let limits = RLIMITS
        .iter()
        .map(|&(name, resource)| (name, rlimit(resource)))
        .collect::<BTreeMap<_, _>>();
    let namespaces = ["user", "mnt", "pid", "net", "ipc", "uts", "cgroup", "time"]
        .map(|name| (name, link(&format!("/proc/self/ns/{name}"))))
        .into_iter()
        .collect::<BTreeMap<_, _>>();
    let env = std::env::vars_os()
        .map(|(name, value)| {
            (
                name.to_string_lossy().into_owned(),
                value.to_string_lossy().into_owned(),
            )
        })
        .collect::<BTreeMap<_, _>>();
    json!({
        "status": fields,
        "rlimits": limits,
        "cwd": std::env::current_dir().ok().map(|path| path.to_string_lossy().into_owned()),
        "umask": raw::status_field("Umask"),
        "oom_score_adj": text("/proc/self/oom_score_adj"),
        "env": env,
        "fds": fd_targets(),
        "namespaces": namespaces,
        "cgroup": text("/proc/self/cgroup"),
        "session_keyring": session_keyring(),
        "hostname": text("/proc/sys/kernel/hostname"),
        "mountinfo": text("/proc/self/mountinfo").map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()),
    })
}

/// The id of the session keyring, or the name of the error where a filter hides it.
fn session_keyring() -> String {
    match raw::call(libc::SYS_keyctl, [0, -3, 0, 0, 0, 0]) {
        Ok(id) => id.to_string(),
        Err(number) => crate::errno_name(number),
    }
}

/// In what two documents of one lease differ, as `part.name`: nothing, where a later
/// exec is confined like the first task (A10, H1, H2).
///
/// Left out: `cgroup`, because every exec has its own, and what the descriptors point
/// at; which ones are open is compared.
#[must_use]
pub fn differences(first: &Value, later: &Value) -> Vec<String> {
    let names = |value: &Value| {
        value
            .as_object()
            .map(|map| map.keys().cloned().collect::<BTreeSet<_>>())
            .unwrap_or_default()
    };
    let mut found = Vec::new();
    for part in names(first).union(&names(later)) {
        let (a, b) = (&first[part], &later[part]);
        match part.as_str() {
            "cgroup" => {}
            "fds" if names(a) == names(b) => {}
            _ if a == b => {}
            _ if a.is_object() && b.is_object() => found.extend(
                names(a)
                    .union(&names(b))
                    .filter(|name| a[name] != b[name])
                    .map(|name| format!("{part}.{name}")),
            ),
            _ => found.push(part.clone()),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{differences, document};

    #[test]
    fn the_document_describes_this_process() {
        let document = document();
        assert!(document["status"]["Uid"].is_string());
        assert!(
            document["namespaces"]["mnt"]
                .as_str()
                .unwrap()
                .starts_with("mnt:[")
        );
        assert!(
            document["rlimits"]["nofile"]
                .as_str()
                .unwrap()
                .contains(':')
        );
        assert!(document["fds"]["0"].is_string());
    }

    #[test]
    fn a_later_exec_without_the_filter_or_a_limit_differs() {
        let first = document();
        assert_eq!(differences(&first, &first), Vec::<String>::new());
        let mut later = first.clone();
        later["status"]["Seccomp"] = "9".into();
        later["rlimits"]["nofile"] = "7:7".into();
        later["umask"] = "0777".into();
        later["cgroup"] = "another".into();
        later["fds"]["0"] = "elsewhere".into();
        assert_eq!(
            differences(&first, &later),
            ["rlimits.nofile", "status.Seccomp", "umask"]
        );
    }

    #[test]
    fn a_missing_part_and_another_descriptor_differ() {
        let first = document();
        let mut later = first.clone();
        later.as_object_mut().unwrap().remove("umask");
        later["fds"]["9"] = "leak".into();
        assert_eq!(differences(&first, &later), ["fds.9", "umask"]);
    }
}
