//! A container with a lease in it, for one command or for several.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant, SystemTime};

use orch_policy::profile::Tier;
use orch_policy::receipt::ExitSource;
use orch_policy::spec::task::TaskSpec;
use orch_policy::{Code, Error};
use orch_wire::guest::Step;
use orch_wire::launch::{CgroupLimits, CgroupUsage, Reply, Request as Ask};

use crate::account::{self, Facts, Fate};
use crate::clock::Clock;
use crate::container::{self, Container};
use crate::interrupt::Interrupts;
use crate::launcher::Engine;
use crate::lease::{Lease, Running, Start};
use crate::plan::{Plan, plan};
use crate::request::{Observer, Outcome, Request, Streams as Asked};
use crate::stream::Output;
use crate::supervise::{self, Bounds, Stop, Watch};
use crate::wiring::Wiring;
use crate::{ending, failure, random};

/// How long the guest may take to report an end that the kernel has shown.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a command is given in order to get into its control group.
#[derive(Debug)]
struct Joins {
    fds: Vec<OwnedFd>,
    unified: bool,
    missing: Vec<String>,
}

/// A container with a lease. Every command takes the same way in, the first and
/// any later one (design §4; H1, H2). Dropped without [`Session::close`], its
/// processes end when the engine does.
#[derive(Debug)]
pub struct Session<'e> {
    engine: &'e Engine,
    container: Container,
    /// The lease.
    pub lease: Lease,
    first: Option<Joins>,
    /// Whether the first command has been asked for already.
    asked: bool,
    tier: Tier,
    next: u32,
}

/// How a command went, before anything of it is taken away.
#[derive(Debug)]
pub struct Command {
    /// Its number.
    pub exec: u32,
    /// How it ended.
    pub fate: Fate,
    /// When it was asked for.
    pub started: SystemTime,
    /// From the request to start it to its end.
    pub wall: Option<Duration>,
    /// Limits that this host cannot keep.
    pub missing: Vec<String>,
}

impl<'e> Session<'e> {
    /// Makes a container and a lease in it, with the control group of a first
    /// command.
    ///
    /// # Errors
    /// Nothing is left behind; the error says why.
    pub fn open(engine: &'e Engine, plan: &Plan, clock: &mut Clock) -> Result<Self, Error> {
        Self::make(engine, random::id()?, plan, None, clock)
    }

    /// The same under an id that is known already, from [`random::id`]; and it asks
    /// for the task of the plan as its first command, which has to be the first one
    /// given to [`Session::command`]: the lease goes on to it without waiting for this
    /// process to wake up and say so.
    ///
    /// # Errors
    /// As [`Session::open`].
    pub(crate) fn open_with(
        engine: &'e Engine,
        id: String,
        plan: &Plan,
        wiring: &Wiring,
        clock: &mut Clock,
    ) -> Result<Self, Error> {
        Self::make(engine, id, plan, Some(wiring), clock)
    }

    fn make(
        engine: &'e Engine,
        id: String,
        plan: &Plan,
        wiring: Option<&Wiring>,
        clock: &mut Clock,
    ) -> Result<Self, Error> {
        let (container, channel) = container::begin(
            engine,
            id,
            &plan.container,
            &plan.task,
            &plan.prepared,
            Some((0, ceilings(engine, plan.tier, &plan.task))),
        )?;
        let first = joins(engine.reply()?)?;
        let mut lease = Lease::new(channel);
        let wiring = wiring.filter(|_| fits_ahead(&plan.task));
        let asked = wiring.map_or(Ok(()), |wiring| {
            let streams = &wiring.command;
            lease.begin(0, &plan.task, streams, &first.fds, first.unified)
        });
        let (Reply::Created { stages, .. }, _) = engine.reply()? else {
            return Err(unexpected());
        };
        let worker = stages
            .into_iter()
            .map(|(name, us)| (format!("worker.{name}"), us));
        clock.laps.extend(worker);
        clock.lap("create");
        match asked.and_then(|()| lease.wait()) {
            Ok(()) => {
                clock.lap("lease");
                Ok(Self {
                    engine,
                    container,
                    lease,
                    first: Some(first),
                    asked: wiring.is_some(),
                    tier: plan.tier,
                    next: 0,
                })
            }
            Err(error) => {
                // What could not be staged is the news, not how it went away.
                let _ = destroy(engine, &container);
                Err(error)
            }
        }
    }

