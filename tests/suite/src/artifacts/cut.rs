//! When nobody reads, orch is killed, or the disk is full.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::Stdio;

use super::{SOON, keeping, log, only_id, page, receipt, until_log_is};
use crate::call::{Call, Owned, ensure, orch};
use crate::harness::{Test, Verdict, test};
use crate::left::{self, eventually};
use crate::place::{Place, names};

pub fn tests() -> Vec<Test> {
    vec![
        test("artifacts::of_an_orch_that_is_killed_ev05", killed),
        test("artifacts::after_the_reader_has_left_ev05", left_alone),
        test("artifacts::of_a_caller_that_never_reads_ev05", unread),
        test("artifacts::a_full_disk_is_refused_ev05_ev09", full),
        test("artifacts::a_log_that_fails_ends_the_task_ev05", fails),
        test(
            "artifacts::a_receipt_that_cannot_be_kept_is_no_success_ev05",
            receipt_fails,
        ),
        test("artifacts::a_file_limit_of_the_shell_ev05", file_limit),
    ]
}

fn killed() -> Result<Verdict, String> {
    let place = Place::new()?;
    let running = keeping(&place, "standard")?
        .sh("echo before; exec sleep 631")
        .start()?;
    until_log_is(&place, b"before\n")?;
    running.signal(libc::SIGKILL);
    let state = running.state();
    let ended = running.wait(SOON)?;
    ensure!(ended.signal() == Some(libc::SIGKILL), "{ended:?}");
    eventually(SOON, || Ok(left::left(&state, None)))?;
    let page = page(&place, &[])?;
    ensure!(
        page["text"] == "before\n" && page["complete"] == false,
        "{page}"
    );
    ensure!(receipt(&place).is_err(), "a receipt of nobody");
    Ok(Verdict::Held)
}

fn ends(child: &mut Owned, each: impl Fn(&Owned)) -> Result<Option<i32>, String> {
    let mut code = None;
    eventually(SOON, || {
        each(child);
        let ended = child.0.try_wait().map_err(|e| e.to_string())?;
        code = ended.and_then(|status| status.code());
        Ok(ended.is_none().then(|| "orch has not ended".to_owned()))
    })?;
    Ok(code)
}

/// The command is told as it is without a log: by SIGPIPE; and the log has what was
/// read of it.
fn left_alone() -> Result<Verdict, String> {
    for kept in [true, false] {
        let place = Place::new()?;
        let call = match kept {
            true => keeping(&place, "strict")?,
            false => Call::new("strict")?,
        };
        let call = call.no_receipt().args(["--receipt"]);
        let call = call.args([place.join("r.json")]).sh("exec yes");
        let (reader, writer) = std::io::pipe().map_err(|e| e.to_string())?;
        drop(reader);
        let mut command = call.command();
        command
            .stdin(Stdio::null())
            .stdout(writer)
            .stderr(Stdio::null());
        let mut child = Owned(command.spawn().map_err(|e| e.to_string())?);
        let code = ends(&mut child, |_| {})?;
        let text = fs::read(place.join("r.json")).map_err(|e| format!("no receipt: {e}"))?;
        let receipt: serde_json::Value =
            serde_json::from_slice(&text).map_err(|e| e.to_string())?;
        ensure!(
            code == Some(128 + libc::SIGPIPE)
                && receipt["signal"] == libc::SIGPIPE
                && receipt["stdout"]["truncated"] == true,
            "kept {kept}: {receipt}"
        );
        if kept {
            let bytes = log(&place)?;
            ensure!(
                !bytes.is_empty()
                    && receipt["stdout"]["bytes"] == bytes.len()
                    && receipt["artifacts"]["bytes"] == bytes.len()
                    && bytes.chunks(2).all(|line| line == b"y\n"),
                "{} bytes and {receipt}",
                bytes.len()
            );
        }
    }
    Ok(Verdict::Held)
}

/// Bytes that always stay in part in the command's pipe, and always fit: the caller's
/// pipe takes 64 KiB (pipe(7)), orch holds one read of 4 to 64 KiB, and the command's
/// pipe takes 64 KiB.
const STUCK: usize = 132_000;

