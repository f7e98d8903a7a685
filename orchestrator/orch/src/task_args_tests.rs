use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use clap::Parser;
use orch_policy::profile::Access;

use super::*;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    task: TaskArgs,
}

fn parse<S: AsRef<OsStr>>(args: &[S]) -> Result<TaskArgs, clap::Error> {
    let args = args.iter().map(|arg| arg.as_ref().to_owned());
    Ok(Line::try_parse_from(std::iter::once("orch".into()).chain(args))?.task)
}

fn cwd() -> Cwd {
    Cwd(Ok("/here".into()))
}

fn task(args: &[&str]) -> Result<Task, Error> {
    parse(args).unwrap().task(&cwd(), |name| {
        (name == "MINE").then(|| OsString::from("mine"))
    })
}

fn own_error(args: &[&str]) -> Error {
    let error = parse(args).unwrap_err();
    crate::refusal::usage(&error)
}

#[test]
fn every_flag_reaches_the_task() {
    let task = task(&[
        "--mount=in:/workspace/in:rw",
        "--mount=/b",
        "--folder=.",
        "--scratch=own",
        "--workdir=sub",
        "--user=1000:50",
        "-e",
        "A=1",
        "--env=MINE",
        "--label=a=b",
        "--timeout=30s",
        "--memory=512Mi",
        "--cpus=1.5",
        "--pids=64",
        "--output-limit=16Mi",
        "--allow-root-owned",
        "-t",
        "--",
        "cmd",
        "--flag",
    ])
    .unwrap();
    let expected = Task {
        argv: ["cmd", "--flag"].map(OsString::from).to_vec(),
        folder: Some("/here".into()),
        scratch: Some("/here/own".into()),
        workdir: Some("sub".into()),
        mounts: vec![
            MountRequest {
                source: "/here/in".into(),
                target: Some("/workspace/in".into()),
                mode: Access::Rw,
            },
            MountRequest {
                source: "/b".into(),
                target: None,
                mode: Access::Ro,
            },
        ],
        env: vec![("A".into(), "1".into()), ("MINE".into(), "mine".into())],
        user: Some((1000, Some(50))),
        labels: vec![("a".into(), "b".into())],
        timeout_ms: Some(30_000),
        memory_bytes: Some(512 << 20),
        cpu_milli: Some(1500),
        processes: Some(64),
        output_bytes: Some(16 << 20),
        allow_root_owned: true,
        tty: true,
    };
    assert_eq!(task, expected);
}

/// PR-08, PR-35.
#[test]
fn the_profile_is_standard_unless_asked_and_tier_is_another_word_for_it() {
    assert_eq!(parse(&["--", "x"]).unwrap().profile, "standard");
    assert_eq!(
        parse(&["--tier", "strict", "--", "x"]).unwrap().profile,
        "strict"
    );
}

/// PR-37: arguments and paths are bytes.
#[test]
fn arguments_need_not_be_utf_8() {
    let bytes = OsStr::from_bytes(b"/a b\n\xff");
    let mount = OsStr::from_bytes(b"--mount=/a b\n\xff");
    let args = [mount, OsStr::new("--"), OsStr::new("cmd"), bytes];
    let task = parse(&args).unwrap().task(&cwd(), |_| None).unwrap();
    assert_eq!(task.mounts[0].source, Path::new(bytes));
    assert_eq!(task.argv[1], bytes);
}

/// "What bad input gets": limits that are zero, negative or huge are named.
#[test]
fn bad_limits_are_named_with_their_own_code() {
    for (flag, value) in [
        ("--memory", "-1"),
        ("--memory", "0"),
        ("--memory", "99999999999999T"),
        ("--timeout", "-5s"),
        ("--timeout", "0s"),
        ("--cpus", "-0.5"),
        ("--pids", "-3"),
        ("--pids", "0"),
        ("--pids", "99999999999999999999"),
        ("--output-limit", "x"),
    ] {
        let error = own_error(&[flag, value, "--", "x"]);
        assert_eq!(error.code, Code::LimitInvalid, "{flag} {value}");
        assert!(error.message.starts_with(flag), "{}", error.message);
        assert!(error.message.contains(value), "{}", error.message);
    }
}

#[test]
fn other_bad_values_have_their_own_code() {
    for (args, code) in [
        (["--mount", ":x"], Code::MountInvalid),
        (["--env", "A-B=1"], Code::EnvInvalid),
        (["--user", "root"], Code::UserInvalid),
        (["--label", "x"], Code::Usage),
        (["--network", "host"], Code::Usage),
        (["--no-such-flag", "x"], Code::Usage),
    ] {
        assert_eq!(own_error(&[args[0], args[1], "--", "x"]).code, code);
    }
}

#[test]
fn a_missing_command_says_how_to_write_one() {
    let error = own_error(&["--tier", "strict"]);
    assert_eq!(error.code, Code::Usage);
    assert!(error.message.contains("<CMD>"), "{error:?}");
    assert!(error.remediation.contains("-- <CMD>"), "{error:?}");
}

#[test]
fn a_relative_path_with_dots_is_refused() {
    for args in [
        ["--mount", "../x"],
        ["--folder", "a/../b"],
        ["--scratch", "../x"],
    ] {
        let error = task(&[args[0], args[1], "--", "x"]).unwrap_err();
        assert_eq!(error.code, Code::MountInvalid);
    }
}

#[test]
fn a_missing_current_directory_matters_only_to_relative_paths() {
    let gone = || Cwd(Err(std::io::ErrorKind::NotFound.into()));
    assert!(gone().absolute(Path::new("/x")).is_ok());
    assert_eq!(
        gone().absolute(Path::new("x")).unwrap_err().code,
        Code::Usage
    );
}
