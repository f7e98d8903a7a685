//! Folders and mounts that are there (PX-02, FS-01…FS-14, FS-18, FS-19, FS-22, A25).

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;

use crate::call::{Call, Ended, ensure};
use crate::harness::{Test, Verdict, test};
use crate::place::{OWNER, Place, names};

pub fn tests() -> Vec<Test> {
    vec![
        test(
            "folders::what_is_written_belongs_to_the_owner_fs02",
            ownership,
        ),
        test("folders::strict_only_reads_one_fs_pr09", strict),
        test("folders::root_owned_ones_need_a_word", root_owned),
        test("folders::no_setuid_bit_can_be_planted_a25", setuid),
        test("folders::links_lead_nowhere_outside_fs19_fs22", links),
        test("folders::mounts_are_read_only_fs10_fs13_fs18", read_only),
        test("folders::writable_only_when_asked_fs14", writable),
        test("folders::later_mounts_shadow_earlier_ones_fs06", order),
        test("folders::a_mount_below_a_folder", below),
        test("folders::nothing_is_made_in_a_folder", nothing_made),
        test("folders::the_rest_of_the_host_is_not_there_fs01_fs04", rest),
        test("folders::the_system_cannot_be_written_fs03", system),
        test("folders::tmp_is_new_every_time_fs05", tmp),
        test("folders::commands_start_in_the_workspace_px02", start),
    ]
}

fn text(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| format!("read {}: {e}", path.display()))
}

fn in_folder(tier: &str, folder: &Path, script: &str) -> Result<Ended, String> {
    Call::new(tier)?
        .args(["--network", "none"])
        .args(["--folder".as_ref(), folder.as_os_str()])
        .sh(script)
        .run()
}

fn ownership() -> Result<Verdict, String> {
    for tier in ["loose", "standard"] {
        let place = Place::new()?;
        let folder = place.folder("folder")?;
        let old = folder.join("old");
        fs::write(&old, "old")
            .and_then(|()| chown(&old, Some(OWNER), Some(OWNER)))
            .map_err(|e| e.to_string())?;
        let script = "set -e; id -u; stat -c %u old .; echo new > new; mkdir dir; \
                      echo deep > dir/deep; echo more >> old; ln new hard; ln -s new soft; \
                      mv dir moved; touch gone; rm gone; chmod 600 new; cat soft";
        in_folder(tier, &folder, script)?.says("1000\n1000\n1000\nnew")?;
        for name in ["new", "moved", "moved/deep", "old", "hard"] {
            let found = fs::metadata(folder.join(name)).map_err(|e| format!("{name}: {e}"))?;
            ensure!(
                (found.uid(), found.gid()) == (OWNER, OWNER),
                "{tier}: {name} belongs to {}:{}",
                found.uid(),
                found.gid()
            );
        }
        ensure!(text(&old)? == "oldmore\n", "{}", text(&old)?);
        let there = names(&folder)?;
        ensure!(
            there == ["hard", "moved", "new", "old", "soft"],
            "{there:?}"
        );
    }
    Ok(Verdict::Held)
}

fn strict() -> Result<Verdict, String> {
    let place = Place::new()?;
    let folder = place.folder("folder")?;
    fs::write(folder.join("file"), "content").map_err(|e| e.to_string())?;
    let script = "cat file; for w in 'echo x > new' 'echo x > file' 'rm -f file' 'mkdir d' \
                  'chmod 777 .'; do sh -c \"$w\" 2>/dev/null && echo \"done: $w\"; done; \
                  touch new 2>&1 | grep -o 'Read-only file system'";
    in_folder("strict", &folder, script)?.says("contentRead-only file system")?;
    ensure!(names(&folder)? == ["file"], "{:?}", names(&folder)?);
    Ok(Verdict::Held)
}

fn root_owned() -> Result<Verdict, String> {
    let place = Place::new()?;
    let folder = place.join("rooted");
    fs::create_dir(&folder).map_err(|e| e.to_string())?;
    let make = || Ok(Call::new("standard")?.args(["--folder".as_ref(), folder.as_os_str()]));
    crate::refusal::refused(make, "root_owned_folder", &["--allow-root-owned"])?;
    let mount = || Ok(Call::new("standard")?.mount(&folder, ":/data:rw"));
    crate::refusal::refused(mount, "root_owned_folder", &["--allow-root-owned"])?;
    ensure!(names(&folder)?.is_empty(), "{:?}", names(&folder)?);
    let call = make()?.args(["--allow-root-owned"]);
    call.sh("echo x > file; stat -c %u file")
        .run()?
        .says("1000")?;
    let found = fs::metadata(folder.join("file")).map_err(|e| e.to_string())?;
    ensure!(found.uid() == 0, "belongs to {}", found.uid());
    // Only read, it needs no word.
    Call::new("strict")?
        .args(["--folder".as_ref(), folder.as_os_str()])
        .sh("cat file")
        .run()?
        .says("x")?;
    Ok(Verdict::Held)
}

