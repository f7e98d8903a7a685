//! H5, A3, A4, A6, A7: images whose links point at the host. Either orch refuses
//! the image, or what is meant by the link stays inside; a marked directory of the
//! host is never touched.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::{TIERS, in_every_tier, judged};
use crate::harness::{Test, Verdict, test};
use crate::rig::host::PATIENCE;
use crate::rig::orch::{Ended, Orch};
use crate::rig::place::{self, Place};
use crate::rig::{Result, at, ensure, image};

/// Where an image has a link, and what it is for.
const LINKS: &[&str] = &[
    "dev",
    "dev/pts",
    "dev/shm",
    "dev/mqueue",
    "dev/fd",
    "dev/stdin",
    "dev/kcore",
    "proc",
    "sys",
    "sys/fs",
    "tmp",
    "run",
    "workspace",
    "etc",
    "etc/resolv.conf",
    "etc/hosts",
    "etc/hostname",
    "etc/passwd",
    "var",
    "usr",
    "home",
];

pub fn tests() -> Vec<Test> {
    let mut tests = in_every_tier("H5_A6_A7_control::a_plain_image_runs", plain);
    for tier in TIERS {
        for link in LINKS {
            let name = link.replace('/', "_");
            tests.push(test(
                format!("hazards::H5_A6_A7_image_link_{name}::{tier}"),
                move || linked(tier, link),
            ));
        }
    }
    tests.extend(in_every_tier("A3_dev_null_is_a_link", null));
    tests.extend(in_every_tier("A4_console_and_ptmx_are_links", console));
    tests.extend(in_every_tier(
        "A7_mount_over_a_link_of_the_image",
        mounted_over,
    ));
    tests
}

/// A directory that must not change, with a file in it.
fn marked(place: &Place) -> Result<PathBuf> {
    let marked = place.owned("marked")?;
    place.file("marked/secret", "host secret\n")?;
    Ok(marked)
}

fn run_image(tier: &str, image: &Path, argv: &[&str]) -> Result<Ended> {
    Orch::new(tier)?.flag("--image", image).run(argv)
}

fn plain(tier: &'static str) -> Result<Verdict> {
    let place = Place::new("image")?;
    let image = image::plain(&place)?;
    let ended = run_image(
        tier,
        &image,
        &["/bin/orch-probe", "run", "A3", "A17", "A21", "PX"],
    )?
    .clean()?;
    judged(
        tier,
        &ended.stdout,
        &["A3", "A17", "PX-02", "PX-07", "PX-08"],
    )?;
    Ok(Verdict::Held)
}

/// Absolute, and climbing out relatively.
fn linked(tier: &'static str, link: &str) -> Result<Verdict> {
    for climbing in [false, true] {
        let place = Place::new("image")?;
        let marked = marked(&place)?;
        let target = if climbing {
            let below = marked.strip_prefix("/").map_err(at("a relative path"))?;
            Path::new("../../../../../../../..").join(below)
        } else {
            marked.clone()
        };
        let image = image::plain(&place)?;
        let path = image.join(link);
        if path.is_dir() {
            std::fs::remove_dir(&path).map_err(at(path.display()))?;
        }
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(at(parent.display()))?;
        }
        symlink(&target, &path).map_err(at(path.display()))?;
        attempt(tier, &image, &marked).map_err(|why| format!("-> {}: {why}", target.display()))?;
    }
    Ok(Verdict::Held)
}

/// Runs a writer through every place that a link could stand for.
fn attempt(tier: &str, image: &Path, marked: &Path) -> Result<()> {
    let (before, of_image) = (place::manifest(marked)?, place::manifest(image)?);
    let ended = run_image(
        tier,
        image,
        &[
            "/bin/orch-probe",
            "run",
            "A3",
            "A17",
            "A18",
            "A21",
            "E8",
            "FS",
            "PR",
        ],
    )?;
    if ended.code == 125 {
        ended.refused(&["image_invalid", "mount_invalid"])?;
    } else {
        let ended = ended.clean()?;
        judged(tier, &ended.stdout, &["A3", "A17", "A18"])?;
        ensure(!ended.stdout.contains("host secret"), || {
            format!("the marked file was read: {}", ended.stdout)
        })?;
    }
    let (after, of_image_after) = (place::manifest(marked)?, place::manifest(image)?);
    ensure(before == after, || {
        format!("the marked directory has changed: {before:?} {after:?}")
    })?;
    ensure(of_image == of_image_after, || {
        format!("the image has changed: {of_image:?} {of_image_after:?}")
    })
}