/// What is still in there when somebody wants an end is in the log as well.
fn unread() -> Result<Verdict, String> {
    let place = Place::new()?;
    let script = format!("head -c {STUCK} /dev/zero; echo written >&2; exec sleep 632");
    let call = keeping(&place, "strict")?.sh(&script);
    let (_reader, writer) = std::io::pipe().map_err(|e| e.to_string())?;
    let mut command = call.command();
    command
        .stdin(Stdio::null())
        .stdout(writer)
        .stderr(Stdio::null());
    let mut child = Owned(command.spawn().map_err(|e| e.to_string())?);
    drop(command);
    eventually(SOON, || {
        let there = log(&place).unwrap_or_default();
        let written = there.ends_with(b"written\n");
        Ok((!written).then(|| format!("{} bytes in the log", there.len())))
    })?;
    let before = log(&place)?.len();
    ensure!(before < STUCK, "nothing is left to be read: {before}");
    // The first one ends the command, the second the waiting for whoever does not read.
    let pid = i32::try_from(child.0.id()).unwrap_or(-1);
    ends(&mut child, |_| {
        // SAFETY: a plain call; the child is ours and not reaped yet.
        unsafe { libc::kill(pid, libc::SIGINT) };
    })?;
    let bytes = log(&place)?;
    let zeros = bytes.iter().filter(|byte| **byte == 0).count();
    ensure!(
        zeros == STUCK && bytes.len() == STUCK + 8,
        "{zeros} zeros in {} bytes",
        bytes.len()
    );
    ensure!(
        receipt(&place)?["state"] == "cancelled",
        "{}",
        receipt(&place)?
    );
    Ok(Verdict::Held)
}

/// Before anything starts, and nothing is left; where there is room, and where the
/// file system cannot take any beforehand, it runs.
fn full() -> Result<Verdict, String> {
    for (kind, options, runs) in [
        ("tmpfs", "size=1m,mode=700", false),
        ("tmpfs", "nr_inodes=4,mode=700", false),
        ("tmpfs", "size=64m,mode=700", true),
        ("ramfs", "mode=700", true),
    ] {
        let place = Place::new()?;
        let dir = place.folder("dir")?;
        let script = format!(
            "mount -t {kind} -o {options} none \"$1\" || exit 1; \
             \"$2\" run --quiet --artifacts \"$1/a/b\" -- echo ran; code=$?; \
             find \"$1\" -type f -printf '%f %s\\n' | sort; ls -A \"$1\"; exit $code"
        );
        let done = std::process::Command::new("unshare")
            .args(["--mount", "--propagation", "private"])
            .args(["sh", "-c", &script, "sh"])
            .args([dir.as_os_str(), &orch()])
            .env("ORCH_STATE_DIR", place.join("state"))
            .env("ORCH_UID_BLOCK", left::uid_block(&place.join("state")))
            .stdin(Stdio::null())
            .output()
            .map_err(|e| format!("unshare: {e}"))?;
        let (out, said) = (
            String::from_utf8_lossy(&done.stdout),
            String::from_utf8_lossy(&done.stderr),
        );
        let code = done.status.code();
        if runs {
            let kept = "ran\noutput.log 4\nreceipt.json ";
            ensure!(
                code == Some(0) && out.starts_with(kept),
                "{kind} {options}: {out} {said}"
            );
            continue;
        }
        ensure!(
            code == Some(125)
                && out.is_empty()
                && ["host_exhausted", "artifacts_failed"]
                    .iter()
                    .any(|code| said.contains(&format!("code: {code}")))
                && said.contains("No space left"),
            "{kind} {options}: {code:?} {out:?} {said}"
        );
    }
    Ok(Verdict::Held)
}

/// A task whose orch can be told how large its files may be from now on, which stands
/// for a disk that fails. The task waits for a line after `first`.
struct Limited {
    child: Owned,
    stdin: std::process::ChildStdin,
    state: std::path::PathBuf,
    _call: Call,
}

impl Limited {
    fn start(place: &Place, script: &str) -> Result<Self, String> {
        let call = keeping(place, "strict")?.sh(&format!("echo first; read x; {script}"));
        let mut command = call.command();
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        // SAFETY: a plain system call between fork and exec.
        unsafe {
            command.pre_exec(|| {
                // As a failed write, not as a signal (setrlimit(2)).
                libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
                Ok(())
            });
        }
        let mut child = Owned(command.spawn().map_err(|e| e.to_string())?);
        let stdin = child.0.stdin.take().ok_or("no pipe")?;
        until_log_is(place, b"first\n")?;
        Ok(Self {
            child,
            stdin,
            state: call.state(),
            _call: call,
        })
    }

