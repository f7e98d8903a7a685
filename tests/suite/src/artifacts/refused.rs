//! Where nothing is kept, and what is not read (D11).

use std::fs;
use std::os::unix::fs::symlink;

use super::{keeping, only_id, output};
use crate::call::{Call, ensure};
use crate::harness::{Test, Verdict, test};
use crate::place::{Place, names};
use crate::refusal::refused;

pub fn tests() -> Vec<Test> {
    vec![
        test("artifacts::not_where_the_task_could_write_ev05", writable),
        test("artifacts::not_through_a_link_of_the_task_d11", links),
        test("artifacts::not_where_no_directory_can_be_ev05", nowhere),
        test("artifacts::a_refused_task_leaves_none_ev05", nothing_left),
        test("artifacts::ids_lead_nowhere_else_d11", ids),
    ]
}

/// What a task can change is no evidence; what it only reads, it cannot change.
fn writable() -> Result<Verdict, String> {
    let place = Place::new()?;
    let folder = place.folder("folder")?;
    symlink(&folder, place.join("link")).map_err(|e| e.to_string())?;
    let call = |tier: &str, dir: &str| -> Result<Call, String> {
        Ok(Call::new(tier)?
            .args(["--folder".as_ref(), folder.as_os_str()])
            .args(["--artifacts".as_ref(), place.join(dir).as_os_str()]))
    };
    for dir in ["folder", "folder/below/deep", "link/below"] {
        refused(
            || call("standard", dir),
            "artifacts_failed",
            &["the task can write"],
        )?;
    }
    let mounted = || {
        let call = Call::new("standard")?.mount(&folder, ":/data:rw");
        Ok(call.args(["--artifacts".as_ref(), folder.join("x").as_os_str()]))
    };
    refused(mounted, "artifacts_failed", &["the task can write"])?;
    // Results have names of the task's choice: those of an earlier task, for one.
    let out = || {
        let out = place.join("out");
        let call = Call::new("strict")?.args(["--out".as_ref(), out.as_os_str()]);
        Ok(call.args(["--artifacts".as_ref(), out.as_os_str()]))
    };
    refused(out, "artifacts_failed", &["the task can write"])?;
    ensure!(names(&place.join("out"))?.is_empty(), "something is in out");
    ensure!(names(&folder)?.is_empty(), "{:?}", names(&folder)?);
    for (tier, dir) in [("standard", "beside"), ("strict", "folder/below")] {
        call(tier, dir)?.sh("echo kept").run()?.says("kept")?;
        ensure!(names(&place.join(dir))?.len() == 1, "{dir}");
    }
    Ok(Verdict::Held)
}

/// A task before this one has left a link where artifacts are to be kept.
fn links() -> Result<Verdict, String> {
    let place = Place::new()?;
    let (folder, victim) = (place.folder("folder")?, place.folder("victim")?);
    Call::new("standard")?
        .args(["--folder".as_ref(), folder.as_os_str()])
        .cmd([
            "ln".as_ref(),
            "-s".as_ref(),
            victim.as_os_str(),
            "kept".as_ref(),
        ])
        .run()?
        .says("")?;
    ensure!(folder.join("kept").is_symlink(), "nothing was planted");
    let call = |dir: std::path::PathBuf| -> Result<Call, String> {
        Ok(Call::new("strict")?
            .args(["--folder".as_ref(), folder.as_os_str()])
            .args(["--artifacts".as_ref(), dir.as_os_str()]))
    };
    for dir in ["kept", "kept/below"] {
        refused(
            || call(folder.join(dir)),
            "artifacts_failed",
            &["a link in a folder of the task"],
        )?;
    }
    ensure!(names(&victim)?.is_empty(), "{:?}", names(&victim)?);
    // The caller's own links are the caller's.
    symlink(&victim, place.join("own")).map_err(|e| e.to_string())?;
    call(place.join("own"))?
        .sh("echo kept")
        .run()?
        .says("kept")?;
    ensure!(names(&victim)?.len() == 1, "{:?}", names(&victim)?);
    Ok(Verdict::Held)
}

