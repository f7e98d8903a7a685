//! Line and column of a key, taken from the parser itself.
//!
//! serde has no positions, but the YAML parser adds one to every error raised
//! while it reads. So the document is read once more, and an error is raised on
//! purpose at the wanted key. That is exact for block and flow style, quoted
//! keys, comments and anchors, and costs nothing where nothing is wrong.

use std::fmt;

use serde::Deserialize;
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// One step from a value to a value inside it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(untagged)]
pub enum Step {
    /// Into the value of a key.
    Key(String),
    /// Into an element of a list, counted from 0.
    Item(usize),
}

/// The way from the top of the document to a value.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct Path(pub Vec<Step>);

impl Path {
    /// The path of a dotted key, such as `sandbox.network.default`.
    #[must_use]
    pub fn of(dotted: &str) -> Self {
        Self(dotted.split('.').map(|k| Step::Key(k.to_owned())).collect())
    }

    /// The path of the value under `key`.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        let mut path = self.clone();
        path.0.push(Step::Key(key.to_owned()));
        path
    }

    /// The path of element `index`.
    #[must_use]
    pub fn item(&self, index: usize) -> Self {
        let mut path = self.clone();
        path.0.push(Step::Item(index));
        path
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, step) in self.0.iter().enumerate() {
            match step {
                Step::Key(key) if i == 0 => write!(f, "{}", key.escape_debug())?,
                Step::Key(key) => write!(f, ".{}", key.escape_debug())?,
                Step::Item(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// A place in a file, both counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Place {
    /// Line.
    pub line: usize,
    /// Column, in characters.
    pub column: usize,
}

/// Where the last step of `path` stands: its key, or the list element.
///
/// `None` where the document has no such value or is not valid up to there.
#[must_use]
pub fn locate(text: &str, path: &Path) -> Option<Place> {
    let documents = serde_yaml::Deserializer::from_str(text);
    let error = Walk { rest: &path.0 }.deserialize(documents).err()?;
    if !error.to_string().contains(FOUND) {
        return None;
    }
    let at = error.location()?;
    Some(Place {
        line: at.line(),
        column: at.column(),
    })
}

/// Where the second document of `text` stands, if there is one.
///
/// The parser says no place when it refuses such a text.
#[must_use]
pub fn second_document(text: &str) -> Option<Place> {
    let mut documents = serde_yaml::Deserializer::from_str(text);
    // Behind a first document that is at fault itself the parser is not at the start of
    // a second one, and what it gives there makes it panic.
    IgnoredAny::deserialize(documents.next()?).ok()?;
    let second = documents.next()?;
    let at = Walk { rest: &[] }.deserialize(second).err()?.location()?;
    Some(Place {
        line: at.line(),
        column: at.column(),
    })
}

/// No YAML error contains this, so a real syntax error is not taken for a hit.
const FOUND: &str = "\u{1}found\u{1}";

struct Walk<'a> {
    rest: &'a [Step],
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Scalars end up here through serde's default visitor methods: at the
        // end of the path that is a hit, before it the path leads nowhere.
        f.write_str(if self.rest.is_empty() { FOUND } else { "more" })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        match self.rest.split_first() {
            None => return Err(de::Error::custom(FOUND)),
            Some((Step::Item(wanted), rest)) => {
                for _ in 0..*wanted {
                    if seq.next_element::<IgnoredAny>()?.is_none() {
                        return Ok(());
                    }
                }
                seq.next_element_seed(Walk { rest })?;
            }
            Some((Step::Key(_), _)) => {}
        }
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let (wanted, rest) = match self.rest.split_first() {
            None => return Err(de::Error::custom(FOUND)),
            Some((Step::Key(key), rest)) => (Some(key.as_str()), rest),
            Some((Step::Item(_), rest)) => (None, rest),
        };
        let last = rest.is_empty();
        while let Some(hit) = map.next_key_seed(Wanted { wanted, last })? {
            if hit {
                map.next_value_seed(Walk { rest })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

/// Whether this key is the wanted one; raises the hit on the last step.
struct Wanted<'a> {
    wanted: Option<&'a str>,
    last: bool,
}

impl<'de> DeserializeSeed<'de> for Wanted<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Visitor<'_> for Wanted<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: de::Error>(self, key: &str) -> Result<bool, E> {
        let hit = Some(key) == self.wanted;
        if hit && self.last {
            return Err(E::custom(FOUND));
        }
        Ok(hit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str, path: &Path) -> Option<(usize, usize)> {
        locate(text, path).map(|p| (p.line, p.column))
    }

    #[test]
    fn finds_keys_and_items_in_every_style() {
        let text = "# c\nsandbox:\n  \"mounts\":   # a: b\n    - path: /a\n    - {path: /b, mode: ro}\n  deny_paths: [x,\n    y]\n";
        assert_eq!(at(text, &Path::of("sandbox")), Some((2, 1)));
        assert_eq!(at(text, &Path::of("sandbox.mounts")), Some((3, 3)));
        let mounts = Path::of("sandbox.mounts");
        assert_eq!(at(text, &mounts.item(0).key("path")), Some((4, 7)));
        assert_eq!(at(text, &mounts.item(1)), Some((5, 7)));
        assert_eq!(at(text, &mounts.item(1).key("mode")), Some((5, 18)));
        assert_eq!(
            at(text, &Path::of("sandbox.deny_paths").item(1)),
            Some((7, 5))
        );
    }

    #[test]
    fn says_nothing_where_there_is_nothing() {
        let text = "a: {b: 1}\nc: [1]\n";
        for path in [
            Path::of("x"),
            Path::of("a.x"),
            Path::of("a.b.c"),
            Path::of("c").item(1),
            Path::of("a").item(0),
            Path::of("c.d"),
        ] {
            assert_eq!(at(text, &path), None, "{path}");
        }
        assert_eq!(at("a: [", &Path::of("b")), None);
    }

    #[test]
    fn a_second_document_is_found() {
        let at = |text: &str| second_document(text).map(|p| (p.line, p.column));
        assert_eq!(at("a: 1\n---\nb: 2\n"), Some((3, 1)));
        assert_eq!(at("a: 1\n---\n# c\n\n  - b\n"), Some((5, 3)));
        assert_eq!(at("a: 1\n---\n- [\n"), Some((3, 1)));
        for text in ["", "a: 1\n", "---\na: 1\n", "a: 1\n...\n"] {
            assert_eq!(at(text), None, "{text:?}");
        }
        assert!(at("a: 1\n---\n").is_some() && at("---\n---\n---\n").is_some());
    }

    /// A first document with any fault: cut off, aliases that name themselves or
    /// nothing, brackets of the wrong kind. Found by fuzzing.
    #[test]
    fn a_first_document_at_fault_hides_no_second_one_and_does_no_harm() {
        let whole = "a0: &a0 [x, x]\na1: &a1 [*a0, *a1]\na2: [*a1, *no]a0:$: &a3 [*a2]\nb: [\n";
        for end in 0..=whole.len() {
            for behind in ["", "\n---\nb: 1\n", "]\n---\n- &a [*a]\n", "}\n...\n---\n"] {
                let text = format!("{}{behind}", &whole[..end]);
                let found = second_document(&text);
                let first = serde_yaml::Deserializer::from_str(&text).next();
                let sound = first.is_some_and(|first| IgnoredAny::deserialize(first).is_ok());
                assert!(sound || found.is_none(), "{text:?}");
            }
        }
    }

    #[test]
    fn paths_read_well() {
        let path = Path::of("sandbox.mounts").item(2).key("mode");
        assert_eq!(path.to_string(), "sandbox.mounts[2].mode");
    }
}
