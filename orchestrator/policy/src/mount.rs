//! A mount as people type it: `SRC[:DST][:rw]`.
//!
//! A colon that belongs to a path is written `\:`, and a backslash in front of a
//! colon or of another backslash `\\`; any other backslash stands for itself.
//! Bytes that are not UTF-8, spaces and newlines are just bytes (PR-37).

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use crate::error::{Code, Error};
use crate::paths;
use crate::profile::Access;

/// A mount as it was written; the source may be relative.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountArg {
    /// Path on the host.
    pub source: PathBuf,
    /// Path inside, where one was written: absolute, without `.` and `..`.
    pub target: Option<PathBuf>,
    /// Read-only unless `:rw` was written (FS-14).
    pub mode: Access,
}

/// Reads one `--mount`.
///
/// # Errors
/// [`Code::MountInvalid`]: empty parts, too many parts, a NUL byte, a target that
/// is not absolute or has `..`.
pub fn parse(text: OsString) -> Result<MountArg, Error> {
    let invalid = |cause: &str, remedy: &str| {
        Error::new(
            Code::MountInvalid,
            format!("mount {:?} cannot be read", text.to_string_lossy()),
            remedy,
        )
        .because(cause)
    };
    let mut parts = split(text.as_bytes());
    let mode = match parts.last().map(Vec::as_slice) {
        Some(b"rw") if parts.len() > 1 => Some(Access::Rw),
        Some(b"ro") if parts.len() > 1 => Some(Access::Ro),
        _ => None,
    };
    if mode.is_some() {
        parts.pop();
    }
    let mut parts = parts.into_iter();
    let (source, target) = (parts.next().unwrap_or_default(), parts.next());
    if parts.next().is_some() {
        return Err(invalid(
            "it has more than SRC, DST and rw",
            "write a colon that belongs to a path as \\:",
        ));
    }
    if source.is_empty() {
        return Err(invalid("the source is empty", "write SRC[:DST][:rw]"));
    }
    if target
        .as_ref()
        .is_some_and(|target| target.first() != Some(&b'/'))
    {
        return Err(invalid(
            "the target is neither an absolute path nor ro or rw",
            "write SRC:/workspace/NAME, or leave the target out; a colon in a path is \\:",
        ));
    }
    if source.contains(&0) {
        return Err(invalid("the source contains a NUL byte", "remove it"));
    }
    let path = |bytes| PathBuf::from(OsString::from_vec(bytes));
    let target = target
        .map(|target| paths::absolute(&path(target)))
        .transpose()
        .map_err(|(cause, remedy)| invalid(&format!("target: {cause}"), remedy))?;
    Ok(MountArg {
        source: path(source),
        target,
        mode: mode.unwrap_or(Access::Ro),
    })
}

/// The parts between colons that are not escaped, with the escapes resolved.
fn split(text: &[u8]) -> Vec<Vec<u8>> {
    let mut parts = vec![Vec::new()];
    let mut rest = text.iter().copied().peekable();
    while let Some(byte) = rest.next() {
        let part = match byte {
            b':' => {
                parts.push(Vec::new());
                continue;
            }
            b'\\' => rest
                .next_if(|next| matches!(next, b':' | b'\\'))
                .unwrap_or(byte),
            byte => byte,
        };
        if let Some(last) = parts.last_mut() {
            last.push(part);
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::path::Path;

    use super::*;

    fn read(bytes: &[u8]) -> Result<MountArg, Error> {
        parse(OsString::from_vec(bytes.to_vec()))
    }

    fn expect(bytes: &[u8], source: &[u8], target: Option<&[u8]>, mode: Access) {
        let path = |bytes: &[u8]| Path::new(OsStr::from_bytes(bytes)).to_owned();
        let mount = MountArg {
            source: path(source),
            target: target.map(path),
            mode,
        };
        assert_eq!(read(bytes).unwrap(), mount);
    }

    /// FS-10, FS-14: read-only unless asked otherwise.
    #[test]
    fn source_target_and_mode() {
        use Access::{Ro, Rw};
        expect(b"/a", b"/a", None, Ro);
        expect(b"a:rw", b"a", None, Rw);
        expect(b"/a:/b", b"/a", Some(b"/b"), Ro);
        expect(b"/a:/b:ro", b"/a", Some(b"/b"), Ro);
        expect(b"/a:/b:rw", b"/a", Some(b"/b"), Rw);
        // A file of that name in this directory.
        expect(b"rw", b"rw", None, Ro);
        expect(b"rw:rw", b"rw", None, Rw);
    }

    /// PR-37: what the kernel takes, works.
    #[test]
    fn bytes_spaces_and_newlines_are_just_bytes() {
        expect(
            b"/a b\n\xff:/w/c\td\xfe:rw".as_slice(),
            b"/a b\n\xff",
            Some(b"/w/c\td\xfe"),
            Access::Rw,
        );
    }

    #[test]
    fn colons_can_be_escaped() {
        expect(br"/a\:b:/c\:d", b"/a:b", Some(b"/c:d"), Access::Ro);
        expect(br"/a\b\\:/c", br"/a\b\", Some(b"/c"), Access::Ro);
        expect(br"/a\", br"/a\", None, Access::Ro);
    }

    #[test]
    fn what_is_written_escaped_is_read_back() {
        for path in [&b"/a:b"[..], br"/a\:b\\c\", b"/\xff:\\", b"/plain"] {
            let mut escaped = Vec::new();
            for byte in path {
                if matches!(byte, b':' | b'\\') {
                    escaped.push(b'\\');
                }
                escaped.push(*byte);
            }
            expect(&escaped, path, None, Access::Ro);
        }
    }

    /// FS-20: a target says where it leads.
    #[test]
    fn a_target_is_absolute_and_in_plain_spelling() {
        expect(b"/a:/b//./c/", b"/a", Some(b"/b/c"), Access::Ro);
        expect(b"/a:/..b/c..", b"/a", Some(b"/..b/c.."), Access::Ro);
        for bad in [&b"/a:/.."[..], b"/a:/b/../c:rw", b"/a:/b/..", b"/a:b/c"] {
            let error = read(bad).unwrap_err();
            assert_eq!(error.code, Code::MountInvalid, "{bad:?}");
            assert!(error.cause.unwrap().contains("target"), "{bad:?}");
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for bad in [
            &b""[..],
            b":/b",
            b"/a:",
            b"/a:b",
            b"/a:/b:rx",
            b"/a:/b:/c",
            b"/a:/b:rw:rw",
            b":rw",
            b"/a\0",
            b"/a:/b\0",
        ] {
            assert_eq!(read(bad).unwrap_err().code, Code::MountInvalid, "{bad:?}");
        }
    }
}
