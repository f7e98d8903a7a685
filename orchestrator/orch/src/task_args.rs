//! The flags of a task, shared by `run` and `spec`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::builder::{OsStringValueParser, TypedValueParser as _};
use clap::{Args, ValueEnum};
use orch_policy::mount::{self, MountArg};
use orch_policy::task::{MountRequest, Task};
use orch_policy::variable::{self, Variable};
use orch_policy::{Code, Error, paths, quantity};

use crate::env_arg;
use crate::user_arg::{self, User};

/// What becomes of the profile's network rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum NetworkArg {
    /// No way out, whatever the profile says.
    None,
    /// What the profile lets through.
    Profile,
}

/// What to run, under which profile, with what.
#[derive(Debug, Args)]
pub struct TaskArgs {
    /// Shipped profile (loose, standard, strict, offline, python) or a profile file.
    ///
    /// read-only, workspace-write and danger-full-access are other names of
    /// strict, standard and loose.
    #[arg(
        long,
        visible_alias = "tier",
        value_name = "NAME|FILE",
        default_value = "standard",
        help_heading = "Profile"
    )]
    pub profile: OsString,

    /// Root file system: host for read-only parts of this machine, or a directory.
    #[arg(long, value_name = "host|DIR", help_heading = "Profile")]
    pub image: Option<PathBuf>,

    /// Network of the task: none, or what the profile says.
    #[arg(
        long,
        value_enum,
        value_name = "none|profile",
        default_value = "profile",
        hide_possible_values = true,
        help_heading = "Profile"
    )]
    pub network: NetworkArg,

    /// Host file or folder to show inside; read-only without :rw.
    ///
    /// Without DST it becomes /workspace/NAME, with the name of SRC. A colon that belongs to a
    /// path is written \: and a backslash in front of a colon \\. Can be repeated.
    #[arg(
        long = "mount",
        value_name = "SRC[:DST][:rw]",
        value_parser = OsStringValueParser::new().try_map(mount::parse),
        help_heading = "Files"
    )]
    pub mounts: Vec<MountArg>,

    /// Host folder that becomes /workspace; the profile says whether it can be written.
    #[arg(long, value_name = "DIR", help_heading = "Files")]
    pub folder: Option<PathBuf>,

    /// Host folder that becomes /scratch, to be written; made where it is missing.
    ///
    /// What a task leaves there is there for the next one, unlike /tmp. Inside, SCRATCH is its
    /// path. It is made for the owner of --folder, else for whoever started orch.
    #[arg(long, value_name = "DIR", help_heading = "Files")]
    pub scratch: Option<PathBuf>,

    /// Let a writable folder belong to root.
    #[arg(long, help_heading = "Files")]
    pub allow_root_owned: bool,

    /// Directory inside in which the command starts [default: /workspace].
    #[arg(long, value_name = "DIR", help_heading = "Command")]
    pub workdir: Option<PathBuf>,

    /// User inside, by number; the profile says 1000:1000.
    #[arg(
        long,
        value_name = "UID[:GID]",
        value_parser = user_arg::parse,
        allow_hyphen_values = true,
        help_heading = "Command"
    )]
    pub user: Option<User>,

    /// Set a variable, or with the name alone pass on your own. Can be repeated.
    #[arg(
        long = "env",
        short = 'e',
        value_name = "NAME[=VALUE]",
        value_parser = OsStringValueParser::new().try_map(|text| variable::parse(&text)),
        help_heading = "Command"
    )]
    pub env: Vec<Variable>,

    /// File of NAME=VALUE lines, taken literally; --env wins. Can be repeated.
    #[arg(long = "env-file", value_name = "FILE", help_heading = "Command")]
    pub env_files: Vec<PathBuf>,

    /// Label that is copied to the receipt. Can be repeated.
    #[arg(
        long = "label",
        value_name = "NAME=VALUE",
        value_parser = env_arg::label,
        help_heading = "Command"
    )]
    pub labels: Vec<(String, String)>,

    /// Wall clock of the whole task: 1500ms, 30s, 10m, 1h30m.
    #[arg(
        long,
        value_name = "TIME",
        value_parser = quantity::duration_ms,
        allow_hyphen_values = true,
        help_heading = "Limits (only below the profile's)"
    )]
    pub timeout: Option<u64>,

    /// Memory of the whole tree, in-memory files included: 512Mi, 2G.
    #[arg(
        long,
        value_name = "SIZE",
        value_parser = quantity::bytes,
        allow_hyphen_values = true,
        help_heading = "Limits (only below the profile's)"
    )]
    pub memory: Option<u64>,

    /// CPUs' worth of time at any moment: 1.5, 500m.
    #[arg(
        long,
        value_name = "N",
        value_parser = quantity::cpus,
        allow_hyphen_values = true,
        help_heading = "Limits (only below the profile's)"
    )]
    pub cpus: Option<u64>,

    /// Processes and threads at the same time.
    #[arg(
        long,
        value_name = "N",
        value_parser = count,
        allow_hyphen_values = true,
        help_heading = "Limits (only below the profile's)"
    )]
    pub pids: Option<u64>,

    /// Standard output and standard error together: 16Mi.
    #[arg(
        long,
        value_name = "SIZE",
        value_parser = quantity::bytes,
        allow_hyphen_values = true,
        help_heading = "Limits (only below the profile's)"
    )]
    pub output_limit: Option<u64>,

    /// Give the command a terminal.
    #[arg(long, short = 't', help_heading = "Input and output")]
    pub tty: bool,

    /// Program and arguments, behind --.
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

