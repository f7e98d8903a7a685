//! `orch doctor` inside a container of runc: what the runtime keeps away by default is
//! named, and with that given every tier is kept (OP-01).

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use super::call::{Said, has};
use super::record::keep;
use crate::harness::{Test, Verdict, test};
use crate::rig::host::unified;
use crate::rig::place::{self, Place};
use crate::rig::{Result, at, ensure};

/// What orch needs; Docker gives all but the last one by default, runc nearly none.
const NEEDED: [&str; 6] = [
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_KILL",
    "CAP_SETGID",
    "CAP_SETUID",
    "CAP_SYS_ADMIN",
];

pub fn tests() -> Vec<Test> {
    vec![
        test("doctor::inside::by_default_op01", || run(by_default)),
        test("doctor::inside::with_what_is_needed_op01", || run(with_all)),
        test("doctor::inside::read_only_groups_h18", || {
            run(closed_groups)
        }),
        test("doctor::inside::a_run_names_the_control_op01", || {
            run(tasks)
        }),
    ]
}

fn run(check: fn(&Bundle) -> Result<()>) -> Result<Verdict> {
    let Some(made) = Bundle::new()? else {
        return Ok(Verdict::Skipped("there is no runc here".into()));
    };
    check(&made)?;
    Ok(Verdict::Held)
}

/// A bundle of runc with the host's programs and orch in it.
struct Bundle {
    place: Place,
    config: Value,
}

impl Bundle {
    fn new() -> Result<Option<Self>> {
        let place = Place::new("inside")?;
        let root = place.dir("rootfs")?;
        let made = Command::new("runc")
            .args(["spec", "--bundle"])
            .arg(place.path())
            .stdin(Stdio::null())
            .status();
        if !made.is_ok_and(|status| status.success()) {
            return Ok(None);
        }
        let orch = place::orch()?;
        std::fs::copy(&orch, root.join("orch")).map_err(at(orch.display()))?;
        for name in ["etc", "proc", "sys", "dev", "run", "tmp", "usr"] {
            place.dir(&format!("rootfs/{name}"))?;
        }
        let mut binds = vec![PathBuf::from("/usr"), PathBuf::from("/etc")];
        for name in ["bin", "sbin", "lib", "lib64"] {
            let host = Path::new("/").join(name);
            match std::fs::read_link(&host) {
                Ok(target) => std::os::unix::fs::symlink(target, root.join(name))
                    .map_err(at(host.display()))?,
                Err(_) if host.is_dir() => {
                    place.dir(&format!("rootfs/{name}"))?;
                    binds.push(host);
                }
                Err(_) => {}
            }
        }
        let file = place.path().join("config.json");
        let text = std::fs::read(&file).map_err(at(file.display()))?;
        let mut config: Value = serde_json::from_slice(&text).map_err(at("config.json"))?;
        config["process"]["terminal"] = json!(false);
        config["process"]["args"] =
            json!(["/orch", "doctor", "--format", "json", "--folder", "/usr"]);
        config["root"]["readonly"] = json!(false);
        let mounts = config["mounts"].as_array_mut().ok_or("no mounts")?;
        for bind in binds {
            mounts.push(json!({
                "destination": bind, "source": bind, "type": "bind", "options": ["rbind", "ro"],
            }));
        }
        // Where the host's ids are locked: no other container of orch may get the same.
        mounts.push(json!({
            "destination": "/run", "source": "/run", "type": "bind", "options": ["bind"],
        }));
        config["process"]["env"] = json!([
            "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
            "ORCH_STATE_DIR=/tmp/state"
        ]);
        Ok(Some(Self { place, config }))
    }

    /// Runs this configuration.
    fn start(&self, config: &Value) -> Result<Output> {
        let file = self.place.path().join("config.json");
        std::fs::write(&file, config.to_string()).map_err(at(file.display()))?;
        let id = self.place.path().file_name().unwrap_or_default();
        Command::new("runc")
            .args(["run", "--bundle"])
            .arg(self.place.path())
            .arg(id)
            .stdin(Stdio::null())
            .output()
            .map_err(at("runc"))
    }

    /// Runs a task of tier strict in there; what orch said, and whether it ran.
    fn task(&self, config: &Value) -> Result<(bool, String)> {
        let mut config = config.clone();
        config["process"]["args"] = json!([
            "/orch",
            "run",
            "--profile",
            "strict",
            "--",
            "echo",
            "it ran"
        ]);
        let output = self.start(&config)?;
        let ran = String::from_utf8_lossy(&output.stdout).contains("it ran");
        Ok((ran, String::from_utf8_lossy(&output.stderr).into_owned()))
    }

