//! `--user UID[:GID]`.

use orch_policy::spec::task::MAX_ID;
use orch_policy::{Code, Error};

/// A user as it was asked for; without a group, the group of the same number.
pub type User = (u32, Option<u32>);

/// Reads `--user`.
///
/// # Errors
/// [`Code::UserInvalid`] for anything but numbers from 0 to [`MAX_ID`]: there is
/// no telling which names an image knows.
pub fn parse(text: &str) -> Result<User, Error> {
    let (uid, gid) = match text.split_once(':') {
        Some((uid, gid)) => (uid, Some(gid)),
        None => (text, None),
    };
    let id = |id: &str| {
        let digits = id.bytes().all(|b| b.is_ascii_digit());
        id.parse().ok().filter(|id| digits && *id <= MAX_ID)
    };
    let user = id(uid).and_then(|uid| match gid {
        Some(gid) => Some((uid, Some(id(gid)?))),
        None => Some((uid, None)),
    });
    user.ok_or_else(|| {
        Error::new(
            Code::UserInvalid,
            format!("user {text:?} cannot be used"),
            format!("write UID or UID:GID, numbers from 0 to {MAX_ID}"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_only() {
        assert_eq!(parse("0").unwrap(), (0, None));
        assert_eq!(parse("1000:50").unwrap(), (1000, Some(50)));
        for bad in [
            "",
            ":",
            "1:",
            ":1",
            "root",
            "-1",
            "+1",
            "65534",
            "1:2:3",
            "4294967296",
        ] {
            let error = parse(bad).unwrap_err();
            assert_eq!(error.code, Code::UserInvalid, "{bad}");
        }
    }
}
