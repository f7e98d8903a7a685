//! One task in a container of its own, from request to receipt.

use orch_policy::Error;
use orch_policy::profile::Tier;

use crate::account::{self, Facts, Fate};
use crate::clock::Clock;
use crate::copy_out::Destination;
use crate::interrupt::Interrupts;
use crate::launcher::Engine;
use crate::plan::plan;
use crate::request::{Observer, Outcome, Request, Streams as Asked};
use crate::session::{Command, Session};
use crate::stream::Output;
use crate::wiring::Wiring;
use crate::{copy_out, failure, selftest, supervise};

impl Engine {
    /// Runs one task in a container of its own.
    ///
    /// # Errors
    /// Nothing was started, or nothing of it is left; the error says why.
    pub fn run(&mut self, request: Request, observer: &mut dyn Observer) -> Result<Outcome, Error> {
        let before = self.first_stages();
        if request.profile.tier > Tier::Loose {
            selftest::ensure(self, &request.profile)?;
        }
        let mut outcome = self.run_unchecked(request, observer)?;
        outcome.receipt.stages_us.extend(before);
        Ok(outcome)
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
        // Before the task can put anything in the way.
        let out = request
            .out
            .as_deref()
            .map(|to| Destination::open(to, &plan.shown()?))
            .transpose()?;
        let asked = std::mem::replace(&mut request.streams, Asked::nothing());
        let mut wiring = Wiring::new(asked)?;
        let interrupts = Interrupts::take().map_err(|e| failure::kernel("take signals", e))?;
        clock.lap("plan");
        let mut session = Session::open(self, &plan, &mut clock)?;
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
        let (out, late) = match copied {
            Ok(out) => (out, None),
            Err(error) => (None, Some(error)),
        };
        let receipt = account::receipt(Facts {
            task: &task,
            request: &request,
            fate,
            started,
            wall,
            usage,
            outputs: &wiring.streams.outputs,
            merged: &wiring.streams.merged,
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
}
