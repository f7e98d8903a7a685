//! The container of `orch run` as any OCI runtime can start it: the very spec
//! that `orch spec` prints, in a bundle directory.

use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::scratch::Scratch;

/// A bundle directory; it goes away with this value.
#[derive(Debug)]
pub struct Bundle {
    scratch: Scratch,
    path: PathBuf,
}

/// Where in the scratch directory orch lays a bundle out.
const LAID_OUT: &str = "bundle";

impl Bundle {
    /// Has `orch spec --profile PROFILE --bundle DIR -- COMMAND…` lay the bundle out.
    ///
    /// # Errors
    /// When orch refuses, or the disk does.
    pub fn from_orch(orch: &Path, profile: &str, command: &[&str]) -> Result<Self> {
        let scratch = Scratch::new()?;
        let output = Command::new(orch)
            .args(["spec", "--profile", profile, "--bundle"])
            .arg(scratch.path().join(LAID_OUT))
            .arg("--")
            .args(command)
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("cannot start {}", orch.display()))?;
        ensure!(
            output.status.success(),
            "orch spec failed ({}): {}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        );
        fs::create_dir(scratch.path().join("state")).context("cannot create state")?;
        let path = scratch.path().join(LAID_OUT);
        Ok(Self { scratch, path })
    }

    /// Lays a bundle out around the bytes of a `config.json`, unchanged.
    ///
    /// # Errors
    /// When they are not a spec with a root, or the disk refuses.
    pub fn of(config: &[u8]) -> Result<Self> {
        let spec: Value = serde_json::from_slice(config).context("orch spec printed no JSON")?;
        let scratch = Scratch::new()?;
        fs::write(scratch.path().join("config.json"), config)
            .context("cannot write config.json")?;
        let root = spec
            .pointer("/root/path")
            .and_then(Value::as_str)
            .context("the spec has no root.path")?;
        // Joining an absolute path yields that path: such a root must exist.
        let rootfs = scratch.path().join(root);
        if rootfs.starts_with(scratch.path()) {
            fs::create_dir_all(&rootfs)
                .with_context(|| format!("cannot create {}", rootfs.display()))?;
            // Mount points are made by the container's root, which inside a
            // user namespace is somebody else outside.
            let owner = (host_id(&spec, "uidMappings"), host_id(&spec, "gidMappings"));
            if let (Some(uid), Some(gid)) = owner {
                chown(&rootfs, Some(uid), Some(gid))
                    .with_context(|| format!("cannot give {} away", rootfs.display()))?;
            }
        }
        ensure!(rootfs.is_dir(), "no directory {}", rootfs.display());
        fs::create_dir(scratch.path().join("state")).context("cannot create state")?;
        let path = scratch.path().to_owned();
        Ok(Self { scratch, path })
    }

    /// The least that any runtime can start: `program` in two namespaces over
    /// the host's own directories. Who fails here is not able to run at all.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn least(program: &str) -> Result<Self> {
        // Some want a /dev for the links and devices that they make.
        let mut mounts = vec![
            json!({"destination": "/proc", "type": "proc", "source": "proc"}),
            json!({"destination": "/dev", "type": "tmpfs", "source": "tmpfs"}),
        ];
        for directory in ["/usr", "/bin", "/lib", "/lib64"] {
            // On a merged system all but the first are links into it.
            if let Ok(source) = fs::canonicalize(directory) {
                mounts.push(json!({
                    "destination": directory,
                    "type": "bind",
                    "source": source,
                    "options": ["rbind", "ro"],
                }));
            }
        }
        let spec = json!({
            "ociVersion": "1.0.2",
            "process": {
                "user": {"uid": 0, "gid": 0},
                "args": [program],
                "env": ["PATH=/usr/bin:/bin"],
                "cwd": "/",
            },
            "root": {"path": "rootfs"},
            "mounts": mounts,
            "linux": {"namespaces": [{"type": "pid"}, {"type": "mount"}]},
        });
        Self::of(&serde_json::to_vec(&spec)?)
    }

    /// The bundle directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where a runtime may keep its state, apart from the machine's own.
    #[must_use]
    pub fn state(&self) -> PathBuf {
        self.scratch.path().join("state")
    }
}

/// The host's id of the container's root, where the spec maps it.
fn host_id(spec: &Value, mappings: &str) -> Option<u32> {
    spec.pointer(&format!("/linux/{mappings}"))?
        .as_array()?
        .iter()
        .find(|map| map["containerID"] == 0)?["hostID"]
        .as_u64()?
        .try_into()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_lies_where_the_spec_says() {
        let bundle = Bundle::of(br#"{"root": {"path": "a/rootfs"}}"#).unwrap();
        let path = bundle.path().to_owned();
        assert!(path.join("a/rootfs").is_dir() && bundle.state().is_dir());
        drop(bundle);
        assert!(!path.exists());
    }

    #[test]
    fn a_root_that_does_not_exist_is_refused() {
        let config = br#"{"root": {"path": "/no/such/root"}}"#;
        let error = Bundle::of(config).unwrap_err();
        assert!(format!("{error:#}").contains("/no/such/root"));
        assert!(Bundle::of(b"{}").is_err());
        assert!(Bundle::of(b"orch: error").is_err());
    }

    #[test]
    fn the_containers_root_is_found_in_the_maps() {
        let spec = serde_json::json!({"linux": {"uidMappings": [
            {"containerID": 1, "hostID": 7, "size": 1},
            {"containerID": 0, "hostID": 231_072, "size": 1},
        ]}});
        assert_eq!(host_id(&spec, "uidMappings"), Some(231_072));
        assert_eq!(host_id(&spec, "gidMappings"), None);
    }
}
