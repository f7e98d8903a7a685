//! One profile file, read and checked for shape: the unit that `extends` chains.

use crate::error::{Code, Error};
use crate::file::ProfileFile;
use crate::yaml::locate::{Path, Place, Step, locate, second_document};
use crate::yaml::node::Node;
use crate::yaml::read::{Fault, ReadError, read};
use crate::yaml::suggest::nearest;

/// Largest profile file that is read, bytes. The YAML parser takes time in the
/// square of the nesting, so this also bounds how long a hostile file can take
/// (under a second for 64 KiB of `{a: `).
pub const MAX_BYTES: usize = 64 << 10;

/// Where a profile's text came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Label {
    /// A shipped profile.
    Builtin(&'static str),
    /// A file, by the name that messages show.
    File(String),
}

impl std::fmt::Display for Label {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Label::Builtin(name) => write!(f, "builtin {name}"),
            // A file name can hold anything, a terminal's codes included.
            Label::File(file) => write!(f, "{}", file.escape_debug()),
        }
    }
}

/// The text of one profile file.
#[derive(Debug, Clone)]
pub struct Source {
    pub(crate) label: Label,
    pub(crate) text: String,
}

impl Source {
    /// A file's contents. `file` is its name in messages and its identity in the
    /// search for cycles, so it should be the same however the file was reached.
    ///
    /// # Errors
    /// [`Code::ProfileSyntax`] where the bytes are not UTF-8 or more than
    /// [`MAX_BYTES`].
    pub fn file(file: impl Into<String>, bytes: Vec<u8>) -> Result<Self, Error> {
        let file = file.into();
        if bytes.len() > MAX_BYTES {
            return Err(Error::new(
                Code::ProfileSyntax,
                format!("{file}: {} bytes are too many for a profile", bytes.len()),
                format!("keep it under {MAX_BYTES} bytes, and check that it is the right file"),
            ));
        }
        let text = String::from_utf8(bytes).map_err(|error| {
            let good = error.utf8_error().valid_up_to();
            let before = &error.as_bytes()[..good];
            let line = before.iter().filter(|b| **b == b'\n').count() + 1;
            let column = before.iter().rev().take_while(|b| **b != b'\n').count() + 1;
            Error::new(
                Code::ProfileSyntax,
                format!("{file}:{line}:{column}: the file is not UTF-8"),
                "save it as UTF-8",
            )
        })?;
        Ok(Self {
            label: Label::File(file),
            text,
        })
    }

    pub(crate) fn builtin(name: &'static str, text: &str) -> Self {
        Self {
            label: Label::Builtin(name),
            text: text.to_owned(),
        }
    }
}

/// Keys that may stand at the top or inside `sandbox`.
const MOVABLE: [&str; 3] = ["limits", "timeout_seconds", "command_timeout_seconds"];

/// One file of the chain.
#[derive(Debug)]
pub(crate) struct Layer {
    pub label: Label,
    pub text: String,
    /// The file, with what stood inside `sandbox` moved to the top.
    pub file: ProfileFile,
    moved: [bool; 3],
}

impl Layer {
    pub fn read(source: Source) -> Result<Self, Error> {
        let mut layer = Self {
            label: source.label,
            text: source.text,
            file: ProfileFile::default(),
            moved: [false; 3],
        };
        let node: Node = serde_yaml::from_str(&layer.text).map_err(|error| layer.syntax(&error))?;
        layer.file = match &node {
            // A file of comments only: everything comes from the tier.
            Node::Null => ProfileFile::default(),
            node => read(node).map_err(|error| layer.misread(error))?,
        };
        layer.hoist()?;
        match layer.file.version {
            Some(version) if version.0 != 1 => Err(layer.refuse(
                Code::ProfileInvalid,
                &Path::of("version"),
                format!("version {} is not known", version.0),
                "write `version: 1`, or leave the key out",
            )),
            _ => Ok(layer),
        }
    }

    /// Where a key of the resolved profile stands in this file.
    pub fn path(&self, key: &str) -> Path {
        let path = Path::of(key);
        let top = match path.0.first() {
            Some(Step::Key(top)) => top.as_str(),
            _ => return path,
        };
        match MOVABLE.iter().position(|movable| *movable == top) {
            Some(i) if self.moved[i] => Path::of(&format!("sandbox.{key}")),
            _ => path,
        }
    }

    pub fn place(&self, path: &Path) -> Option<Place> {
        locate(&self.text, path)
    }

    /// `FILE:LINE:COLUMN: key: message`.
    pub fn refuse(
        &self,
        code: Code,
        path: &Path,
        message: impl std::fmt::Display,
        remedy: impl Into<String>,
    ) -> Error {
        let place = match self.place(path) {
            Some(at) => format!(":{}:{}", at.line, at.column),
            None => String::new(),
        };
        let key = if path.0.is_empty() {
            String::new()
        } else {
            format!("{path}: ")
        };
        Error::new(
            code,
            format!("{}{place}: {key}{message}", self.label),
            remedy,
        )
    }

