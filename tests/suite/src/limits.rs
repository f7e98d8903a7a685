//! Every limit of the schema has a task that it bites (issue item 5, PR-19…PR-23,
//! PX-05, PX-12…PX-15), and one below it that it leaves alone.

use std::path::PathBuf;
use std::time::Duration;

use orch_policy::builtin::builtin;
use orch_policy::profile::Limits;
use serde_json::Value;

use crate::call::{Call, Ended, ensure};
use crate::harness::{Test, Verdict, test};
use crate::left;
use crate::pace;
use crate::place::Place;

type Run = fn() -> Result<Verdict, String>;

/// Key in a profile, what the shipped profile says, and the test of it. A field
/// that is not named here does not compile; one that is named and has no test
/// neither.
fn table(limits: &Limits) -> Vec<(&'static str, Option<u64>, Run)> {
    let Limits {
        cpu_seconds,
        cpu_milli,
        memory_bytes,
        processes,
        open_files,
        file_size_bytes,
        stack_bytes,
        tmp_bytes,
        tmp_inodes,
        output_bytes,
        out_bytes,
        io_read_bytes_per_second,
        io_write_bytes_per_second,
    } = limits;
    vec![
        ("cpu_seconds", Some(*cpu_seconds), cpu_time),
        ("cpus", Some(*cpu_milli), cpu_quota),
        ("memory_mb", Some(*memory_bytes), memory),
        ("processes", Some(*processes), processes_limit),
        ("open_files", Some(*open_files), open_files_limit),
        ("file_size_mb", Some(*file_size_bytes), file_size),
        ("stack_mb", Some(*stack_bytes), stack),
        ("tmp_mb", Some(*tmp_bytes), tmp_size),
        ("tmp_inodes", Some(*tmp_inodes), tmp_files),
        ("output_mb", Some(*output_bytes), crate::floods::limit),
        ("out_mb", Some(*out_bytes), crate::copy_out::limit),
        (
            "io_read_mb_per_second",
            *io_read_bytes_per_second,
            crate::rates::read,
        ),
        (
            "io_write_mb_per_second",
            *io_write_bytes_per_second,
            crate::rates::write,
        ),
    ]
}

pub fn tests() -> Vec<Test> {
    let mut tests: Vec<Test> = match builtin("standard", "/root".as_ref()) {
        Ok(loaded) => table(&loaded.profile.limits)
            .into_iter()
            .map(|(key, _, run)| test(format!("limits::{key}_bites"), run))
            .collect(),
        Err(_) => Vec::new(),
    };
    tests.extend([
        test("limits::every_key_of_the_schema_is_tested", every_key),
        test("limits::swap_is_no_way_around_memory", swap),
        test("limits::files_in_tmp_count_as_memory", tmp_is_memory),
        test("limits::a_child_out_of_memory_is_counted_e6", child_oom),
        test("limits::cpu_seconds_count_the_whole_tree_pr19", cpu_tree),
        test("limits::no_core_files_px05_a23", cores),
        test("limits::each_process_has_its_ceilings_e10", ceilings),
        test("limits::space_is_given_back_e8", space),
        test("limits::wall_clock_of_the_task_pr23", timeout),
        test("limits::wall_clock_of_the_command", command_timeout),
    ]);
    tests
}

/// A call under `standard` with these limits.
pub fn limited(lines: &[&str]) -> Result<(Place, Call), String> {
    let place = Place::new()?;
    let mut text = "extends: standard\nlimits:\n".to_owned();
    for line in lines {
        text += &format!("  {line}\n");
    }
    let call = Call::new(place.profile(&text)?)?;
    Ok((place, call))
}

/// The line that a mode of the probe program leaves: how far, and what stopped it.
pub fn report(ended: &Ended) -> Result<(u64, String), String> {
    let line = ended.out();
    let line = line.lines().last().unwrap_or_default();
    let value: Value = serde_json::from_str(line).map_err(|e| format!("{e}: {ended:?}"))?;
    let done = value["done"]
        .as_u64()
        .ok_or(format!("no count: {ended:?}"))?;
    Ok((done, value["errno"].as_str().unwrap_or("none").to_owned()))
}

/// How often the limit was run into, as the receipt says.
pub fn hits(ended: &Ended, key: &str) -> Option<u64> {
    ended.fact(&format!("/limits/limits.{key}/hits")).as_u64()
}

