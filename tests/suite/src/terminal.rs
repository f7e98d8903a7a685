//! `-t` and `-i` on a terminal that the test made.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};

use crate::call::{Call, Owned, ensure};
use crate::harness::{Test, Verdict, test};
use crate::left::{self, eventually};

const SOON: Duration = Duration::from_secs(15);

pub fn tests() -> Vec<Test> {
    vec![
        test("terminal::the_command_has_one", size_and_code),
        test("terminal::line_ends_are_not_doubled", line_ends),
        test("terminal::the_callers_is_as_before", restored),
        test("terminal::ctrl_c_is_for_the_command", ctrl_c),
        test("terminal::a_new_size_is_passed_on", resized),
        test("terminal::without_i_it_is_not_read", not_read),
        test("terminal::with_i_it_is_read", read),
        test("terminal::t_needs_one", needs_one),
    ]
}

struct Terminal {
    master: File,
    slave: OwnedFd,
}

impl Terminal {
    fn new() -> Result<Self, String> {
        let make = || -> std::io::Result<Self> {
            let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
            let master = openpt(flags)?;
            grantpt(&master)?;
            unlockpt(&master)?;
            let name = ptsname(&master, Vec::new())?;
            let slave = rustix::fs::open(
                name.as_c_str(),
                rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC,
                rustix::fs::Mode::empty(),
            )?;
            Ok(Self {
                master: master.into(),
                slave,
            })
        };
        let terminal = make().map_err(|e| format!("make a terminal: {e}"))?;
        terminal.resize(33, 101)?;
        Ok(terminal)
    }

    fn resize(&self, rows: u16, columns: u16) -> Result<(), String> {
        let size = Winsize {
            ws_row: rows,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&self.master, size).map_err(|e| format!("set a size: {e}"))
    }

    /// Starts orch as the leader of a session on it.
    fn start(&self, call: &Call) -> Result<Owned, String> {
        let mut command: Command = call.command();
        let copy = || self.slave.try_clone().map_err(|e| e.to_string());
        command.stdin(copy()?).stdout(copy()?).stderr(copy()?);
        // SAFETY: plain system calls between fork and exec.
        unsafe {
            command.pre_exec(|| {
                libc::setsid();
                libc::ioctl(0, libc::TIOCSCTTY, 0);
                Ok(())
            });
        }
        Ok(Owned(command.spawn().map_err(|e| e.to_string())?))
    }

    /// What comes, until these words are there.
    fn until(&mut self, words: &str) -> Result<String, String> {
        let mut seen = String::new();
        eventually(SOON, || {
            let mut ready = [libc::pollfd {
                fd: self.master.as_raw_fd(),
                events: libc::POLLIN,
                revents: 0,
            }];
            // SAFETY: one entry, as said.
            let count = unsafe { libc::poll(ready.as_mut_ptr(), 1, 50) };
            if count > 0 {
                let mut chunk = [0; 4096];
                let read = self.master.read(&mut chunk).map_err(|e| e.to_string())?;
                seen += &String::from_utf8_lossy(&chunk[..read]);
            }
            Ok((!seen.contains(words)).then(|| format!("no {words:?} in {seen:?}")))
        })?;
        Ok(seen)
    }

    fn type_in(&mut self, text: &str) -> Result<(), String> {
        let written = self.master.write_all(text.as_bytes());
        written.map_err(|e| format!("type: {e}"))
    }
}

fn code(child: &mut Owned) -> Result<i32, String> {
    let mut code = None;
    eventually(SOON, || {
        let ended = child.0.try_wait().map_err(|e| e.to_string())?;
        code = ended.and_then(|status| status.code());
        Ok(ended.is_none().then(|| "orch has not ended".to_owned()))
    })?;
    code.ok_or_else(|| "ended by a signal".to_owned())
}

fn size_and_code() -> Result<Verdict, String> {
    for tier in ["standard", "strict"] {
        let mut terminal = Terminal::new()?;
        let script = "tty; stty size; [ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo all; exit 5";
        let call = Call::new(tier)?.args(["-i", "-t"]).sh(script);
        let mut child = terminal.start(&call)?;
        let seen = terminal.until("all")?;
        ensure!(
            seen.contains("/dev/pts/0") && seen.contains("33 101"),
            "{tier}: {seen:?}"
        );
        let code = code(&mut child)?;
        ensure!(code == 5, "{tier}: exit code {code}");
        if let Some(what) = left::left(&call.state(), None) {
            return Err(what);
        }
    }
    Ok(Verdict::Held)
}

