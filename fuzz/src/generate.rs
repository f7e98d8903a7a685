//! Any value of a message type, made of arbitrary bytes.
//!
//! serde tells what a type consists of, so a new message or field is generated as
//! soon as it exists, and the product needs no feature for it. The format under
//! test has no part in this: what it cannot encode is found as well.

use arbitrary::{Arbitrary, Unstructured};
use serde::de::{self, DeserializeSeed, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

/// The way to a value was not known.
#[derive(Debug)]
pub struct Unknown(String);

impl std::fmt::Display for Unknown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unknown {}

impl de::Error for Unknown {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

/// A value made of these bytes; where they end, zeros and empty lists follow.
///
/// # Panics
/// Where the type holds something that no message held so far (a map, a float).
pub fn value<T: de::DeserializeOwned>(bytes: &[u8]) -> T {
    T::deserialize(&mut Generator(Unstructured::new(bytes)))
        .unwrap_or_else(|unknown| panic!("the generator has to learn this: {unknown}"))
}

struct Generator<'a>(Unstructured<'a>);

impl<'a> Generator<'a> {
    fn any<T: Arbitrary<'a>>(&mut self) -> Result<T, Unknown> {
        T::arbitrary(&mut self.0).map_err(de::Error::custom)
    }
}

macro_rules! scalars {
    ($($method:ident $visit:ident)+) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unknown> {
            visitor.$visit(self.any()?)
        })+
    };
}

impl<'de> de::Deserializer<'de> for &mut Generator<'_> {
    type Error = Unknown;

    scalars! {
        deserialize_bool visit_bool
        deserialize_i8 visit_i8
        deserialize_i16 visit_i16
        deserialize_i32 visit_i32
        deserialize_i64 visit_i64
        deserialize_u8 visit_u8
        deserialize_u16 visit_u16
        deserialize_u32 visit_u32
        deserialize_u64 visit_u64
        deserialize_str visit_string
        deserialize_string visit_string
    }

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Unknown> {
        Err(de::Error::custom("a value of no known type"))
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unknown> {
        visitor.visit_unit()
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unknown> {
        if self.any()? {
            visitor.visit_some(self)
        } else {
            visitor.visit_none()
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Unknown> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unknown> {
        visitor.visit_seq(Items {
            generator: self,
            left: None,
        })
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, Unknown> {
        visitor.visit_seq(Items {
            generator: self,
            left: Some(len),
        })
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, Unknown> {
        self.deserialize_tuple(len, visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Unknown> {
        self.deserialize_tuple(fields.len(), visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Unknown> {
        let last = u32::try_from(variants.len() - 1).map_err(de::Error::custom)?;
        let variant = self
            .0
            .int_in_range(0..=last)
            .map_err(<Unknown as de::Error>::custom)?;
        visitor.visit_enum(Chosen {
            generator: self,
            variant,
        })
    }

    forward_to_deserialize_any! {
        i128 u128 f32 f64 char bytes byte_buf unit_struct map identifier ignored_any
    }
}

/// Elements: as many as are left, or as long as the bytes go on and say so.
struct Items<'g, 'a> {
    generator: &'g mut Generator<'a>,
    left: Option<usize>,
}

impl<'de> de::SeqAccess<'de> for Items<'_, '_> {
    type Error = Unknown;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Unknown> {
        let more = match &mut self.left {
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
            None => !self.generator.0.is_empty() && self.generator.any()?,
        };
        more.then(|| seed.deserialize(&mut *self.generator))
            .transpose()
    }
}

struct Chosen<'g, 'a> {
    generator: &'g mut Generator<'a>,
    variant: u32,
}

impl<'g, 'a, 'de> de::EnumAccess<'de> for Chosen<'g, 'a> {
    type Error = Unknown;
    type Variant = Content<'g, 'a>;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Content<'g, 'a>), Unknown> {
        let chosen =
            seed.deserialize(IntoDeserializer::<Unknown>::into_deserializer(self.variant))?;
        Ok((chosen, Content(self.generator)))
    }
}

struct Content<'g, 'a>(&'g mut Generator<'a>);

impl<'de> de::VariantAccess<'de> for Content<'_, '_> {
    type Error = Unknown;

    fn unit_variant(self) -> Result<(), Unknown> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Unknown> {
        seed.deserialize(self.0)
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Unknown> {
        de::Deserializer::deserialize_tuple(self.0, len, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Unknown> {
        de::Deserializer::deserialize_tuple(self.0, fields.len(), visitor)
    }
}