/// The keys of `profile show` and those of this table are the same.
fn every_key() -> Result<Verdict, String> {
    let done = std::process::Command::new(crate::call::orch())
        .args(["profile", "show", "standard", "--format", "json"])
        .output()
        .map_err(|e| format!("start orch: {e}"))?;
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    let loaded = builtin("standard", "/root".as_ref()).map_err(|e| e.to_string())?;
    let shown: Vec<&str> = text
        .split('"')
        .filter_map(|word| word.strip_prefix("limits."))
        .collect();
    ensure!(!shown.is_empty(), "no limits in {text}");
    let table = table(&loaded.profile.limits);
    for key in &shown {
        ensure!(
            table.iter().any(|(known, ..)| known == key),
            "limits.{key} has no test"
        );
    }
    for (key, value, _) in table {
        ensure!(
            value.is_none() || shown.contains(&key),
            "limits.{key} is in force and not shown"
        );
    }
    Ok(Verdict::Held)
}

fn memory() -> Result<Verdict, String> {
    let hog = |bytes: &str| {
        let (_place, call) = limited(&["memory_mb: 64"])?;
        call.mode(&["memhog", bytes])?.run()
    };
    let ended = hog("134217728")?.is(137, "exited", "oom")?;
    let peak = ended.fact("/usage/memory_peak_bytes").as_u64();
    ensure!(
        peak.is_some_and(|peak| peak <= 64 << 20) && hits(&ended, "memory_mb") > Some(0),
        "peak {peak:?}, hits {:?}",
        hits(&ended, "memory_mb")
    );
    ended.mentions("memory")?;
    hog("33554432")?.is(0, "exited", "exit")?;
    Ok(Verdict::Held)
}

/// E6: the one that is killed is not the first process, and the next run works.
fn child_oom() -> Result<Verdict, String> {
    let (_place, call) = limited(&["memory_mb: 64"])?;
    let ended = call
        .with_mode()?
        .sh("/opt/mode mode memhog 134217728 >/dev/null; echo $?")
        .run()?;
    ensure!(
        hits(&ended, "memory_mb") > Some(0) && (ended.out() == "137" || ended.code() == 137),
        "{ended:?}"
    );
    Call::new("standard")?.sh("echo next").run()?.says("next")?;
    Ok(Verdict::Held)
}

fn swap() -> Result<Verdict, String> {
    let (_place, call) = limited(&["memory_mb: 64"])?;
    let running = call.sh("sleep 611").start()?;
    running.until("sleep 611")?;
    let id = left::container_of(&running.state()).ok_or("no container")?;
    let mut known = Vec::new();
    for group in left::groups()
        .iter()
        .filter(|path| path.to_string_lossy().ends_with(&id))
    {
        for (file, wanted) in [
            ("0/memory.memsw.limit_in_bytes", "67108864"),
            ("0/memory.swap.max", "0"),
        ] {
            if let Ok(text) = std::fs::read_to_string(group.join(file)) {
                ensure!(text.trim() == wanted, "{file} is {text}");
                known.push(file);
            }
        }
    }
    running.signal(libc::SIGTERM);
    let ended = running.wait(Duration::from_secs(20))?;
    let said = ended.fact("missing").to_string().contains("swap");
    ensure!(
        !known.is_empty() || said,
        "no ceiling on swap, and nothing is said: {ended:?}"
    );
    Ok(Verdict::Held)
}

fn tmp_is_memory() -> Result<Verdict, String> {
    let (_place, call) = limited(&["memory_mb: 64"])?;
    let ended = call.mode(&["writer", "/tmp/x", "134217728"])?.run()?;
    ended.is(137, "exited", "oom")?;
    let (_place, call) = limited(&["memory_mb: 64"])?;
    call.mode(&["writer", "/tmp/x", "16777216"])?
        .run()?
        .is(0, "exited", "exit")?;
    Ok(Verdict::Held)
}

/// PX-13, E1: the bomb goes off inside only.
fn processes_limit() -> Result<Verdict, String> {
    let bomb = |count: &str| {
        let (_place, call) = limited(&["processes: 16"])?;
        call.args(["--timeout", "1s"])
            .mode(&["forkbomb", count])?
            .run()
    };
    let ended = bomb("1000")?.is(124, "timeout", "timeout")?;
    let (made, errno) = report(&ended)?;
    let peak = ended.fact("/usage/pids_peak").as_u64();
    ensure!(
        made < 16 && errno == "EAGAIN" && peak.is_none_or(|peak| peak <= 16),
        "{made} {errno} peak {peak:?}"
    );
    ensure!(hits(&ended, "processes") > Some(0), "no hit: {ended:?}");
    let (made, errno) = report(&bomb("8")?)?;
    ensure!(made == 8 && errno == "none", "control: {made} {errno}");
    Ok(Verdict::Held)
}

