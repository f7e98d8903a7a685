//! The data files: nothing unknown, nothing twice, nothing unused.

use super::*;
use crate::error::Code;
use crate::syscalls::number::constants_file;
use crate::syscalls::table::{narrow, widen};
use crate::syscalls::verdict::Verdict;

fn load_tier(text: &str) -> Result<(), crate::Error> {
    let mut table = vec![Some(Verdict::Allow); 470];
    narrow(&Names::load().unwrap(), "test", None, text, &mut table)
}

#[test]
fn what_a_table_misspells_is_a_load_error() {
    let group = |calls: &str, errno: &str| {
        format!(
            r#"{{"about":"","refuse":[{{"group":"","reason":"","errno":"{errno}","calls":[{calls}]}}]}}"#
        )
    };
    let check = |call: &str, when: &str| {
        format!(
            r#"{{"about":"","check":[{{"group":"","reason":"","errno":"EPERM",
               "rules":[{{"calls":["{call}"],"when":[{when}]}}]}}]}}"#
        )
    };
    assert_eq!(load_tier(&group(r#""mount""#, "EPERM")), Ok(()));
    assert_eq!(
        load_tier(&check("ioctl", r#"{"arg":1,"in":["TIOCSTI"]}"#)),
        Ok(())
    );
    let bad = [
        (group(r#""muont""#, "EPERM"), "unknown call muont"),
        (group(r#""mount""#, "EPREM"), "unknown errno EPREM"),
        (group(r#""mount","mount""#, "EPERM"), "refused twice"),
        (
            check("ioctll", r#"{"arg":1,"in":["TIOCSTI"]}"#),
            "unknown call ioctll",
        ),
        (
            check("ioctl", r#"{"arg":1,"in":["TIOCST"]}"#),
            "unknown constant TIOCST",
        ),
        (
            check("ioctl", r#"{"arg":6,"in":["TIOCSTI"]}"#),
            "argument 6",
        ),
        (check("ioctl", r#"{"arg":1}"#), "one of any, in, not_in"),
        (
            check("ioctl", r#"{"arg":1,"in":[]}"#),
            "one of any, in, not_in",
        ),
        (
            check("ioctl", r#"{"arg":1,"any":"TIOCSTI","in":["TIOCSTI"]}"#),
            "one of any",
        ),
        (
            check("ioctl", r#"{"arg":1,"mask":"S_ISUID","in":["TIOCSTI"]}"#),
            "outside its mask",
        ),
        (
            check("ioctl", r#"{"arg":1,"is":["TIOCSTI"]}"#),
            "unknown field",
        ),
        (check("ioctl", ""), "without a condition"),
        (
            r#"{"about":"","add":[{"group":"","reason":"","calls":["mount"]}]}"#.into(),
            "adds nothing",
        ),
        (
            r#"{"about":"","extends":"other"}"#.into(),
            "extends the one before",
        ),
        (
            r#"{"about":"","allow":[{"group":"","reason":"","calls":["read","read"]}]}"#.into(),
            "allowed twice",
        ),
        (
            r#"{"about":"","refuse":[{"group":"","reason":"","errno":"EPERM","calls":["read"]}],
                "allow":[{"group":"","reason":"","calls":["read"]}]}"#
                .into(),
            "refused and allowed",
        ),
    ];
    for (text, part) in bad {
        let error = load_tier(&text).expect_err(&text);
        assert_eq!(error.code, Code::ControlMissing, "{text}");
        assert!(error.to_string().contains(part), "{error} of {text}");
    }
    let mut table = vec![Some(Verdict::Allow); 470];
    let text = r#"{"about":"","refuse":[]  ,"allow":[]}"#;
    let error = widen(&Names::load().unwrap(), "lease", text, &mut table).unwrap_err();
    assert!(error.to_string().contains("only adds"), "{error}");
}

#[test]
fn numbers_are_those_of_linux_6_18() {
    let names = Names::load().unwrap();
    let mut numbers: Vec<_> = names.calls().map(|(_, number)| number).collect();
    numbers.sort_unstable();
    let gaps: Vec<_> = (0..=469).filter(|n| !numbers.contains(n)).collect();
    assert_eq!(gaps, (337..=423).collect::<Vec<_>>());
    assert_eq!(numbers.len(), 383);
    numbers.dedup();
    assert_eq!(numbers.len(), 383);
    for (name, expected) in [
        ("read", 0),
        ("ptrace", 101),
        ("seccomp", 317),
        ("rseq", 334),
        ("uprobe", 336),
        ("io_uring_setup", 425),
        ("clone3", 435),
        ("openat2", 437),
        ("mount_setattr", 442),
        ("fchmodat2", 452),
        ("mseal", 462),
        ("open_tree_attr", 467),
        ("file_setattr", 469),
    ] {
        assert_eq!(number(name), expected, "{name}");
    }
}

#[test]
fn every_constant_is_used() {
    let files = [
        include_str!("../../../syscalls/loose.json"),
        include_str!("../../../syscalls/standard.json"),
        include_str!("../../../syscalls/strict.json"),
        include_str!("../../../syscalls/python.json"),
        include_str!("../../../syscalls/guest.json"),
    ];
    let words: Vec<&str> = files
        .iter()
        .flat_map(|file| file.split(['"', '|']))
        .collect();
    for name in constants_file().into_keys() {
        assert!(words.contains(&name), "{name} is used by no table");
    }
}
