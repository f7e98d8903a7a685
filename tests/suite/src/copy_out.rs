//! `--out`: what leaves a sandbox, whoever left it (D11, D12, issue item 9).

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::call::{Call, Ended, ensure};
use crate::harness::{Test, Verdict, test};
use crate::limits::limited;
use crate::pace;
use crate::place::{Place, names};

pub fn tests() -> Vec<Test> {
    vec![
        test("copy_out::files_and_directories", ordinary),
        test("copy_out::nothing_is_left_to_copy", empty),
        test("copy_out::links_pipes_and_sockets_stay_d11_d12", special),
        test("copy_out::out_itself_replaced_by_a_link_d11", out_is_link),
        test("copy_out::no_setuid_bits_a25", setuid),
        test("copy_out::deep_trees", deep),
        test("copy_out::odd_names", odd),
        test("copy_out::a_sparse_giant_d12", sparse),
        test("copy_out::what_is_there_is_replaced", replaced),
        test(
            "copy_out::links_in_the_destination_are_not_followed",
            destination_links,
        ),
        test("copy_out::after_a_limit_has_ended_the_task", after_limit),
        test("copy_out::unreadable_for_its_owner", unreadable),
        test("copy_out::a_destination_that_cannot_be_written", unwritable),
        test("copy_out::a_growing_file_d12", growing),
    ]
}

fn run(place: &Place, tier: &str, script: &str) -> Result<(PathBuf, Ended), String> {
    let out = place.join("out");
    let ended = Call::new(tier)?
        .args(["--network", "none", "--out"])
        .args([&out])
        .sh(script)
        .run()?;
    Ok((out, ended))
}

fn text(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| format!("read {}: {e}", path.display()))
}

/// Why an entry was left behind, as the receipt says.
fn reason(ended: &Ended, name: &str) -> Result<String, String> {
    let skipped = ended.fact("/out/skipped").as_array();
    skipped
        .into_iter()
        .flatten()
        .find(|entry| entry[0] == name)
        .and_then(|entry| entry[1].as_str().map(str::to_owned))
        .ok_or_else(|| format!("nothing said about {name}: {:?}", ended.fact("/out")))
}

fn ordinary() -> Result<Verdict, String> {
    for tier in ["loose", "standard", "strict"] {
        let place = Place::new()?;
        let script = "cd /tmp/out && echo a > a && mkdir -p d/e && echo b > d/e/b && : > none \
                      && mkdir empty && printf '#!/bin/sh\\n' > tool && chmod 700 tool && chmod 600 a";
        let (out, ended) = run(&place, tier, script)?;
        ensure!(ended.code() == 0, "{ended:?}");
        ensure!(
            text(&out.join("a"))? == "a\n" && text(&out.join("d/e/b"))? == "b\n",
            "contents differ"
        );
        let there = names(&out)?;
        ensure!(there == ["a", "d", "empty", "none", "tool"], "{there:?}");
        for (name, mode) in [("a", 0o644), ("tool", 0o755), ("d", 0o755)] {
            let found = fs::metadata(out.join(name)).map_err(|e| e.to_string())?;
            ensure!(
                found.mode() & 0o7777 == mode && found.uid() == 0,
                "{name}: {:o} of {}",
                found.mode(),
                found.uid()
            );
        }
        ensure!(
            ended.fact("/out/files") == 4 && ended.fact("/out/bytes") == 14,
            "{:?}",
            ended.fact("/out")
        );
        ended.mentions("4 files")?;
    }
    Ok(Verdict::Held)
}

fn empty() -> Result<Verdict, String> {
    let place = Place::new()?;
    let (out, ended) = run(&place, "strict", "rmdir /tmp/out 2>/dev/null; true")?;
    ensure!(names(&out)?.is_empty() && ended.code() == 0, "{ended:?}");
    // Without --out nothing is copied, and nothing is said about it.
    let ended = Call::new("strict")?.sh("echo x > /tmp/out/x").run()?;
    ensure!(ended.fact("out").is_null(), "{:?}", ended.fact("out"));
    Ok(Verdict::Held)
}