fn cpu_quota() -> Result<Verdict, String> {
    let burn = |cpus: &str| {
        Call::new("standard")?
            .args(["--cpus", cpus])
            .mode(&["cpuburn", "2"])?
            .run()?
            .is(0, "exited", "exit")
    };
    let number = |ended: &Ended, name: &str| {
        ended
            .fact(name)
            .as_u64()
            .ok_or(format!("no {name}: {ended:?}"))
    };
    // In thousandths of the wall clock. The smaller one bites on a busy machine too.
    for (cpus, most) in [("0.5", 650), ("0.02", 100)] {
        let ended = burn(cpus)?;
        let (cpu, wall) = (
            number(&ended, "/usage/cpu_us")?,
            number(&ended, "/usage/wall_us")?,
        );
        ensure!(
            cpu * 1000 <= wall * most && (most > 100 || hits(&ended, "cpus") > Some(0)),
            "--cpus {cpus}: {cpu} µs in {wall} µs, throttled {:?}",
            hits(&ended, "cpus")
        );
    }
    // One thread cannot use two CPUs up.
    let free = burn("2")?;
    ensure!(
        hits(&free, "cpus") == Some(0),
        "control throttled: {free:?}"
    );
    Ok(Verdict::Held)
}

fn cpu_time() -> Result<Verdict, String> {
    let burn = |seconds: &str| {
        let (_place, call) = limited(&["cpu_seconds: 1"])?;
        call.mode(&["cpuburn", seconds])?.run()
    };
    burn("50")?
        .is(152, "exited", "cpu_limit")?
        .mentions("CPU")?;
    let (_place, call) = limited(&["cpu_seconds: 1"])?;
    call.sh("echo quick").run()?.says("quick")?;
    Ok(Verdict::Held)
}

/// Eight processes, each far below its own RLIMIT_CPU.
fn cpu_tree() -> Result<Verdict, String> {
    let (_place, call) = limited(&["cpu_seconds: 2"])?;
    let ended = call
        .with_mode()?
        .sh("for n in 1 2 3 4 5 6 7 8; do /opt/mode mode cpuburn 50 & done; wait")
        .run()?
        .is(152, "exited", "cpu_limit")?;
    let cpu = ended.fact("/usage/cpu_us").as_u64();
    // Looked at once a second: at most as much again as all CPUs give meanwhile.
    ensure!(
        cpu.is_some_and(|cpu| (2_000_000..6_000_000).contains(&cpu)),
        "{cpu:?}"
    );
    Ok(Verdict::Held)
}

fn open_files_limit() -> Result<Verdict, String> {
    let open = |count: &str| {
        let (_place, call) = limited(&["open_files: 32"])?;
        report(&call.mode(&["fds", count])?.run()?)
    };
    let (made, errno) = open("100")?;
    ensure!(made < 32 && errno == "EMFILE", "{made} {errno}");
    let control = open("16")?;
    ensure!(control == (16, "none".to_owned()), "control: {control:?}");
    let (_place, call) = limited(&["open_files: 32"])?;
    call.sh("ulimit -Sn; ulimit -Hn").run()?.says("32\n32")?;
    Ok(Verdict::Held)
}

fn file_size() -> Result<Verdict, String> {
    let write = |bytes: &str| {
        let (_place, call) = limited(&["file_size_mb: 1"])?;
        report(&call.mode(&["writer", "/tmp/x", bytes])?.run()?)
    };
    let bitten = write("3145728")?;
    ensure!(bitten == (1 << 20, "EFBIG".to_owned()), "{bitten:?}");
    let control = write("1048576")?;
    ensure!(control == (1 << 20, "none".to_owned()), "{control:?}");
    Ok(Verdict::Held)
}

fn stack() -> Result<Verdict, String> {
    let recurse = |script: &str| {
        let (_place, call) = limited(&["stack_mb: 1"])?;
        // Not sh, which gives up at a depth of its own.
        call.cmd(["/bin/bash", "-c", script]).run()
    };
    let deep = "f() { [ $1 -eq 0 ] || f $(($1 - 1)); }; f";
    let ended = recurse(&format!("{deep} 1000000"))?.is(139, "exited", "signal")?;
    ensure!(ended.fact("signal") == libc::SIGSEGV, "{ended:?}");
    recurse(&format!("{deep} 50; ulimit -s"))?.says("1024")?;
    Ok(Verdict::Held)
}

