//! Odd names work wherever the kernel allows them (PR-37).

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::chown;

use crate::call::{Call, Input, ensure};
use crate::harness::{Test, Verdict, test};
use crate::place::{OWNER, Place};

pub fn tests() -> Vec<Test> {
    vec![
        test("paths::mount_sources", || each(mount)),
        test("paths::mount_targets", || each(target)),
        test("paths::folders", || each(folder)),
        test("paths::arguments", || each(argument)),
        test("paths::values_of_variables", || each(variable)),
        test("paths::working_directories", || each(workdir)),
        test("paths::profiles_and_receipts", || each(profile)),
        test("paths::copy_out_directories", || each(out)),
        test("paths::state_directories", || each(state)),
        test("paths::relative_ones_start_where_orch_does", relative),
        test("paths::an_empty_and_a_long_argument_list", long),
    ]
}

/// Names as bytes.
const NAMES: &[&[u8]] = &[
    b"plain",
    b"two words",
    b"new\nline",
    b"not\xffutf8\xfe",
    b"co:lon:rw",
    b"back\\slash",
    b"-dash",
    b"quote'\"`$(x)",
    "\u{dc}n\u{ef}c\u{f6}de \u{1f600}".as_bytes(),
    b"tab\tand\x1b[31mescape",
    b"%s%n{}*?[",
    b" lead and trail ",
];

fn each(attempt: fn(&OsStr) -> Result<(), String>) -> Result<Verdict, String> {
    let mut failed = Vec::new();
    for name in NAMES {
        let name = OsStr::from_bytes(name);
        if let Err(why) = attempt(name) {
            failed.push(format!("{name:?}: {why}"));
        }
    }
    ensure!(failed.is_empty(), "{}", failed.join("\n"));
    Ok(Verdict::Held)
}

fn join(start: &str, name: &OsStr) -> OsString {
    let mut bytes = start.as_bytes().to_vec();
    bytes.extend(name.as_bytes());
    OsString::from_vec(bytes)
}

fn mount(name: &OsStr) -> Result<(), String> {
    let place = Place::new()?;
    let source = place.file(name, "content")?;
    let path = join("/workspace/", name);
    let call = Call::new("strict")?.mount(&source, "");
    call.cmd([OsStr::new("cat"), &path])
        .run()?
        .says("content")?;
    Ok(())
}

/// A target with a colon is written with a backslash as well.
fn target(name: &OsStr) -> Result<(), String> {
    let place = Place::new()?;
    let source = place.file("source", "content")?;
    let mut text = source.as_os_str().as_bytes().to_vec();
    text.extend(b":/data/");
    for byte in name.as_bytes() {
        if matches!(byte, b':' | b'\\') {
            text.push(b'\\');
        }
        text.push(*byte);
    }
    let call = Call::new("standard")?.args(["--mount".into(), OsString::from_vec(text)]);
    let path = join("/data/", name);
    call.cmd([OsStr::new("cat"), &path])
        .run()?
        .says("content")?;
    Ok(())
}

fn folder(name: &OsStr) -> Result<(), String> {
    let place = Place::new()?;
    let folder = place.folder(name)?;
    let call = Call::new("standard")?.args([OsStr::new("--folder"), folder.as_os_str()]);
    call.sh("echo written > file; echo done")
        .run()?
        .says("done")?;
    let text = fs::read_to_string(folder.join("file")).map_err(|e| e.to_string())?;
    ensure!(text == "written\n", "{text:?}");
    Ok(())
}

fn argument(name: &OsStr) -> Result<(), String> {
    let ended = Call::new("strict")?
        .cmd([OsStr::new("printf"), OsStr::new("%s"), name])
        .run()?;
    ensure!(ended.stdout == name.as_bytes(), "{ended:?}");
    Ok(())
}

fn variable(name: &OsStr) -> Result<(), String> {
    let ended = Call::new("strict")?
        .args([OsStr::new("--env"), &join("ODD=", name)])
        .sh("printf %s \"$ODD\"")
        .run()?;
    ensure!(ended.stdout == name.as_bytes(), "{ended:?}");
    // The same passed on by name.
    let ended = Call::new("strict")?
        .args(["--env", "ODD"])
        .env("ODD", name)
        .sh("printf %s \"$ODD\"")
        .run()?;
    ensure!(ended.stdout == name.as_bytes(), "by name: {ended:?}");
    Ok(())
}

