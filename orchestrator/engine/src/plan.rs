//! A task, measured against its profile and this host, before anything starts.

use std::path::PathBuf;

use orch_policy::profile::Tier;
use orch_policy::spec::container::ContainerSpec;
use orch_policy::spec::task::TaskSpec;
use orch_policy::{Code, Error, spec};

use crate::container::{self, Prepared};
use crate::image;
use crate::interop;
use crate::launcher::Engine;
use crate::request::Request;
use crate::source::{self, Rules};

/// A task that has been measured against its profile: both specs, and every
/// source opened.
#[derive(Debug)]
pub struct Plan {
    /// Tier of the profile.
    pub tier: Tier,
    /// What the container is made of.
    pub container: ContainerSpec,
    /// What the command gets.
    pub task: TaskSpec,
    pub(crate) prepared: Prepared,
}

impl Plan {
    /// Folders of the host that a task sees, canonical.
    ///
    /// # Errors
    /// One has gone away since it was opened.
    pub(crate) fn shown(&self) -> Result<Vec<PathBuf>, Error> {
        let binds = self.container.binds.iter();
        binds.map(|bind| source::resolve(&bind.source)).collect()
    }
}

/// Measures a request against its profile and opens what it names; starts nothing.
///
/// # Errors
/// Whatever is wrong with the request.
pub fn plan(engine: &Engine, request: &Request) -> Result<Plan, Error> {
    interop::check()?;
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
    denied.extend(request.audit.iter().map(|audit| audit.path().to_owned()));
    let rules = Rules {
        denied: &denied,
        allow_root_owned: request.task.allow_root_owned,
    };
    let prepared = container::prepare(&container, &rules)?;
    Ok(Plan {
        tier: profile.tier,
        container,
        task,
        prepared,
    })
}

/// A limit above what this machine allows is refused by name: the kernel would
/// refuse it later and without saying which, or never enforce it at all.
fn check_host(task: &TaskSpec) -> Result<(), Error> {
    use rustix::process::{Resource, getrlimit};
    for (name, resource, key) in [
        ("RLIMIT_NOFILE", Resource::Nofile, "limits.open_files"),
        ("RLIMIT_FSIZE", Resource::Fsize, "limits.file_size_mb"),
        ("RLIMIT_STACK", Resource::Stack, "limits.stack_mb"),
        ("RLIMIT_CPU", Resource::Cpu, "limits.cpu_seconds"),
    ] {
        let asked = task.rlimits.iter().find(|limit| limit.name == name);
        if let (Some(asked), Some(most)) = (asked, getrlimit(resource).maximum) {
            within(
                key,
                asked.hard,
                most,
                "raise the hard limit of the shell that starts orch (ulimit -H)",
            )?;
        }
    }
    let memory = memory_of_host().unwrap_or(u64::MAX);
    within(
        "limits.memory_mb",
        task.limits.memory_bytes,
        memory,
        "ask for less: --memory",
    )?;
    let pids = number("/proc/sys/kernel/pid_max").unwrap_or(u64::MAX);
    within(
        "limits.processes",
        task.limits.processes,
        pids,
        "ask for fewer: --pids",
    )
}

fn within(key: &str, asked: u64, most: u64, otherwise: &str) -> Result<(), Error> {
    if asked <= most {
        return Ok(());
    }
    Err(Error::new(
        Code::LimitUnavailable,
        format!("{key} asks for {asked}, and this machine allows {most}"),
        format!("lower {key}, or {otherwise}"),
    ))
}

/// Memory and swap of the machine, bytes (proc_meminfo(5)).
fn memory_of_host() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix(" kB")?.parse::<u64>().ok()
    };
    Some((field("MemTotal:")? + field("SwapTotal:").unwrap_or(0)) * 1024)
}

fn number(path: &str) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_above_the_machine_is_refused_by_name() {
        assert!(within("limits.x", 5, 5, "").is_ok());
        let refused = within("limits.x", 6, 5, "do y").unwrap_err();
        assert_eq!(refused.code, Code::LimitUnavailable);
        assert!(refused.message.starts_with("limits.x asks for 6"));
        assert!(memory_of_host().is_some_and(|bytes| bytes > 64 << 20));
    }
}
