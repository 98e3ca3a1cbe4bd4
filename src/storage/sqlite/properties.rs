//! A row's properties as stored: a JSON object, readable with any SQLite tool.
//!
//! Text, numbers and truth values stand for themselves; a moment is `{"micros":N}`, microseconds
//! since 1970.

use std::fmt;

use rusqlite::types::Type;
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::collections::BTreeMap;

use crate::clock::Timestamp;
use crate::storage::{Properties, Value};

const MICROS: &str = "micros";

struct Stored(Value);

struct Borrowed<'a>(&'a Value);

impl Serialize for Borrowed<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::String(text) => serializer.serialize_str(text),
            Value::Bool(flag) => serializer.serialize_bool(*flag),
            Value::Int32(number) => serializer.serialize_i32(*number),
            Value::DateTime(moment) => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry(MICROS, &moment.as_micros())?;
                map.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Stored {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StoredVisitor).map(Stored)
    }
}

struct StoredVisitor;

impl<'de> Visitor<'de> for StoredVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, a truth value, a 32-bit number or a moment")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Value, E> {
        Ok(Value::String(text.to_owned()))
    }

    fn visit_bool<E: de::Error>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Bool(flag))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Value, E> {
        i32::try_from(number).map(Value::Int32).map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Value, E> {
        i32::try_from(number).map(Value::Int32).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        match map.next_entry::<String, i64>()? {
            Some((name, micros)) if name == MICROS => {
                Ok(Value::DateTime(Timestamp::from_micros(micros)))
            }
            Some(_) | None => Err(de::Error::custom("an object that is no moment")),
        }
    }
}

pub(super) fn encode(properties: &Properties) -> rusqlite::Result<String> {
    let stored: BTreeMap<&str, Borrowed<'_>> = properties
        .iter()
        .map(|(name, value)| (name.as_str(), Borrowed(value)))
        .collect();
    serde_json::to_string(&stored)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}

pub(super) fn decode(text: &str) -> rusqlite::Result<Properties> {
    let stored: BTreeMap<String, Stored> = serde_json::from_str(text)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(0, Type::Text, error.into()))?;
    Ok(stored
        .into_iter()
        .map(|(name, Stored(value))| (name, value))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_form_is_stable() {
        let properties = Properties::from([
            ("at".to_owned(), Value::DateTime(Timestamp::from_micros(-7))),
            ("flag".to_owned(), Value::Bool(true)),
            ("n".to_owned(), Value::Int32(-1)),
            ("text".to_owned(), Value::String("\"ü\"\u{0}".to_owned())),
        ]);
        let text = r#"{"at":{"micros":-7},"flag":true,"n":-1,"text":"\"ü\"\u0000"}"#;
        assert_eq!(encode(&properties).unwrap(), text);
        assert_eq!(decode(text).unwrap(), properties);
    }

    #[test]
    fn other_json_is_refused() {
        for text in ["[]", r#"{"n":2147483648}"#, r#"{"n":1.5}"#, r#"{"n":{}}"#] {
            assert!(decode(text).is_err(), "{text}");
        }
    }
}