    /// Unguessable id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.container.id
    }

    /// Runs one command until it has ended or is not to be waited for any longer.
    /// What it started may still be there: [`Session::end`] and
    /// [`Session::close`] end that.
    ///
    /// # Errors
    /// The command could not be started, and it is not to blame.
    pub fn command(
        &mut self,
        task: &TaskSpec,
        wiring: &mut Wiring,
        interrupts: &Interrupts,
        observer: &mut dyn Observer,
        clock: &mut Clock,
    ) -> Result<Command, Error> {
        let (exec, started) = (self.next, SystemTime::now());
        self.next += 1;
        let joins = match self.first.take() {
            Some(joins) => joins,
            None => self.joins(exec, task)?,
        };
        let commanded = |fate, wall| Command {
            exec,
            fate,
            started,
            wall,
            missing: joins.missing.clone(),
        };
        let start = Instant::now();
        if !std::mem::take(&mut self.asked) {
            self.lease
                .begin(exec, task, &wiring.command, &joins.fds, joins.unified)?;
        }
        // The command alone holds its ends, so that they are seen to close.
        wiring.command.clear();
        let running = match self.lease.started(exec)? {
            Start::Running(running) => running,
            Start::Refused(step, errno) => {
                return Ok(commanded(refused(task, step, errno), None));
            }
        };
        clock.lap("exec");
        wiring
            .connect(&running)
            .map_err(|e| failure::kernel("connect the terminal", e))?;
        let watch = Watch {
            engine: self.engine,
            container: &self.container.id,
            lease: &self.lease,
            running: &running,
            interrupts,
            bounds: Bounds {
                timeout: Duration::from_millis(task.timeout_ms),
                cpu_us: task.limits.cpu_seconds.saturating_mul(1_000_000),
                output_bytes: task.limits.output_bytes,
            },
        };
        let stop = supervise::watch(&watch, &mut wiring.streams, observer)?;
        let wall = start.elapsed();
        clock.lap("command");
        let ending = match stop {
            Stop::Ended => Some(self.ending(&running)?),
            _ => None,
        };
        Ok(commanded(Fate::Ran { stop, ending }, Some(wall)))
    }

    fn joins(&self, exec: u32, task: &TaskSpec) -> Result<Joins, Error> {
        let request = Ask::Cgroup {
            id: self.container.id.clone(),
            exec,
            limits: ceilings(self.engine, self.tier, task),
        };
        joins(self.engine.ask(&request)?)
    }

    /// The kernel's word where it gives one, the guest's where it does not.
    fn ending(&self, running: &Running) -> Result<(ending::Ending, ExitSource), Error> {
        let reported = supervise::status(&self.lease, running, PATIENCE);
        match (ending::from_kernel(&running.pidfd), reported) {
            (Some(status), _) => Ok((ending::read(status), ExitSource::Kernel)),
            (None, Ok(status)) => Ok((ending::read(status), ExitSource::Guest)),
            (None, Err(error)) => Err(error),
        }
    }

    /// Ends whatever a command has left, and gives its counters.
    ///
    /// # Errors
    /// The launcher is gone.
    pub fn end(&self, exec: u32) -> Result<(CgroupUsage, Vec<String>), Error> {
        let request = Ask::End {
            id: self.container.id.clone(),
            exec,
        };
        match self.engine.ask(&request)? {
            (Reply::Ended { usage, removed }, _) => {
                let left = (!removed).then(|| format!("processes of exec {exec}"));
                Ok((usage, left.into_iter().collect()))
            }
            _ => Err(unexpected()),
        }
    }

    /// Runs a further command in the same lease, to its receipt. Nothing of it is
    /// copied out, and neither artifacts nor the audit log are written.
    ///
    /// # Errors
    /// The command could not be started, and it is not to blame.
    pub fn exec(
        &mut self,
        mut request: Request,
        observer: &mut dyn Observer,
    ) -> Result<Outcome, Error> {
        let mut clock = Clock::start();
        let plan = plan(self.engine, &request)?;
        let asked = std::mem::replace(&mut request.streams, Asked::nothing());
        let mut wiring = Wiring::new(asked)?;
        let interrupts = Interrupts::take().map_err(|e| failure::kernel("take signals", e))?;
        let command = self.command(&plan.task, &mut wiring, &interrupts, observer, &mut clock)?;
        let (usage, left) = self.end(command.exec)?;
        let most = plan.task.limits.output_bytes;
        let drained = supervise::drain(&mut wiring.streams, most, &interrupts, observer);
        wiring.restore();
        if let Fate::Failed(error) = command.fate {
            return Err(error);
        }
        let receipt = account::receipt(Facts {
            task: self.id(),
            request: &request,
            fate: command.fate,
            started: command.started,
            wall: command.wall,
            usage,
            outputs: &wiring.streams.outputs,
            merged: wiring.streams.merged.tail(),
            out: None,
            artifacts: None,
            missing: command.missing,
            left,
            stages: clock.laps,
        });
        let mut kept = wiring.streams.outputs.into_iter().map(Output::into_kept);
        Ok(Outcome {
            receipt,
            stdout: kept.next().flatten(),
            stderr: kept.next().flatten(),
            late: drained.err().into_iter().collect(),
        })
    }

    /// Ends everything: the counters of the first command where nobody has taken
    /// them, and what could not be removed.
    ///
    /// # Errors
    /// The launcher is gone.
    pub fn close(self) -> Result<(CgroupUsage, Vec<String>, Lease), Error> {
        let (usage, left) = destroy(self.engine, &self.container)?;
        Ok((usage, left, self.lease))
    }
}

