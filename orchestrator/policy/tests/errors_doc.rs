//! `docs/errors.md` is what the catalogue says (design §8).

use std::collections::HashSet;

use orch_policy::Code;

fn text() -> String {
    let mut text = String::from(
        "# Errors\n\n\
         Every refusal and failure has one shape, `{code, message, cause, remediation}`. The\n\
         code is stable: it is never renamed, and never used for anything else. On the command\n\
         line it stands in the last line, with `--json` and `--format json` in `error.code`;\n\
         orch then exits with 125, unless the command itself had ended before.\n\n\
         This file is made from the catalogue in `orchestrator/policy/src/error.rs` by\n\
         `UPDATE_GOLDEN=1 cargo test -p orch-policy --test errors_doc`.\n\n\
         | code | meaning |\n| --- | --- |\n",
    );
    for code in Code::ALL {
        let meaning = code.meaning().trim().replace('|', "\\|");
        text += &format!("| `{}` | {meaning} |\n", code.as_str());
    }
    text
}

#[test]
fn the_page_lists_the_catalogue() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/errors.md");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, text()).unwrap();
    }
    let published = std::fs::read_to_string(path).unwrap_or_default();
    assert!(published == text(), "{path} is out of date");
}

#[test]
fn codes_are_distinct_words() {
    let mut seen = HashSet::new();
    for code in Code::ALL {
        let word = code.as_str();
        assert!(seen.insert(word), "{word} is there twice");
        let plain = |c: char| c.is_ascii_lowercase() || c == '_';
        assert!(word.chars().all(plain), "{word}");
        assert_eq!(serde_json::to_value(code).unwrap(), word);
    }
}