/// Also with a word for root: then it would be a setuid root shell on the host.
fn setuid() -> Result<Verdict, String> {
    let place = Place::new()?;
    let script = "cp /bin/sh shell && chmod 755 shell && echo control; mkdir d; \
                  for mode in 4755 2755 6755 u+s g+s; do \
                    for what in shell d; do chmod $mode $what 2>/dev/null && [ $what = shell ] \
                      && echo \"chmod $mode $what\"; done; \
                    install -m $mode /bin/sh i$mode 2>/dev/null; \
                    mkdir -m $mode m$mode 2>/dev/null; done; \
                  perl -e 'sysopen(F, \"p\", 65, 04755); mkdir(\"q\", 02755)' 2>/dev/null; \
                  cp -p /usr/bin/passwd copy 2>/dev/null; tar c -C /usr/bin su 2>/dev/null | tar xp 2>/dev/null; true";
    // The positive control: nobody keeps root from it outside.
    let outside = place.folder("outside")?;
    let done = std::process::Command::new("sh")
        .args(["-c", script])
        .current_dir(&outside)
        .output()
        .map_err(|e| e.to_string())?;
    let planted = |name: &str| {
        fs::symlink_metadata(outside.join(name)).is_ok_and(|found| found.mode() & 0o6000 != 0)
    };
    ensure!(
        ["shell", "d", "i4755", "m2755", "p", "copy"]
            .into_iter()
            .all(planted),
        "the control planted nothing: {done:?}"
    );
    for owner in [OWNER, 0] {
        for tier in ["loose", "standard"] {
            let folder = place.folder(format!("{tier}-{owner}"))?;
            chown(&folder, Some(owner), Some(owner)).map_err(|e| e.to_string())?;
            Call::new(tier)?
                .args(["--network", "none", "--allow-root-owned"])
                .args(["--folder".as_ref(), folder.as_os_str()])
                .sh(script)
                .run()?
                .says("control")?;
            for name in names(&folder)? {
                let found = fs::symlink_metadata(folder.join(&name)).map_err(|e| e.to_string())?;
                ensure!(
                    found.mode() & 0o6000 == 0,
                    "{tier}, owner {owner}: {name} has mode {:o}",
                    found.mode()
                );
            }
        }
    }
    Ok(Verdict::Held)
}

fn links() -> Result<Verdict, String> {
    let place = Place::new()?;
    let folder = place.folder("folder")?;
    let secret = place.file("secret", "secret")?;
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o666)).map_err(|e| e.to_string())?;
    for (name, target) in [
        ("absolute", secret.as_path()),
        ("relative", Path::new("../secret")),
        ("root", Path::new("/proc/1/root/etc/shadow")),
        ("own", Path::new("/etc/hostname")),
    ] {
        symlink(target, folder.join(name)).map_err(|e| e.to_string())?;
    }
    let script = "for l in absolute relative root; do cat $l 2>/dev/null && echo \"read $l\"; \
                  (echo x >> $l) 2>/dev/null && echo \"wrote $l\"; done; cat own; \
                  cat ../secret 2>/dev/null; ls .. | grep -c secret";
    let ended = in_folder("standard", &folder, script)?;
    ensure!(ended.out() == "sandbox\n0", "{ended:?}");
    ensure!(text(&secret)? == "secret", "the host file has changed");
    Ok(Verdict::Held)
}

/// Every way that a file can be changed, tried by its owner inside.
const CHANGES: &str = "for c in 'echo x > $f' 'echo x >> $f' 'chmod 777 $f' 'touch $f' \
    'mv $f $f.moved' 'rm -f $f' 'ln $f $f.hard' 'truncate -s 0 $f' 'mkdir $d/new' \
    'touch $d/new' 'chmod 777 $d' 'mount -o remount,rw,bind $d' 'umount $d' 'umount -l $d'; do \
    f=$1 d=$2 sh -c \"$c\" 2>/dev/null && echo \"done: $c\"; done; \
    echo x 2>&1 >> $1 | grep -o 'Read-only file system'; cat $1";

