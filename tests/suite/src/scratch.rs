//! `--scratch`: a directory that outlives a task, made where it is missing (FS-07).

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::call::{Call, ensure, orch};
use crate::harness::{Test, Verdict, test};
use crate::place::{OWNER, Place, names};
use crate::refusal::refused;

pub fn tests() -> Vec<Test> {
    vec![
        test("scratch::is_there_for_the_next_task_fs07", survives),
        test("scratch::is_made_again_when_it_is_gone_fs07", made_again),
        test(
            "scratch::strict_has_none_as_any_writable_mount_fs07",
            strict,
        ),
        test("scratch::of_root_only_with_a_word_fs07", root_owned),
        test("scratch::is_mounted_as_any_writable_mount_fs07", flags),
        test("scratch::is_not_made_where_no_mount_may_be_fs07", sources),
        test("scratch::is_made_last_of_all_fs07", last),
        test(
            "scratch::is_shown_and_not_made_by_who_only_looks_fs07",
            shown,
        ),
    ]
}

fn call(tier: &str, scratch: &Path) -> Result<Call, String> {
    Ok(Call::new(tier)?
        .args(["--network", "none"])
        .args(["--scratch".as_ref(), scratch.as_os_str()]))
}

fn with_folder(tier: &str, scratch: &Path, folder: &Path) -> Result<Call, String> {
    Ok(call(tier, scratch)?.args(["--folder".as_ref(), folder.as_os_str()]))
}

fn owner_and_mode(path: &Path) -> Result<(u32, u32, u32), String> {
    let found = fs::symlink_metadata(path).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok((found.uid(), found.gid(), found.mode() & 0o7777))
}

/// Unlike /tmp; and what is in it belongs to whom the folder belongs to.
fn survives() -> Result<Verdict, String> {
    for tier in ["loose", "standard"] {
        let place = Place::new()?;
        let (folder, scratch) = (place.folder("folder")?, place.join("scratch"));
        let first = "set -e; [ \"$SCRATCH\" = /scratch ]; cd /scratch; echo one > file; mkdir d; \
                     echo gone > /tmp/file; stat -c '%u %a' . file";
        with_folder(tier, &scratch, &folder)?
            .sh(first)
            .run()?
            .says("1000 700\n1000 644")?;
        let second = "cat $SCRATCH/file; echo two >> /scratch/file; ls /scratch; ls /tmp/file 2>&1 \
                      | grep -o 'No such file'";
        with_folder(tier, &scratch, &folder)?
            .sh(second)
            .run()?
            .says("one\nd\nfile\nNo such file")?;
        let text = fs::read_to_string(scratch.join("file")).map_err(|e| e.to_string())?;
        ensure!(text == "one\ntwo\n", "{tier}: {text:?}");
        for (name, mode) in [("", 0o700), ("file", 0o644), ("d", 0o755)] {
            let found = owner_and_mode(&scratch.join(name))?;
            ensure!(found == (OWNER, OWNER, mode), "{tier}, {name}: {found:?}");
        }
        // The control: nobody asked for one.
        let none = Call::new(tier)?.args(["--network", "none"]);
        none.sh("ls -d /scratch 2>/dev/null; echo \"[$SCRATCH]\"")
            .run()?
            .says("[]")?;
    }
    Ok(Verdict::Held)
}

fn made_again() -> Result<Verdict, String> {
    let place = Place::new()?;
    let folder = place.folder("folder")?;
    let scratch = place.join("session/scratch");
    for gone in ["session", "session/scratch", "session"] {
        with_folder("standard", &scratch, &folder)?
            .sh("ls /scratch; echo x > /scratch/file; echo done")
            .run()?
            .says("done")?;
        for made in ["session", "session/scratch"] {
            let found = owner_and_mode(&place.join(made))?;
            ensure!(found == (OWNER, OWNER, 0o700), "{made}: {found:?}");
        }
        fs::remove_dir_all(place.join(gone)).map_err(|e| e.to_string())?;
    }
    Ok(Verdict::Held)
}

