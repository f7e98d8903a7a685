//! What the daemon does for a launcher that is not root (design §3.6): it has its
//! ids mapped from outside, by the programs that may.

use std::path::Path;
use std::process::{Command, Stdio};

use orch_policy::{Code, Error};
use orch_wire::range::COUNT;

use crate::failure;
use crate::subordinate::{Line, arguments, granted, map};

/// Whether the launcher needs a user namespace.
#[must_use]
pub fn needed() -> bool {
    !rustix::process::geteuid().is_root()
}

/// Maps the ids of the process: the caller becomes `uid` and `gid`, the caller's
/// subordinate ids all others.
///
/// # Errors
/// [`Code::HostUnsupported`] without newuidmap(1), or with fewer than 65 535
/// subordinate ids; the remedy names what is missing.
pub fn map_ids(pid: u32, uid: u32, gid: u32) -> Result<(), Error> {
    let (caller, group) = (rustix::process::getuid(), rustix::process::getgid());
    let name = name_of(caller.as_raw());
    let who = name.clone().unwrap_or_else(|| caller.as_raw().to_string());
    for (program, file, own, outside) in [
        ("newuidmap", "/etc/subuid", uid, caller.as_raw()),
        ("newgidmap", "/etc/subgid", gid, group.as_raw()),
    ] {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let granted = granted(&text, name.as_deref(), caller.as_raw());
        let lines = map(own, outside, &granted, COUNT).ok_or_else(|| too_few(&who, file))?;
        run(program, pid, &lines, &who)?;
    }
    Ok(())
}

fn too_few(who: &str, file: &str) -> Error {
    let kind = if file.ends_with("uid") {
        "uids"
    } else {
        "gids"
    };
    Error::new(
        Code::HostUnsupported,
        format!("{file} grants {who} fewer than {} ids", COUNT - 1),
        format!(
            "as root: usermod --add-sub{kind} 100000-165535 {who} (a range that nobody else has), \
             or run orch as root"
        ),
    )
}

fn executable(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

fn run(program: &str, pid: u32, lines: &[Line], who: &str) -> Result<(), Error> {
    let path = ["/usr/bin", "/bin", "/usr/local/bin"]
        .map(|directory| Path::new(directory).join(program))
        .into_iter()
        .find(|path| executable(path))
        .ok_or_else(|| {
            Error::new(
                Code::HostUnsupported,
                format!("{program} is not installed, and only that may map ids for {who}"),
                "install it (Debian, Ubuntu: apt-get install uidmap), or run orch as root",
            )
        })?;
    let done = Command::new(&path)
        .arg(pid.to_string())
        .args(arguments(lines))
        .env_clear()
        .stdin(Stdio::null())
        .output()
        .map_err(|e| failure::kernel(format_args!("start {}", path.display()), e))?;
    if done.status.success() {
        return Ok(());
    }
    Err(Error::new(
        Code::HostUnsupported,
        format!("{} did not map ids for {who}", path.display()),
        "check that it is setuid root or has cap_setuid, and /etc/subuid and /etc/subgid",
    )
    .because(String::from_utf8_lossy(&done.stderr).trim()))
}

/// passwd(5). Somebody who stands elsewhere (LDAP) is known by number only, which
/// subuid(5) takes as well.
fn name_of(uid: u32) -> Option<String> {
    let passwd = std::fs::read_to_string("/etc/passwd").ok()?;
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    })
}

/// Why a user other than root could not make a user namespace, or not do in it what
/// its root may: which switch of this host it is.
#[must_use]
pub fn explain(error: Error) -> Error {
    let switch = |path: &str| {
        std::fs::read_to_string(path)
            .ok()
            .map(|text| text.trim().to_owned())
    };
    let switches = [
        (
            "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "AppArmor keeps users from making user namespaces here",
            "add an AppArmor profile for orch that allows userns, or as root: \
             sysctl kernel.apparmor_restrict_unprivileged_userns=0, or run orch as root",
        ),
        (
            "/proc/sys/kernel/unprivileged_userns_clone",
            "0",
            "kernel.unprivileged_userns_clone is 0",
            "as root: sysctl kernel.unprivileged_userns_clone=1, or run orch as root",
        ),
        (
            "/proc/sys/user/max_user_namespaces",
            "0",
            "user.max_user_namespaces is 0",
            "as root: sysctl user.max_user_namespaces=10000, or run orch as root",
        ),
    ];
    match switches
        .into_iter()
        .find(|(path, off, ..)| switch(path).as_deref() == Some(off))
    {
        Some((_, _, what, how)) => {
            let cause = format!("{}: {}", error.message, error.cause.unwrap_or_default());
            Error::new(Code::HostUnsupported, what, how).because(cause)
        }
        None => error,
    }
}
