//! An answer of `orch doctor --format json`, without what only that machine has.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::TIERS;

/// What is kept of an answer. Read from a whole one as well as from a kept one.
#[derive(Debug, Clone, Deserialize)]
pub struct Recording {
    pub checks: Vec<Line>,
    pub tiers: Vec<Tried>,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    pub name: String,
    pub state: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loses: Vec<String>,
    #[serde(skip_serializing)]
    sandboxes: Option<Value>,
}

/// One tier, tried.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Tried {
    pub tier: String,
    pub kept: bool,
    pub controls: Vec<Control>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Said>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Control {
    pub control: String,
    pub holds: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Said {
    pub code: String,
}

impl Recording {
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut answer: Self = serde_json::from_str(text).map_err(|e| e.to_string())?;
        let tiers: Vec<&str> = answer.tiers.iter().map(|tier| &*tier.tier).collect();
        if tiers != TIERS {
            return Err(format!("tiers {tiers:?}, not {TIERS:?}"));
        }
        answer.checks.iter_mut().for_each(Line::trim);
        Ok(answer)
    }

    /// One line for each thing, so that a difference can be read.
    pub fn text(&self) -> String {
        fn rows<T: Serialize>(rows: &[T]) -> String {
            let rows = rows.iter().map(|row| serde_json::to_string(row).unwrap());
            rows.collect::<Vec<_>>().join(",\n")
        }
        let (checks, tiers) = (rows(&self.checks), rows(&self.tiers));
        format!("{{\"checks\": [\n{checks}\n], \"tiers\": [\n{tiers}\n]}}\n")
    }

    pub fn line(&self, name: &str) -> Option<&Line> {
        self.checks.iter().find(|line| line.name == name)
    }
}

impl Line {
    pub fn is_ok(&self) -> bool {
        self.state == "ok"
    }

    /// How much there is of what suffices, where directories and groups lie, what users are
    /// called and who built the kernel say nothing of other hosts of this kind.
    fn trim(&mut self) {
        let place = self.name == "state directory";
        if self.is_ok() && (place || self.sandboxes.is_some()) {
            self.found.clear();
        }
        if self.name == "folder"
            && self.found.starts_with('/')
            && let Some((_, found)) = self.found.split_once(": ")
        {
            self.found = found.to_owned();
        }
        if self.name == "kernel" {
            self.found = self.found.split('-').next().unwrap_or_default().to_owned();
        }
        if self.name == "rootless tools" {
            let parts = self.found.split(", ").map(nameless);
            self.found = parts.collect::<Vec<_>>().join(", ");
        }
        if self.name == "groups can be made" {
            let words = self.found.split(' ').map(hierarchy);
            self.found = words.collect::<Vec<_>>().join(" ");
        }
    }
}

/// Ids without whose they are.
fn nameless(part: &str) -> String {
    match part.split_once(" ids of ") {
        Some((many, _)) => format!("{many} ids"),
        None => part.to_owned(),
    }
}

/// A path of a group, cut to where its hierarchy is mounted.
fn hierarchy(word: &str) -> String {
    let deep = word.starts_with("/sys/fs/cgroup/");
    let parts = word.split('/').take(if deep { 5 } else { usize::MAX });
    parts.collect::<Vec<_>>().join("/")
}

#[test]
fn what_is_kept_is_what_is_read_again() {
    let whole = r#"{"ok": true, "checks": [
        {"name": "kernel", "state": "ok", "found": "Linux 6.1.0-9-mine", "by": "read"},
        {"name": "folder", "state": "warn", "found": "/home/jo/x: ext4: read-only", "cost": "c"},
        {"name": "state directory", "state": "ok", "found": "/home/jo/state"},
        {"name": "groups can be made", "state": "ok", "found": "not: /sys/fs/cgroup/cpu/job/1 a/b"},
        {"name": "rootless tools", "state": "ok", "found": "/a, 7 user ids of jo, 9 ids of jo (x)"},
        {"name": "inotify", "state": "ok", "found": "room for 9", "sandboxes": {"strict": 9}},
        {"name": "memory", "state": "missing", "found": "room for 0", "loses": ["loose"],
         "sandboxes": {"strict": 0}}
    ], "tiers": [
        {"tier": "loose", "kept": false, "controls": [], "error": {"code": "a", "cause": "b"}},
        {"tier": "standard", "kept": true, "controls": [
            {"control": "user id", "holds": true, "seen": "1000"}]},
        {"tier": "strict", "kept": true, "controls": []}
    ]}"#;
    let kept = Recording::parse(whole).unwrap();
    let found: Vec<&str> = kept.checks.iter().map(|line| &*line.found).collect();
    assert_eq!(
        found,
        [
            "Linux 6.1.0",
            "ext4: read-only",
            "",
            "not: /sys/fs/cgroup/cpu a/b",
            "/a, 7 user ids, 9 ids",
            "",
            "room for 0"
        ]
    );
    let text = kept.text();
    assert!(!text.contains("home") && !text.contains("1000") && !text.contains("mine"));
    assert!(
        text.contains(r#""loses":["loose"]"#) && text.contains(r#""code":"a""#),
        "{text}"
    );
    assert!(Recording::parse(&text).unwrap().text() == text, "{text}");
    assert!(Recording::parse(&whole.replace("standard", "other")).is_err());
}
