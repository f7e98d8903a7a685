//! A profile as `orch profile show` has it, written as a file.

use std::fmt::Write as _;

use orch_policy::provenance::Row;
use serde_json::{Map, Value};

/// The text of a file that says for every field what the rows say.
///
/// JSON is YAML, but for the characters that YAML wants escaped and JSON does not.
pub fn file(rows: &[Row]) -> Vec<u8> {
    let mut file = Map::new();
    for row in rows {
        // A key without a value is refused; left out it means the tier's.
        if !row.value.is_null() {
            insert(&mut file, &row.field, row.value.clone());
        }
    }
    let mut text = String::new();
    for c in Value::Object(file).to_string().chars() {
        if c.is_ascii() && !c.is_control() {
            text.push(c);
        } else {
            // Only texts hold such characters. Writing to a String cannot fail.
            let _ = write!(text, "\\U{:08x}", u32::from(c));
        }
    }
    text.into_bytes()
}

/// Sets `a.b.c`. Nothing that is shown has a dot in a key.
fn insert(map: &mut Map<String, Value>, field: &str, value: Value) {
    match field.split_once('.') {
        None => {
            map.insert(field.to_owned(), value);
        }
        Some((block, rest)) => {
            let inner = map
                .entry(block)
                .or_insert_with(|| Value::Object(Map::new()));
            insert(
                inner.as_object_mut().expect("a block holds keys"),
                rest,
                value,
            );
        }
    }
}
