//! The home directory of the caller: what `~` in a profile means.

use std::path::PathBuf;

use orch_policy::{Code, Error};

/// `$HOME`, else the entry of `/etc/passwd`.
///
/// Not `std::env::home_dir`, which asks the name service: in a static program
/// that loads libraries of the host.
///
/// # Errors
/// [`Code::Usage`] where neither is there: without it nobody knows what has to
/// stay hidden (PR-16).
pub fn home() -> Result<PathBuf, Error> {
    if let Some(home) = std::env::var_os("HOME").filter(|home| !home.is_empty()) {
        return Ok(home.into());
    }
    let uid = rustix::process::getuid().as_raw();
    std::fs::read_to_string("/etc/passwd")
        .ok()
        .and_then(|passwd| of(uid, &passwd))
        .ok_or_else(|| {
            Error::new(
                Code::Usage,
                format!("the home directory of user {uid} is not known"),
                "set HOME to an absolute path",
            )
        })
}

/// passwd(5): `name:password:uid:gid:comment:home:shell`.
fn of(uid: u32, passwd: &str) -> Option<PathBuf> {
    passwd.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let [_, _, id, _, _, home, _] = fields[..] else {
            return None;
        };
        (id.parse() == Ok(uid) && home.starts_with('/')).then(|| home.into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwd_knows_where_home_is() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nbad:x:7\nme:x:1000:1000::/home/me:/bin/sh\n";
        assert_eq!(of(1000, passwd), Some("/home/me".into()));
        assert_eq!(of(0, passwd), Some("/root".into()));
        assert_eq!(of(7, passwd), None);
    }
}