fn special() -> Result<Verdict, String> {
    for tier in ["standard", "strict"] {
        let place = Place::new()?;
        let witness = place.file("witness", "secret of the host")?;
        let script = format!(
            "cd /tmp/out && echo ok > ok && ln -s {} leaf && ln -s /etc/shadow shadow \
             && ln -s / root && ln -s ../../../../../../etc up && mkfifo pipe && mkdir d \
             && ln -s /etc d/etc && ln -s /proc/self/fd fds && ln ok hard; \
             mknod null c 1 3 2>/dev/null && echo device; \
             ls /usr/bin/perl >/dev/null && perl -MSocket -e \
             'socket(S, PF_UNIX, SOCK_STREAM, 0) && bind(S, sockaddr_un(\"sock\"))'; true",
            witness.display()
        );
        let (out, ended) = run(&place, tier, &script)?;
        ensure!(ended.out().is_empty() && ended.code() == 0, "{ended:?}");
        for name in ["leaf", "shadow", "root", "up", "fds", "d/etc"] {
            ensure!(
                fs::symlink_metadata(out.join(name)).is_err(),
                "{tier}: {name} has come out"
            );
            ensure!(reason(&ended, name)?.contains("link"), "{name}");
        }
        ensure!(reason(&ended, "pipe")?.contains("pipe"), "pipe");
        for name in names(&out)? {
            let kind = fs::symlink_metadata(out.join(&name)).map_err(|e| e.to_string())?;
            let kind = kind.file_type();
            ensure!(
                !kind.is_fifo()
                    && !kind.is_socket()
                    && !kind.is_char_device()
                    && !kind.is_symlink(),
                "{name} is a {kind:?}"
            );
        }
        ensure!(
            text(&out.join("ok"))? == "ok\n" && text(&out.join("hard"))? == "ok\n",
            "the control did not come out"
        );
    }
    Ok(Verdict::Held)
}

/// `/tmp/out` is the task's own: it can put anything in its place.
fn out_is_link() -> Result<Verdict, String> {
    for script in [
        "rm -rf /tmp/out && ln -s /etc /tmp/out",
        "rm -rf /tmp/out && ln -s / /tmp/out",
        "rm -rf /tmp/out && mkfifo /tmp/out",
        "rm -rf /tmp/out && echo x > /tmp/out",
        "rm -rf /tmp/out && mkdir /tmp/real && echo x > /tmp/real/x && ln -s real /tmp/out",
    ] {
        let place = Place::new()?;
        let (out, ended) = run(
            &place,
            "standard",
            &format!("{script}; ls -ld /tmp/out | cut -c1"),
        )?;
        // Where the directory cannot be replaced there is nothing to show.
        let there = names(&out)?;
        ensure!(there.is_empty(), "{script}: {there:?} came out");
        ensure!(
            ended.elapsed < pace::here(Duration::from_secs(10)),
            "{script}: {ended:?}"
        );
        if ended.out() != "d" {
            ensure!(!reason(&ended, "out")?.is_empty(), "{script}");
        }
    }
    Ok(Verdict::Held)
}

fn setuid() -> Result<Verdict, String> {
    let place = Place::new()?;
    let script = "cd /tmp/out && cp /bin/sh shell && chmod 755 shell; chmod 4755 shell; \
                  chmod g+s shell; install -m 6755 /bin/sh installed; mkdir -m 2777 d; \
                  umask 0; : > open; chmod 1777 d; chmod 777 open; true";
    let (out, ended) = run(&place, "standard", script)?;
    ensure!(ended.code() == 0, "{ended:?}");
    for name in names(&out)? {
        let found = fs::metadata(out.join(&name)).map_err(|e| e.to_string())?;
        // Nor may others write what the caller is about to use.
        ensure!(
            found.mode() & 0o7022 == 0,
            "{name} has mode {:o}",
            found.mode()
        );
    }
    ensure!(out.join("shell").exists(), "the control did not come out");
    Ok(Verdict::Held)
}

fn deep() -> Result<Verdict, String> {
    let place = Place::new()?;
    let script = "cd /tmp/out; n=0; while [ $n -lt 300 ]; do mkdir d && cd d || break; \
                  echo $n > f; n=$((n + 1)); done; echo $n";
    let (out, ended) = run(&place, "standard", script)?;
    ensure!(ended.out() == "300" && ended.code() == 0, "{ended:?}");
    let mut path = out;
    let mut depth = 0;
    while path.join("d").is_dir() {
        path.push("d");
        depth += 1;
    }
    ensure!((16..300).contains(&depth), "{depth} levels came out");
    let said = ended.fact("/out/skipped").to_string();
    ensure!(said.contains("too deep"), "{said}");
    Ok(Verdict::Held)
}

