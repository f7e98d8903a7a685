//! One task, from request to receipt.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant, SystemTime};

use orch_policy::profile::Tier;
use orch_policy::receipt::ExitSource;
use orch_policy::spec;
use orch_policy::spec::container::ContainerSpec;
use orch_policy::spec::task::TaskSpec;
use orch_policy::{Code, Error};
use orch_wire::guest::Step;
use orch_wire::launch::{CgroupLimits, CgroupUsage, Reply, Request as Ask};

use crate::account::{self, Facts, Fate, micros};
use crate::container::{self, Container, Prepared};
use crate::interrupt::Interrupts;
use crate::launcher::Engine;
use crate::lease::{Lease, Running, Start};
use crate::request::{Input, Observer, Outcome, Request, Sink, Streams as Asked, Terminal};
use crate::source::Rules;
use crate::stream::{Feed, Output};
use crate::supervise::{self, Bounds, Stop, Streams, Watch};
use crate::{copy_out, ending, failure, image, selftest, terminal};

/// Number of the only command of a one-shot container.
const FIRST: u32 = 0;
/// How long the guest may take to report an end that the kernel has shown.
const PATIENCE: Duration = Duration::from_secs(2);

/// A task that has been measured against its profile: both specs, and every
/// source opened.
#[derive(Debug)]
pub struct Plan {
    /// What the container is made of.
    pub container: ContainerSpec,
    /// What the command gets.
    pub task: TaskSpec,
    prepared: Prepared,
}

impl Engine {
    /// Runs one task in a container of its own.
    ///
    /// # Errors
    /// Nothing was started, or nothing of it is left; the error says why.
    pub fn run(&mut self, request: Request, observer: &mut dyn Observer) -> Result<Outcome, Error> {
        if request.profile.tier > Tier::Loose {
            selftest::ensure(self, &request.profile)?;
        }
        self.run_unchecked(request, observer)
    }

    /// The same without the question whether the tier can be kept: the self-test
    /// that answers it goes this way.
    pub(crate) fn run_unchecked(
        &mut self,
        mut request: Request,
        observer: &mut dyn Observer,
    ) -> Result<Outcome, Error> {
        let mut clock = Clock::start();
        let plan = plan(self, &request)?;
        let asked = std::mem::replace(&mut request.streams, nothing());
        let mut wiring = Wiring::new(asked)?;
        let interrupts = Interrupts::take().map_err(|e| failure::kernel("take signals", e))?;
        clock.lap("plan");
        let (container, lease, joins, unified, missing) = self.make(&plan, &mut clock)?;
        let started = SystemTime::now();
        let execution = Execution {
            engine: self,
            container: &container,
            lease: &lease,
            plan: &plan,
            interrupts: &interrupts,
        };
        let ran = execution.run(&mut wiring, &joins, unified, observer, &mut clock);
        drop(joins);
        let ended = self.destroy(&container);
        clock.lap("teardown");
        let (usage, left) = ended?;
        let (fate, wall) = match ran {
            Ok(ran) => ran,
            Err(error) => (Fate::Failed(error), None),
        };
        let limit = plan.task.limits.output_bytes;
        let drained = supervise::drain(&mut wiring.streams, limit, observer);
        drop(wiring.raw.take());
        let (out, late) = match (&request.out, drained) {
            (_, Err(error)) => (None, Some(error)),
            (Some(to), Ok(())) => {
                match copy_out::copy(&lease.temporary, to, plan.task.limits.out_bytes) {
                    Ok(out) => (Some(out), None),
                    Err(error) => (None, Some(error)),
                }
            }
            (None, Ok(())) => (None, None),
        };
        clock.lap("output");
        let receipt = account::receipt(Facts {
            task: &container.id,
            request: &request,
            fate,
            started,
            wall,
            usage,
            outputs: &wiring.streams.outputs,
            out,
            missing,
            left,
            stages: clock.laps,
        });
        let mut kept = wiring.streams.outputs.into_iter().map(Output::into_kept);
        Ok(Outcome {
            receipt,
            stdout: kept.next().flatten(),
            stderr: kept.next().flatten(),
            late,
        })
    }

