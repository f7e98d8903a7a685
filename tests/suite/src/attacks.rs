//! What a task, or somebody beside it, did to an earlier orch, and no longer can.

use std::fs;
use std::os::unix::fs::{chown, symlink};
use std::time::{Duration, Instant};

use crate::call::{Call, ensure};
use crate::harness::{Test, Verdict, test};
use crate::left::eventually;
use crate::pace;
use crate::place::{Place, names};
use crate::refusal::refused;

/// Owner of the folders that tasks may write.
const OWNER: u32 = 1234;

pub fn tests() -> Vec<Test> {
    vec![
        test("attacks::a_link_where_results_go_d11", link_during),
        test("attacks::a_link_left_where_results_go_d11", link_before),
        test("attacks::an_image_that_shows_hidden_paths", image),
        test("attacks::arguments_that_do_not_fit", too_long),
        test("attacks::an_output_that_a_sibling_holds_open", sibling),
        test("attacks::a_worker_that_is_killed", worker),
        test("attacks::nohup_is_respected", nohup),
        test("attacks::results_named_like_unfinished_ones", taken_names),
        test("attacks::a_signal_while_results_are_copied", late_signal),
    ]
}

fn folder(place: &Place) -> Result<std::path::PathBuf, String> {
    let folder = place.folder("folder")?;
    chown(&folder, Some(OWNER), Some(OWNER)).map_err(|e| e.to_string())?;
    Ok(folder)
}

/// The way to `--out` leads through a folder in which the task puts a link.
fn link_during() -> Result<Verdict, String> {
    let place = Place::new()?;
    let (folder, victim) = (folder(&place)?, place.folder("victim")?);
    let script = format!(
        "echo x > /tmp/out/planted; rm -rf /workspace/results; ln -s {} /workspace/results; true",
        victim.display()
    );
    let ended = Call::new("standard")?
        .args(["--folder".as_ref(), folder.as_os_str()])
        .args(["--out".as_ref(), folder.join("results").as_os_str()])
        .sh(&script)
        .run()?;
    ensure!(names(&victim)?.is_empty(), "the victim has it: {ended:?}");
    Ok(Verdict::Held)
}

/// The same with a link that an earlier task has left.
fn link_before() -> Result<Verdict, String> {
    let place = Place::new()?;
    let (folder, victim) = (folder(&place)?, place.folder("victim")?);
    symlink(&victim, folder.join("results")).map_err(|e| e.to_string())?;
    let call = |out: &std::path::Path| {
        Ok::<_, String>(
            Call::new("standard")?
                .args(["--folder".as_ref(), folder.as_os_str()])
                .args(["--out".as_ref(), out.as_os_str()])
                .sh("echo x > /tmp/out/planted"),
        )
    };
    refused(
        || call(&folder.join("results")),
        "copy_out_failed",
        &["results"],
    )?;
    ensure!(names(&victim)?.is_empty(), "the victim has it");
    // Control: a directory in the same folder that is one.
    call(&folder.join("plain"))?
        .run()?
        .is(0, "exited", "exit")?;
    ensure!(names(&folder.join("plain"))? == ["planted"], "nothing came");
    Ok(Verdict::Held)
}

fn image() -> Result<Verdict, String> {
    let make = || Ok(Call::new("standard")?.args(["--image", "/"]));
    refused(make, "mount_denied", &["/"])?;
    Ok(Verdict::Held)
}

/// More than a message holds: an answer, and no waiting for oneself.
fn too_long() -> Result<Verdict, String> {
    let place = Place::new()?;
    let mut call = Call::new("standard")?.cmd(["true"]);
    for number in 0..3 {
        let line = format!("BIG{number}={}\n", "x".repeat(3_900_000));
        let file = place.join(format!("env{number}"));
        fs::write(&file, line).map_err(|e| e.to_string())?;
        call = call.args(["--env-file".as_ref(), file.as_os_str()]);
    }
    let start = Instant::now();
    let ended = call.no_receipt().run()?;
    ensure!(
        ended.code() == 125 && start.elapsed() < pace::here(Duration::from_secs(20)),
        "after {:?}: {ended:?}",
        start.elapsed()
    );
    Ok(Verdict::Held)
}

