//! PX-11: under the table `python` a program starts no other, signals nobody,
//! and makes no links and sockets. The control is always the same under `strict`.

use crate::call::{Call, Ended, Input, ensure};
use crate::harness::{Test, Verdict, test};
use crate::place::Place;

pub fn tests() -> Vec<Test> {
    vec![
        test("one_program::python_is_refused_what_the_row_names", refused),
        test(
            "one_program::no_way_leads_to_a_socket_of_the_host",
            host_socket,
        ),
        test("one_program::python_works_otherwise", works),
        test("one_program::no_way_leads_to_a_second_exec", second_exec),
        test("one_program::the_very_first_step_cannot_exec", at_once),
        test("one_program::a_flood_of_execs_ends_in_time", flood),
        test("one_program::the_command_is_found_as_ever", found),
        test("one_program::scripts_name_their_interpreter", scripts),
        test("one_program::any_profile_can_ask_for_it", any_profile),
        test(
            "one_program::other_programs_keep_their_signals",
            interrupted,
        ),
    ]
}

/// Python that tries each line of `tries` and prints how it went.
fn attempts(tries: &[(&str, &str)]) -> String {
    let mut script = String::from(
        "import os, signal, socket, subprocess, ctypes\n\
         libc = ctypes.CDLL(None, use_errno=True)\n\
         def call(number, *args):\n\
         \x20   if libc.syscall(number, *args) < 0:\n\
         \x20       raise OSError(ctypes.get_errno(), 'refused')\n\
         def child(pid):\n\
         \x20   if pid == 0: os._exit(0)\n\
         \x20   os.waitpid(pid, 0)\n\
         def attempt(name, work):\n\
         \x20   try: work()\n\
         \x20   except PermissionError as e: print(name, 'PermissionError', e.errno, flush=True)\n\
         \x20   except OSError as e: print(name, 'OSError', e.errno, flush=True)\n\
         \x20   else: print(name, 'done', flush=True)\n",
    );
    for (name, work) in tries {
        script.push_str(&format!("attempt({name:?}, lambda: {work})\n"));
    }
    script
}

fn python(profile: &str, script: &str) -> Result<Ended, String> {
    Call::new(profile)?
        .cmd(["python3", "-"])
        .input(Input::Bytes(script.into()))
        .run()
}

const REFUSED: &[(&str, &str)] = &[
    ("subprocess", "subprocess.run(['/bin/true'], check=True)"),
    ("shell", "subprocess.check_output('true', shell=True)"),
    ("fork", "child(os.fork())"),
    (
        "posix_spawn",
        "os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)",
    ),
    ("kill", "os.kill(os.getpid(), 0)"),
    (
        "raise_signal",
        "(signal.signal(signal.SIGUSR1, lambda *_: 0), signal.raise_signal(signal.SIGUSR1))",
    ),
    ("symlink", "os.symlink('/etc/passwd', '/tmp/s')"),
    (
        "link",
        "(open('/tmp/f', 'w').close(), os.link('/tmp/f', '/tmp/l'))",
    ),
    ("inet", "socket.socket().close()"),
    ("unix", "socket.socket(socket.AF_UNIX).close()"),
    (
        "netlink",
        "socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, 0).close()",
    ),
];

fn lines(tries: &[(&str, &str)], word: &str) -> String {
    let lines: Vec<_> = tries.iter().map(|(n, _)| format!("{n} {word}")).collect();
    lines.join("\n")
}

fn refused() -> Result<Verdict, String> {
    let script = attempts(REFUSED);
    let control = python("strict", &script)?;
    // Where only root may signal or open this, the control says so.
    ensure!(
        control.out() == lines(REFUSED, "done"),
        "the control: {control:?}"
    );
    let ended = python("python", &script)?;
    ensure!(
        ended.out() == lines(REFUSED, "PermissionError 13") && ended.code() == 0,
        "{ended:?}"
    );
    Ok(Verdict::Held)
}

fn works() -> Result<Verdict, String> {
    let script = "
import asyncio, concurrent.futures, json, os, sqlite3, sys, tempfile, threading
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    assert list(pool.map(lambda n: n * n, range(50)))[-1] == 2401
async def nap(n):
    await asyncio.sleep(0)
    return await asyncio.to_thread(lambda: n)
async def all():
    return await asyncio.gather(*(nap(n) for n in range(5)))
assert asyncio.run(all()) == [0, 1, 2, 3, 4]
db = sqlite3.connect('/tmp/db')
db.execute('create table t (n)')
db.execute('insert into t values (?)', (7,))
db.commit()
with tempfile.NamedTemporaryFile('w', dir='/tmp', delete=False) as f:
    json.dump({'n': db.execute('select n from t').fetchone()[0]}, f)
os.rename(f.name, '/tmp/out/n.json')
print(open('/tmp/out/n.json').read(), sys.executable)
";
    for profile in ["strict", "python"] {
        let ended = python(profile, script)?;
        ensure!(
            ended.code() == 0 && ended.out().starts_with("{\"n\": 7} /"),
            "{profile}: {ended:?}"
        );
    }
    Ok(Verdict::Held)
}

