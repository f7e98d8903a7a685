//! Values that a person may write in more than one way.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

/// A whole number as it was written; its range is checked later, so that the
/// complaint about a negative one can be more helpful than a type error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Whole(pub i128);

/// A number or a text such as `500m`, `10m`, `1000:1000`.
#[derive(Debug, Clone, PartialEq)]
pub enum Scalar {
    /// A whole number.
    Whole(i128),
    /// A number with a point.
    Real(f64),
    /// Text.
    Text(String),
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Whole(value) => write!(f, "{value}"),
            Scalar::Real(value) => write!(f, "{value}"),
            Scalar::Text(value) => f.write_str(value),
        }
    }
}

/// Names and values in the order of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pairs(pub Vec<(String, String)>);

struct WholeVisitor;

impl Visitor<'_> for WholeVisitor {
    type Value = Whole;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number")
    }

    fn visit_i64<E>(self, value: i64) -> Result<Whole, E> {
        Ok(Whole(value.into()))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Whole, E> {
        Ok(Whole(value))
    }
}

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WholeVisitor)
    }
}

struct ScalarVisitor;

impl Visitor<'_> for ScalarVisitor {
    type Value = Scalar;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number or a text with a unit")
    }

    fn visit_i64<E>(self, value: i64) -> Result<Scalar, E> {
        Ok(Scalar::Whole(value.into()))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Scalar, E> {
        Ok(Scalar::Whole(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Scalar, E> {
        Ok(Scalar::Real(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Scalar, E> {
        Ok(Scalar::Text(value.to_owned()))
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarVisitor)
    }
}

/// A value of `env.set`. Numbers with a point and `true` are refused: YAML would
/// hand on `1.10` as `1.1`, and nobody would see it.
struct EnvValue(String);

struct EnvValueVisitor;

impl Visitor<'_> for EnvValueVisitor {
    type Value = EnvValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text (in quotes) or a whole number")
    }

    fn visit_i64<E>(self, value: i64) -> Result<EnvValue, E> {
        Ok(EnvValue(value.to_string()))
    }

    fn visit_str<E>(self, value: &str) -> Result<EnvValue, E> {
        Ok(EnvValue(value.to_owned()))
    }
}

impl<'de> Deserialize<'de> for EnvValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(EnvValueVisitor)
    }
}

struct PairsVisitor;

impl<'de> Visitor<'de> for PairsVisitor {
    type Value = Pairs;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a block of NAME: value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
        let mut pairs = Vec::new();
        while let Some((name, EnvValue(value))) = map.next_entry::<String, _>()? {
            pairs.push((name, value));
        }
        Ok(Pairs(pairs))
    }
}

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(PairsVisitor)
    }
}

macro_rules! inline_schema {
    ($type:ty, $name:literal, $($schema:tt)+) => {
        impl JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($($schema)+)
            }
        }
    };
}

inline_schema!(Whole, "Whole", { "type": "integer" });
inline_schema!(Scalar, "Scalar", { "type": ["number", "string"] });
inline_schema!(Pairs, "Pairs", {
    "type": "object",
    "propertyNames": { "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" },
    "additionalProperties": { "type": ["string", "integer"] }
});
