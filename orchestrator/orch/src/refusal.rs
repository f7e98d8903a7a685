//! Errors, for people on standard error and for programs on standard output.

use std::error::Error as _;
use std::ffi::OsString;
use std::io::Write;

use orch_policy::{Code, Error};
use serde_json::json;

use crate::print::{self, harmless};

/// Exit code where orch failed and the command is not to blame (PX-17).
pub const FAILED: u8 = 125;

/// The error in four lines: what, why, what to do, and its stable name.
pub fn words(error: &Error) -> String {
    let mut text = format!("orch: {}\n", harmless(&error.message));
    if let Some(cause) = &error.cause {
        text += &format!("  why:  {}\n", harmless(cause));
    }
    text += &format!("  do:   {}\n", harmless(&error.remediation));
    text += &format!("  code: {}\n", error.code.as_str());
    text
}

/// Says it on standard error; with `as_json` also as one document on standard
/// output.
pub fn report(error: &Error, as_json: bool) {
    if as_json {
        // Where standard output cannot be written the words below remain.
        let _ = print::json(&json!({ "error": error }));
    }
    say(&words(error));
}

/// Writes to standard error. There is nobody left to tell where that fails.
pub fn say(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Clap's complaint in the one shape of errors.
pub fn usage(error: &clap::Error) -> Error {
    let rendered = error.render().to_string();
    let mut lines = rendered.lines().map(str::trim);
    let first = lines.next().unwrap_or_default();
    let message = first.strip_prefix("error: ").unwrap_or(first);
    // A missing argument is named on the lines that follow.
    let detail: Vec<&str> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
    let rest: Vec<&str> = lines.collect();
    let tip = rest.iter().find_map(|line| line.strip_prefix("tip: "));
    let usage = rest.iter().find_map(|line| line.strip_prefix("Usage: "));

    // A value that one of our own parsers refused has its own code and remedy.
    if let Some(own) = error.source().and_then(|e| e.downcast_ref::<Error>()) {
        let flag = error
            .get(clap::error::ContextKind::InvalidArg)
            .map(ToString::to_string)
            .unwrap_or_default();
        let flag = flag.split(' ').next().unwrap_or_default();
        return Error {
            message: format!("{flag}: {}", own.message),
            ..own.clone()
        };
    }
    let message = if detail.is_empty() {
        message.to_owned()
    } else {
        format!("{message} {}", detail.join(" "))
    };
    let remedy = match (tip, usage) {
        (Some(tip), _) => tip.to_owned(),
        (None, Some(usage)) => format!("write {usage}; --help says more"),
        (None, None) => "see --help".to_owned(),
    };
    Error::new(Code::Usage, message, remedy)
}

/// Whether a command line that does not parse asked for JSON.
pub fn asked_for_json(args: &[OsString]) -> bool {
    let mut own = args.iter().take_while(|arg| *arg != "--").peekable();
    while let Some(arg) = own.next() {
        if arg == "--json" || arg == "--format=json" {
            return true;
        }
        if arg == "--format" && own.peek().is_some_and(|next| *next == "json") {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_say_what_why_what_to_do_and_the_code() {
        let error = Error::new(Code::MountDenied, "no\x1b", "ask nicely").because("a\nb");
        assert_eq!(
            words(&error),
            "orch: no\\u{1b}\n  why:  a\\nb\n  do:   ask nicely\n  code: mount_denied\n"
        );
    }

    #[test]
    fn json_counts_only_before_the_command() {
        let ask =
            |args: &[&str]| asked_for_json(&args.iter().map(OsString::from).collect::<Vec<_>>());
        assert!(ask(&["orch", "run", "--json", "--"]));
        assert!(ask(&["orch", "profile", "ls", "--format", "json"]));
        assert!(ask(&["orch", "profile", "ls", "--format=json"]));
        assert!(!ask(&["orch", "run", "--", "x", "--json"]));
        assert!(!ask(&["orch", "profile", "ls", "--format", "text"]));
    }
}
