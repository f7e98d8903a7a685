//! The JSON Schema of the profile file, for editors (PR-36).

use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use serde_json::Value;

use crate::file::ProfileFile;

/// The schema, JSON Schema 2020-12. Published as `docs/profile.schema.json`.
#[must_use]
pub fn schema() -> Value {
    let mut schema = SchemaSettings::draft2020_12()
        .into_generator()
        .into_root_schema_for::<ProfileFile>();
    RecursiveTransform(refuse_null).transform(&mut schema);
    schema.to_value()
}

/// The schema as the text of the published file.
#[must_use]
pub fn text() -> String {
    format!("{:#}\n", schema())
}

/// A key may be absent, but not empty: the loader refuses `limits:` alone, and
/// an editor should too.
fn refuse_null(schema: &mut Schema) {
    let Some(object) = schema.as_object_mut() else {
        return;
    };
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            object.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(options)) = object.get_mut("anyOf") {
        options.retain(|option| option.get("type").is_none_or(|kind| kind != "null"));
        if let [Value::Object(only)] = options.as_slice() {
            let only = only.clone();
            object.remove("anyOf");
            object.extend(only);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `docs/profile.schema.json` is what the types say. Written anew with
    /// `ORCH_WRITE_SCHEMA=1 cargo test -p orch-policy schema`.
    #[test]
    fn the_published_schema_is_up_to_date() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../docs/profile.schema.json"
        );
        if std::env::var_os("ORCH_WRITE_SCHEMA").is_some() {
            std::fs::write(path, text()).unwrap();
        }
        let published = std::fs::read_to_string(path).unwrap();
        assert!(published == text(), "{path} is out of date");
    }

    fn properties<'a>(schema: &'a Value, name: &str) -> &'a serde_json::Map<String, Value> {
        schema["$defs"][name]["properties"].as_object().unwrap()
    }

    #[test]
    fn ranges_units_and_closed_objects_are_in_it() {
        let schema = schema();
        assert_eq!(schema["additionalProperties"], false);
        let limits = properties(&schema, "LimitsFile");
        let memory = &limits["memory_mb"];
        assert_eq!(memory["type"], "integer");
        assert_eq!(memory["minimum"], 4);
        assert_eq!(memory["maximum"], 16 << 20);
        assert!(memory["description"].as_str().unwrap().contains("MiB"));
        for (name, object) in schema["$defs"].as_object().unwrap() {
            if object["type"] == "object" {
                assert_eq!(object["additionalProperties"], false, "{name}");
            }
        }
        assert!(!text().contains("null"), "no key may be empty");
    }

    /// Every key that can be written has words and, for numbers, a range.
    #[test]
    fn every_key_is_described() {
        let schema = schema();
        let top = schema["properties"].as_object().unwrap();
        let mut count = 0;
        let defs = [
            "SandboxFile",
            "MountFile",
            "NetworkFile",
            "LimitsFile",
            "EnvFile",
        ];
        for (key, value) in defs.iter().flat_map(|d| properties(&schema, d)).chain(top) {
            assert!(value["description"].is_string(), "{key}");
            if value["type"] == "integer" {
                assert!(
                    value["minimum"].is_number() && value["maximum"].is_number(),
                    "{key}"
                );
            }
            count += 1;
        }
        assert_eq!(count, 46);
    }
}