    fn hoist(&mut self) -> Result<(), Error> {
        let Some(mut sandbox) = self.file.sandbox.take() else {
            return Ok(());
        };
        let file = &mut self.file;
        let both = [
            file.limits.is_some() && sandbox.limits.is_some(),
            file.timeout_seconds.is_some() && sandbox.timeout_seconds.is_some(),
            file.command_timeout_seconds.is_some() && sandbox.command_timeout_seconds.is_some(),
        ];
        self.moved = [
            sandbox.limits.is_some(),
            sandbox.timeout_seconds.is_some(),
            sandbox.command_timeout_seconds.is_some(),
        ];
        file.limits = sandbox.limits.take().or(file.limits.take());
        file.timeout_seconds = sandbox
            .timeout_seconds
            .take()
            .or(file.timeout_seconds.take());
        file.command_timeout_seconds = sandbox
            .command_timeout_seconds
            .take()
            .or(file.command_timeout_seconds.take());
        file.sandbox = Some(sandbox);
        for (key, both) in MOVABLE.iter().zip(both) {
            if both {
                let inner = Path::of(&format!("sandbox.{key}"));
                let line = self.place(&inner).map_or(0, |at| at.line);
                return Err(self.refuse(
                    Code::ProfileInvalid,
                    &Path::of(key),
                    format!("the key is there as well as {inner} (line {line})"),
                    format!("keep either {key} or {inner}"),
                ));
            }
        }
        Ok(())
    }

    fn syntax(&self, error: &serde_yaml::Error) -> Error {
        let text = error.to_string();
        let (place, text) = match error.location() {
            Some(at) => {
                let (line, column) = (at.line(), at.column());
                let tail = format!(" at line {line} column {column}");
                (Place { line, column }, text.replacen(&tail, "", 1))
            }
            // The parser has no place for what is wrong with the text as a whole.
            None => match second_document(&self.text) {
                Some(place) => (place, "a second document begins here".to_owned()),
                None => (Place { line: 1, column: 1 }, text),
            },
        };
        let remedy = if text.contains("is there twice") {
            "remove one of the two"
        } else if text.contains("second document") {
            "a profile is one document: remove the `---` in front of this, or what follows it"
        } else if text.contains("repetition limit") {
            "write out what the aliases (`*name`) stand for"
        } else {
            "mend the YAML; lists and blocks are indented with spaces, never tabs"
        };
        let Place { line, column } = place;
        Error::new(
            Code::ProfileSyntax,
            format!("{}:{line}:{column}: {text}", self.label),
            remedy,
        )
    }

    fn misread(&self, error: ReadError) -> Error {
        let path = &error.path;
        match error.fault {
            Fault::UnknownKey(known) => {
                let word = match path.0.last() {
                    Some(Step::Key(key)) => key.as_str(),
                    _ => "",
                };
                let remedy = match (nearest(word, known.iter().copied()), home_of(word)) {
                    (Some(near), _) => format!("did you mean `{near}`?"),
                    (None, Some(home)) => format!("`{word}` belongs under `{home}`"),
                    (None, None) => format!("known here are {}", known.join(", ")),
                };
                self.refuse(
                    Code::ProfileUnknownKey,
                    path,
                    "the key is not known",
                    remedy,
                )
            }
            Fault::UnknownWord(word, known) => {
                let remedy = match nearest(&word, known.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`? Known are {}", known.join(", ")),
                    None => format!("write one of {}", known.join(", ")),
                };
                self.refuse(
                    Code::ProfileInvalid,
                    path,
                    format!("{word:?} is not known"),
                    remedy,
                )
            }
            Fault::Missing(key) => self.refuse(
                Code::ProfileInvalid,
                path,
                format!("the key `{key}` is missing"),
                format!("add `{key}`"),
            ),
            Fault::Type(expected, found) => {
                let remedy = if found == "nothing" {
                    "give it a value, or remove the key; a lone ~ has to stand in quotes"
                } else {
                    "correct the value, or remove the key to take the tier's"
                };
                let message = format!("expected {expected}, found {found}");
                self.refuse(Code::ProfileSyntax, path, message, remedy)
            }
            Fault::Other(text) => self.refuse(Code::ProfileSyntax, path, text, "correct the value"),
        }
    }
}

/// The block a key belongs to, for keys written one level off.
fn home_of(key: &str) -> Option<&'static str> {
    const HOMES: [(&str, &[&str]); 4] = [
        (
            "limits",
            &[
                "cpu_seconds",
                "cpus",
                "memory_mb",
                "open_files",
                "processes",
                "file_size_mb",
                "stack_mb",
                "tmp_mb",
                "tmp_inodes",
                "output_mb",
                "out_mb",
                "io_read_mb_per_second",
                "io_write_mb_per_second",
            ],
        ),
        (
            "sandbox",
            &[
                "image",
                "root",
                "workspace",
                "workspace_mode",
                "tmpdir",
                "mounts",
                "deny_paths",
                "network",
            ],
        ),
        ("sandbox.network", &["default", "allow", "deny"]),
        ("env", &["set"]),
    ];
    HOMES
        .iter()
        .find(|(_, keys)| keys.contains(&key))
        .map(|(home, _)| *home)
}
