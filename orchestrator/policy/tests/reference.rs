//! `docs/profiles.md` says what the program does.

use std::path::Path;

use orch_policy::builtin::builtin;
use orch_policy::fields::fields;
use orch_policy::schema::schema;
use serde_json::Value;

const DOC: &str = include_str!("../../../docs/profiles.md");

/// Every key of the schema, dotted, as it is written at the top of a file.
fn keys() -> Vec<(String, Value)> {
    let schema = schema();
    let mut keys = Vec::new();
    walk(&schema, &schema, "", &mut keys);
    keys.retain(|(key, _)| {
        let moved = ["sandbox.limits", "sandbox.timeout_seconds"];
        !moved.iter().any(|m| key.starts_with(m)) && key != "sandbox.command_timeout_seconds"
    });
    keys
}

fn walk(root: &Value, object: &Value, prefix: &str, keys: &mut Vec<(String, Value)>) {
    let Some(properties) = object["properties"].as_object() else {
        return;
    };
    for (name, value) in properties {
        let key = format!("{prefix}{name}");
        let target = value["$ref"]
            .as_str()
            .and_then(|r| r.strip_prefix("#/$defs/"))
            .map(|name| &root["$defs"][name]);
        match target {
            Some(inner) if inner["properties"].is_object() => {
                walk(root, inner, &format!("{key}."), keys);
            }
            _ => keys.push((key, value.clone())),
        }
    }
}

fn row(key: &str) -> Vec<String> {
    let start = format!("| `{key}` |");
    let line = DOC.lines().find(|line| line.starts_with(&start));
    let line = line.unwrap_or_else(|| panic!("docs/profiles.md has no row for {key}"));
    line.trim_matches('|')
        .split('|')
        .map(|cell| cell.trim().replace(' ', ""))
        .collect()
}

#[test]
fn every_key_has_a_row() {
    let keys = keys();
    assert!(keys.len() > 30, "{keys:?}");
    for (key, _) in keys {
        row(&key);
    }
}

#[test]
fn ranges_in_the_table_are_those_of_the_schema() {
    let mut checked = 0;
    for (key, value) in keys() {
        if !key.starts_with("limits.") {
            continue;
        }
        let range = format!("{}–{}", value["minimum"], value["maximum"]);
        assert_eq!(row(&key)[2], range, "{key}");
        checked += 1;
    }
    assert_eq!(checked, 13);
}

#[test]
fn defaults_in_the_table_are_those_of_the_shipped_profiles() {
    for (column, tier) in ["loose", "standard", "strict"].iter().enumerate() {
        let profile = builtin(tier, Path::new("/home/me")).unwrap().profile;
        let mut checked = 0;
        for (key, value) in fields(&profile) {
            let cell = match key.as_str() {
                key if key.starts_with("limits.") => row(key)[3 + column].clone(),
                "timeout_seconds" => row(&key)[3 + column].clone(),
                "sandbox.workspace_mode"
                | "sandbox.network.default"
                | "syscalls"
                | "reuse"
                | "user"
                | "hostname" => row(&key)[2 + column].clone(),
                _ => continue,
            };
            let want = match &value {
                Value::Null => "–".to_owned(),
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            if cell == "same" {
                continue;
            }
            assert_eq!(cell, want, "{tier}: {key}");
            checked += 1;
        }
        assert!(checked >= 20, "{tier}: {checked}");
    }
}

/// Every warning that the linter can give is explained.
#[test]
fn every_warning_has_a_row() {
    let sources = [
        include_str!("../src/lint/mod.rs"),
        include_str!("../src/lint/network.rs"),
        include_str!("../src/lint/limits.rs"),
    ];
    let mut count = 0;
    for source in sources {
        let code = source.split("#[cfg(test)]").next().unwrap();
        for call in code
            .split("self.warn(")
            .skip(1)
            .chain(code.split("lint.warn(").skip(1))
        {
            let name = call.split('"').nth(1).unwrap();
            assert!(
                DOC.contains(&format!("`{name}`")),
                "{name} is not in the docs"
            );
            count += 1;
        }
    }
    assert_eq!(count, 18);
}