fn read_only() -> Result<Verdict, String> {
    for tier in ["loose", "standard", "strict"] {
        let place = Place::new()?;
        let folder = place.folder("data")?;
        let file = folder.join("file");
        fs::write(&file, "content")
            .and_then(|()| chown(&file, Some(OWNER), Some(OWNER)))
            .map_err(|e| e.to_string())?;
        for (rest, inside) in [("", "/workspace/data"), (":/data/deep", "/data/deep")] {
            let ended = Call::new(tier)?
                .args(["--network", "none"])
                .mount(&folder, rest)
                .cmd(["sh", "-c", CHANGES, "sh", &format!("{inside}/file"), inside])
                .run()?;
            ensure!(
                ended.out().ends_with("content") && !ended.out().contains("done:"),
                "{tier}: {ended:?}"
            );
        }
        // A file that is mounted alone.
        let ended = Call::new(tier)?
            .args(["--network", "none"])
            .mount(&file, ":/data/one")
            .cmd(["sh", "-c", CHANGES, "sh", "/data/one", "/data/one"])
            .run()?;
        ensure!(
            ended.out().ends_with("content") && !ended.out().contains("done:"),
            "{tier}: {ended:?}"
        );
        ensure!(
            text(&file)? == "content" && names(&folder)? == ["file"],
            "{tier}: the host's files have changed"
        );
    }
    Ok(Verdict::Held)
}

fn writable() -> Result<Verdict, String> {
    let place = Place::new()?;
    let folder = place.folder("data")?;
    let call = Call::new("standard")?.mount(&folder, ":/data:rw");
    call.sh("echo x > /data/file; cat /data/file")
        .run()?
        .says("x")?;
    let found = fs::metadata(folder.join("file")).map_err(|e| e.to_string())?;
    ensure!(found.uid() == OWNER, "belongs to {}", found.uid());
    // The positive control of `read_only`.
    let call = Call::new("standard")?.mount(&folder, ":/data:rw");
    let ended = call
        .cmd(["sh", "-c", CHANGES, "sh", "/data/file", "/data"])
        .run()?;
    ensure!(ended.out().contains("done: echo x > $f"), "{ended:?}");
    Ok(Verdict::Held)
}

fn order() -> Result<Verdict, String> {
    let place = Place::new()?;
    let (outer, inner) = (place.folder("outer")?, place.folder("inner")?);
    fs::create_dir(outer.join("sub"))
        .and_then(|()| fs::write(outer.join("sub/file"), "outer"))
        .and_then(|()| fs::write(inner.join("file"), "inner"))
        .map_err(|e| e.to_string())?;
    let call = |tier: &str| Ok::<_, String>(Call::new(tier)?.args(["--network", "none"]));
    for tier in ["loose", "standard", "strict"] {
        call(tier)?
            .mount(&outer, ":/data")
            .mount(&inner, ":/data/sub")
            .sh("cat /data/sub/file")
            .run()?
            .says("inner")?;
        call(tier)?
            .mount(&inner, ":/data/sub")
            .mount(&outer, ":/data")
            .sh("cat /data/sub/file")
            .run()?
            .says("outer")?;
    }
    Ok(Verdict::Held)
}

fn below() -> Result<Verdict, String> {
    let place = Place::new()?;
    let (folder, input) = (place.folder("folder")?, place.folder("input")?);
    fs::create_dir(folder.join("input"))
        .and_then(|()| fs::write(input.join("file"), "input"))
        .map_err(|e| e.to_string())?;
    let call = Call::new("standard")?.args(["--folder".as_ref(), folder.as_os_str()]);
    let script = "cat input/file; echo x > input/file || echo refused";
    call.mount(&input, "")
        .sh(script)
        .run()?
        .says("inputrefused")?;
    ensure!(
        names(&folder.join("input"))?.is_empty(),
        "written behind the mount, or mounted there"
    );
    // Without a folder the workspace is in memory, and the place is made.
    let call = Call::new("standard")?.mount(&input, "");
    call.sh("cat input/file; echo x > own && echo own")
        .run()?
        .says("inputown")?;
    Ok(Verdict::Held)
}

