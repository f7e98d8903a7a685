//! A tree read into a typed value, with errors that carry the path and the kind.
//!
//! serde's usual formats turn an unknown key into prose at once; here it stays
//! data until the loader has found its place and a suggestion.

use serde::de::value::{StrDeserializer, StringDeserializer};
use serde::de::{self, DeserializeSeed, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::locate::{Path, Step};
use super::node::Node;

/// What is wrong with one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// A key that the schema does not know, and those it does.
    UnknownKey(&'static [&'static str]),
    /// A word outside a closed list, and the list.
    UnknownWord(String, &'static [&'static str]),
    /// A key that has to be there.
    Missing(&'static str),
    /// The value has the wrong type: what was expected, what is there.
    Type(String, String),
    /// Anything else, in words.
    Other(String),
}

/// A fault and the way to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadError {
    /// From the top of the document; built inside out while unwinding.
    pub path: Path,
    /// What is wrong there.
    pub fault: Fault,
}

impl ReadError {
    fn new(fault: Fault) -> Self {
        Self {
            path: Path::default(),
            fault,
        }
    }

    fn under(mut self, step: Step) -> Self {
        self.path.0.insert(0, step);
        self
    }
}

impl std::fmt::Display for ReadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {:?}", self.path, self.fault)
    }
}

impl std::error::Error for ReadError {}

impl de::Error for ReadError {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self::new(Fault::Other(message.to_string()))
    }

    fn invalid_type(unexpected: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::new(Fault::Type(expected.to_string(), unexpected.to_string()))
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self::new(Fault::UnknownKey(expected)).under(Step::Key(field.to_owned()))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Self::new(Fault::UnknownWord(variant.to_owned(), expected))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(Fault::Missing(field))
    }
}

/// Reads `node` as a `T`.
///
/// # Errors
/// The first fault in the order of the file.
pub fn read<T: de::DeserializeOwned>(node: &Node) -> Result<T, ReadError> {
    T::deserialize(NodeReader(node))
}

struct NodeReader<'a>(&'a Node);

impl NodeReader<'_> {
    /// serde names its own types ("a map"); they are said in a writer's words.
    fn reword(&self, error: ReadError) -> ReadError {
        match error.fault {
            Fault::Type(expected, _) if error.path.0.is_empty() => {
                let expected = match expected.as_str() {
                    "a string" => "text".to_owned(),
                    "a sequence" => "a list".to_owned(),
                    _ => expected,
                };
                ReadError::new(Fault::Type(expected, self.0.kind()))
            }
            _ => error,
        }
    }
}

impl<'de> de::Deserializer<'de> for NodeReader<'_> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.0 {
            Node::Null => visitor.visit_unit(),
            Node::Bool(value) => visitor.visit_bool(*value),
            Node::Int(value) => match i64::try_from(*value) {
                Ok(value) => visitor.visit_i64(value),
                Err(_) => visitor.visit_i128(*value),
            },
            Node::Float(value) => visitor.visit_f64(*value),
            Node::Text(value) => visitor.visit_str(value),
            Node::List(items) => visitor.visit_seq(Items(items.iter().enumerate())),
            Node::Map(entries) => visitor.visit_map(Entries {
                rest: entries.iter(),
                current: None,
            }),
        }
        .map_err(|error| self.reword(error))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        // A key without a value is a slip (a lost indent, a value commented
        // out), so `limits:` alone is refused instead of meaning the default.
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        words: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        match self.0 {
            Node::Text(word) => {
                let word: StrDeserializer<'_, ReadError> = word.as_str().into_deserializer();
                visitor.visit_enum(word)
            }
            other => Err(ReadError::new(Fault::Type(
                format!("one of {}", words.join(", ")),
                other.kind(),
            ))),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        // serde would fill the fields of a struct from a list, by position.
        match self.0 {
            Node::Map(_) => self.deserialize_any(visitor),
            other => Err(ReadError::new(Fault::Type(
                "a block of keys".to_owned(),
                other.kind(),
            ))),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes
        byte_buf unit unit_struct seq tuple tuple_struct map identifier ignored_any
    }
}

struct Items<'a>(std::iter::Enumerate<std::slice::Iter<'a, Node>>);

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = ReadError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, ReadError> {
        let Some((index, node)) = self.0.next() else {
            return Ok(None);
        };
        seed.deserialize(NodeReader(node))
            .map(Some)
            .map_err(|error| error.under(Step::Item(index)))
    }
}

struct Entries<'a> {
    rest: std::slice::Iter<'a, (String, Node)>,
    current: Option<&'a (String, Node)>,
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, ReadError> {
        self.current = self.rest.next();
        let Some((key, _)) = self.current else {
            return Ok(None);
        };
        let key: StringDeserializer<ReadError> = key.clone().into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ReadError> {
        let Some((key, node)) = self.current.take() else {
            return Err(de::Error::custom("a value was asked for without its key"));
        };
        seed.deserialize(NodeReader(node))
            .map_err(|error| error.under(Step::Key(key.clone())))
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Outer {
        inner: Option<Vec<Inner>>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        word: Option<Word>,
        count: i64,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Word {
        Yes,
    }

    fn fault(text: &str) -> (String, Fault) {
        let error = read::<Outer>(&serde_yaml::from_str(text).unwrap()).unwrap_err();
        (error.path.to_string(), error.fault)
    }

    #[test]
    fn reads_what_fits() {
        let node = serde_yaml::from_str("inner: [{word: yes, count: -1}]").unwrap();
        let outer: Outer = read(&node).unwrap();
        assert_eq!(outer.inner.unwrap()[0].word, Some(Word::Yes));
    }

    #[test]
    fn faults_carry_path_and_kind() {
        assert_eq!(
            fault("inner: [{count: 1, wrd: yes}]"),
            ("inner[0].wrd".into(), Fault::UnknownKey(&["word", "count"]))
        );
        assert_eq!(
            fault("inner: [{count: 1}, {word: no, count: 1}]"),
            (
                "inner[1].word".into(),
                Fault::UnknownWord("no".into(), &["yes"])
            )
        );
        assert_eq!(
            fault("inner: [{}]"),
            ("inner[0]".into(), Fault::Missing("count"))
        );
        assert_eq!(
            fault("inner: [{count: many}]"),
            (
                "inner[0].count".into(),
                Fault::Type("i64".into(), "the text \"many\"".into())
            )
        );
        // A struct is not filled from a list, by position.
        assert_eq!(
            fault("inner: [[yes, 1]]"),
            (
                "inner[0]".into(),
                Fault::Type("a block of keys".into(), "a list".into())
            )
        );
        let (path, kind) = fault("inner:");
        assert_eq!(path, "inner");
        assert!(matches!(kind, Fault::Type(_, found) if found == "nothing"));
    }
}
