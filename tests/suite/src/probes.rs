//! The probe program in every tier, as first task and as later exec, judged by
//! the tables of `tests/probe/expected` (groups A, B, NW, PX of the hazards), with
//! the same attempts outside as controls (PB-11).

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::OnceLock;

use orch_probe::{Finding, Line, expected, ids, judge, judge_control, status};
use serde_json::Value;

use crate::harness::{Test, Verdict, test};
use crate::rig::lease::{self, Ran};
use crate::rig::orch::Orch;
use crate::rig::{Result, ensure, place};

const TIERS: [&str; 3] = ["loose", "standard", "strict"];
/// Planted in the environment of whatever starts a sandbox (PX-04).
const CANARY: (&str, &str) = ("ORCH_SUITE_API_TOKEN", "ORCH-CANARY-outside");
const PROGRAM: &str = "/workspace/orch-probe";

/// How a task comes to run.
#[derive(Debug, Clone, Copy)]
enum Pass {
    /// As the task of `orch run`.
    Run,
    /// As the first command of a lease.
    First,
    /// As a later command of the same lease.
    Later,
}

const PASSES: [(Pass, &str); 3] = [
    (Pass::Run, "run"),
    (Pass::First, "first"),
    (Pass::Later, "later"),
];

/// Findings of one pass, by row.
type Findings = BTreeMap<String, Vec<String>>;

/// The room's tests.
pub fn tests() -> Vec<Test> {
    let rows: BTreeSet<String> = ids().iter().map(|id| row(id)).collect();
    let mut tests = Vec::new();
    for tier in TIERS {
        for (pass, name) in PASSES {
            for row in rows.clone() {
                tests.push(test(format!("probes::{tier}::{name}::{row}"), move || {
                    row_holds(tier, pass, &row)
                }));
            }
        }
        tests.push(test(
            format!("probes::{tier}::A10_H1_H2_later_is_confined_like_first"),
            move || later_is_like_first(tier),
        ));
    }
    tests.push(test("probes::control::outside_as_root", outside));
    tests.push(test("probes::control::plain_bwrap", boxed));
    tests
}

fn row(id: &str) -> String {
    id.split('.').next().unwrap_or(id).to_owned()
}

fn row_holds(tier: &'static str, pass: Pass, row: &str) -> Result<Verdict> {
    let findings = findings(tier, pass).as_ref().map_err(Clone::clone)?;
    match findings.get(row) {
        None => Ok(Verdict::Held),
        Some(found) => Err(found.join("\n")),
    }
}