fn cores() -> Result<Verdict, String> {
    let script = "cd /tmp; ulimit -c; ulimit -c unlimited 2>/dev/null; \
                  sh -c 'kill -SEGV $$' 2>/dev/null; echo $?; ls | grep core; true";
    Call::new("standard")?.sh(script).run()?.says("0\n139")?;
    Ok(Verdict::Held)
}

/// Soft and hard, in the units of bash: seconds, KiB, bytes.
fn ceilings() -> Result<Verdict, String> {
    let script = "for f in t f s c n q l e r; do echo $f $(ulimit -S$f) $(ulimit -H$f); done; \
                  ulimit -n 9999 2>/dev/null || echo 'cannot be raised'";
    let seen = "t 60 61\nf 262144 262144\ns 8192 8192\nc 0 0\nn 256 256\nq 819200 819200\n\
                l 64 64\ne 0 0\nr 0 0\ncannot be raised";
    let call = Call::new("strict")?.cmd(["/bin/bash", "-c", script]);
    call.run()?.says(seen)?;
    Ok(Verdict::Held)
}

/// A file that nobody can see any more and one of a size that nobody has; the one
/// who writes is told, and the next has all of it again.
fn space() -> Result<Verdict, String> {
    let hidden = "exec 9>/tmp/y; rm /tmp/y; head -c 16777216 /dev/zero >&9 2>/dev/null; echo $?; \
                  echo x > /tmp/z; fallocate -l 1T /tmp/x 2>/dev/null || echo refused";
    let (_place, call) = limited(&["tmp_mb: 8"])?;
    let out = call.sh(hidden).run()?.out();
    ensure!(
        out.starts_with("1\n") && out.ends_with("refused"),
        "{out:?}"
    );
    let (_place, call) = limited(&["tmp_mb: 8"])?;
    let script = "head -c 7000000 /dev/zero > /tmp/x && echo room";
    call.sh(script).run()?.says("room")?;
    Ok(Verdict::Held)
}

fn tmp_size() -> Result<Verdict, String> {
    for folder in ["/tmp", "/dev/shm", "/workspace"] {
        let file = format!("{folder}/x");
        let write = |bytes: &str| {
            let (_place, call) = limited(&["tmp_mb: 4"])?;
            report(&call.mode(&["writer", &file, bytes])?.run()?)
        };
        let (done, errno) = write("8388608")?;
        ensure!(
            done <= 4 << 20 && errno == "ENOSPC",
            "{folder}: {done} {errno}"
        );
        let control = write("1048576")?;
        ensure!(control.1 == "none", "{folder}: {control:?}");
    }
    Ok(Verdict::Held)
}

fn tmp_files() -> Result<Verdict, String> {
    let make = |count: &str| {
        let (_place, call) = limited(&["tmp_inodes: 64"])?;
        report(&call.mode(&["inodes", "/tmp", count])?.run()?)
    };
    let (done, errno) = make("100")?;
    ensure!(done < 64 && errno == "ENOSPC", "{done} {errno}");
    let control = make("32")?;
    ensure!(control == (32, "none".to_owned()), "{control:?}");
    Ok(Verdict::Held)
}

fn timeout() -> Result<Verdict, String> {
    let ended = Call::new("strict")?
        .args(["--timeout", "1s"])
        .sh("sleep 612")
        .run()?
        .is(124, "timeout", "timeout")?
        .mentions("--timeout")?;
    ensure!(
        ended.elapsed < pace::here(Duration::from_secs(10)),
        "{ended:?}"
    );
    Call::new("strict")?
        .args(["--timeout", "20s"])
        .sh("sleep 0; echo done")
        .run()?
        .says("done")?;
    Ok(Verdict::Held)
}

fn command_timeout() -> Result<Verdict, String> {
    let place = Place::new()?;
    let profile: PathBuf = place.profile("extends: standard\ncommand_timeout_seconds: 1\n")?;
    Call::new(profile)?
        .sh("sleep 613")
        .run()?
        .is(124, "timeout", "timeout")?
        .mentions("command_timeout_seconds")?;
    Ok(Verdict::Held)
}
