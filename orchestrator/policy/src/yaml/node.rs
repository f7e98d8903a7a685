//! YAML text as a tree. Tags, non-text keys and duplicate keys are refused.

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

/// One value of a document.
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    /// Nothing: `key:` or `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i128),
    /// A number with a point or exponent.
    Float(f64),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// Keys and values in the order of the file.
    Map(Vec<(String, Node)>),
}

impl Node {
    /// What it is, for a person who does not know YAML's words.
    #[must_use]
    pub fn kind(&self) -> String {
        match self {
            Node::Null => "nothing".to_owned(),
            Node::Bool(value) => format!("`{value}`"),
            Node::Int(value) => format!("the number {value}"),
            Node::Float(value) => format!("the number {value}"),
            Node::Text(value) => format!("the text {value:?}"),
            Node::List(_) => "a list".to_owned(),
            Node::Map(_) => "a block of keys".to_owned(),
        }
    }
}

impl<'de> de::Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a plain YAML value without a tag")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Int(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Int(value.into()))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Node, E> {
        Ok(Node::Int(value))
    }

    fn visit_u128<E>(self, value: u128) -> Result<Node, E> {
        // Beyond every limit anyway: saturating keeps "too large" true.
        Ok(Node::Int(i128::try_from(value).unwrap_or(i128::MAX)))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        Ok(Node::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(node) = seq.next_element()? {
            list.push(node);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut entries: Vec<(String, Node)> = Vec::new();
        while let Some(key) = map.next_key_seed(NewKey { seen: &entries })? {
            let value = map.next_value()?;
            entries.push((key, value));
        }
        Ok(Node::Map(entries))
    }
}

/// A key that has not been there before. The refusal is raised while the key is
/// read, because that is what gives the parser's error the key's own position.
struct NewKey<'a> {
    seen: &'a [(String, Node)],
}

impl<'de> DeserializeSeed<'de> for NewKey<'_> {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Visitor<'_> for NewKey<'_> {
    type Value = String;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a key made of text")
    }

    fn visit_str<E: de::Error>(self, key: &str) -> Result<String, E> {
        if self.seen.iter().any(|(seen, _)| seen == key) {
            return Err(E::custom(format_args!("the key `{key}` is there twice")));
        }
        Ok(key.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Node, serde_yaml::Error> {
        serde_yaml::from_str(text)
    }

    #[test]
    fn keeps_order_and_kinds() {
        let node = parse("b: 1\na: [x, 2.5, true, ~]\nc: -3\n").unwrap();
        assert_eq!(
            node,
            Node::Map(vec![
                ("b".into(), Node::Int(1)),
                (
                    "a".into(),
                    Node::List(vec![
                        Node::Text("x".into()),
                        Node::Float(2.5),
                        Node::Bool(true),
                        Node::Null,
                    ]),
                ),
                ("c".into(), Node::Int(-3)),
            ])
        );
    }

    #[test]
    fn a_duplicate_key_is_refused_where_it_stands() {
        let error = parse("a:\n  x: 1\n  y: 2\n  x: 3\n").unwrap_err();
        let at = error.location().unwrap();
        assert_eq!((at.line(), at.column()), (4, 3));
        assert!(error.to_string().contains("`x` is there twice"), "{error}");
    }

    #[test]
    fn tags_and_odd_keys_are_refused() {
        for text in [
            "a: !secret x",
            "1: x",
            "[a]: x",
            "? {a: b}\n: c",
            "!t {a: b}",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn alias_bombs_and_deep_nests_end() {
        let mut bomb = "a0: &a0 [x, x]\n".to_owned();
        for i in 1..60 {
            bomb += &format!("a{i}: &a{i} [*a{0}, *a{0}]\n", i - 1);
        }
        assert!(parse(&bomb).is_err());
        assert!(parse(&"[".repeat(5000)).is_err());
    }
}
