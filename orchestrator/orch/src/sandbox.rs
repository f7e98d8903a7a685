//! Both specs of a task, for those who only want to look at them.

use std::path::Path;

use orch_engine::image;
use orch_engine::scratch::{self, Owner};
use orch_engine::source::{self, Rules};
use orch_policy::Error;
use orch_policy::spec::layout::WORKSPACE;
use orch_policy::spec::{self, ContainerSpec, TaskSpec};

use crate::prepare::Prepared;

/// What would be made, with every source resolved and checked as a run does it,
/// and nothing started or made.
///
/// # Errors
/// What a run of this task would be refused for: image, mounts, user, variables.
pub fn specs(prepared: &Prepared, state: &Path) -> Result<(ContainerSpec, TaskSpec), Error> {
    let Prepared {
        profile,
        task,
        effective,
        inherited,
        ..
    } = prepared;
    let mut container = spec::container(profile, task, &image::facts(&profile.image)?)?;
    let timeout = effective.command_timeout_ms;
    let command = spec::task(profile, task, &effective.limits, timeout, inherited)?;
    let mut denied = profile.deny_paths.clone();
    denied.push(state.to_owned());
    let rules = Rules {
        denied: &denied,
        allow_root_owned: task.allow_root_owned,
    };
    let mut owner = Owner::caller();
    for bind in &mut container.binds {
        let path = match bind.make {
            true => scratch::locate(&bind.source)?,
            false => source::resolve(&bind.source)?,
        };
        if bind.make && !path.exists() {
            scratch::check(&path, owner, &rules)?;
        } else {
            let taken = source::take(&path, bind.mode, &rules)?;
            if bind.target == Path::new(WORKSPACE) {
                owner = Owner {
                    uid: taken.uid,
                    gid: taken.gid,
                };
            }
        }
        bind.source = path;
    }
    Ok((container, command))
}