    /// What doctor says in there with this configuration.
    fn doctor(&self, config: &Value) -> Result<Said> {
        let output = self.start(config)?;
        let document = serde_json::from_slice(&output.stdout).map_err(|e| {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            format!("{e}; {:?}; {said}", output.status)
        })?;
        Ok(Said {
            code: output.status.code().unwrap_or(-1),
            document,
        })
    }

    /// The same with everything that orch asks for.
    fn opened(&self) -> Value {
        let mut config = self.config.clone();
        for set in ["bounding", "effective", "permitted"] {
            config["process"]["capabilities"][set] = json!(NEEDED);
        }
        config["process"]["rlimits"] =
            json!([{ "type": "RLIMIT_NOFILE", "hard": 8192, "soft": 1024 }]);
        for mount in config["mounts"].as_array_mut().into_iter().flatten() {
            if mount["destination"] == "/sys/fs/cgroup"
                && let Some(options) = mount["options"].as_array_mut()
            {
                options.retain(|option| option != "ro");
            }
        }
        config
    }
}

fn by_default(made: &Bundle) -> Result<()> {
    let said = made.doctor(&made.config)?;
    ensure(said.code == 3, || format!("exit code {}", said.code))?;
    has(&said, "outer container", "warn", "--cap-add SYS_ADMIN")?;
    has(&said, "privileges", "missing", "SYS_ADMIN")?;
    has(&said, "privileges", "missing", "--cap-add SYS_ADMIN")?;
    has(&said, "namespaces", "missing", "mnt (EPERM)")?;
    has(&said, "groups can be made", "missing", "cannot be written")?;
    has(&said, "open files", "missing", "loose asks for 4096")?;
    has(&said, "outer masks", "warn", "/proc/sys")?;
    keep("first-runc-default", &said.document)
}

/// Masks stay: sandboxes have a `/proc` of their own in spite of them.
fn with_all(made: &Bundle) -> Result<()> {
    let said = made.doctor(&made.opened())?;
    ensure(said.code == 0 && said.document["ok"] == true, || {
        format!("exit code {}: {}", said.code, said.document)
    })?;
    has(&said, "privileges", "ok", "")?;
    // On version 2 doctor itself is in the group that the container was given.
    let state = if unified() { "warn" } else { "ok" };
    has(&said, "groups can be made", state, "")?;
    has(&said, "outer masks", "warn", "/proc/sys")?;
    keep("first-runc-given", &said.document)
}

fn closed_groups(made: &Bundle) -> Result<()> {
    let mut config = made.opened();
    config["mounts"] = made.config["mounts"].clone();
    let said = made.doctor(&config)?;
    has(&said, "groups can be made", "missing", "cannot be written")?;
    has(&said, "privileges", "ok", "")?;
    ensure(said.code == 3, || format!("exit code {}", said.code))
}

/// `orch run` itself says which control is missing, and how to give it.
fn tasks(made: &Bundle) -> Result<()> {
    let (ran, said) = made.task(&made.opened())?;
    ensure(ran, || format!("the control did not run: {said}"))?;

    let mut closed = made.opened();
    closed["mounts"] = made.config["mounts"].clone();
    let mut filtered = made.opened();
    filtered["linux"]["seccomp"] = json!({
        "defaultAction": "SCMP_ACT_ALLOW",
        "syscalls": [{ "names": ["unshare"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1 }],
    });
    let mut nameless = made.opened();
    for set in ["bounding", "effective", "permitted"] {
        let without = NEEDED.iter().filter(|name| **name != "CAP_SETGID");
        nameless["process"]["capabilities"][set] = without.copied().collect();
    }
    // What is met first: on version 2 the container's group comes before its namespaces.
    let first = if unified() {
        "mount -o remount,rw,bind /sys/fs/cgroup"
    } else {
        "--cap-add SYS_ADMIN"
    };
    for (config, words) in [
        (&made.config, first),
        (&closed, "mount -o remount,rw,bind /sys/fs/cgroup"),
        (&filtered, "--security-opt seccomp=unconfined"),
        (&nameless, "--cap-add SETGID"),
    ] {
        let (ran, said) = made.task(config)?;
        ensure(!ran && said.contains(words), || {
            format!("no word of {words}: {said}")
        })?;
    }
    Ok(())
}
