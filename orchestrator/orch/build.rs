//! Builds the launcher and the guest, which the binary carries inside it.
//!
//! They are executables of other packages, and Cargo has no stable way to depend
//! on one; so Cargo is called again, into a target directory of its own (two
//! Cargos cannot share one), which is kept between builds.

use std::error::Error;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "x86_64-unknown-linux-gnu";
const PROFILE: &str = "sealed";
const PACKAGES: [&str; 2] = ["orch-launcher", "orch-guest"];

/// Those of `.cargo/config.toml`: one static file. Said again here, because
/// RUSTFLAGS of the outer build would win over that file, and a guest that needs
/// a loader runs in no image but the host's.
const FLAGS: [&str; 4] = [
    "-C",
    "target-feature=+crt-static",
    "-C",
    "relocation-model=static",
];

/// What the outer Cargo tells a build script about the package it builds, and
/// what `cargo clippy` puts in the way of the compiler: not meant for the inner
/// one, which would build everything anew for each of them.
const NOT_INHERITED: [&str; 14] = [
    "CARGO_BUILD_RUSTFLAGS",
    "CARGO_BUILD_TARGET",
    "CARGO_BUILD_TARGET_DIR",
    "CARGO_PRIMARY_PACKAGE",
    "CARGO_TARGET_DIR",
    "CLIPPY_ARGS",
    "CLIPPY_CONF_DIR",
    "DEBUG",
    "OPT_LEVEL",
    "OUT_DIR",
    "PROFILE",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTFLAGS",
    "TARGET",
];
const NOT_INHERITED_PREFIXES: [&str; 6] = [
    "CARGO_BIN_",
    "CARGO_CFG_",
    "CARGO_FEATURE_",
    "CARGO_MANIFEST_",
    "CARGO_PKG_",
    "DEP_",
];

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(variable("OUT_DIR")?);
    let manifest = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    let workspace = manifest
        .ancestors()
        .nth(2)
        .ok_or("the package lies outside its workspace")?;
    for input in [
        "Cargo.toml",
        "Cargo.lock",
        ".cargo/config.toml",
        "orchestrator/guest/Cargo.toml",
        "orchestrator/guest/src",
        "orchestrator/launcher/Cargo.toml",
        "orchestrator/launcher/src",
        "orchestrator/nocgroups/Cargo.toml",
        "orchestrator/nocgroups/src",
        "orchestrator/wire/Cargo.toml",
        "orchestrator/wire/src",
    ] {
        // Relative to this package, so that a space or a `=` in the path of the
        // clone is no part of what Cargo reads.
        println!("cargo::rerun-if-changed=../../{input}");
    }
    let sealed = target_root(&out).join(PROFILE);
    build(workspace, &sealed)?;
    for package in PACKAGES {
        // A copy: another profile's build may be replacing the original.
        let built = sealed.join(TARGET).join(PROFILE).join(package);
        let copy = out.join(package);
        std::fs::copy(&built, &copy).map_err(|e| format!("{}: {e}", built.display()))?;
    }
    Ok(())
}

fn variable(name: &str) -> Result<std::ffi::OsString, String> {
    std::env::var_os(name).ok_or_else(|| format!("Cargo has not set {name}"))
}

/// Cargo marks its target directory, and the ones below it for each target.
fn target_root(out: &Path) -> &Path {
    out.ancestors()
        .filter(|dir| dir.join("CACHEDIR.TAG").is_file())
        .last()
        .unwrap_or(out)
}

fn build(workspace: &Path, target: &Path) -> Result<(), Box<dyn Error>> {
    let mut cargo = Command::new(variable("CARGO")?);
    cargo
        .current_dir(workspace)
        .args(["build", "--quiet", "--locked"])
        .args(["--profile", PROFILE, "--target", TARGET])
        .args(PACKAGES.iter().flat_map(|package| ["-p", package]))
        .arg("--target-dir")
        .arg(target);
    for (name, _) in std::env::vars_os() {
        if !inherited(&name) {
            cargo.env_remove(&name);
        }
    }
    cargo.env("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\x1f"));
    let status = cargo.status()?;
    if !status.success() {
        return Err(format!("{cargo:?} failed: {status}").into());
    }
    Ok(())
}

fn inherited(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    !NOT_INHERITED.contains(&name.as_ref())
        && !NOT_INHERITED_PREFIXES
            .iter()
            .any(|prefix| name.starts_with(prefix))
}
