//! `orch output`.

use clap::Args;
use orch_engine::artifacts::page::{self, DEFAULT, MOST, Page};
use orch_policy::{Code, Error};
use serde::Serialize;

use crate::artifacts_arg::ArtifactsArg;
use crate::base64;
use crate::print;
use crate::task_args::Cwd;

/// Read a page of the output that `orch run --artifacts` keeps.
///
/// The receipt has the last 6 000 bytes; here is everything, piece by piece, also while
/// the task still runs. Go on at next_offset until complete is true and next_offset is
/// total.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  orch run --artifacts kept --receipt r.json -- make
  orch output $(jq -r .task r.json) --artifacts kept
                                              the first 12 000 bytes, as they are
  orch output ID --artifacts kept --offset 12000 --limit 64000
  orch output ID --artifacts kept --format json | jq -r .text")]
pub struct OutputArgs {
    /// Id of the task, as in its receipt.
    id: String,

    #[command(flatten)]
    artifacts: ArtifactsArg,

    /// Where the page begins, bytes from the start.
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = 0,
        allow_hyphen_values = true
    )]
    offset: u64,

    /// Most bytes of the page, up to 64000.
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = DEFAULT,
        value_parser = clap::value_parser!(u64).range(1..=MOST),
        allow_hyphen_values = true
    )]
    limit: u64,

    /// The bytes as they are, or one JSON document that says where they lie.
    ///
    /// Bytes that are not UTF-8 are also there exactly, as base64.
    #[arg(long, value_enum, default_value_t)]
    format: print::Format,
}

impl OutputArgs {
    /// Whether JSON is wanted.
    pub fn json(&self) -> bool {
        self.format == print::Format::Json
    }
}

/// Prints the page.
///
/// # Errors
/// What reading it complains of, or that no directory is named.
pub fn run(args: &OutputArgs) -> Result<u8, Error> {
    let dir = args.artifacts.path(&Cwd::of_process())?.ok_or_else(|| {
        Error::new(
            Code::Usage,
            "it is not said where the artifacts are",
            "name the directory of the run: --artifacts DIR, or ORCH_ARTIFACTS",
        )
    })?;
    let page = page::read(&dir, &args.id, args.offset, args.limit)?;
    if args.json() {
        print::json(&Document::new(&args.id, &page))?;
    } else {
        print::bytes(&page.data)?;
    }
    Ok(0)
}

/// A page as JSON.
#[derive(Debug, Serialize)]
struct Document<'a> {
    id: &'a str,
    offset: u64,
    bytes: usize,
    next_offset: u64,
    total: u64,
    complete: bool,
    /// With U+FFFD for what is not UTF-8.
    text: String,
    /// The exact bytes, where text would lose some.
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
}

impl<'a> Document<'a> {
    fn new(id: &'a str, page: &Page) -> Self {
        let exact = std::str::from_utf8(&page.data).is_ok();
        Self {
            id,
            offset: page.offset,
            bytes: page.data.len(),
            next_offset: page.next_offset(),
            total: page.total,
            complete: page.complete,
            text: String::from_utf8_lossy(&page.data).into_owned(),
            base64: (!exact).then(|| base64::encode(&page.data)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_says_where_the_page_lies_and_has_every_byte() {
        let show = |data: &[u8]| {
            let page = Page {
                offset: 7,
                data: data.to_vec(),
                total: 20,
                complete: false,
            };
            serde_json::to_string(&Document::new("x", &page)).unwrap()
        };
        assert_eq!(
            show(b"ab"),
            r#"{"id":"x","offset":7,"bytes":2,"next_offset":9,"total":20,"complete":false,"text":"ab"}"#
        );
        assert!(show(b"a\xff").ends_with("\"text\":\"a\u{fffd}\",\"base64\":\"Yf8=\"}"));
    }
}