fn strict() -> Result<Verdict, String> {
    let place = Place::new()?;
    let (there, missing) = (place.folder("there")?, place.join("missing"));
    let words = &["tier strict lets nothing be written but /tmp", "/scratch"];
    for scratch in [&there, &missing] {
        refused(|| call("strict", scratch), "mount_invalid", words)?;
    }
    let mount = || Ok(Call::new("strict")?.mount(&there, ":/scratch:rw"));
    refused(mount, "mount_invalid", words)?;
    ensure!(
        names(place.path())? == ["there"],
        "{:?}",
        names(place.path())?
    );
    call("standard", &there)?
        .sh("echo x > /scratch/file; echo written")
        .run()?
        .says("written")?;
    Ok(Verdict::Held)
}

/// What orch makes for root is a folder of root for the next task, so it is one for
/// the first task as well.
fn root_owned() -> Result<Verdict, String> {
    let place = Place::new()?;
    let scratch = place.join("scratch");
    let make = || call("standard", &scratch);
    refused(make, "root_owned_folder", &["--allow-root-owned"])?;
    ensure!(
        names(place.path())?.is_empty(),
        "{:?}",
        names(place.path())?
    );
    make()?
        .args(["--allow-root-owned"])
        .sh("echo x > /scratch/file; stat -c %u /scratch/file")
        .run()?
        .says("1000")?;
    ensure!(
        owner_and_mode(&scratch)? == (0, 0, 0o700)
            && owner_and_mode(&scratch.join("file"))? == (0, 0, 0o644),
        "{:?}",
        owner_and_mode(&scratch)
    );
    refused(make, "root_owned_folder", &["--allow-root-owned"])?;
    // One that is there stays whose it is, and as open as it is.
    let own = place.folder("own")?;
    call("standard", &own)?
        .sh("echo x > /scratch/file; echo written")
        .run()?
        .says("written")?;
    let found = (owner_and_mode(&own)?, owner_and_mode(&own.join("file"))?);
    ensure!(
        found == ((OWNER, OWNER, 0o755), (OWNER, OWNER, 0o644)),
        "{found:?}"
    );
    Ok(Verdict::Held)
}

fn flags() -> Result<Verdict, String> {
    let place = Place::new()?;
    let (scratch, other) = (place.folder("scratch")?, place.folder("other")?);
    let script = "for m in /scratch /data; do awk -v m=$m '$5 == m { print $6 }' \
                  /proc/self/mountinfo; done; cp /bin/true /scratch/t && /scratch/t && echo ran; \
                  chmod 4755 /scratch/t 2>&1 | grep -o 'not permitted'";
    let ended = call("standard", &scratch)?
        .mount(&other, ":/data:rw")
        .sh(script)
        .run()?;
    let out = ended.out();
    let lines: Vec<&str> = out.lines().collect();
    let [scratch, mount, rest @ ..] = lines.as_slice() else {
        return Err(format!("{ended:?}"));
    };
    let options: Vec<&str> = scratch.split(',').collect();
    ensure!(
        ["rw", "nosuid", "nodev"]
            .iter()
            .all(|o| options.contains(o))
            && scratch == mount,
        "{scratch} and {mount}"
    );
    ensure!(*rest == ["ran", "not permitted"], "{ended:?}");
    Ok(Verdict::Held)
}