/// No socket has to be made, bound or connected to send to one that is in a folder.
fn host_socket() -> Result<Verdict, String> {
    use std::os::unix::fs::PermissionsExt;
    let tries = [1, 2, 3, 5].map(|kind| {
        let one = format!("socket.socketpair(socket.AF_UNIX, {kind})[0]");
        (
            format!("kind_{kind}"),
            format!("{one}.sendto(b'sent', '/data/socket')"),
        )
    });
    let tries: Vec<_> = tries
        .iter()
        .map(|(n, w)| (n.as_str(), w.as_str()))
        .collect();
    for (profile, expected) in [("strict", 2), ("python", 0)] {
        let place = Place::new()?;
        let path = place.join("socket");
        let socket = std::os::unix::net::UnixDatagram::bind(&path)
            .and_then(|socket| socket.set_nonblocking(true).map(|()| socket))
            .and_then(|socket| {
                let all = std::fs::Permissions::from_mode(0o777);
                std::fs::set_permissions(&path, all)?;
                for path in [place.path(), &path] {
                    std::os::unix::fs::chown(path, Some(4321), Some(4321))?;
                }
                Ok(socket)
            })
            .map_err(|e| format!("a socket of the host: {e}"))?;
        let ended = Call::new(profile)?
            .mount(place.path(), ":/data")
            .cmd(["python3", "-"])
            .input(Input::Bytes(attempts(&tries).into()))
            .run()?;
        let came = std::iter::from_fn(|| socket.recv(&mut [0; 8]).ok()).count();
        ensure!(ended.code() == 0, "{profile}: {ended:?}");
        // Datagrams, and raw ones, which are the same (the control).
        ensure!(came == expected, "{profile}: {came} came: {ended:?}");
        let refused = ended.out().matches("PermissionError 13").count();
        ensure!(
            refused == 2 - expected,
            "{profile}: refused otherwise: {ended:?}"
        );
    }
    Ok(Verdict::Held)
}

/// By name, by descriptor, from memory, from a thread, after closing all
/// descriptors. Each would replace the program, so the controls come one by one.
const EXECS: &[(&str, &str)] = &[
    ("execv", "os.execv('/bin/echo', ['echo', 'replaced'])"),
    (
        "fexecve",
        "os.execve(os.open('/bin/echo', os.O_RDONLY), ['echo', 'replaced'], {})",
    ),
    (
        "proc",
        "os.execv('/proc/self/fd/%d' % os.open('/bin/echo', os.O_RDONLY), ['echo', 'replaced'])",
    ),
    (
        "loader",
        "os.execv('/lib64/ld-linux-x86-64.so.2', ['ld.so', '/bin/echo', 'replaced'])",
    ),
    (
        "itself",
        "os.execv('/proc/self/exe', ['python3', '-c', 'print(\"replaced\")'])",
    ),
    (
        "closed",
        "(os.closerange(3, 256), os.execv('/bin/echo', ['echo', 'replaced']))",
    ),
    (
        "memory",
        "(lambda fd: (os.write(fd, open('/bin/echo', 'rb').read()), \
           os.execve(fd, ['echo', 'replaced'], {})))(os.memfd_create('m', 0))",
    ),
    (
        "execveat",
        "call(322, -100, b'/bin/echo', (ctypes.c_char_p * 3)(b'echo', b'replaced', None), None, 0)",
    ),
    (
        "thread",
        "(lambda t: (t.start(), t.join()))(__import__('threading').Thread(\
           target=lambda: attempt('in_thread', lambda: os.execv('/bin/echo', ['echo', 'replaced']))))",
    ),
];

fn second_exec() -> Result<Verdict, String> {
    for (name, work) in EXECS {
        let one = attempts(&[(name, work)]);
        let control = python("strict", &one)?;
        ensure!(
            control.out() == "replaced",
            "the control {name}: {control:?}"
        );
    }
    let ended = python("python", &attempts(EXECS))?;
    let expected = lines(EXECS, "PermissionError 13").replace(
        "thread PermissionError 13",
        "in_thread PermissionError 13\nthread done",
    );
    ensure!(ended.out() == expected, "{ended:?}");
    Ok(Verdict::Held)
}

