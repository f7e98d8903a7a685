//! The strict filter on the running kernel: ordinary programs work under all
//! three stacked programs, and what is refused is refused (rows B1, B2, B5, B6,
//! B8, A25, H3). Needs no root: `no_new_privs` is set first.
//!
//! The crate under test forbids unsafe code; loading a filter is two system
//! calls, made here through the C library that std links anyway.
#![allow(clippy::unwrap_used)]

use std::ffi::{c_int, c_long, c_ulong, c_ushort, c_void};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

use orch_policy::Tier;
use orch_policy::syscalls::{self, Program};

unsafe extern "C" {
    fn prctl(option: c_int, a: c_ulong, b: c_ulong, c: c_ulong, d: c_ulong) -> c_int;
    fn syscall(number: c_long, ...) -> c_long;
}

const PR_SET_NO_NEW_PRIVS: c_int = 38;
const SYS_SECCOMP: c_long = 317;
const SECCOMP_SET_MODE_FILTER: c_ulong = 1;

/// `struct sock_fprog`.
#[repr(C)]
struct Fprog {
    len: c_ushort,
    filter: *const c_void,
}

/// Loads one program into the calling thread.
fn load(bytes: &[u8]) -> io::Result<()> {
    let len = c_ushort::try_from(bytes.len() / 8).map_err(io::Error::other)?;
    let fprog = Fprog {
        len,
        filter: bytes.as_ptr().cast(),
    };
    // SAFETY: `fprog` points to `len` instructions of 8 bytes in `bytes`, which
    // outlives the call; the kernel copies them.
    let done = unsafe {
        syscall(
            SYS_SECCOMP,
            SECCOMP_SET_MODE_FILTER,
            0_u64,
            &raw const fprog,
        )
    };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Makes the command load these programs, in order, before it is executed.
fn confine(command: &mut Command, filters: Vec<Program>) {
    // SAFETY: between fork and exec only system calls are made; the programs were
    // prepared before and nothing allocates.
    unsafe {
        command.pre_exec(move || {
            if prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 {
                return Err(io::Error::last_os_error());
            }
            filters.iter().try_for_each(|program| load(program.bytes()))
        });
    }
}

/// Runs a command under the guest's, the lease's and the task's filter of a tier.
fn confined(tier: Tier, program: &str, args: &[&str]) -> Output {
    let stack = [
        syscalls::guest(),
        syscalls::lease(tier),
        syscalls::task(tier.into()),
    ];
    let mut command = Command::new(program);
    command.args(args);
    confine(&mut command, stack.map(Result::unwrap).into());
    command.output().unwrap()
}

/// Fails unless the command succeeds, in every tier; gives what strict printed.
fn works(program: &str, args: &[&str]) -> String {
    let mut text = String::new();
    for tier in [Tier::Loose, Tier::Standard, Tier::Strict] {
        let output = confined(tier, program, args);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{tier:?} {program} {args:?}: {error}"
        );
        text = String::from_utf8(output.stdout).unwrap();
    }
    text
}

#[test]
fn programs_of_the_base_system_work() {
    works("/bin/true", &[]);
    let count = works("/bin/sh", &["-c", "ls / | wc -l"]);
    assert!(count.trim().parse::<u32>().unwrap() > 3, "{count}");
    let status = works(
        "/bin/sh",
        &[
            "-c",
            "grep -E '^(Seccomp|Seccomp_filters|NoNewPrivs):' /proc/self/status",
        ],
    );
    let words: Vec<&str> = status.split_whitespace().collect();
    assert_eq!(words[..4], ["NoNewPrivs:", "1", "Seccomp:", "2"]);
    works(
        "/bin/sh",
        &[
            "-c",
            "d=$(mktemp -d) && cd $d && echo a > f && cp -a f g && tar cf t f && mkdir -m 755 x \
        && tar xf t -C x && mv g x && find . | sort | xargs ls -ld && (sleep 0.01 & wait) && rm -r $d",
        ],
    );
}

#[test]
fn python_works() {
    let script = r#"
import asyncio, ctypes, errno, json, mmap, multiprocessing, os, select, signal, socket, subprocess, tempfile
import threading
assert subprocess.check_output(["echo", "a"]) == b"a\n"
t = [threading.Thread(target=lambda: None) for _ in range(8)]
[x.start() for x in t]; [x.join() for x in t]
socket.if_nameindex()
assert socket.getaddrinfo("localhost", 80)
l = socket.create_server(("127.0.0.1", 0)); c = socket.create_connection(l.getsockname()); c.close()
a, b = socket.socketpair(); a.send(b"x"); assert b.recv(1) == b"x"
async def main():
    p = await asyncio.create_subprocess_exec("true"); assert await p.wait() == 0
asyncio.run(main())
with tempfile.TemporaryDirectory() as d:
    open(d + "/f", "w").write("x"); os.chmod(d + "/f", 0o600)
    for mode in (0o4755, 0o2755):
        try: os.chmod(d + "/f", mode); raise SystemExit("setuid bit was set")
        except PermissionError: pass
with multiprocessing.get_context("spawn").Pool(2) as p:
    assert p.map(abs, [-1, 2]) == [1, 2]
os.close(os.memfd_create("m")); mmap.mmap(-1, 4096)
"#;
    works("python3", &["-c", script]);
}