fn nowhere() -> Result<Verdict, String> {
    let place = Place::new()?;
    let file = place.file("file", "x")?;
    for (dir, code) in [
        (file.clone(), "artifacts_failed"),
        (file.join("below"), "artifacts_failed"),
        ("/proc/nowhere".into(), "artifacts_failed"),
        (place.join("../escape"), "mount_invalid"),
        ("".into(), "usage"),
    ] {
        let make = || Ok(Call::new("strict")?.args(["--artifacts".as_ref(), dir.as_os_str()]));
        refused(make, code, &[]).map_err(|why| format!("{}: {why}", dir.display()))?;
    }
    ensure!(
        names(place.path())? == ["file"],
        "{:?}",
        names(place.path())?
    );
    Ok(Verdict::Held)
}

fn nothing_left() -> Result<Verdict, String> {
    let place = Place::new()?;
    let make = || Ok(keeping(&place, "strict")?.args(["--mount", "/nonexistent/x"]));
    refused(make, "mount_source_missing", &[])?;
    // Found out when the room is taken already.
    let make = || Ok(keeping(&place, "strict")?.args(["--workdir", "/nonexistent"]));
    refused(make, "workdir_missing", &[])?;
    ensure!(
        names(place.path())?.is_empty(),
        "{:?}",
        names(place.path())?
    );
    // The control.
    keeping(&place, "strict")?
        .sh("echo kept")
        .run()?
        .says("kept")?;
    only_id(&place)?;
    Ok(Verdict::Held)
}

fn ids() -> Result<Verdict, String> {
    let place = Place::new()?;
    keeping(&place, "strict")?
        .sh("echo kept")
        .run()?
        .says("kept")?;
    let (kept, id) = (place.join("kept"), only_id(&place)?);
    let other = "0123456789abcdef0123456789abcdef";
    symlink(&id, kept.join(other)).map_err(|e| e.to_string())?;
    let absolute = kept.join(&id);
    let absolute = absolute.to_string_lossy();
    let up = format!("../kept/{id}");
    let unknown = other.replace('0', "f");
    for (id, code) in [
        ("..", "usage"),
        (up.as_str(), "usage"),
        (&absolute, "usage"),
        ("", "usage"),
        (&id[..31], "usage"),
        (&unknown, "artifacts_unknown"),
        (other, "artifacts_failed"),
    ] {
        let read = output(&kept, id, &["--format", "json"])?;
        let document: serde_json::Value =
            serde_json::from_slice(&read.stdout).map_err(|e| format!("{id:?}: {e} {read:?}"))?;
        ensure!(
            read.code == Some(125) && document["error"]["code"] == code,
            "{id:?}: {read:?}"
        );
    }
    let read = output(&kept, &id, &["--offset", "6"])?;
    ensure!(
        read.code == Some(125)
            && read
                .stderr
                .contains("beyond the end of the output, which has 5"),
        "{read:?}"
    );
    let folder = kept.join(&id);
    let read = output(&kept, &id, &["--offset", "5"])?;
    ensure!(read.code == Some(0) && read.stdout.is_empty(), "{read:?}");
    // What lies under an id leads nowhere else either.
    let log = folder.join("output.log");
    fs::rename(&log, folder.join("moved"))
        .and_then(|()| symlink("moved", &log))
        .map_err(|e| e.to_string())?;
    let read = output(&kept, &id, &[])?;
    ensure!(
        read.code == Some(125) && read.stderr.contains("code: artifacts_failed"),
        "{read:?}"
    );
    fs::rename(folder.join("moved"), &log).map_err(|e| e.to_string())?;
    let read = output(&kept, &id, &[])?;
    ensure!(read.stdout == b"kept\n", "{read:?}");
    Ok(Verdict::Held)
}