fn odd() -> Result<Verdict, String> {
    let place = Place::new()?;
    let script = "cd /tmp/out; for n in 'two words' 'new\nline' '-dash' '...' ' ' '*' 'a:b'; do \
                  echo x > \"./$n\"; done; printf x > \"$(printf 'not\\377utf8')\"; \
                  echo x > \"$(printf '%0255d' 0)\"; ls | wc -l";
    let (out, ended) = run(&place, "strict", script)?;
    ensure!(ended.code() == 0, "{ended:?}");
    ensure!(ended.fact("/out/files") == 9, "{:?}", ended.fact("/out"));
    ensure!(names(&out)?.len() == 9, "{:?}", names(&out)?);
    Ok(Verdict::Held)
}

/// 50 GB that cost the task nothing must cost the host nothing.
fn sparse() -> Result<Verdict, String> {
    let place = Place::new()?;
    let profile = place.profile("tier: loose\nlimits:\n  file_size_mb: 8192\n")?;
    let script = "cd /tmp/out && truncate -s 8G giant; for n in 1 2 3 4 5 6 7; do \
                  truncate -s 7G giant$n; done; echo ok > ok; du -k giant | cut -f1";
    let out = place.join("out");
    let ended = Call::new(&profile)?
        .args(["--network", "none", "--out"])
        .args([&out])
        .sh(script)
        .run()?;
    ensure!(ended.code() == 0 && ended.out() == "0", "{ended:?}");
    ensure!(names(&out)? == ["ok"], "{:?}", names(&out)?);
    ensure!(reason(&ended, "giant")?.contains("limits.out_mb"), "giant");
    ensure!(
        ended.elapsed < pace::here(Duration::from_secs(20)),
        "{ended:?}"
    );
    Ok(Verdict::Held)
}

/// `limits.out_mb`, called from the table of limits: a file that does not fit is
/// left behind whole and named, the rest comes out.
pub fn limit() -> Result<Verdict, String> {
    let place = Place::new()?;
    let out = place.join("out");
    let (_profile, call) = limited(&["out_mb: 1"])?;
    let script = "cd /tmp/out && head -c 700000 /dev/zero > a && head -c 2000000 /dev/zero > big \
                  && echo small > small";
    let ended = call
        .args(["--out".as_ref(), out.as_os_str()])
        .sh(script)
        .run()?;
    ensure!(ended.code() == 0, "{ended:?}");
    ensure!(names(&out)? == ["a", "small"], "{:?}", names(&out)?);
    ensure!(reason(&ended, "big")?.contains("limits.out_mb"), "big");
    ended.mentions("left behind")?;
    // All together count, not each alone.
    let out = place.join("sum");
    let (_profile, call) = limited(&["out_mb: 1"])?;
    let script = "cd /tmp/out && for n in 1 2 3 4; do head -c 400000 /dev/zero > $n; done";
    let ended = call
        .args(["--out".as_ref(), out.as_os_str()])
        .sh(script)
        .run()?;
    let bytes = ended.fact("/out/bytes").as_u64();
    ensure!(
        names(&out)?.len() == 2 && bytes == Some(800_000),
        "{:?} {bytes:?}",
        names(&out)?
    );
    Ok(Verdict::Held)
}