/// A hands its output to B over a socket in a folder of both, and ends.
fn sibling() -> Result<Verdict, String> {
    const GIVE: &str = "import socket,sys\ns=socket.socket(socket.AF_UNIX);s.connect('/workspace/s')\nsocket.send_fds(s,[b'x'],[1])";
    const TAKE: &str = "import socket,time\ns=socket.socket(socket.AF_UNIX);s.bind('/workspace/s');s.listen(1);c,_=s.accept()\nm=socket.recv_fds(c,1,1);open('/workspace/got','w')\ntime.sleep(600)";
    let place = Place::new()?;
    let folder = folder(&place)?;
    let call = || -> Result<Call, String> {
        let call = Call::new("standard")?;
        Ok(call.args(["--folder".as_ref(), folder.as_os_str()]))
    };
    let taker = call()?.cmd(["/usr/bin/python3", "-c", TAKE]).start()?;
    eventually(Duration::from_secs(20), || {
        Ok((!folder.join("s").exists()).then(|| "no socket".to_owned()))
    })?;
    let start = Instant::now();
    let gave = call()?.cmd(["/usr/bin/python3", "-c", GIVE]).run()?;
    let (took, got) = (start.elapsed(), folder.join("got").exists());
    taker.signal(libc::SIGTERM);
    taker.wait(Duration::from_secs(20))?;
    ensure!(gave.code() == 0, "{gave:?}");
    // Control: the other one did have it, so there was something to wait for.
    ensure!(
        got || gave.fact("/stdout/truncated") == true,
        "never handed over"
    );
    ensure!(
        took < pace::here(Duration::from_secs(15)),
        "waited {took:?} for it"
    );
    Ok(Verdict::Held)
}

/// Whatever is killed while a container is made, orch ends and nothing is left.
fn worker() -> Result<Verdict, String> {
    for round in 0..12 {
        let running = Call::new("standard")?.sh("true").start()?;
        let mut looks = 0;
        let _ = eventually(Duration::from_secs(2), || {
            let launchers = children(running.pid());
            let workers: Vec<i32> = launchers.iter().flat_map(|pid| children(*pid)).collect();
            looks += 1;
            if let (Some(worker), true) = (workers.first(), looks > round) {
                // SAFETY: a plain system call on a process of this test's own.
                unsafe { libc::kill(*worker, libc::SIGKILL) };
                return Ok(None);
            }
            Ok(Some("no worker was seen".to_owned()))
        });
        running.wait(Duration::from_secs(40))?;
    }
    Ok(Verdict::Held)
}

fn children(pid: i32) -> Vec<i32> {
    fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))
        .unwrap_or_default()
        .split_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect()
}

fn nohup() -> Result<Verdict, String> {
    use std::os::unix::process::CommandExt;
    let call = Call::new("standard")?.sh("sleep 641");
    let mut command = call.command();
    // SAFETY: a plain system call between fork and exec.
    unsafe {
        command.pre_exec(|| {
            libc::signal(libc::SIGHUP, libc::SIG_IGN);
            Ok(())
        });
    }
    let mut child = command
        .stdin(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .map_err(|e| e.to_string())?;
    let pid = i32::try_from(child.id()).map_err(|e| e.to_string())?;
    let state = call.state();
    eventually(Duration::from_secs(20), || {
        Ok(crate::left::container_of(&state)
            .is_none()
            .then(|| "not there yet".to_owned()))
    })?;
    // SAFETY: plain system calls on a child that is not reaped yet.
    unsafe {
        libc::kill(pid, libc::SIGHUP);
        libc::kill(pid, libc::SIGTERM);
    }
    let status = child.wait().map_err(|e| e.to_string())?;
    // The first one would have made it 129.
    ensure!(status.code() == Some(143), "{status}");
    Ok(Verdict::Held)
}

/// A folder in memory: tens of thousands of files are no work for a disk.
struct Memory(std::path::PathBuf);

impl Memory {
    fn new(name: &str) -> Result<Self, String> {
        let path = format!("/dev/shm/orch-suite-{}-{name}", std::process::id());
        fs::create_dir(&path).map_err(|e| format!("make {path}: {e}"))?;
        Ok(Self(path.into()))
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // Nothing could be done about an error here.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Every name that an unfinished result once had: no task can guess the real one.
fn taken_names() -> Result<Verdict, String> {
    let out = Memory::new("names")?;
    let script = "for i in range(1, 32769): open(f'/tmp/out/.orch-out-{i}', 'w')";
    let ended = Call::new("standard")?
        .args(["--out".as_ref(), out.0.as_os_str()])
        .cmd(["/usr/bin/python3", "-c", script])
        .run()?
        .is(0, "exited", "exit")?;
    ensure!(
        ended.fact("/out/files") == 32_768,
        "{:?}",
        ended.fact("/out")
    );
    Ok(Verdict::Held)
}

/// A signal that comes too late for the command does not take its receipt away.
fn late_signal() -> Result<Verdict, String> {
    let out = Memory::new("signal")?;
    let script = "for i in range(40000): open(f'/tmp/out/{i}', 'w')";
    let running = Call::new("standard")?
        .args(["--out".as_ref(), out.0.as_os_str()])
        .cmd(["/usr/bin/python3", "-c", script])
        .start()?;
    eventually(Duration::from_secs(20), || {
        Ok(names(&out.0)?
            .is_empty()
            .then(|| "nothing is copied".to_owned()))
    })?;
    running.signal(libc::SIGTERM);
    let ended = running.wait(Duration::from_secs(40))?;
    // The command had ended by itself, and so does the receipt say.
    ended.is(0, "exited", "exit")?;
    Ok(Verdict::Held)
}
