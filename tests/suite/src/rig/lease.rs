//! Several commands in one lease, through the engine: what a session does.

use std::ffi::OsString;

use orch_engine::clock::Clock;
use orch_engine::plan::plan;
use orch_engine::request::{Request, Silent, Streams};
use orch_engine::session::Session;
use orch_engine::{Engine, StateDir};
use orch_policy::profile::{Access, NetworkDefault};
use orch_policy::task::{MountRequest, Task};
use orch_policy::{Profile, builtin, digest, limits};

use super::host::{PATIENCE, eventually, nothing_left};
use super::{Result, at, ensure, place};

/// A session of a tier, for as long as somebody uses it.
#[derive(Debug)]
pub struct Open<'e> {
    session: Session<'e>,
    tier: String,
}

/// What a command came to.
#[derive(Debug)]
pub struct Ran {
    /// Exit code of `orch run`.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    #[expect(dead_code, reason = "shown where a test fails")]
    pub stderr: String,
}

/// An engine of this process, with its launcher.
///
/// # Errors
/// The programs are not there, or could not be started.
pub fn engine() -> Result<Engine> {
    let state = StateDir::open(&place::state()).map_err(|e| e.to_string())?;
    let read = |path: std::path::PathBuf| std::fs::read(&path).map_err(at(path.display()));
    let (launcher, guest) = (read(place::launcher()?)?, read(place::guest()?)?);
    Engine::start(&state, &launcher, &guest).map_err(|e| format!("{e:?}"))
}

/// The shipped profile of a tier, without its network.
///
/// # Errors
/// There is none.
pub fn profile(tier: &str) -> Result<Profile> {
    let mut profile = builtin::builtin(tier, "/root".as_ref())
        .map_err(|e| e.to_string())?
        .profile;
    profile.network.default = NetworkDefault::Deny;
    profile.network.allow.clear();
    Ok(profile)
}

/// A task that has the probe program at `/workspace/orch-probe`.
///
/// # Errors
/// There is no probe program.
pub fn task(argv: &[&str]) -> Result<Task> {
    Ok(Task {
        argv: argv.iter().map(OsString::from).collect(),
        mounts: vec![MountRequest {
            source: place::probe()?,
            target: Some("/workspace/orch-probe".into()),
            mode: Access::Ro,
        }],
        ..Task::default()
    })
}

/// Everything that the engine wants to know.
///
/// # Errors
/// A limit that is none.
pub fn request(profile: Profile, task: Task) -> Result<Request> {
    Ok(Request {
        effective: limits::effective(&profile, &task).map_err(|e| e.to_string())?,
        profile_sha256: digest::sha256(&profile).map_err(|e| e.to_string())?,
        profile,
        task,
        inherited: Vec::new(),
        streams: Streams::nothing(),
        out: None,
        artifacts: None,
        audit: None,
        reserved: Vec::new(),
    })
}

/// Opens a session of a tier, lets `body` use it, closes it; nothing of it may be
/// left.
///
/// # Errors
/// What the engine or `body` say.
pub fn session<T>(tier: &str, body: impl FnOnce(&mut Open<'_>) -> Result<T>) -> Result<T> {
    session_on(&engine()?, tier, body)
}

/// The same with an engine that there is already, as in a daemon.
///
/// # Errors
/// What the engine or `body` say.
pub fn session_on<T>(
    engine: &Engine,
    tier: &str,
    body: impl FnOnce(&mut Open<'_>) -> Result<T>,
) -> Result<T> {
    let request = request(profile(tier)?, task(&["true"])?)?;
    let plan = plan(engine, &request).map_err(|e| format!("{e:?}"))?;
    let session =
        Session::open(engine, &plan, &mut Clock::start()).map_err(|e| format!("{e:?}"))?;
    let id = session.id().to_owned();
    let mut open = Open {
        session,
        tier: tier.to_owned(),
    };
    let done = body(&mut open);
    let (_, left, _) = open.session.close().map_err(|e| format!("{e:?}"))?;
    ensure(left.is_empty(), || format!("left of {id}: {left:?}"))?;
    eventually("nothing left", PATIENCE, || nothing_left(&id).ok())?;
    done
}

impl Open<'_> {
    /// Runs one command to its end.
    ///
    /// # Errors
    /// It could not be started.
    pub fn exec(&mut self, argv: &[&str]) -> Result<Ran> {
        self.exec_in(argv, None)
    }

    /// The same, starting in a directory.
    ///
    /// # Errors
    /// It could not be started.
    pub fn exec_in(&mut self, argv: &[&str], workdir: Option<&str>) -> Result<Ran> {
        let mut task = task(argv)?;
        task.workdir = workdir.map(Into::into);
        let request = request(profile(&self.tier)?, task)?;
        let outcome = self
            .session
            .exec(request, &mut Silent)
            .map_err(|e| format!("{e:?}"))?;
        let text = |bytes: Option<Vec<u8>>| {
            String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
        };
        Ok(Ran {
            code: outcome.receipt.exit_code,
            stdout: text(outcome.stdout),
            stderr: text(outcome.stderr),
        })
    }
}