    fn lower(&self, bytes: u64) -> Result<(), String> {
        let bound = libc::rlimit {
            rlim_cur: bytes,
            rlim_max: libc::RLIM_INFINITY,
        };
        let pid = i32::try_from(self.child.0.id()).unwrap_or(-1);
        let old = std::ptr::null_mut();
        // SAFETY: the structure outlives the call; the child is ours.
        let set = unsafe { libc::prlimit(pid, libc::RLIMIT_FSIZE, &raw const bound, old) };
        ensure!(set == 0, "prlimit: {}", std::io::Error::last_os_error());
        Ok(())
    }

    fn say(&mut self) -> Result<(), String> {
        writeln!(self.stdin).map_err(|e| format!("write to the task: {e}"))
    }

    /// Exit code, and what orch said. The task's input stays open until then.
    fn end(mut self) -> Result<(Option<i32>, String), String> {
        let code = ends(&mut self.child, |_| {})?;
        let mut said = String::new();
        let stderr = self.child.0.stderr.as_mut().ok_or("no pipe")?;
        stderr
            .read_to_string(&mut said)
            .map_err(|e| e.to_string())?;
        match left::left(&self.state, None) {
            None => Ok((code, said)),
            Some(what) => Err(what),
        }
    }
}

fn fails() -> Result<Verdict, String> {
    let script = "seq 1 20000; read x; echo end";
    let place = Place::new()?;
    let mut task = Limited::start(&place, script)?;
    task.lower(40_000)?;
    // It would wait for ever for its second line.
    task.say()?;
    let (code, said) = task.end()?;
    let (bytes, kept) = (log(&place)?, receipt(&place)?);
    let summary = kept["summary"].as_str().unwrap_or_default();
    ensure!(
        code == Some(125)
            && bytes.len() == 40_000
            && kept["artifacts"]["bytes"] == bytes.len()
            && kept["state"] == "exited"
            && kept["reason"] == "runtime_failed"
            && kept["exit_code"] == 125
            && kept["error"]["code"] == "artifacts_failed"
            && summary.contains("cannot be kept")
            && said.contains("code: artifacts_failed"),
        "{code:?}, {} bytes, {kept}, {said}",
        bytes.len()
    );
    // The control.
    let place = Place::new()?;
    let mut task = Limited::start(&place, script)?;
    task.say()?;
    task.say()?;
    let (code, said) = task.end()?;
    let bytes = log(&place)?;
    ensure!(
        code == Some(0)
            && bytes.ends_with(b"20000\nend\n")
            && receipt(&place)?["artifacts"]["bytes"] == bytes.len(),
        "{code:?} {said}"
    );
    Ok(Verdict::Held)
}

/// The command has ended well by then, and that is no success.
fn receipt_fails() -> Result<Verdict, String> {
    for (limit, wanted) in [(1000, 125), (1 << 30, 0)] {
        let place = Place::new()?;
        let mut task = Limited::start(&place, "echo end")?;
        task.lower(limit)?;
        task.say()?;
        let (code, said) = task.end()?;
        ensure!(
            code == Some(wanted) && said.contains("code: artifacts_failed") == (wanted != 0),
            "{limit}: {code:?} {said}"
        );
        let page = page(&place, &[])?;
        ensure!(
            page["text"] == "first\nend\n" && page["complete"] == (wanted == 0),
            "{limit}: {page}"
        );
    }
    Ok(Verdict::Held)
}

/// A file limit of the shell would end orch by SIGXFSZ in the middle of a task.
fn file_limit() -> Result<Verdict, String> {
    // Of 512 bytes: enough for everything else that orch makes.
    for (blocks, code, word) in [
        ("20000", 125, "code: limit_unavailable"),
        ("unlimited", 0, "of output kept in"),
    ] {
        let place = Place::new()?;
        let call = keeping(&place, "strict")?.sh("echo ran");
        let inner = call.command();
        let mut command = std::process::Command::new("sh");
        command
            .args(["-c", &format!("ulimit -S -f {blocks}; exec \"$0\" \"$@\"")])
            .arg(inner.get_program())
            .args(inner.get_args());
        command.envs(
            inner
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        let done = command
            .stdin(Stdio::null())
            .output()
            .map_err(|e| e.to_string())?;
        let said = String::from_utf8_lossy(&done.stderr);
        ensure!(
            done.status.code() == Some(code) && said.contains(word),
            "{blocks}: {} {said}",
            done.status
        );
        let there = names(&place.join("kept")).map_or(0, |names| names.len());
        ensure!(there == usize::from(code == 0), "{there} folders");
        if code == 0 {
            ensure!(log(&place)? == b"ran\n", "{}", only_id(&place)?);
        }
    }
    Ok(Verdict::Held)
}
