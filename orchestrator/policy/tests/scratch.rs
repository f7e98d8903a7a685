//! The scratch directory of a session in both specs and their merge (FS-07).
#![expect(
    clippy::unwrap_used,
    reason = "what does not unwrap is a failed test, also outside of #[test]"
)]

use std::path::Path;

use orch_policy::builtin::builtin;
use orch_policy::profile::Access;
use orch_policy::spec::merged::{MountPoint, mount_points};
use orch_policy::spec::{ContainerSpec, ImageFacts, container, task};
use orch_policy::task::{MountRequest, Task};
use orch_policy::{Code, Error};

fn request() -> Task {
    Task {
        argv: vec!["true".into()],
        folder: Some("/srv/folder".into()),
        scratch: Some("/srv/scratch".into()),
        ..Task::default()
    }
}

fn mount(target: &str) -> Task {
    let mount = MountRequest {
        source: "/srv/other".into(),
        target: Some(target.into()),
        mode: Access::Ro,
    };
    Task {
        mounts: vec![mount],
        ..request()
    }
}

fn spec(tier: &str, request: &Task) -> Result<ContainerSpec, Error> {
    let profile = builtin(tier, Path::new("/home/me")).unwrap().profile;
    container(&profile, request, &ImageFacts::default())
}

fn env(request: &Task) -> Vec<String> {
    let profile = builtin("standard", Path::new("/home/me")).unwrap().profile;
    let spec = task(&profile, request, &profile.limits, 1000, &[]).unwrap();
    let text = spec
        .env
        .iter()
        .map(|word| word.to_string_lossy().into_owned());
    text.filter(|word| word.starts_with("SCRATCH=")).collect()
}

#[test]
fn scratch_is_a_writable_mount_behind_the_workspace_and_named_in_the_environment() {
    for tier in ["loose", "standard"] {
        let spec = spec(tier, &mount("/scratch/below")).unwrap();
        let found: Vec<_> = spec
            .binds
            .iter()
            .map(|bind| (bind.target.to_str().unwrap(), bind.mode, bind.make))
            .collect();
        let wanted = [
            ("/workspace", Access::Rw, false),
            ("/scratch", Access::Rw, true),
            ("/scratch/below", Access::Ro, false),
        ];
        assert_eq!(found, wanted, "{tier}");
        let point = mount_points(&spec).find(|(path, _)| *path == Path::new("/scratch"));
        assert_eq!(point.unwrap().1, MountPoint::Directory(0o755));
    }
    assert_eq!(env(&request()), ["SCRATCH=/scratch"]);
    let own = Task {
        env: vec![("SCRATCH".into(), "/elsewhere".into())],
        ..request()
    };
    assert_eq!(env(&own), ["SCRATCH=/elsewhere"]);
    assert!(
        env(&Task {
            scratch: None,
            ..request()
        })
        .is_empty()
    );
}

/// PR-09: as any other writable mount.
#[test]
fn strict_has_none_and_two_on_one_target_are_refused() {
    let as_mount = Task {
        scratch: None,
        mounts: vec![MountRequest {
            source: "/srv/scratch".into(),
            target: Some("/scratch".into()),
            mode: Access::Rw,
        }],
        ..request()
    };
    let refused = spec("strict", &request()).unwrap_err();
    assert_eq!(refused.code, Code::MountInvalid);
    assert_eq!(refused, spec("strict", &as_mount).unwrap_err());
    assert!(spec("standard", &as_mount).is_ok());
    let clash = spec("standard", &mount("/scratch")).unwrap_err();
    assert_eq!(clash.code, Code::MountConflict);
    assert!(clash.message.contains("/scratch"), "{clash}");
}