fn workdir(name: &OsStr) -> Result<(), String> {
    let place = Place::new()?;
    let folder = place.folder("folder")?;
    fs::create_dir(folder.join(name)).map_err(|e| e.to_string())?;
    let ended = Call::new("standard")?
        .args([OsStr::new("--folder"), folder.as_os_str()])
        .args([OsString::from_vec(
            [b"--workdir=", name.as_bytes()].concat(),
        )])
        .sh("printf %s \"$PWD\"")
        .run()?;
    ensure!(
        ended.stdout == join("/workspace/", name).as_bytes(),
        "{ended:?}"
    );
    Ok(())
}

fn profile(name: &OsStr) -> Result<(), String> {
    let place = Place::new()?;
    let path = place.file(name, "extends: strict\n")?;
    let receipt = place.join("receipts");
    fs::create_dir(&receipt).map_err(|e| e.to_string())?;
    let receipt = receipt.join(name);
    let call = Call::new(&path)?.no_receipt();
    let call = call.args([OsStr::new("--receipt"), receipt.as_os_str()]);
    let ended = call.sh("echo done").run()?;
    ensure!(ended.code() == 0 && ended.out() == "done", "{ended:?}");
    let text = fs::read_to_string(&receipt).map_err(|e| e.to_string())?;
    ensure!(text.contains("\"exit_code\": 0"), "{text}");
    Ok(())
}

fn out(name: &OsStr) -> Result<(), String> {
    let place = Place::new()?;
    let out = place.join(name);
    let ended = Call::new("strict")?
        .args([OsString::from_vec(
            [b"--out=", out.as_os_str().as_bytes()].concat(),
        )])
        .args([OsStr::new("--env"), &join("ODD=", name)])
        .sh("echo result > \"/tmp/out/$ODD\"")
        .run()?;
    ensure!(ended.code() == 0, "{ended:?}");
    let text = fs::read_to_string(out.join(name)).map_err(|e| format!("{e}: {ended:?}"))?;
    ensure!(text == "result\n", "{text:?}");
    Ok(())
}

fn state(name: &OsStr) -> Result<(), String> {
    let place = Place::new()?;
    let ended = Call::new("strict")?
        .env("ORCH_STATE_DIR", place.join(name))
        .env("ORCH_UID_BLOCK", crate::left::uid_block(&place.join(name)))
        .sh("echo done")
        .run()?;
    ensure!(ended.code() == 0 && ended.out() == "done", "{ended:?}");
    Ok(())
}

fn relative() -> Result<Verdict, String> {
    let place = Place::new()?;
    let folder = place.folder("folder")?;
    let file = place.file("file", "content")?;
    chown(&file, Some(OWNER), Some(OWNER)).map_err(|e| e.to_string())?;
    fs::write(folder.join("own"), "own").map_err(|e| e.to_string())?;
    place.profile("extends: standard\n")?;
    let ended = Call::new("profile.yaml")?
        .cwd(place.path())
        .args([
            "--mount",
            "./file:/data/file",
            "--folder",
            "folder",
            "--out",
            "out",
        ])
        .sh("cat own /data/file; echo result > /tmp/out/result")
        .run()?;
    ended.says("owncontent")?;
    let text = fs::read_to_string(place.join("out/result")).map_err(|e| e.to_string())?;
    ensure!(text == "result\n", "{text:?}");
    Ok(Verdict::Held)
}

fn long() -> Result<Verdict, String> {
    let ended = Call::new("strict")?
        .cmd(["printf", "<%s>", "", "a", ""])
        .run()?;
    ensure!(ended.out() == "<><a><>", "{ended:?}");
    // Up to 64 KiB the lease is asked before it is there, and above that afterwards.
    for length in [60_000, 65_500, 66_000, 120_000] {
        let ended = Call::new("strict")?
            .cmd(["printf", "%s", &"y".repeat(length)])
            .input(Input::Null)
            .run()?;
        ensure!(
            ended.stdout.len() == length,
            "{} of {length} bytes",
            ended.stdout.len()
        );
    }
    // One argument may have 128 KiB (execve(2)), all of them a quarter of the stack.
    let long = "x".repeat(100_000);
    let many: Vec<&str> = std::iter::repeat_n(long.as_str(), 8).collect();
    let ended = Call::new("strict")?
        .cmd([&["printf", "%s"][..], &many].concat())
        .input(Input::Null)
        .run()?;
    ensure!(
        ended.stdout.len() == 800_000,
        "{} bytes",
        ended.stdout.len()
    );
    Ok(Verdict::Held)
}