    /// Makes a container and a lease in it.
    fn make(&self, plan: &Plan, clock: &mut Clock) -> Result<Made, Error> {
        let limits = &plan.task.limits;
        let first = CgroupLimits {
            memory: Some(limits.memory_bytes),
            pids: Some(limits.processes),
            cpu_milli: Some(limits.cpu_milli),
            read_bps: limits.io_read_bytes_per_second,
            write_bps: limits.io_write_bytes_per_second,
        };
        let (container, channel) = container::begin(
            self,
            &plan.container,
            &plan.task,
            &plan.prepared,
            Some((FIRST, first)),
        )?;
        let (reply, mut fds) = self.reply()?;
        let Reply::Created {
            unified,
            missing,
            stages,
            ..
        } = reply
        else {
            return Err(unexpected());
        };
        clock.laps.extend(
            stages
                .into_iter()
                .map(|(name, us)| (format!("worker.{name}"), us)),
        );
        clock.lap("create");
        if fds.is_empty() {
            return Err(unexpected());
        }
        let joins = fds.split_off(1);
        match Lease::wait(channel) {
            Ok(lease) => {
                clock.lap("lease");
                Ok((container, lease, joins, unified, missing))
            }
            Err(error) => {
                // What could not be staged is the news, not how it went away.
                let _ = self.destroy(&container);
                Err(error)
            }
        }
    }

    /// Ends a container: its counters, and what could not be removed.
    fn destroy(&self, container: &Container) -> Result<(CgroupUsage, Vec<String>), Error> {
        let request = Ask::Destroy {
            id: container.id.clone(),
        };
        match self.ask(&request)? {
            (Reply::Destroyed { usage, left }, _) => {
                let first = usage.into_iter().find(|(exec, _)| *exec == FIRST);
                Ok((first.map(|(_, usage)| usage).unwrap_or_default(), left))
            }
            _ => Err(unexpected()),
        }
    }
}

type Made = (Container, Lease, Vec<OwnedFd>, bool, Vec<String>);

fn unexpected() -> Error {
    Error::new(
        Code::RuntimeFailed,
        "the launcher gave an answer that does not belong here",
        "report this",
    )
}

fn nothing() -> Asked {
    Asked::Pipes {
        stdin: Input::Null,
        stdout: Sink::Keep,
        stderr: Sink::Keep,
    }
}

/// Measures a request against its profile and opens what it names; starts nothing.
///
/// # Errors
/// Whatever is wrong with the request.
pub fn plan(engine: &Engine, request: &Request) -> Result<Plan, Error> {
    let profile = &request.profile;
    if profile.network.needs_egress() {
        return Err(Error::new(
            Code::EgressUnavailable,
            format!(
                "profile {} lets a task out to a network, and there is no gateway that would watch it",
                profile.name
            ),
            "run it without a network: --network none",
        ));
    }
    let facts = image::facts(&profile.image)?;
    let container = spec::container(profile, &request.task, &facts)?;
    let effective = &request.effective;
    let timeout = effective.command_timeout_ms.min(effective.timeout_ms);
    let task = spec::task(
        profile,
        &request.task,
        &effective.limits,
        timeout,
        &request.inherited,
    )?;
    check_host(&task)?;
    let mut denied = profile.deny_paths.clone();
    denied.extend(request.reserved.iter().cloned());
    denied.push(engine.state().path().to_owned());
    let rules = Rules {
        denied: &denied,
        allow_root_owned: request.task.allow_root_owned,
    };
    let prepared = container::prepare(&container, &rules)?;
    Ok(Plan {
        container,
        task,
        prepared,
    })
}

/// A limit above what this machine allows is refused by name: the kernel would
/// refuse it too, but later and without saying which.
fn check_host(task: &TaskSpec) -> Result<(), Error> {
    use rustix::process::{Resource, getrlimit};
    for (name, resource, key) in [
        ("RLIMIT_NOFILE", Resource::Nofile, "limits.open_files"),
        ("RLIMIT_FSIZE", Resource::Fsize, "limits.file_size_mb"),
        ("RLIMIT_STACK", Resource::Stack, "limits.stack_mb"),
        ("RLIMIT_CPU", Resource::Cpu, "limits.cpu_seconds"),
    ] {
        let asked = task.rlimits.iter().find(|limit| limit.name == name);
        let (Some(asked), Some(most)) = (asked, getrlimit(resource).maximum) else {
            continue;
        };
        if asked.hard > most {
            return Err(Error::new(
                Code::LimitUnavailable,
                format!(
                    "{key} asks for {}, and this machine allows {most}",
                    asked.hard
                ),
                format!(
                    "lower {key}, or raise the hard limit of the shell that starts orch (ulimit -H)"
                ),
            ));
        }
    }
    Ok(())
}

/// The host's side of the streams, and the command's until it has started.
struct Wiring {
    streams: Streams,
    command: Vec<OwnedFd>,
    terminal: Option<Terminal>,
    raw: Option<terminal::Raw>,
}

