//! Paths that must not be mounted, or stay hidden inside (FS-20, FS-21, FS-27,
//! PR-16), and mounts that contradict each other.

use std::fs;
use std::os::unix::fs::{chown, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use crate::call::{Call, ensure};
use crate::harness::{Test, Verdict, test};
use crate::place::{OWNER, Place};
use crate::refusal::{one_of, refused};

pub fn tests() -> Vec<Test> {
    vec![
        test("hidden::sources_that_are_not_there", missing),
        test("hidden::paths_that_climb_fs20", climbing),
        test("hidden::sources_around_a_denied_path_pr16", denied),
        test("hidden::sources_around_the_state_directory_fs21", state),
        test("hidden::sources_around_the_workspace_fs21", workspace),
        test("hidden::trees_of_the_kernel", kernel),
        test("hidden::sockets_pipes_and_devices", special),
        test("hidden::two_mounts_on_one_target_fs10", conflict),
        test("hidden::targets_that_cannot_be", targets),
        test("hidden::strict_mounts_nothing_writable", strict_rw),
        test("hidden::denied_paths_are_masked_last_fs06_fs27", masked),
        test("hidden::a_home_has_its_secrets_denied_fs04", home),
    ]
}

fn mount(source: &Path, rest: &str, code: &str, words: &[&str]) -> Result<(), String> {
    for tier in ["standard", "strict"] {
        refused(|| Ok(Call::new(tier)?.mount(source, rest)), code, words)
            .map_err(|why| format!("{tier}, {}{rest}: {why}", source.display()))?;
    }
    Ok(())
}

fn folder(source: &Path, code: &str, words: &[&str]) -> Result<(), String> {
    let make = || Ok(Call::new("standard")?.args(["--folder".as_ref(), source.as_os_str()]));
    refused(make, code, words).map_err(|why| format!("--folder {}: {why}", source.display()))
}

fn missing() -> Result<Verdict, String> {
    let place = Place::new()?;
    let dangling = place.join("dangling");
    symlink("/nowhere/at/all", &dangling).map_err(|e| e.to_string())?;
    for path in [Path::new("/nowhere/at/all"), &dangling] {
        let shown = path.display().to_string();
        mount(path, ":/data", "mount_source_missing", &[&shown])?;
        folder(path, "mount_source_missing", &[&shown])?;
    }
    Ok(Verdict::Held)
}

fn climbing() -> Result<Verdict, String> {
    let place = Place::new()?;
    place.folder("sub")?;
    let up = place.join("sub/..");
    mount(&up, ":/data", "mount_invalid", &[".."])?;
    folder(&up, "mount_invalid", &[".."])?;
    let make = || {
        let call = Call::new("standard")?.cwd(place.path());
        Ok(call.args(["--mount", "../x:/data"]))
    };
    refused(make, "mount_invalid", &[".."])?;
    let make = || Ok(Call::new("standard")?.args(["--out", "a/../b"]));
    refused(make, "mount_invalid", &[".."])?;
    let make = || Ok(Call::new("standard")?.args(["--mount", ""]));
    refused(make, "mount_invalid", &[])?;
    let make = || Ok(Call::new("standard")?.args(["--mount", "/a:/b:/c:rw"]));
    refused(make, "mount_invalid", &["\\:"])?;
    Ok(Verdict::Held)
}

fn denied() -> Result<Verdict, String> {
    let place = Place::new()?;
    let secret = place.folder("a")?.join("secret");
    fs::create_dir_all(secret.join("deep")).map_err(|e| e.to_string())?;
    place.folder("other")?;
    let link = place.join("link");
    symlink(&secret, &link).map_err(|e| e.to_string())?;
    let text = format!("sandbox:\n  deny_paths: [{}]\n", secret.display());
    let profile = place.profile(&text)?;
    for (source, held) in [
        (secret.clone(), true),
        (secret.join("deep"), true),
        (place.join("a"), true),
        (place.path().to_owned(), true),
        (link, true),
        (place.join("other"), false),
    ] {
        let make = || Ok(Call::new(&profile)?.mount(&source, ":/data"));
        if held {
            refused(make, "mount_denied", &["secret"])
                .map_err(|why| format!("{}: {why}", source.display()))?;
            let make = || {
                let call = Call::new(&profile)?.args(["--allow-root-owned", "--folder"]);
                Ok(call.args([&source]))
            };
            refused(make, "mount_denied", &["secret"])
                .map_err(|why| format!("--folder {}: {why}", source.display()))?;
        } else {
            make()?.sh("echo control").run()?.says("control")?;
        }
    }
    Ok(Verdict::Held)
}

fn state() -> Result<Verdict, String> {
    for part in ["", "state", "state/ids"] {
        let make = || {
            let call = Call::new("standard")?;
            let state = call.state();
            fs::create_dir_all(state.join("ids")).map_err(|e| e.to_string())?;
            let above = state.parent().ok_or("no parent")?.join(part);
            Ok(call.mount(&above, ":/data"))
        };
        refused(make, "mount_denied", &["state"]).map_err(|why| format!("{part:?}: {why}"))?;
    }
    refused(
        || Ok(Call::new("standard")?.mount(Path::new("/"), ":/data")),
        "mount_denied",
        &[],
    )?;
    Ok(Verdict::Held)
}

/// The parent of a workspace shows its neighbours (FS-21).
fn workspace() -> Result<Verdict, String> {
    let place = Place::new()?;
    let base = place.folder("base")?;
    for name in ["base/mine", "base/neighbour"] {
        place.folder(name)?;
    }
    let (mine, neighbour) = (base.join("mine"), base.join("neighbour"));
    let asked = |source: &Path| {
        let source = source.to_owned();
        let mine = mine.clone();
        move || {
            let call = Call::new("standard")?.args(["--folder".as_ref(), mine.as_os_str()]);
            Ok(call.mount(&source, ":/data"))
        }
    };
    refused(asked(&base), "mount_denied", &["base"])?;
    refused(asked(place.path()), "mount_denied", &["mine"])?;
    let inside = place.folder("base/mine/inside")?;
    refused(asked(&inside), "mount_denied", &["inside"])?;
    asked(&neighbour)()?
        .sh("echo control")
        .run()?
        .says("control")?;
    Ok(Verdict::Held)
}

fn kernel() -> Result<Verdict, String> {
    for path in [
        "/proc",
        "/proc/1",
        "/sys",
        "/sys/fs/cgroup",
        "/dev",
        "/dev/shm",
    ] {
        let make = || Ok(Call::new("standard")?.mount(Path::new(path), ":/data"));
        one_of(make, &["mount_denied", "mount_invalid"], &[path])
            .map_err(|why| format!("{path}: {why}"))?;
    }
    Ok(Verdict::Held)
}

fn special() -> Result<Verdict, String> {
    let place = Place::new()?;
    let socket = place.join("socket");
    let _listener = UnixListener::bind(&socket).map_err(|e| e.to_string())?;
    let pipe = place.join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .map_err(|e| e.to_string())?;
    for path in [socket, pipe] {
        mount(
            &path,
            ":/data",
            "mount_invalid",
            &["neither a file nor a directory"],
        )?;
    }
    let file = place.file("file", "x")?;
    chown(&file, Some(OWNER), Some(OWNER)).map_err(|e| e.to_string())?;
    let make = || Ok(Call::new("standard")?.args(["--folder".as_ref(), file.as_os_str()]));
    refused(make, "mount_invalid", &["/workspace"])
        .map_err(|why| format!("a file as --folder: {why}"))?;
    Ok(Verdict::Held)
}

fn conflict() -> Result<Verdict, String> {
    let place = Place::new()?;
    for name in ["a", "b"] {
        place.folder(name)?;
        fs::write(place.join(name).join("same"), name).map_err(|e| e.to_string())?;
    }
    let (a, b) = (place.join("a/same"), place.join("b/same"));
    for (rest, target) in [
        ("", "/workspace/same"),
        (":/data", "/data"),
        (":/data/", "/data"),
    ] {
        let make = || Ok(Call::new("standard")?.mount(&a, rest).mount(&b, rest));
        refused(make, "mount_conflict", &[target])?;
    }
    let make = || {
        let call = Call::new("standard")?.args(["--folder".as_ref(), place.join("a").as_os_str()]);
        Ok(call.mount(&place.join("b"), ":/workspace"))
    };
    refused(make, "mount_conflict", &["/workspace"])?;
    let call = Call::new("standard")?
        .mount(&a, "")
        .mount(&b, ":/workspace/other");
    call.sh("cat same other").run()?.says("ab")?;
    Ok(Verdict::Held)
}

fn targets() -> Result<Verdict, String> {
    let place = Place::new()?;
    let file = place.file("file", "x")?;
    for target in [
        ":relative",
        ":/a/../b",
        ":/",
        ":/proc/x",
        ":/sys",
        ":/dev/null",
        ":/tmp/x",
        ":/run/x",
    ] {
        mount(&file, target, "mount_invalid", &[])?;
    }
    Ok(Verdict::Held)
}

fn strict_rw() -> Result<Verdict, String> {
    let place = Place::new()?;
    let folder = place.folder("folder")?;
    let make = || Ok(Call::new("strict")?.mount(&folder, ":/data:rw"));
    refused(make, "mount_invalid", &["strict", "--out"])?;
    let call = Call::new("strict")?.mount(&folder, ":/data");
    call.sh("echo control").run()?.says("control")?;
    Ok(Verdict::Held)
}

/// Masks come after every mount; what is not there needs none (FS-08).
fn masked() -> Result<Verdict, String> {
    let place = Place::new()?;
    let data = place.folder("data")?;
    fs::create_dir(data.join("dir"))
        .and_then(|()| fs::write(data.join("dir/secret"), "secret"))
        .and_then(|()| fs::write(data.join("file"), "secret"))
        .and_then(|()| fs::write(data.join("open"), "open"))
        .map_err(|e| e.to_string())?;
    let script = "cat /data/open; ls -A /data/dir; cat /data/dir/secret 2>/dev/null; \
                  cat /data/file 2>/dev/null; (echo x > /data/file) 2>/dev/null; \
                  (echo x > /data/dir/x) 2>/dev/null; cat /data/file /data/dir/x 2>/dev/null";
    let rules = "sandbox:\n  deny_paths: [/data/dir, /data/file, /data/absent, /usr/include]\n";
    for tier in ["loose", "standard", "strict"] {
        let profile = place.profile(&format!("tier: {tier}\n{rules}"))?;
        let call = |profile: &Path| {
            let call = Call::new(profile)?.args(["--network", "none"]);
            Ok::<_, String>(call.mount(&data, ":/data"))
        };
        let ended = call(&profile)?.sh(script).run()?;
        ensure!(ended.out() == "open", "{tier}: {ended:?}");
        // The positive control: without the rules it is there to be read.
        let plain = place.file("plain.yaml", format!("tier: {tier}\n"))?;
        let ended = call(&plain)?.sh(script).run()?;
        ensure!(ended.out().contains("secret"), "{tier}, control: {ended:?}");
    }
    ensure!(
        fs::read_to_string(data.join("file")).is_ok_and(|text| text == "secret"),
        "the host's file has changed"
    );
    Ok(Verdict::Held)
}

/// `~` is the caller's home.
fn home() -> Result<Verdict, String> {
    let place = Place::new()?;
    let home = place.folder("home")?;
    for name in [".ssh", ".aws", ".config", "project"] {
        fs::create_dir(home.join(name)).map_err(|e| e.to_string())?;
    }
    for (name, held) in [
        (".ssh", true),
        (".aws", true),
        (".config", true),
        ("", true),
        ("project", false),
    ] {
        let source = home.join(name);
        let make = || {
            Ok(Call::new("standard")?
                .env("HOME", &home)
                .mount(&source, ":/data"))
        };
        if held {
            refused(make, "mount_denied", &[]).map_err(|why| format!("~/{name}: {why}"))?;
        } else {
            make()?.sh("echo control").run()?.says("control")?;
        }
    }
    Ok(Verdict::Held)
}