/// CVE-2025-31133: masks are made of `/dev/null`; the image's own is never used.
fn null(tier: &'static str) -> Result<Verdict> {
    let place = Place::new("null")?;
    let marked = marked(&place)?;
    for target in [
        Path::new("/proc/sys/kernel/core_pattern").to_owned(),
        marked.join("secret"),
    ] {
        let place = Place::new("null")?;
        let image = image::with_link(&place, "dev/null", &target)?;
        let ended = run_image(
            tier,
            &image,
            &["/bin/orch-probe", "run", "A3", "A17", "A18", "A21"],
        )?;
        if ended.code == 125 {
            ended.refused(&["image_invalid"])?;
        } else {
            judged(tier, &ended.clean()?.stdout, &["A3", "A17", "A18", "A21"])?;
        }
    }
    Ok(Verdict::Held)
}

/// CVE-2025-52565: with a terminal, nothing is mounted over what the links mean.
fn console(tier: &'static str) -> Result<Verdict> {
    let place = Place::new("console")?;
    let marked = marked(&place)?;
    let image = image::plain(&place)?;
    for name in ["dev/console", "dev/ptmx", "dev/tty", "dev/pts/0"] {
        let link = image.join(name);
        std::fs::create_dir_all(link.parent().unwrap_or(&image)).map_err(at("dev"))?;
        symlink(marked.join("secret"), &link).map_err(at(link.display()))?;
    }
    let before = place::manifest(&marked)?;
    let terminal = pty()?;
    let mut orch = Orch::new(tier)?
        .flag("--image", &image)
        .switch("-t")
        .switch("-i");
    orch.command().arg("--").args(["/bin/orch-probe", "status"]);
    let text = terminal.run(orch.command(), PATIENCE)?;
    let document = text
        .lines()
        .find_map(|line| serde_json::from_str::<serde_json::Value>(line.trim()).ok());
    match document {
        Some(document) => {
            let stdin = document["fds"]["0"].as_str().unwrap_or_default().to_owned();
            ensure(stdin.starts_with("/dev/pts/"), || {
                format!("the terminal is {stdin}")
            })?;
        }
        None => ensure(text.contains("image_invalid"), || {
            format!("neither a terminal nor a refusal: {text}")
        })?,
    }
    let after = place::manifest(&marked)?;
    ensure(before == after, || format!("{before:?} {after:?}"))?;
    Ok(Verdict::Held)
}

/// A mount whose target leads through a link of the image, leaf or parent.
fn mounted_over(tier: &'static str) -> Result<Verdict> {
    for (link, target) in [
        ("etc/resolv.conf", "/etc/resolv.conf"),
        ("data", "/data"),
        ("data", "/data/below"),
        ("etc/inner", "/etc/inner/below"),
    ] {
        let place = Place::new("over")?;
        let marked = marked(&place)?;
        let image = image::with_link(&place, link, &marked)?;
        let file = place.file("mounted", "mounted\n")?;
        let (before, of_image) = (place::manifest(&marked)?, place::manifest(&image)?);
        let ended = Orch::new(tier)?
            .flag("--image", &image)
            .mount(&file, target)
            .run(&["/bin/orch-probe", "status"])?;
        if ended.code == 125 {
            ended.refused(&["mount_invalid", "image_invalid", "host_unsupported"])?;
        } else {
            ended.clean()?;
        }
        ensure(before == place::manifest(&marked)?, || {
            format!("{target}: the marked directory has changed")
        })?;
        ensure(of_image == place::manifest(&image)?, || {
            format!("{target}: the image has changed")
        })?;
    }
    Ok(Verdict::Held)
}

use crate::rig::terminal::pty;
