//! Golden files: what each shipped profile becomes (PR-12).
//!
//! Written anew with `UPDATE_GOLDEN=1 cargo test -p orch-policy --test golden`;
//! the difference in review is the change in what a sandbox is.
#![expect(
    clippy::unwrap_used,
    reason = "what does not unwrap is a failed test, also outside of #[test]"
)]

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use orch_policy::builtin::{NAMES, builtin};
use orch_policy::limits::effective;
use orch_policy::profile::Access;
use orch_policy::spec::container::{ImageEntry, ImageFacts};
use orch_policy::spec::merged;
use orch_policy::spec::oci::Ids;
use orch_policy::spec::{ContainerSpec, TaskSpec, container, task};
use orch_policy::task::{MountRequest, Task};
use orch_policy::{Code, Profile};
use serde_json::Value;

const IDS: Ids = Ids {
    first: 1_879_048_192,
    count: 65_536,
};

fn profile(name: &str) -> Profile {
    builtin(name, Path::new("/home/me")).unwrap().profile
}

/// A host with merged /usr and two CPUs.
fn image() -> ImageFacts {
    let node = |path: &str| ImageEntry::Node(path.into());
    ImageFacts {
        entries: vec![
            node("/usr"),
            ImageEntry::Link("/bin".into(), "usr/bin".into()),
            ImageEntry::Link("/lib64".into(), "usr/lib64".into()),
            node("/etc/ld.so.cache"),
            node("/etc/ssl/certs"),
        ],
        cpus: 2,
    }
}

/// A file for reading, a variable, and a shorter clock.
fn request() -> Task {
    Task {
        argv: ["python3", "/workspace/job.py"]
            .map(OsString::from)
            .to_vec(),
        mounts: vec![MountRequest {
            source: "/home/me/project/job.py".into(),
            target: None,
            mode: Access::Ro,
        }],
        env: vec![("MODE".into(), "fast".into())],
        timeout_ms: Some(30_000),
        ..Task::default()
    }
}

fn specs(profile: &Profile, request: &Task) -> (ContainerSpec, TaskSpec) {
    let bounds = effective(profile, request).unwrap();
    let inherited = [("TZ".into(), "UTC".into())];
    (
        container(profile, request, &image()).unwrap(),
        task(
            profile,
            request,
            &bounds.limits,
            bounds.command_timeout_ms,
            &inherited,
        )
        .unwrap(),
    )
}

fn check(file: &str, text: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(file);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        golden == text,
        "{file} is not what it was; run with UPDATE_GOLDEN=1 and read the difference"
    );
}

fn json(value: &impl serde::Serialize) -> String {
    format!("{:#}\n", serde_json::to_value(value).unwrap())
}

#[test]
fn container_specs() {
    for name in NAMES {
        let (container, _) = specs(&profile(name), &request());
        check(&format!("{name}.container.json"), &json(&container));
    }
}

#[test]
fn task_specs() {
    for name in NAMES {
        let (_, task) = specs(&profile(name), &request());
        check(&format!("{name}.task.json"), &json(&task));
    }
}

#[test]
fn merged_specs() {
    for name in NAMES {
        let (container, task) = specs(&profile(name), &request());
        let spec = merged::merged(&container, &task, IDS).unwrap();
        let mut value: Value = serde_json::from_str(&merged::text(&spec).unwrap()).unwrap();
        // Long, and made of the tables in syscalls/, where it is reviewed.
        let linux = value["linux"].as_object_mut().unwrap();
        let seccomp = linux.shift_remove("seccomp").unwrap();
        let table = orch_policy::syscalls::oci(task.syscalls).unwrap();
        assert_eq!(seccomp, serde_json::to_value(table).unwrap());
        check(&format!("{name}.merged.json"), &format!("{value:#}\n"));
    }
}

/// H12, H13: whatever the profile, devices begin with deny-all, no limit is zero,
/// and no capability is there in any of the five sets.
#[test]
fn every_merge_denies_devices_and_capabilities() {
    for name in NAMES {
        let (container, task) = specs(&profile(name), &request());
        let spec = merged::merged(&container, &task, IDS).unwrap();
        let value = serde_json::to_value(&spec).unwrap();
        let resources = &value["linux"]["resources"];
        let first = &resources["devices"][0];
        assert_eq!(first["allow"], false, "{name}");
        assert_eq!(first["access"], "rwm", "{name}");
        assert!(first.get("type").is_none() && first.get("major").is_none());
        for pointer in ["/memory/limit", "/pids/limit", "/cpu/quota"] {
            let limit = resources.pointer(pointer).and_then(|v| v.as_i64());
            assert!(limit > Some(0), "{name} {pointer}");
        }
        let memory = &resources["memory"];
        assert_eq!(memory["limit"], memory["swap"], "{name}");
        let sets = value["process"]["capabilities"].as_object().unwrap();
        assert_eq!(sets.len(), 5, "{name}");
        assert!(sets.values().all(|set| set.as_array().unwrap().is_empty()));
        assert_eq!(value["process"]["noNewPrivileges"], true);
        assert_eq!(value["linux"]["namespaces"].as_array().unwrap().len(), 7);
    }
}

/// PR-37: what JSON cannot hold is refused by name, not changed in silence.
#[test]
fn bytes_that_are_no_text_are_refused() {
    use std::os::unix::ffi::OsStringExt;
    let mut request = request();
    request.argv.push(OsString::from_vec(b"\xff".to_vec()));
    let (container, task) = specs(&profile("strict"), &request);
    let error = merged::merged(&container, &task, IDS).unwrap_err();
    assert_eq!(error.code, Code::FormatImpossible);
}
