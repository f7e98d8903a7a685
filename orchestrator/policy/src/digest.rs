//! A name for the contents of a profile, for receipts and as the key of a pool
//! (PO-09, PR-29).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::error::{Code, Error};
use crate::profile::Profile;

/// SHA-256 of the effective profile in canonical JSON (sorted keys, no white
/// space), 64 hexadecimal digits.
///
/// # Errors
/// [`Code::ProfileInvalid`] where the profile cannot be written as JSON, which
/// no loaded profile is.
pub fn sha256(profile: &Profile) -> Result<String, Error> {
    let value = serde_json::to_value(profile).map_err(|error| {
        Error::new(
            Code::ProfileInvalid,
            format!("profile {:?} cannot be written as JSON", profile.name),
            "report this as a bug",
        )
        .because(error)
    })?;
    let mut text = String::new();
    canonical(&value, &mut text);
    Ok(hex(&Sha256::digest(text.as_bytes())))
}

/// SHA-256 of a file's text, as it is recorded with the profile (PR-29).
#[must_use]
pub fn sha256_text(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}

/// SHA-256 of bytes that come one piece after another.
#[derive(Debug, Clone, Default)]
pub struct Running(Sha256);

impl Running {
    /// Adds these bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of everything that was added, 64 hexadecimal digits.
    #[must_use]
    pub fn end(self) -> String {
        hex(&self.0.finalize())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(map) => {
            let sorted: BTreeMap<_, _> = map.iter().collect();
            text.push('{');
            for (i, (key, value)) in sorted.into_iter().enumerate() {
                if i > 0 {
                    text.push(',');
                }
                let _ = write!(text, "{}:", Value::from(key.as_str()));
                canonical(value, text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    text.push(',');
                }
                canonical(item, text);
            }
            text.push(']');
        }
        scalar => {
            let _ = write!(text, "{scalar}");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::builtin::{NAMES, builtin};

    fn home(path: &Path) -> Profile {
        builtin("strict", path).unwrap().profile
    }

    #[test]
    fn same_profile_same_digest_and_no_two_alike() {
        let mut seen = std::collections::BTreeSet::new();
        for name in NAMES {
            let profile = builtin(name, Path::new("/home/me")).unwrap().profile;
            let digest = sha256(&profile).unwrap();
            assert_eq!(digest.len(), 64);
            assert_eq!(digest, sha256(&profile.clone()).unwrap());
            assert!(seen.insert(digest), "{name}");
        }
        let mut profile = home(Path::new("/home/me"));
        let before = sha256(&profile).unwrap();
        profile.limits.processes += 1;
        assert_ne!(before, sha256(&profile).unwrap());
    }

    /// A home that is not UTF-8 is a home too, and not the same as a lookalike.
    #[test]
    fn paths_that_are_not_utf8_count() {
        let raw = |bytes: &[u8]| home(&PathBuf::from(OsStr::from_bytes(bytes)));
        let a = sha256(&raw(b"/home/\xff")).unwrap();
        let b = sha256(&raw(b"/home/\xfe")).unwrap();
        assert_ne!(a, b);
    }

    #[test]
    fn canonical_json_sorts_and_escapes() {
        let value: Value =
            serde_json::from_str(r#"{"b": [1, {"d": null, "c": "x\n"}], "a": true}"#).unwrap();
        let mut text = String::new();
        canonical(&value, &mut text);
        assert_eq!(text, r#"{"a":true,"b":[1,{"c":"x\n","d":null}]}"#);
        assert_eq!(
            sha256_text("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
