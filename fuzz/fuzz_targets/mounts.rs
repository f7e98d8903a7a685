//! `--mount`, `--env` and the lines of `--env-file`: bytes of a command line.
//!
//! - A mount that was read, written with its escapes, is read as the same.
//! - No target is relative or has `..`, as written or as it reaches the container.
//! - A variable that was read, written as `NAME=VALUE`, is read as the same, alone
//!   and in a file; a refusal depends on the name and not on the value.
#![no_main]

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path};
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use orch_policy::builtin::builtin;
use orch_policy::mount::{self, MountArg};
use orch_policy::profile::Access;
use orch_policy::spec::container;
use orch_policy::spec::container::ImageFacts;
use orch_policy::task::{MountRequest, Task};
use orch_policy::variable::{self, Variable};
use orch_policy::{Code, Error, Profile, paths};

static STANDARD: LazyLock<Profile> = LazyLock::new(|| {
    let home = Path::new("/home/me");
    builtin("standard", home)
        .expect("a shipped profile")
        .profile
});

fuzz_target!(|data: &[u8]| {
    mount(data);
    variable(data);
    file(data);
});

fn plain(path: &Path) -> bool {
    path.is_absolute()
        && path
            .components()
            .all(|part| matches!(part, Component::RootDir | Component::Normal(_)))
        && !path.as_os_str().as_bytes().contains(&0)
}

fn refused(error: &Error, code: Code) {
    assert_eq!(error.code, code, "{error:?}");
    assert!(
        error.cause.is_some() && !error.remediation.is_empty(),
        "{error:?}"
    );
    assert!(!error.message.contains(char::is_control), "{error:?}");
}

fn mount(data: &[u8]) {
    let read = |bytes: &[u8]| mount::parse(OsString::from_vec(bytes.to_vec()));
    let mount = match read(data) {
        Ok(mount) => mount,
        Err(error) => return refused(&error, Code::MountInvalid),
    };
    assert!(mount.target.as_deref().is_none_or(plain), "{mount:?}");
    assert_eq!(read(&written(&mount)).as_ref(), Ok(&mount));

    let Ok(source) = paths::absolute(&Path::new("/here").join(&mount.source)) else {
        return;
    };
    let task = Task {
        mounts: vec![MountRequest {
            source,
            target: mount.target,
            mode: mount.mode,
        }],
        ..Task::default()
    };
    match container(&STANDARD, &task, &ImageFacts::default()) {
        Ok(spec) => {
            let [bind] = &spec.binds[..] else {
                panic!("one bind: {:?}", spec.binds);
            };
            assert!(plain(&bind.source) && plain(&bind.target), "{bind:?}");
            assert_ne!(bind.target, Path::new("/"));
            for own in ["/proc", "/sys", "/dev", "/tmp", "/run"] {
                assert!(!bind.target.starts_with(own), "{bind:?}");
            }
        }
        Err(error) => assert_eq!(error.code, Code::MountInvalid, "{error:?}"),
    }
}

fn written(mount: &MountArg) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut path = |path: &Path| {
        for byte in path.as_os_str().as_bytes() {
            if matches!(byte, b':' | b'\\') {
                bytes.push(b'\\');
            }
            bytes.push(*byte);
        }
        bytes.push(b':');
    };
    path(&mount.source);
    if let Some(target) = &mount.target {
        path(target);
    }
    bytes.extend_from_slice(match mount.mode {
        Access::Ro => b"ro",
        Access::Rw => b"rw",
    });
    bytes
}

fn assignment(variable: &Variable) -> Vec<u8> {
    match variable {
        Variable::Copy(name) => name.clone().into_bytes(),
        Variable::Set(name, value) => [name.as_bytes(), b"=", value.as_bytes()].concat(),
    }
}

fn variable(data: &[u8]) {
    match variable::parse(OsStr::from_bytes(data)) {
        Ok(variable) => assert_eq!(assignment(&variable), data),
        Err(error) => {
            refused(&error, Code::EnvInvalid);
            // The value may be a secret: a refusal is the same for any other.
            if let Some(at) = data.iter().position(|byte| *byte == b'=') {
                let nul = data[at..].contains(&0);
                let other = [&data[..=at], if nul { b"\0" } else { b"" }].concat();
                assert_eq!(variable::parse(OsStr::from_bytes(&other)), Err(error));
            }
        }
    }
}

fn file(data: &[u8]) {
    match variable::lines(data) {
        Ok(list) => {
            // A carriage return of its own, as one at the end of a line is dropped.
            let lines = list.iter().map(|v| [&assignment(v)[..], b"\r\n"].concat());
            assert_eq!(
                variable::lines(&lines.collect::<Vec<_>>().concat()),
                Ok(list)
            );
        }
        Err((line, error)) => {
            refused(&error, Code::EnvInvalid);
            let lines: Vec<&[u8]> = data.split(|byte| *byte == b'\n').collect();
            assert!((1..=lines.len()).contains(&line), "{line}");
            let line = lines[line - 1];
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let alone = variable::parse(OsStr::from_bytes(line)).expect_err("refused in a file");
            // A line that begins with no name may be a part of a secret: not repeated.
            let name = line.split(|byte| *byte == b'=').next().unwrap_or_default();
            let named = str::from_utf8(name).is_ok_and(|name| variable::check_name(name).is_ok());
            let message = if named {
                alone.message
            } else {
                variable::NO_NAME.to_owned()
            };
            assert_eq!(error, Error { message, ..alone });
        }
    }
}