/// A program that execs before anything else meets a guest that may not have
/// seen yet that the command runs.
fn at_once() -> Result<Verdict, String> {
    let script = "exec /bin/echo replaced";
    Call::new("strict")?.sh(script).run()?.says("replaced")?;
    for _ in 0..20 {
        let ended = Call::new("python")?.sh(script).run()?;
        ensure!(
            ended.code() == 126 && ended.out().is_empty(),
            "a second program ran: {ended:?}"
        );
    }
    Ok(Verdict::Held)
}

/// Threads that ask without a pause neither hold up the end of the task nor
/// each other.
fn flood() -> Result<Verdict, String> {
    let script = "
import os, threading
def knock(stop=[]):
    for n in range(20000):
        try: os.execv('/bin/true', ['true'])
        except PermissionError: pass
threads = [threading.Thread(target=knock) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
print('all refused')
";
    let ended = python("python", script)?;
    ensure!(
        ended.code() == 0 && ended.out() == "all refused",
        "{ended:?}"
    );
    let endless = script.replace("range(20000)", "iter(int, 1)");
    let call = Call::new("python")?.args(["--timeout", "500ms"]);
    let ended = call
        .cmd(["python3", "-"])
        .input(Input::Bytes(endless.into()))
        .run()?;
    ensure!(
        ended.code() == 124 && ended.fact("state") == "timeout",
        "{ended:?}"
    );
    Ok(Verdict::Held)
}

/// Looking for the command is more than one exec.
fn found() -> Result<Verdict, String> {
    let path = "PATH=/nowhere:/etc/passwd:/tmp:/usr/bin:/bin";
    let far = Call::new("python")?.args(["--env", path]);
    far.cmd(["echo", "found"]).run()?.says("found")?;
    for (command, code) in [
        ("no-such-program", 127),
        ("/etc/passwd", 126),
        ("/tmp", 126),
    ] {
        let ended = Call::new("python")?.cmd([command]).run()?;
        ensure!(ended.code() == code, "{command}: {ended:?}");
        let same = Call::new("strict")?.cmd([command]).run()?;
        ensure!(same.code() == code, "{command} in strict: {same:?}");
    }
    Ok(Verdict::Held)
}

fn scripts() -> Result<Verdict, String> {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new()?;
    for (interpreter, profile, code) in [
        ("/bin/sh", "python", 0),
        ("/usr/bin/env sh", "strict", 0),
        ("/usr/bin/env sh", "python", 126),
    ] {
        let script = place.file("script", format!("#!{interpreter}\necho ran\n"))?;
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755))
            .map_err(|e| format!("chmod: {e}"))?;
        let ended = Call::new(profile)?
            .mount(&script, ":/opt/script")
            .cmd(["/opt/script"])
            .run()?;
        ensure!(
            ended.code() == code && (ended.out() == "ran") == (code == 0),
            "{interpreter} in {profile}: {ended:?}"
        );
    }
    Ok(Verdict::Held)
}

/// The table goes with any tier, and nothing else changes.
fn any_profile() -> Result<Verdict, String> {
    for tier in ["loose", "standard", "strict"] {
        let place = Place::new()?;
        let text = format!("extends: {tier}\ntier: {tier}\nsyscalls: python\n");
        let file = place.profile(&text)?;
        let call = |profile: &std::path::Path| {
            let call = Call::new(profile)?.args(["--network", "none"]);
            call.sh("echo one; /bin/echo two").run()
        };
        let ended = call(&file)?;
        ensure!(
            ended.out() == "one" && ended.code() != 0,
            "{tier}: {ended:?}"
        );
        let control = call(std::path::Path::new(tier))?;
        ensure!(control.out() == "one\ntwo", "{tier}: {control:?}");
    }
    Ok(Verdict::Held)
}

/// The table takes sending away, not being told: a time-out asks first (PX-06).
fn interrupted() -> Result<Verdict, String> {
    let script = "
import signal, time, sys
def told(*_):
    print('told', flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, told)
print('ready', flush=True)
while True: signal.pause()
";
    let call = Call::new("python")?.args(["--timeout", "2s"]);
    let ended = call
        .cmd(["python3", "-"])
        .input(Input::Bytes(script.into()))
        .run()?;
    ensure!(
        ended.code() == 124 && ended.out() == "ready\ntold",
        "{ended:?}"
    );
    Ok(Verdict::Held)
}
