//! One task in a container of its own, from request to receipt.

use orch_policy::Error;
use orch_policy::profile::Tier;
use orch_policy::receipt::Artifacts;

use crate::account::{self, Facts, Fate};
use crate::artifacts::{self, Folder, Log};
use crate::clock::Clock;
use crate::copy_out::Destination;
use crate::interrupt::Interrupts;
use crate::launcher::Engine;
use crate::plan::{Plan, plan};
use crate::request::{Observer, Outcome, Request, Streams as Asked};
use crate::session::{Command, Session};
use crate::stream::Output;
use crate::wiring::Wiring;
use crate::{copy_out, failure, random, selftest, supervise};

impl Engine {
    /// Runs one task in a container of its own, and ends the launcher with it.
    ///
    /// # Errors
    /// Nothing was started, or nothing of it is left; the error says why.
    pub fn run(self, request: Request, observer: &mut dyn Observer) -> Result<Outcome, Error> {
        let audit = request.audit.clone();
        let mut started = None;
        let ran = self.run_checked(request, observer, &mut started);
        if let (Some(audit), Err(error)) = (audit, &ran) {
            // Nothing is run any more, and the error that came first is the news.
            let _ = audit.refused(started.as_deref(), error);
        }
        ran
    }

    fn run_checked(
        mut self,
        request: Request,
        observer: &mut dyn Observer,
        started: &mut Option<String>,
    ) -> Result<Outcome, Error> {
        let before = self.first_stages();
        if request.profile.tier > Tier::Loose {
            selftest::ensure(&mut self, &request.profile)?;
        }
        self.is_for_the_last();
        self.run_unchecked(request, before, observer, started)
    }

    /// The same without the question whether the tier can be kept: the self-test
    /// that answers it goes this way. `before` are stages that have passed already,
    /// `started` is the task once it is in the audit log.
    pub(crate) fn run_unchecked(
        &mut self,
        mut request: Request,
        before: Vec<(String, u64)>,
        observer: &mut dyn Observer,
        started: &mut Option<String>,
    ) -> Result<Outcome, Error> {
        let mut clock = Clock::start();
        clock.laps = before;
        let plan = plan(self, &request)?;
        let id = random::id()?;
        // Before the task can put anything in the way.
        let out = request
            .out
            .as_deref()
            .map(|to| Destination::open(to, &plan.shown()?))
            .transpose()?;
        let kept = keep(&request, &plan, out.as_ref(), &id)?;
        if let (Some(audit), Some((name, directory))) =
            (&request.audit, out.as_ref().map(Destination::place))
        {
            audit.keep_out_of(name, directory)?;
        }
        let asked = std::mem::replace(&mut request.streams, Asked::nothing());
        let mut wiring = Wiring::new(asked)?;
        let interrupts = Interrupts::take().map_err(|e| failure::kernel("take signals", e))?;
        let folder = kept.map(|(folder, log)| {
            wiring.streams.merged.keep(log);
            folder
        });
        clock.lap("plan");
        self.enter(plan.task.uid, plan.task.gid)?;
        if let Some(audit) = &request.audit {
            audit.started(&id, &request, &plan.container)?;
            *started = Some(id.clone());
        }
        let mut session = Session::open_with(self, id, &plan, &wiring, &mut clock)?;
        if out.is_none() {
            session.lease.forget_temporary();
        }
        let task = session.id().to_owned();
        let ran = session.command(&plan.task, &mut wiring, &interrupts, observer, &mut clock);
        // Also where nothing was started: who holds an end waits for it below.
        wiring.command.clear();
        let (usage, left, lease) = session.close()?;
        clock.lap("teardown");
        let limits = &plan.task.limits;
        let most = limits.output_bytes;
        let drained = supervise::drain(&mut wiring.streams, most, &interrupts, observer);
        wiring.restore();
        let copied = match (&out, drained) {
            (_, Err(error)) => Err(error),
            (Some(to), Ok(())) => lease
                .temporary()
                .and_then(|temporary| copy_out::copy(temporary, to, limits.out_bytes))
                .map(Some),
            (None, Ok(())) => Ok(None),
        };
        clock.lap("output");
        let Command {
            fate,
            started,
            wall,
            missing,
            ..
        } = ran?;
        if let Fate::Failed(error) = fate {
            return Err(error);
        }
        let mut late = Vec::new();
        let out = copied.map_err(|error| late.push(error)).ok().flatten();
        let (log, unkept) = wiring.streams.merged.end();
        let fate = match unkept {
            None => fate,
            Some(error) => {
                late.push(error.clone());
                Fate::Unkept(error)
            }
        };
        let artifacts = folder.as_ref().zip(log);
        let artifacts = artifacts.map(|(folder, (bytes, sha256))| Artifacts {
            path: folder.path().display().to_string(),
            bytes,
            sha256,
        });
        let receipt = account::receipt(Facts {
            task: &task,
            request: &request,
            fate,
            started,
            wall,
            usage,
            outputs: &wiring.streams.outputs,
            merged: wiring.streams.merged.tail(),
            out,
            artifacts,
            missing,
            left,
            stages: clock.laps,
        });
        late.extend(folder.and_then(|folder| folder.finish(&receipt).err()));
        let audited = request.audit.map_or(Ok(()), |audit| audit.ended(&receipt));
        late.extend(audited.err());
        let mut kept = wiring.streams.outputs.into_iter().map(Output::into_kept);
        Ok(Outcome {
            receipt,
            stdout: kept.next().flatten(),
            stderr: kept.next().flatten(),
            late,
        })
    }
}

/// The folder for what is to be kept of a task, and the log in it.
fn keep(
    request: &Request,
    plan: &Plan,
    out: Option<&Destination>,
    id: &str,
) -> Result<Option<(Folder, Log)>, Error> {
    let Some(path) = &request.artifacts else {
        return Ok(None);
    };
    let (argv, labels) = (&request.task.argv, &request.task.labels);
    let repeated = argv.iter().map(|arg| arg.len()).sum::<usize>()
        + labels.iter().map(|(k, v)| k.len() + v.len()).sum::<usize>();
    let wanted = artifacts::Wanted {
        path,
        id,
        output_bytes: plan.task.limits.output_bytes,
        repeated: u64::try_from(repeated).unwrap_or(u64::MAX),
    };
    let folders = artifacts::Folders {
        shown: &plan.shown()?,
        // What it leaves in /tmp/out has names of its choice.
        writable: &plan
            .prepared
            .writable()
            .chain(out.map(Destination::place))
            .collect::<Vec<_>>(),
    };
    Folder::make(&wanted, &folders).map(Some)
}
