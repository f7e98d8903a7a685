//! `orch run` from an empty machine to the end of its command, against the
//! ways in which others start a command behind a wall.

use std::ffi::OsStr;
use std::path::Path;

use anyhow::Result;

use super::{NOTHING, Stand};
use crate::bundle::Bundle;
use crate::case::{Bar, Case, Kind, Pace, Peer, Sampler};
use crate::docker::Image;
use crate::invocation::{FRESH_ID, Invocation};
use crate::program::{answers, find};

const PEERS: [&str; 6] = ["runc", "crun", "youki", "bwrap", "docker", "exec"];

/// Each peer back to back and with gaps.
pub fn cases(stand: &Stand, wants: &dyn Fn(&str) -> bool) -> Vec<Case> {
    let mut cases = Vec::new();
    for pace in [Pace::BackToBack, Pace::GAP] {
        for peer in PEERS {
            let name = format!("run.strict.{}.{peer}", pace.as_str());
            // Looking for an engine takes time, so only where it is wanted.
            if wants(&name) {
                cases.push(Case {
                    name,
                    unit: "ms",
                    pace,
                    bar: bar(peer, pace),
                    kind: kind(stand, peer),
                });
            }
        }
    }
    cases
}

/// The promises of the first issue; the other peers are there for orientation.
fn bar(peer: &str, pace: Pace) -> Option<Bar> {
    match (peer, pace) {
        ("runc", Pace::BackToBack) => Some(Bar::at_most(0.45)),
        ("runc", Pace::Gap(_)) => Some(Bar::at_most(0.35)),
        ("bwrap", _) => Some(Bar::moonshot(1.5)),
        _ => None,
    }
}

fn kind(stand: &Stand, peer: &str) -> Kind {
    match sampler(stand, peer) {
        Ok(sampler) => {
            let mut orch = orch(stand);
            Kind::Value {
                subject: Box::new(move || orch.time()),
                peer: Some(Peer {
                    name: peer.into(),
                    sampler,
                }),
            }
        }
        Err(reason) => Kind::Absent {
            peer: Some(peer.into()),
            reason,
        },
    }
}

/// What is promised: every control of the strict tier, no word on any stream.
pub fn orch(stand: &Stand) -> Invocation {
    let args = ["run", "--profile", "strict", "--quiet", "--", NOTHING];
    Invocation::new(&stand.orch, args)
}

fn sampler(stand: &Stand, peer: &str) -> std::result::Result<Sampler, String> {
    if peer == "exec" {
        let mut exec = Invocation::new(NOTHING, [""; 0]);
        return Ok(Box::new(move || exec.time()));
    }
    let program = find(peer).ok_or_else(|| format!("no {peer} on this machine"))?;
    match peer {
        "bwrap" => {
            let mut bwrap = bwrap(&program);
            Ok(Box::new(move || bwrap.time()))
        }
        "docker" => docker(&program),
        _ => {
            able(&program)?;
            let stand = stand.clone();
            let mut ready = None;
            Ok(Box::new(move || {
                let runtime = match &mut ready {
                    Some(runtime) => runtime,
                    empty => empty.insert(runtime(&program, &stand)?),
                };
                runtime.time()
            }))
        }
    }
}

/// An OCI runtime on the very container that orch would make.
pub fn runtime(program: &Path, stand: &Stand) -> Result<Invocation> {
    Ok(started_by(program, stand.bundle()?))
}

/// Whether a runtime can start anything here, and why not. Known to fail: crun
/// where both versions of cgroups have controllers.
pub fn able(program: &Path) -> std::result::Result<(), String> {
    Bundle::least(NOTHING)
        .and_then(|bundle| started_by(program, &bundle).time())
        .map(|_| ())
        .map_err(|error| format!("cannot start the least container here: {error:#}"))
}

/// The runtime's state lies in the bundle: nothing of the machine's own
/// containers is touched.
fn started_by(program: &Path, bundle: &Bundle) -> Invocation {
    let state = bundle.state();
    let root = [OsStr::new("--root"), state.as_os_str()];
    let run = [
        OsStr::new("run"),
        OsStr::new("--bundle"),
        bundle.path().as_os_str(),
        OsStr::new(FRESH_ID),
    ];
    let delete = ["delete", "--force", FRESH_ID].map(OsStr::new);
    Invocation::new(program, root.iter().chain(&run)).rescued_by(root.iter().chain(&delete))
}

/// The walls that bwrap can build without a spec; no limits, no filter.
fn bwrap(program: &Path) -> Invocation {
    let mut args = vec!["--unshare-all", "--cap-drop", "ALL"];
    for directory in ["/usr", "/bin", "/lib", "/lib64"] {
        // /lib64 is not everywhere.
        if Path::new(directory).exists() {
            args.extend(["--ro-bind", directory, directory]);
        }
    }
    args.extend(["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]);
    args.extend(["--", NOTHING]);
    Invocation::new(program, args)
}

fn docker(program: &Path) -> std::result::Result<Sampler, String> {
    if !answers(program, &["info"]) {
        return Err("no container engine answers `docker info`".into());
    }
    let program = program.to_owned();
    let mut ready = None;
    Ok(Box::new(move || {
        let (_, run) = match &mut ready {
            Some(ready) => ready,
            empty => {
                let image = Image::around(&program, NOTHING)?;
                let args = ["run", "--rm", "--network", "none", image.tag(), NOTHING];
                let run = Invocation::new(&program, args);
                empty.insert((image, run))
            }
        };
        run.time()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stand() -> Stand {
        Stand::new("/no/such/orch".into())
    }

    #[test]
    fn every_peer_has_its_line_at_both_paces() {
        let names: Vec<_> = cases(&stand(), &|_| true)
            .into_iter()
            .map(|case| case.name)
            .collect();
        assert_eq!(names.len(), 12, "{names:?}");
        assert!(names.contains(&"run.strict.gap.youki".to_owned()));
        assert!(names.contains(&"run.strict.back-to-back.docker".to_owned()));
    }

    #[test]
    fn the_bars_are_those_of_the_promise() {
        let text = |peer, pace| bar(peer, pace).map(|bar| bar.against(peer));
        let promised = [
            ("runc", Pace::BackToBack, Some("<= 0.45 x runc")),
            ("runc", Pace::GAP, Some("<= 0.35 x runc")),
            ("bwrap", Pace::BackToBack, Some("<= 1.5 x bwrap (moonshot)")),
            ("bwrap", Pace::GAP, Some("<= 1.5 x bwrap (moonshot)")),
            ("exec", Pace::GAP, None),
        ];
        for (peer, pace, expected) in promised {
            assert_eq!(text(peer, pace).as_deref(), expected);
        }
    }

    #[test]
    fn nothing_unwanted_is_looked_for() {
        assert!(cases(&stand(), &|_| false).is_empty());
    }
}