fn line_ends() -> Result<Verdict, String> {
    let mut terminal = Terminal::new()?;
    let call = Call::new("standard")?
        .args(["-t", "--quiet"])
        .sh("printf 'one\\ntwo\\nend\\n'");
    let mut child = terminal.start(&call)?;
    let seen = terminal.until("end\r\n")?;
    ensure!(seen.contains("one\r\ntwo\r\nend\r\n"), "{seen:?}");
    code(&mut child)?;
    Ok(Verdict::Held)
}

fn restored() -> Result<Verdict, String> {
    let mut terminal = Terminal::new()?;
    let show = |terminal: &Terminal| {
        let modes = tcgetattr(&terminal.slave).map_err(|e| e.to_string())?;
        Ok::<_, String>(format!(
            "{:?} {:?} {:?} {:?}",
            modes.input_modes, modes.output_modes, modes.control_modes, modes.local_modes
        ))
    };
    let before = show(&terminal)?;
    let call = Call::new("standard")?
        .args(["-i", "-t"])
        .sh("echo ready; sleep 630");
    let mut child = terminal.start(&call)?;
    terminal.until("ready")?;
    let during = show(&terminal)?;
    // SAFETY: a plain call; the child is ours and not reaped yet.
    unsafe { libc::kill(i32::try_from(child.0.id()).unwrap_or(-1), libc::SIGTERM) };
    let code = code(&mut child)?;
    let after = show(&terminal)?;
    ensure!(during != before, "never raw: {during}");
    ensure!(after == before, "before {before}, after {after}");
    ensure!(code == 143, "exit code {code}");
    Ok(Verdict::Held)
}

fn ctrl_c() -> Result<Verdict, String> {
    let mut terminal = Terminal::new()?;
    let call = Call::new("standard")?
        .args(["-i", "-t"])
        .sh("trap 'echo caught; exit 6' INT; echo ready; sleep 631 & wait");
    let mut child = terminal.start(&call)?;
    terminal.until("ready")?;
    terminal.type_in("\x03")?;
    terminal.until("caught")?;
    let code = code(&mut child)?;
    ensure!(code == 6, "exit code {code}");
    Ok(Verdict::Held)
}

fn resized() -> Result<Verdict, String> {
    let mut terminal = Terminal::new()?;
    let call = Call::new("standard")?
        .args(["-i", "-t"])
        .sh("trap 'stty size' WINCH; echo ready; sleep 632 & while :; do wait; done");
    let mut child = terminal.start(&call)?;
    terminal.until("ready")?;
    terminal.resize(40, 90)?;
    let seen = terminal.until("40 90").map(|_| ());
    // SAFETY: a plain call; the child is ours and not reaped yet.
    unsafe { libc::kill(i32::try_from(child.0.id()).unwrap_or(-1), libc::SIGTERM) };
    code(&mut child)?;
    seen.map(|()| Verdict::Held)
}

fn not_read() -> Result<Verdict, String> {
    let mut terminal = Terminal::new()?;
    let call = Call::new("standard")?.sh("wc -c; tty");
    let mut child = terminal.start(&call)?;
    terminal.until("not a tty")?;
    code(&mut child)?;
    Ok(Verdict::Held)
}

fn read() -> Result<Verdict, String> {
    let mut terminal = Terminal::new()?;
    let call = Call::new("standard")?
        .args(["-i"])
        .sh("read -r line; echo \"<$line>\"");
    let mut child = terminal.start(&call)?;
    terminal.type_in("hello\n")?;
    terminal.until("<hello>")?;
    code(&mut child)?;
    Ok(Verdict::Held)
}

fn needs_one() -> Result<Verdict, String> {
    let ended = Call::new("standard")?.args(["-t"]).sh("echo ran").run()?;
    ensure!(
        ended.code() == 125 && ended.out().is_empty(),
        "expected a refusal: {ended:?}"
    );
    ended.mentions("code: usage")?;
    Ok(Verdict::Held)
}