fn replaced() -> Result<Verdict, String> {
    let place = Place::new()?;
    let out = place.join("out");
    let make = || -> std::io::Result<()> {
        fs::create_dir_all(out.join("sub"))?;
        fs::create_dir(out.join("isdir"))?;
        fs::write(out.join("file"), "old, and longer than what comes")?;
        fs::write(out.join("sub/inner"), "old")?;
        fs::write(out.join("isfile"), "old")?;
        fs::write(out.join("stays"), "stays")
    };
    make().map_err(|e| e.to_string())?;
    let script = "cd /tmp/out && echo new > file && mkdir sub && echo new > sub/inner \
                  && echo x > isdir && mkdir isfile && echo x > isfile/x";
    let (out, ended) = run(&place, "strict", script)?;
    ensure!(ended.code() == 0, "{ended:?}");
    ensure!(
        text(&out.join("file"))? == "new\n"
            && text(&out.join("sub/inner"))? == "new\n"
            && text(&out.join("stays"))? == "stays",
        "contents differ"
    );
    // What cannot be put in place is said, and what stands there stays.
    ensure!(
        out.join("isdir").is_dir() && !reason(&ended, "isdir")?.is_empty(),
        "isdir"
    );
    ensure!(
        text(&out.join("isfile"))? == "old" && !reason(&ended, "isfile")?.is_empty(),
        "isfile"
    );
    Ok(Verdict::Held)
}

fn destination_links() -> Result<Verdict, String> {
    let place = Place::new()?;
    let victim = place.file("victim", "victim")?;
    let outside = place.folder("outside")?;
    let out = place.join("out");
    fs::create_dir(&out)
        .and_then(|()| symlink(&victim, out.join("leaf")))
        .and_then(|()| symlink(&outside, out.join("dir")))
        .map_err(|e| e.to_string())?;
    let script =
        "cd /tmp/out && echo task > leaf && mkdir dir && echo task > dir/file && echo ok > ok";
    let (out, ended) = run(&place, "strict", script)?;
    ensure!(text(&victim)? == "victim", "written through a link");
    ensure!(names(&outside)?.is_empty(), "written below a link");
    ensure!(
        text(&out.join("leaf"))? == "task\n" && !out.join("leaf").is_symlink(),
        "leaf"
    );
    ensure!(
        !reason(&ended, "dir")?.is_empty() && text(&out.join("ok"))? == "ok\n",
        "dir"
    );
    Ok(Verdict::Held)
}

fn after_limit() -> Result<Verdict, String> {
    let place = Place::new()?;
    let out = place.join("out");
    let ended = Call::new("strict")?
        .args(["--timeout", "1s", "--out"])
        .args([&out])
        .sh("echo half > /tmp/out/half; sleep 640")
        .run()?
        .is(124, "timeout", "timeout")?;
    ensure!(text(&out.join("half"))? == "half\n", "{ended:?}");
    Ok(Verdict::Held)
}

/// Modes are the task's; whether something comes out is not up to them.
fn unreadable() -> Result<Verdict, String> {
    let place = Place::new()?;
    let script = "cd /tmp/out && echo x > f && mkdir d && echo y > d/g && chmod 0 f d . ";
    let (out, ended) = run(&place, "strict", script)?;
    ensure!(ended.code() == 0, "{ended:?}");
    ensure!(
        text(&out.join("f"))? == "x\n" && text(&out.join("d/g"))? == "y\n",
        "{:?}",
        ended.fact("/out")
    );
    let mode = fs::metadata(&out).map_err(|e| e.to_string())?.permissions();
    ensure!(mode.mode() & 0o700 == 0o700, "mode {:o}", mode.mode());
    Ok(Verdict::Held)
}

/// The command has run by then: its success is no success without its results.
fn unwritable() -> Result<Verdict, String> {
    let place = Place::new()?;
    let file = place.file("file", "x")?;
    let ended = Call::new("strict")?
        .args(["--out".as_ref(), file.as_os_str()])
        .sh("echo x > /tmp/out/x")
        .run()?;
    ensure!(ended.code() == 125, "{ended:?}");
    ended.mentions("code: copy_out_failed")?;
    ensure!(text(&file)? == "x", "the file has changed");
    Ok(Verdict::Held)
}

/// Its writer outlives the command, and is gone before anything is copied.
fn growing() -> Result<Verdict, String> {
    let place = Place::new()?;
    let script = "(while :; do echo more >> /tmp/out/grows; done) & \
                  while [ ! -s /tmp/out/grows ]; do :; done; echo done";
    let (out, ended) = run(&place, "strict", script)?;
    ensure!(ended.code() == 0 && ended.out() == "done", "{ended:?}");
    let text = text(&out.join("grows"))?;
    ensure!(
        !text.is_empty() && text.lines().all(|line| line == "more"),
        "{} bytes",
        text.len()
    );
    Ok(Verdict::Held)
}