/// Each line of the table is also made without a filter, where the kernel
/// answers something else: what fails here fails because of the filter.
#[test]
fn what_is_refused_is_refused_by_the_filter() {
    let script = r#"
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
def ask(nr, *args):
    ctypes.set_errno(0)
    r = libc.syscall(ctypes.c_long(nr), *[ctypes.c_ulong(a & (2**64 - 1)) for a in args])
    return ctypes.get_errno() if r == -1 else 0
calls = [(425, 8, 0), (101, 0xffff, 0, 0, 0), (321, 99, 0, 0), (323, 0xffff), (250, 0xffff, 0), (310, 1, 0, 0, 0, 1),
         (438, -1, 0, 0), (272, 0x80000000), (435, 0, 0), (437, -1, 0, 0, 0), (452, -1, 0, 0, -1), (16, -1, 0x5412, 0),
         (16, -1, 0x100005412, 0), (56, 0x10000011 | 0x200), (41, 2, 5, 0), (41, 16, 3, 15), (135, 8),
         (600, 0), (0x40000000 | 39, 0), (457, 0, 0, 0, 1), (467, -1, 0, -1, 0, 0), (317, 1, 8, 0), (15 + 75, 0, 0o4755)]
pid = os.getpid()
answers = []
for c in calls:
    e = ask(*c)
    if os.getpid() != pid: os._exit(0)
    answers.append(e)
print(*answers)
"#;
    let expected = "38 1 1 1 1 1 1 1 38 38 38 1 1 1 1 97 1 38 38 38 1 1 1";
    let confined = works("python3", &["-c", script]);
    assert_eq!(confined.trim(), expected);
    let free = Command::new("python3")
        .args(["-c", script])
        .output()
        .unwrap();
    let free = String::from_utf8(free.stdout).unwrap();
    let same = free
        .split_whitespace()
        .zip(expected.split_whitespace())
        .enumerate();
    // Rows that any kernel answers like this: 600 exists nowhere, and x32 may
    // not be built in.
    let alike: Vec<usize> = same.filter(|(_, (a, b))| a == b).map(|(i, _)| i).collect();
    assert!(
        alike.iter().all(|i| [17, 18].contains(i)),
        "{alike:?} of {free}"
    );
}

/// A task that installs a filter of its own still can (group B).
#[test]
fn a_filter_of_the_task_still_works() {
    let script = r#"
import ctypes, struct, errno
libc = ctypes.CDLL(None, use_errno=True)
code = struct.pack("HBBI" * 4, 0x20, 0, 0, 0, 0x15, 0, 1, 63, 6, 0, 0, 0x50063, 6, 0, 0, 0x7fff0000)
buffer = ctypes.create_string_buffer(code, len(code))
fprog = struct.pack("HxxxxxxQ", 4, ctypes.addressof(buffer))
holder = ctypes.create_string_buffer(fprog, len(fprog))
at = ctypes.c_void_p(ctypes.addressof(holder))
assert libc.syscall(317, 1, 8, at) == -1 and ctypes.get_errno() == errno.EPERM
assert libc.syscall(317, 1, 0, at) == 0
assert libc.syscall(63, ctypes.create_string_buffer(390)) == -1 and ctypes.get_errno() == 0x63
"#;
    works("python3", &["-c", script]);
}

/// A call through `int 0x80` carries another architecture (group B, other ABIs):
/// ENOSYS, or SIGSEGV where the kernel was built without IA32 emulation.
#[test]
fn i386_calls_give_enosys() {
    let script = r#"
import ctypes, mmap, os, signal
code = b"\xb8\x14\x00\x00\x00\xcd\x80\xc3"  # mov eax, 20 (getpid); int 0x80; ret
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(code)
at = ctypes.addressof(ctypes.c_char.from_buffer(page))
child = os.fork()
if child == 0:
    answer = ctypes.CFUNCTYPE(ctypes.c_int)(at)()
    os._exit(1 if answer == -38 else 2 if answer == os.getpid() else 3)
status = os.waitpid(child, 0)[1]
print("absent" if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGSEGV else os.WEXITSTATUS(status))
"#;
    let free = Command::new("python3")
        .args(["-c", script])
        .output()
        .unwrap();
    let free = String::from_utf8(free.stdout).unwrap();
    let expected = match free.trim() {
        "absent" => "absent",
        "2" => "1",
        other => panic!("without a filter: {other}"),
    };
    assert_eq!(works("python3", &["-c", script]).trim(), expected);
}

/// What the guest does when it stages a lease, under the guest's filter, and what
/// a lease can no longer do. `unshare` reaches the kernel in both or neither.
#[test]
fn the_guest_makes_namespaces_and_the_lease_does_not() {
    let guest = syscalls::guest().unwrap();
    let stage = [
        "-Urmpfinu",
        "sh",
        "-c",
        "mount -t tmpfs t /tmp && mount -t proc p /proc && umount /tmp",
    ];
    let run = |filters: Vec<Program>| {
        let mut command = Command::new("unshare");
        command.args(stage);
        confine(&mut command, filters);
        command.output().unwrap()
    };
    let free = run(Vec::new());
    let staged = run(vec![guest.clone()]);
    // Where users may make no namespaces, both fail alike and prove nothing.
    let must = std::env::var_os("ORCH_MUST_RUN").is_some();
    let error = String::from_utf8_lossy(&free.stderr);
    assert!(free.status.success() || !must, "without a filter: {error}");
    assert_eq!(
        free.status,
        staged.status,
        "{}",
        String::from_utf8_lossy(&staged.stderr)
    );
    for tier in [Tier::Loose, Tier::Standard, Tier::Strict] {
        let leased = run(vec![guest.clone(), syscalls::lease(tier).unwrap()]);
        let error = String::from_utf8_lossy(&leased.stderr).into_owned();
        assert!(
            error.contains("Operation not permitted"),
            "{tier:?}: {error}"
        );
    }
}