/// Every pass of a tier runs once, whoever asks first.
fn findings(tier: &'static str, pass: Pass) -> &'static Result<Findings> {
    static RUNS: [[OnceLock<Result<Findings>>; 2]; 3] =
        [const { [const { OnceLock::new() }; 2] }; 3];
    let runs = &RUNS[TIERS.iter().position(|name| *name == tier).unwrap_or(0)];
    match pass {
        Pass::Run => runs[0].get_or_init(|| sort(tier, &by_command_line(tier)?)),
        Pass::First => runs[1].get_or_init(|| sort(tier, &lines(&leased(tier)?.probes[0])?)),
        Pass::Later => {
            static LATER: [OnceLock<Result<Findings>>; 3] = [const { OnceLock::new() }; 3];
            LATER[TIERS.iter().position(|name| *name == tier).unwrap_or(0)]
                .get_or_init(|| sort(tier, &lines(&leased(tier)?.probes[1])?))
        }
    }
}

fn sort(tier: &str, lines: &[Line]) -> Result<Findings> {
    let mut sorted = Findings::new();
    for finding in judge(lines, &expected(tier)?) {
        sorted
            .entry(row(id_of(&finding)))
            .or_default()
            .push(finding.to_string());
    }
    Ok(sorted)
}

fn id_of(finding: &Finding) -> &str {
    match finding {
        Finding::Unexpected { line, .. } => &line.id,
        Finding::Missing { id }
        | Finding::Repeated { id }
        | Finding::NotInTable { id }
        | Finding::NoSuchProbe { id } => id,
    }
}

fn by_command_line(tier: &str) -> Result<Vec<Line>> {
    let mut orch = Orch::new(tier)?.probe()?;
    orch.command().env(CANARY.0, CANARY.1);
    let ended = orch.run(&[PROGRAM, "run"])?.clean()?;
    read(&ended.stdout)
}

/// What both commands of one lease saw.
struct Leased {
    statuses: [Ran; 2],
    probes: [Ran; 2],
}

/// First a command that says what it is and probes, then the same again.
fn leased(tier: &'static str) -> Result<&'static Leased> {
    static RUNS: [OnceLock<Result<Leased>>; 3] = [const { OnceLock::new() }; 3];
    RUNS[TIERS.iter().position(|name| *name == tier).unwrap_or(0)]
        .get_or_init(|| {
            // The very first command of a lease says what it is; so does a later one.
            let (statuses, later) = lease::session(tier, |open| {
                let first = open.exec(&[PROGRAM, "status"])?;
                let probes = open.exec(&[PROGRAM, "run"])?;
                Ok(([first, open.exec(&[PROGRAM, "status"])?], probes))
            })?;
            // The probes as a first command need a lease of their own.
            let first = lease::session(tier, |open| open.exec(&[PROGRAM, "run"]))?;
            Ok(Leased {
                statuses,
                probes: [first, later],
            })
        })
        .as_ref()
        .map_err(Clone::clone)
}

fn later_is_like_first(tier: &'static str) -> Result<Verdict> {
    let leased = leased(tier)?;
    let [first, later] = &leased.statuses;
    let document =
        |ran: &Ran| serde_json::from_str::<Value>(&ran.stdout).map_err(|e| format!("{e}: {ran:?}"));
    let (first, later) = (document(first)?, document(later)?);
    let different = status::differences(&first, &later);
    ensure(different.is_empty(), || {
        format!("a later exec differs in {different:?}")
    })?;
    ensure(first["status"]["Seccomp"] == "2", || {
        format!("both are without a filter: {}", first["status"])
    })?;
    // Control: a process outside does differ, so that "no difference" says something.
    let outside = status::differences(&first, &status::document());
    for part in [
        "status.Uid",
        "status.Seccomp_filters",
        "namespaces.mnt",
        "rlimits.core",
    ] {
        ensure(outside.iter().any(|name| name == part), || {
            format!("this very process does not differ in {part}: {outside:?}")
        })?;
    }
    Ok(Verdict::Held)
}

fn lines(ran: &Ran) -> Result<Vec<Line>> {
    ensure(ran.code == Some(0), || {
        format!("the probe program: {ran:?}")
    })?;
    read(&ran.stdout)
}

fn read(text: &str) -> Result<Vec<Line>> {
    text.lines()
        .map(|line| serde_json::from_str(line).map_err(|e| format!("{e}: {line}")))
        .collect()
}

fn collect(command: &mut Command) -> Result<Vec<Line>> {
    let output = command
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .env(CANARY.0, CANARY.1)
        .current_dir("/")
        .output()
        .map_err(|e| format!("{command:?}: {e}"))?;
    ensure(output.status.success(), || {
        format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr))
    })?;
    read(&String::from_utf8_lossy(&output.stdout))
}

/// The same attempts as root outside succeed, and the canary is seen.
fn outside() -> Result<Verdict> {
    let lines = collect(Command::new(place::probe()?).arg("run"))?;
    let findings: Vec<String> = judge_control(&lines, &expected("strict")?)
        .iter()
        .map(ToString::to_string)
        .collect();
    ensure(findings.is_empty(), || findings.join("\n"))?;
    let seen = lines
        .iter()
        .any(|line| line.id == "PX-04.secrets" && line.outcome.detail.contains(CANARY.0));
    ensure(seen, || "the planted canary is not seen outside".to_owned())?;
    Ok(Verdict::Held)
}

/// A plain box of namespaces without a filter fails the tables of every tier.
fn boxed() -> Result<Verdict> {
    let program = place::probe()?;
    let mut command = Command::new("bwrap");
    command
        .args(["--unshare-all", "--cap-drop", "ALL", "--ro-bind", "/", "/"])
        .args(["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"])
        .arg("--ro-bind")
        .arg(&program)
        .args(["/tmp/orch-probe", "/tmp/orch-probe", "run"]);
    if Command::new("bwrap").arg("--version").output().is_err() {
        return Ok(Verdict::Skipped("bubblewrap is not installed".to_owned()));
    }
    let lines = collect(&mut command)?;
    for tier in TIERS {
        let found: BTreeSet<String> = judge(&lines, &expected(tier)?)
            .iter()
            .map(|finding| id_of(finding).to_owned())
            .collect();
        for id in [
            "A8.unshare",
            "A10.seccomp",
            "B2.io_uring_setup",
            "B3.userfaultfd",
            "B4.add_key",
            "B8.unshare_user",
            "H6.session_keyring",
            "A13.pid1_environ",
            "PX-04.secrets",
        ] {
            ensure(found.contains(id), || {
                format!("{tier}: a plain box passes {id}")
            })?;
        }
    }
    Ok(Verdict::Held)
}
