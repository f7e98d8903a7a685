//! Builds the launcher and the guest, which the binary carries inside it.
//!
//! They are executables of other packages, and Cargo has no stable way to depend
//! on one; so Cargo is called again, into a target directory of its own (two
//! Cargos cannot share one), which is kept between builds. The finished ones lie at
//! its top, where the tests take them from.

use std::error::Error;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// With musl each of them starts faster and is smaller
/// (docs/decisions/0008-musl.md).
const PREFERRED: &str = "x86_64-unknown-linux-musl";
/// Where this toolchain has no musl: what works with every one.
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
    let target = target()?;
    build(workspace, &sealed, target)?;
    for package in PACKAGES {
        let built = sealed.join(target).join(PROFILE).join(package);
        // A copy: another profile's build may be replacing the original.
        for copy in [out.join(package), sealed.join(package)] {
            std::fs::copy(&built, &copy).map_err(|e| format!("{}: {e}", built.display()))?;
        }
    }
    Ok(())
}

/// Which C library the two are linked with: what the compiler brings along.
fn target() -> Result<&'static str, Box<dyn Error>> {
    let asked = Command::new(variable("RUSTC")?)
        .args(["--print", "target-libdir", "--target", PREFERRED])
        .output()?;
    let directory = PathBuf::from(String::from_utf8(asked.stdout)?.trim());
    // A directory that is not there counts as changed, so the next build looks again.
    println!("cargo::rerun-if-changed={}", directory.display());
    let there = std::fs::read_dir(&directory).is_ok_and(|mut found| found.next().is_some());
    if !there {
        println!(
            "cargo::warning={PREFERRED} is not installed (rustup target add {PREFERRED}): \
             launcher and guest are linked with glibc, and every start takes longer"
        );
        return Ok(TARGET);
    }
    Ok(PREFERRED)
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

fn build(workspace: &Path, directory: &Path, target: &str) -> Result<(), Box<dyn Error>> {
    let mut cargo = Command::new(variable("CARGO")?);
    cargo
        .current_dir(workspace)
        .args(["build", "--quiet", "--locked"])
        .args(["--profile", PROFILE, "--target", target])
        .args(PACKAGES.iter().flat_map(|package| ["-p", package]))
        .arg("--target-dir")
        .arg(directory);
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
