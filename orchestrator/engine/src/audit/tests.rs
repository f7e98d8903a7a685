use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};

use super::*;

/// A directory of one test that only its owner can write, gone with it.
struct Base(PathBuf);

impl Base {
    fn new(test: &str) -> Self {
        let name = format!("orch-audit-{test}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::DirBuilder::new().mode(0o700).create(&path).unwrap();
        Self(path.canonicalize().unwrap())
    }

    fn log(&self) -> PathBuf {
        self.0.join("audit.jsonl")
    }
}

impl Drop for Base {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn event(message: &str) -> Event {
    Event::TaskRefused {
        task: None,
        caller: 0,
        error: Error::new(Code::Usage, message, "try again"),
    }
}

fn append(log: &AuditLog, message: &str) -> Result<(), Error> {
    log.append(&[event(message)])
}

/// Every line bound to the one before, numbers without a gap in those that are whole:
/// the events by name.
fn sound(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.ends_with('\n'), "{text}");
    let (mut prev, mut next, mut events) = (FIRST.to_owned(), 0, Vec::new());
    for one in text.lines() {
        match line::seq(one.as_bytes()) {
            None => events.push("cut".to_owned()),
            Some(seq) => {
                let read: serde_json::Value = serde_json::from_str(one).unwrap();
                assert_eq!((seq, &read["prev"]), (next, &prev.into()), "{one}");
                events.push(read["event"].as_str().unwrap().to_owned());
                next += 1;
            }
        }
        prev = line::hash(one.as_bytes());
    }
    events
}

/// AU-06: one chain, however many write it.
#[test]
fn writers_at_the_same_time_make_one_chain() {
    let base = Base::new("writers");
    let shared = AuditLog::open(&base.log()).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let own = AuditLog::open(&base.log()).unwrap();
                for _ in 0..50 {
                    append(&own, "own").unwrap();
                    append(&shared, "shared").unwrap();
                }
            });
        }
    });
    assert_eq!(sound(&base.log()).len(), 400);
    let mode = fs::metadata(base.log()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn several_events_are_several_lines_and_a_long_one_is_one() {
    let base = Base::new("long");
    let log = AuditLog::open(&base.log()).unwrap();
    for length in [0, 16_000, 16 << 10, 40_000, 1 << 20] {
        log.append(&[event("short"), event(&"x\n".repeat(length))])
            .unwrap();
    }
    assert_eq!(sound(&base.log()).len(), 10);
}

/// Wherever a line was cut: it stays, the next one says so and is bound to it.
#[test]
fn a_line_that_was_cut_short_is_told() {
    let base = Base::new("cut");
    let log = AuditLog::open(&base.log()).unwrap();
    append(&log, "whole").unwrap();
    append(&log, "cut").unwrap();
    let whole = fs::read(base.log()).unwrap();
    let second = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    // The whole line without its newline is one that was cut as well.
    for (kept, want) in (second + 1..whole.len())
        .map(|end| (&whole[..end], 4))
        .chain((1..second).map(|end| (&whole[..end], 3)))
    {
        fs::write(base.log(), kept).unwrap();
        append(&log, "after").unwrap();
        let text = fs::read(base.log()).unwrap();
        assert!(text.starts_with(kept));
        let lines = text.split(|byte| *byte == b'\n').count() - 1;
        assert_eq!(lines, want, "{}", String::from_utf8_lossy(&text));
        append(&log, "and on").unwrap();
    }
    fs::write(base.log(), &whole[..second + 20]).unwrap();
    append(&log, "after").unwrap();
    let events = sound(&base.log());
    assert_eq!(
        events,
        ["task_refused", "cut", "log_repaired", "task_refused"]
    );
}

/// A slip on the command line costs nobody a file.
#[test]
fn a_file_that_is_no_log_is_refused_and_stays() {
    let base = Base::new("foreign");
    let ours = {
        let log = AuditLog::open(&base.log()).unwrap();
        append(&log, "x").unwrap();
        fs::read_to_string(base.log()).unwrap()
    };
    for text in [
        "alias ll='ls -l'\n",
        "no newline",
        "{\"level\":\"info\"}\n",
        "\n",
        &format!("{ours}somebody else\n"),
        &format!("{ours}somebody else"),
        &format!("{ours}\n"),
        &format!("other\n{}", &ours[..20]),
    ] {
        fs::write(base.log(), text).unwrap();
        let log = AuditLog::open(&base.log()).unwrap();
        let error = append(&log, "y").unwrap_err();
        assert_eq!(error.code, Code::AuditFailed, "{text:?}");
        assert_eq!(fs::read_to_string(base.log()).unwrap(), text);
    }
    fs::write(base.log(), &ours).unwrap();
    append(&AuditLog::open(&base.log()).unwrap(), "y").unwrap();
    assert_eq!(sound(&base.log()).len(), 2);
}

/// What others can write or reach by another name, they can replace.
#[test]
fn only_a_file_that_nobody_else_can_replace() {
    let base = Base::new("replaced");
    let refused = |why: &str| {
        let error = AuditLog::open(&base.log()).unwrap_err();
        assert_eq!(error.code, Code::AuditFailed);
        let cause = error.cause.unwrap_or_default();
        assert!(cause.contains(why), "{why}: {cause}");
    };
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let other = base.0.join("other");
    fs::write(&other, "").unwrap();
    symlink(&other, base.log()).unwrap();
    refused("symbolic link");
    fs::remove_file(base.log()).unwrap();
    fs::hard_link(&other, base.log()).unwrap();
    refused("second name");
    fs::remove_file(base.log()).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        base.log(),
        rustix::fs::FileType::Fifo,
        Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    refused("regular file");
    fs::remove_file(base.log()).unwrap();
    fs::create_dir(base.log()).unwrap();
    refused("directory");
    fs::remove_dir(base.log()).unwrap();
    fs::write(base.log(), "").unwrap();
    mode(&base.log(), 0o620);
    refused("written by others");
    mode(&base.log(), 0o600);
    mode(&base.0, 0o770);
    refused("written by others");
    // The controls: as /tmp is, and as it should be.
    for fit in [0o1777, 0o700] {
        mode(&base.0, fit);
        append(&AuditLog::open(&base.log()).unwrap(), "x").unwrap();
    }
    let missing = AuditLog::open(&base.0.join("none/audit.jsonl")).unwrap_err();
    assert_eq!(missing.code, Code::AuditFailed);
}

#[test]
fn a_directory_above_the_log_gets_no_files_of_a_task() {
    let base = Base::new("above");
    let below = base.0.join("below");
    fs::create_dir(&below).unwrap();
    let log = AuditLog::open(&below.join("audit.jsonl")).unwrap();
    let open = |path: &Path| {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::open(path, flags, Mode::empty()).unwrap()
    };
    for above in [&below, &base.0] {
        let error = log.keep_out_of(above, &open(above)).unwrap_err();
        assert_eq!(error.code, Code::AuditFailed);
    }
    let beside = base.0.join("beside");
    fs::create_dir(&beside).unwrap();
    log.keep_out_of(&beside, &open(&beside)).unwrap();
}

/// A lock that somebody keeps is told, and no reason to wait for ever.
#[test]
fn a_lock_that_stays_is_an_error() {
    let base = Base::new("lock");
    let log = AuditLog::open(&base.log()).unwrap();
    let (other, ours) = (File::open(base.log()).unwrap(), log.file.lock().unwrap());
    let short = std::time::Duration::from_millis(20);
    let held = lock::take(&other, short).unwrap();
    let why = lock::take(&ours, short).unwrap_err().to_string();
    assert!(why.contains("locked"), "{why}");
    // The control: freed while it is waited for.
    std::thread::scope(|scope| {
        scope.spawn(move || drop(held));
        drop(lock::take(&ours, lock::PATIENCE).unwrap());
    });
    drop(ours);
    append(&log, "x").unwrap();
}