impl TaskArgs {
    /// The task: relative host paths below `cwd`, bare variables from `own`.
    ///
    /// # Errors
    /// [`Code::MountInvalid`] for a path with `..`, [`Code::EnvInvalid`],
    /// [`Code::Usage`] where a relative path meets no current directory.
    pub fn task(&self, cwd: &Cwd, own: impl Fn(&str) -> Option<OsString>) -> Result<Task, Error> {
        let mut asked = Vec::new();
        for file in &self.env_files {
            asked.extend(env_arg::read_file(file)?);
        }
        asked.extend(self.env.iter().cloned());
        let mounts = self
            .mounts
            .iter()
            .map(|mount| {
                Ok(MountRequest {
                    source: cwd.absolute(&mount.source)?,
                    target: mount.target.clone(),
                    mode: mount.mode,
                })
            })
            .collect::<Result<_, Error>>()?;
        Ok(Task {
            argv: self.command.clone(),
            folder: self
                .folder
                .as_deref()
                .map(|folder| cwd.absolute(folder))
                .transpose()?,
            scratch: self
                .scratch
                .as_deref()
                .map(|scratch| cwd.absolute(scratch))
                .transpose()?,
            workdir: self.workdir.clone(),
            mounts,
            env: env_arg::settle(asked, own)?,
            user: self.user,
            labels: self.labels.clone(),
            timeout_ms: self.timeout,
            memory_bytes: self.memory,
            cpu_milli: self.cpus,
            processes: self.pids,
            output_bytes: self.output_limit,
            allow_root_owned: self.allow_root_owned,
            tty: self.tty,
        })
    }
}

/// The directory that relative paths start from.
#[derive(Debug)]
pub struct Cwd(std::io::Result<PathBuf>);

impl Cwd {
    /// The one of this process. That it is gone matters only to a relative path.
    pub fn of_process() -> Self {
        Self(std::env::current_dir())
    }

    /// The path below this directory, without `.` and doubled slashes; links are
    /// left to whoever opens it.
    ///
    /// # Errors
    /// [`Code::MountInvalid`] for an empty path or one with `..`, [`Code::Usage`]
    /// where there is no current directory.
    pub fn absolute(&self, path: &Path) -> Result<PathBuf, Error> {
        let refuse = |(cause, remedy): paths::Refusal| {
            Error::new(
                Code::MountInvalid,
                format!("path {} cannot be used", path.display()),
                remedy,
            )
            .because(cause)
        };
        if path.is_absolute() || path.as_os_str().is_empty() {
            return paths::absolute(path).map_err(refuse);
        }
        let cwd = self.0.as_ref().map_err(|e| {
            Error::new(
                Code::Usage,
                "the current directory cannot be named",
                "change to a directory that exists, or write absolute paths",
            )
            .because(e)
        })?;
        paths::absolute(&cwd.join(path)).map_err(refuse)
    }
}

/// A number of processes, ≥ 1.
fn count(text: &str) -> Result<u64, Error> {
    let refuse = |cause: &str| {
        Error::new(
            Code::LimitInvalid,
            format!("number {text:?} is not valid"),
            "write a whole number from 1",
        )
        .because(cause)
    };
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        return match text.parse() {
            Ok(0) => Err(refuse("it is zero")),
            Ok(count) => Ok(count),
            Err(_) => Err(refuse("it is too large")),
        };
    }
    Err(refuse(if text.starts_with('-') {
        "it is negative"
    } else {
        "it is not a whole number"
    }))
}

#[cfg(test)]
#[path = "task_args_tests.rs"]
mod tests;