impl Wiring {
    fn new(asked: Asked) -> Result<Self, Error> {
        let broken = |e: io::Error| failure::kernel("make the streams of the command", e);
        match asked {
            Asked::Pipes {
                stdin,
                stdout,
                stderr,
            } => {
                let (feed, input) = Feed::new(stdin).map_err(broken)?;
                let (out, out_end) = Output::new(stdout).map_err(broken)?;
                let (err, err_end) = Output::new(stderr).map_err(broken)?;
                Ok(Self {
                    streams: Streams {
                        feed,
                        outputs: vec![out, err],
                    },
                    command: vec![input, out_end, err_end],
                    terminal: None,
                    raw: None,
                })
            }
            Asked::Terminal(terminal) => {
                let (feed, _) = Feed::new(Input::Null).map_err(broken)?;
                Ok(Self {
                    streams: Streams {
                        feed,
                        outputs: Vec::new(),
                    },
                    command: Vec::new(),
                    terminal: Some(terminal),
                    raw: None,
                })
            }
        }
    }

    /// Connects the caller's terminal to the command's.
    fn connect(&mut self, running: &Running) -> io::Result<()> {
        let (Some(asked), Some(own)) = (self.terminal.take(), &running.terminal) else {
            return Ok(());
        };
        rustix::io::ioctl_fionbio(own, true)?;
        terminal::copy_size(own);
        self.raw = Some(terminal::Raw::enter(asked.input.try_clone()?)?);
        self.streams.feed = Feed::into(asked.input, own.try_clone()?);
        let output = Output::from(own.try_clone()?, Sink::Pass(asked.output));
        self.streams.outputs = vec![output];
        Ok(())
    }
}

struct Execution<'a> {
    engine: &'a Engine,
    container: &'a Container,
    lease: &'a Lease,
    plan: &'a Plan,
    interrupts: &'a Interrupts,
}

impl Execution<'_> {
    fn run(
        &self,
        wiring: &mut Wiring,
        joins: &[OwnedFd],
        unified: bool,
        observer: &mut dyn Observer,
        clock: &mut Clock,
    ) -> Result<(Fate, Option<Duration>), Error> {
        let task = &self.plan.task;
        self.lease
            .begin(FIRST, task, &wiring.command, joins, unified)?;
        // The command alone holds its ends, so that they are seen to close.
        wiring.command.clear();
        let running = match self.lease.started(FIRST)? {
            Start::Running(running) => running,
            Start::Refused(step, errno) => return refused(task, step, errno),
        };
        clock.lap("exec");
        let start = Instant::now();
        wiring
            .connect(&running)
            .map_err(|e| failure::kernel("connect the terminal", e))?;
        let watch = Watch {
            engine: self.engine,
            container: &self.container.id,
            lease: self.lease,
            running: &running,
            interrupts: self.interrupts,
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
        Ok((Fate::Ran { stop, ending }, Some(wall)))
    }

    /// The kernel's word where it gives one, the guest's where it does not.
    fn ending(&self, running: &Running) -> Result<(ending::Ending, ExitSource), Error> {
        let reported = supervise::status(self.lease, running, PATIENCE);
        match (ending::from_kernel(&running.pidfd), reported) {
            (Some(status), _) => Ok((ending::read(status), ExitSource::Kernel)),
            (None, Ok(status)) => Ok((ending::read(status), ExitSource::Guest)),
            (None, Err(error)) => Err(error),
        }
    }
}

/// What is not the fault of orch is an answer of its own; the rest is an error.
fn refused(task: &TaskSpec, step: Step, errno: i32) -> Result<(Fate, Option<Duration>), Error> {
    let cause = io::Error::from_raw_os_error(errno);
    match (step, errno) {
        (Step::Exec, libc::ENOENT | libc::ENOTDIR) => Ok((Fate::NotFound, None)),
        (
            Step::Exec,
            libc::EACCES | libc::ENOEXEC | libc::EISDIR | libc::ELOOP | libc::EPERM | libc::ETXTBSY,
        ) => Ok((Fate::NotExecutable, None)),
        (Step::Cwd, _) => Err(Error::new(
            Code::WorkdirMissing,
            format!("the command cannot start in {}", task.cwd.display()),
            "name a directory that is there inside the sandbox: --workdir /workspace",
        )
        .because(cause)),
        _ => Err(failure::kernel(
            format_args!("start the command ({step:?})"),
            cause,
        )),
    }
}

/// Time between one lap and the next, by name.
struct Clock {
    last: Instant,
    laps: Vec<(String, u64)>,
}

impl Clock {
    fn start() -> Self {
        Self {
            last: Instant::now(),
            laps: Vec::new(),
        }
    }

    fn lap(&mut self, name: &str) {
        self.laps
            .push((name.to_owned(), micros(self.last.elapsed())));
        self.last = Instant::now();
    }
}
