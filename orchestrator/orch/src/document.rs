//! The one document that `--json` writes.

use orch_engine::request::Outcome;
use orch_policy::Error;
use orch_policy::receipt::Receipt;
use serde::Serialize;

use crate::base64;

/// Receipt, output, and what failed afterwards. The output is beside the receipt
/// and not in it: the receipt's own `stdout` and `stderr` count bytes.
#[derive(Debug, Serialize)]
pub struct Document<'a> {
    receipt: &'a Receipt,
    #[serde(flatten)]
    stdout: Output,
    #[serde(flatten)]
    stderr: Output,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Error>,
}

/// One stream under its name, with its exact bytes where text would lose some.
#[derive(Debug)]
struct Output {
    name: &'static str,
    bytes: Vec<u8>,
}

impl Serialize for Output {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry(self.name, &String::from_utf8_lossy(&self.bytes))?;
        if std::str::from_utf8(&self.bytes).is_err() {
            map.serialize_entry(
                &format!("{}_base64", self.name),
                &base64::encode(&self.bytes),
            )?;
        }
        map.end()
    }
}

impl<'a> Document<'a> {
    /// The document of a task.
    pub fn new(outcome: &'a Outcome, error: Option<&'a Error>) -> Self {
        let output = |name, bytes: &Option<Vec<u8>>| Output {
            name,
            bytes: bytes.clone().unwrap_or_default(),
        };
        Self {
            receipt: &outcome.receipt,
            stdout: output("stdout", &outcome.stdout),
            stderr: output("stderr", &outcome.stderr),
            error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_text_are_also_in_base64() {
        let show = |bytes: &[u8]| {
            serde_json::to_string(&Output {
                name: "stdout",
                bytes: bytes.to_vec(),
            })
            .unwrap()
        };
        assert_eq!(show("é".as_bytes()), r#"{"stdout":"é"}"#);
        assert_eq!(
            show(b"a\xff"),
            "{\"stdout\":\"a\u{fffd}\",\"stdout_base64\":\"Yf8=\"}"
        );
    }
}