/// Whether the request for this command finds room in a socket that nobody reads
/// yet: this process must not be held up by a container that never comes.
fn fits_ahead(task: &TaskSpec) -> bool {
    const ROOM: usize = 64 << 10;
    let strings = task.argv.iter().chain(&task.env);
    strings.map(|string| string.len() + 8).sum::<usize>() <= ROOM
}

fn joins(answer: (Reply, Vec<OwnedFd>)) -> Result<Joins, Error> {
    match answer {
        (Reply::Cgroup { unified, missing }, fds) => Ok(Joins {
            fds,
            unified,
            missing,
        }),
        _ => Err(unexpected()),
    }
}

fn ceilings(engine: &Engine, tier: Tier, task: &TaskSpec) -> CgroupLimits {
    let limits = &task.limits;
    CgroupLimits {
        memory: Some(limits.memory_bytes),
        pids: Some(limits.processes),
        cpu_milli: Some(limits.cpu_milli),
        read_bps: limits.io_read_bytes_per_second,
        write_bps: limits.io_write_bytes_per_second,
        optional: engine.is_rootless() && tier < Tier::Strict,
    }
}

fn destroy(engine: &Engine, container: &Container) -> Result<(CgroupUsage, Vec<String>), Error> {
    let request = Ask::Destroy {
        id: container.id.clone(),
    };
    match engine.ask_for_end(&request)? {
        (Reply::Destroyed { usage, left }, _) => {
            let first = usage.into_iter().next().map(|(_, usage)| usage);
            Ok((first.unwrap_or_default(), left))
        }
        _ => Err(unexpected()),
    }
}

fn unexpected() -> Error {
    Error::new(
        Code::RuntimeFailed,
        "the launcher gave an answer that does not belong here",
        "report this",
    )
}

/// Arguments and environment that execve(2) does not take.
pub(crate) fn too_large() -> Error {
    Error::new(
        Code::Usage,
        "the arguments and the environment are larger than the kernel takes",
        "pass less, 128 KiB at most in one piece, or put it into a file and --mount that",
    )
}

/// What is not the fault of orch is an answer of its own; the rest is an error.
fn refused(task: &TaskSpec, step: Step, errno: i32) -> Fate {
    let cause = io::Error::from_raw_os_error(errno);
    match (step, errno) {
        (Step::Exec, libc::ENOENT | libc::ENOTDIR) => Fate::NotFound,
        (
            Step::Exec,
            libc::EACCES | libc::ENOEXEC | libc::EISDIR | libc::ELOOP | libc::EPERM | libc::ETXTBSY,
        ) => Fate::NotExecutable,
        (Step::Exec, libc::E2BIG) => Fate::Failed(too_large().because(cause)),
        (Step::Cwd, _) => Fate::Failed(
            Error::new(
                Code::WorkdirMissing,
                format!("the command cannot start in {}", task.cwd.display()),
                "name a directory that is there inside the sandbox: --workdir /workspace",
            )
            .because(cause),
        ),
        _ => Fate::Failed(failure::kernel(
            format_args!("start the command ({step:?})"),
            cause,
        )),
    }
}