/// A mount point that is missing in a folder is not made there, on whatever file
/// system the folder lies.
fn nothing_made() -> Result<Verdict, String> {
    for base in [std::env::temp_dir(), "/dev/shm".into()] {
        // Nothing on tmpfs can be mounted before Linux 6.3, and that is said.
        let (code, words): (_, &[&str]) =
            if base == Path::new("/dev/shm") && crate::rig::host::version() < (6, 3) {
                ("host_unsupported", &["tmpfs"])
            } else {
                ("mount_invalid", &["/workspace/", "first"])
            };
        let place = Place::new()?;
        let input = place.file("input", "input")?;
        let folder = base.join(format!("orch-suite-{}-made", std::process::id()));
        // Open to all, so that nothing but orch itself keeps it as it is.
        fs::create_dir(&folder)
            .and_then(|()| chown(&folder, Some(OWNER), Some(OWNER)))
            .and_then(|()| fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)))
            .map_err(|e| e.to_string())?;
        let mut verdicts = Vec::new();
        for tier in ["standard", "strict"] {
            for target in ["", ":/workspace/sub/deep"] {
                let make = || {
                    let call = Call::new(tier)?.args(["--folder".as_ref(), folder.as_os_str()]);
                    Ok(call.mount(&input, target))
                };
                let refused = crate::refusal::refused(make, code, words);
                let made = names(&folder)?;
                verdicts.push(refused.and_then(|()| {
                    ensure!(made.is_empty(), "made {made:?} in {}", folder.display());
                    Ok(())
                }));
            }
        }
        fs::remove_dir_all(&folder).map_err(|e| e.to_string())?;
        verdicts
            .into_iter()
            .collect::<Result<(), String>>()
            .map_err(|why| format!("folder below {}: {why}", base.display()))?;
    }
    Ok(Verdict::Held)
}

fn rest() -> Result<Verdict, String> {
    let place = Place::new()?;
    let witness = place.file("witness", "x")?;
    let script = format!(
        "ls {} 2>/dev/null; for d in /home /root /mnt /srv /var /opt /boot /media; do \
         ls -A $d 2>/dev/null; done; cat /etc/shadow 2>/dev/null; ls /etc | grep -c shadow; \
         echo $HOME; ls -A $HOME",
        witness.display()
    );
    for tier in ["loose", "standard", "strict"] {
        let call = Call::new(tier)?.args(["--network", "none"]);
        call.sh(&script).run()?.says("0\n/tmp/home")?;
    }
    Ok(Verdict::Held)
}

fn system() -> Result<Verdict, String> {
    let script = "for d in / /usr /usr/bin /etc /bin /lib /opt /var; do \
                  touch $d/x 2>/dev/null && echo \"wrote $d\"; done; touch /tmp/x && echo control";
    for tier in ["standard", "strict"] {
        Call::new(tier)?.sh(script).run()?.says("control")?;
    }
    Ok(Verdict::Held)
}

fn tmp() -> Result<Verdict, String> {
    let script = "ls -A /tmp; ls -A /dev/shm /tmp/out /tmp/home | grep -v :; \
                  echo x > /tmp/x; echo x > /dev/shm/x; ls /tmp/x /dev/shm/x";
    for tier in ["loose", "standard", "strict"] {
        for _ in 0..2 {
            let call = Call::new(tier)?.args(["--network", "none"]);
            let ended = call.sh(script).run()?;
            let lines: Vec<String> = ended
                .out()
                .lines()
                .filter(|line| !line.is_empty())
                .map(str::to_owned)
                .collect();
            ensure!(
                lines == ["home", "out", "/dev/shm/x", "/tmp/x"],
                "{tier}: {lines:?}"
            );
        }
    }
    Ok(Verdict::Held)
}

fn start() -> Result<Verdict, String> {
    let place = Place::new()?;
    let folder = place.folder("folder")?;
    fs::create_dir(folder.join("sub")).map_err(|e| e.to_string())?;
    let at = |args: &[&str]| {
        Call::new("strict")?
            .args(["--folder".as_ref(), folder.as_os_str()])
            .args(args)
            .sh("pwd -P")
            .run()
    };
    at(&[])?.says("/workspace")?;
    at(&["--workdir", "sub"])?.says("/workspace/sub")?;
    at(&["--workdir", "/workspace/sub"])?.says("/workspace/sub")?;
    Call::new("strict")?
        .sh("pwd -P")
        .run()?
        .says("/workspace")?;
    Ok(Verdict::Held)
}