fn sources() -> Result<Verdict, String> {
    let place = Place::new()?;
    let (folder, other) = (place.folder("folder")?, place.folder("other")?);
    let profile = place.profile(&format!(
        "tier: standard\nsandbox:\n  deny_paths: [{}]\n",
        place.join("hidden").display()
    ))?;
    let profile = profile.to_string_lossy();
    symlink(place.join("victim"), place.join("dangling")).map_err(|e| e.to_string())?;
    symlink(place.path(), place.join("around")).map_err(|e| e.to_string())?;
    let before = names(place.path())?;
    for (scratch, code) in [
        (place.join("hidden"), "mount_denied"),
        (place.join("hidden/below"), "mount_denied"),
        (place.join("around/hidden/below"), "mount_denied"),
        (folder.join("below"), "mount_denied"),
        (place.path().to_owned(), "mount_denied"),
        (place.join("around/folder/below"), "mount_denied"),
        ("/proc/scratch".into(), "mount_denied"),
        (place.join("dangling"), "mount_source_missing"),
        (place.join("dangling/below"), "mount_source_missing"),
        (place.join("profile.yaml/below"), "mount_source_missing"),
        (place.join("../escape"), "mount_invalid"),
    ] {
        refused(|| with_folder(&profile, &scratch, &folder), code, &[])
            .map_err(|why| format!("{}: {why}", scratch.display()))?;
    }
    let clash = || {
        let call = with_folder(&profile, &place.join("new"), &folder)?;
        Ok(call.mount(&other, ":/scratch"))
    };
    refused(clash, "mount_conflict", &["/scratch"])?;
    ensure!(
        names(place.path())? == before && names(&folder)?.is_empty(),
        "made: {:?}",
        names(place.path())?
    );
    // The control, by a link of the caller's; and a place to mount below it.
    with_folder(&profile, &place.join("around/new"), &folder)?
        .sh("mkdir /scratch/below; echo made")
        .run()?
        .says("made")?;
    ensure!(place.join("new").is_dir(), "not made");
    fs::write(other.join("file"), "other").map_err(|e| e.to_string())?;
    with_folder(&profile, &place.join("new"), &folder)?
        .mount(&other, ":/scratch/below")
        .sh("cat /scratch/below/file")
        .run()?
        .says("other")?;
    Ok(Verdict::Held)
}

/// Nothing is made for a task that is refused for something else, nor is what is
/// there touched.
fn last() -> Result<Verdict, String> {
    let place = Place::new()?;
    let (folder, scratch) = (place.folder("folder")?, place.join("scratch"));
    let make = || {
        let call = with_folder("standard", &scratch, &folder)?;
        Ok(call.args(["--mount", "/nonexistent/x"]))
    };
    refused(make, "mount_source_missing", &["/nonexistent/x"])?;
    ensure!(!scratch.exists(), "made for nobody");
    with_folder("standard", &scratch, &folder)?
        .sh("echo made")
        .run()?
        .says("made")?;
    fs::set_permissions(&scratch, fs::Permissions::from_mode(0o750)).map_err(|e| e.to_string())?;
    with_folder("standard", &scratch, &folder)?
        .sh("echo again")
        .run()?
        .says("again")?;
    let found = owner_and_mode(&scratch)?;
    ensure!(found == (OWNER, OWNER, 0o750), "{found:?}");
    Ok(Verdict::Held)
}

fn shown() -> Result<Verdict, String> {
    let place = Place::new()?;
    let (folder, scratch) = (place.folder("folder")?, place.join("scratch"));
    let look = |words: &[&str]| -> Result<serde_json::Value, String> {
        let done = Command::new(orch())
            .args(words)
            .args(["--folder".as_ref(), folder.as_os_str()])
            .args(["--scratch".as_ref(), scratch.as_os_str()])
            .args(["--", "true"])
            .env("ORCH_STATE_DIR", place.join("state"))
            .stdin(Stdio::null())
            .output()
            .map_err(|e| format!("start orch: {e}"))?;
        serde_json::from_slice(&done.stdout)
            .map_err(|e| format!("{e}: {}", String::from_utf8_lossy(&done.stderr)))
    };
    let source = scratch.to_string_lossy();
    let dry = look(&["run", "--dry-run"])?;
    let bind = &dry["container"]["binds"][1];
    ensure!(
        bind["target"] == "/scratch" && bind["mode"] == "rw" && bind["source"] == source.as_ref(),
        "{bind}"
    );
    let env = dry["task"]["env"].to_string();
    ensure!(env.contains("\"SCRATCH=/scratch\""), "{env}");
    let bundle = place.join("bundle");
    let mounts = look(&["spec"])?["mounts"].clone();
    let mount = mounts.as_array().into_iter().flatten();
    let mount = mount.filter(|mount| mount["destination"] == "/scratch");
    let sources: Vec<_> = mount.map(|mount| mount["source"].clone()).collect();
    ensure!(sources == [source.as_ref()], "{sources:?}");
    // A bundle has a place for it.
    let written = look(&["spec", "--bundle", &bundle.to_string_lossy()]);
    ensure!(
        bundle.join("rootfs/scratch").is_dir() && !scratch.exists(),
        "{written:?}"
    );
    Ok(Verdict::Held)
}
