//! The shape of a profile file, before anything is inherited or defaulted.
//!
//! Every key is optional: what is absent comes from `extends`, or from the
//! shipped profile of the tier. The doc comments become the descriptions of the
//! published JSON Schema, so units and ranges stand here and nowhere else.

pub mod range;
pub mod scalar;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::profile::{Access, NetworkDefault, Reuse, SyscallTable, Tier};
use range as r;
use scalar::{Pairs, Scalar, Whole};

/// A profile of orch: what a sandboxed task may see, reach and use up.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Profile")]
pub struct ProfileFile {
    /// Version of this file's shape. Only 1 exists; may be left out.
    #[schemars(range(min = 1, max = 1))]
    pub version: Option<Whole>,
    /// Name shown in listings and receipts; default: the file's name without its extension.
    pub name: Option<String>,
    /// What the profile is for, in one sentence. Not inherited.
    pub description: Option<String>,
    /// The tier whose bounds the profile keeps: loose, standard (default) or strict.
    /// The aliases danger-full-access, workspace-write and read-only are accepted (PR-35).
    pub tier: Option<TierName>,
    /// A shipped profile (loose, standard, strict, offline, python) or a file, relative to
    /// this one. Keys of this file win one by one; lists are replaced whole.
    pub extends: Option<String>,
    /// What the task sees and reaches.
    pub sandbox: Option<SandboxFile>,
    /// Ceilings of one task. May stand inside `sandbox` instead, not in both places.
    pub limits: Option<LimitsFile>,
    /// Wall clock of the whole task (PR-23): whole seconds, or a duration such as 10m.
    /// 1 ms to 365 days. May stand inside `sandbox` instead.
    #[schemars(extend("minimum" = 1, "maximum" = r::SECONDS.max))]
    pub timeout_seconds: Option<Scalar>,
    /// Wall clock of one command, at most the task's, which is the default: whole
    /// seconds, or a duration such as 30s. May stand inside `sandbox` instead.
    #[schemars(extend("minimum" = 1, "maximum" = r::SECONDS.max))]
    pub command_timeout_seconds: Option<Scalar>,
    /// The environment of a task, which starts empty (PX-03).
    pub env: Option<EnvFile>,
    /// System-call table, not looser than the tier: loose, standard, strict, or python,
    /// under which the command can start no process and no other program, send no
    /// signal, make no link and open no socket (PX-11).
    pub syscalls: Option<SyscallTableName>,
    /// User inside the sandbox, `uid` or `uid:gid`, each 0 to 65533; gid defaults to uid.
    #[schemars(extend("minimum" = r::ID.min, "maximum" = r::ID.max))]
    pub user: Option<Scalar>,
    /// Host name inside the sandbox: letters, digits and hyphens, 1 to 63 characters.
    pub hostname: Option<String>,
    /// Who may get a used container: pool (anybody, after a proven scrub), tenant
    /// (the same tenant) or never (PR-32). Not looser than the tier.
    pub reuse: Option<Reuse>,
}

/// A tier by its name or by the name other programs use for it (PR-35).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TierName {
    /// Trusted local work.
    Loose,
    /// Routine automation.
    Standard,
    /// Untrusted input.
    Strict,
    /// Alias of loose, which still is a container.
    DangerFullAccess,
    /// Alias of standard.
    WorkspaceWrite,
    /// Alias of strict.
    ReadOnly,
}

impl From<TierName> for Tier {
    fn from(name: TierName) -> Self {
        match name {
            TierName::Loose | TierName::DangerFullAccess => Tier::Loose,
            TierName::Standard | TierName::WorkspaceWrite => Tier::Standard,
            TierName::Strict | TierName::ReadOnly => Tier::Strict,
        }
    }
}

/// A table of system calls: that of a tier, by any of its names, or python.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SyscallTableName {
    /// What every tier refuses.
    Loose,
    /// A tighter deny list.
    Standard,
    /// An allow list.
    Strict,
    /// As strict, for one program that starts no other.
    Python,
    /// Alias of loose.
    DangerFullAccess,
    /// Alias of standard.
    WorkspaceWrite,
    /// Alias of strict.
    ReadOnly,
}

impl From<SyscallTableName> for SyscallTable {
    fn from(name: SyscallTableName) -> Self {
        use SyscallTableName as N;
        match name {
            N::Loose | N::DangerFullAccess => Self::Loose,
            N::Standard | N::WorkspaceWrite => Self::Standard,
            N::Strict | N::ReadOnly => Self::Strict,
            N::Python => Self::Python,
        }
    }
}

/// What the task sees and reaches.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SandboxFile {
    /// Root file system: `host` (named read-only binds of the machine) or the
    /// absolute path of a directory that holds a root file system.
    pub image: Option<String>,
    /// Whether `/` can be written; what is written there is thrown away. rw in tier loose only.
    pub root: Option<Access>,
    /// Host folder that becomes the workspace where the caller names none (PR-13).
    /// Absolute, or beginning with `~/`.
    pub workspace: Option<String>,
    /// Whether the workspace can be written. Not rw in tier strict (PR-09).
    pub workspace_mode: Option<Access>,
    /// Host directory that a task takes for its temporary one (PR-14). `/tmp` inside is
    /// always in memory, bounded by `limits.tmp_mb` and gone after the task, and stands
    /// in for it; the host's directory itself is never shown.
    pub tmpdir: Option<String>,
    /// Further paths, in order; a later one shadows an earlier one (PR-15, FS-06).
    pub mounts: Option<Vec<MountFile>>,
    /// Host paths that are never mounted and that are masked inside (PR-16). `~` is
    /// the home of the caller.
    pub deny_paths: Option<Vec<String>>,
    /// Who the task may talk to.
    pub network: Option<NetworkFile>,
    /// Ceilings of one task, as at the top level.
    pub limits: Option<LimitsFile>,
    /// Wall clock of the whole task, as at the top level.
    pub timeout_seconds: Option<Scalar>,
    /// Wall clock of one command, as at the top level.
    pub command_timeout_seconds: Option<Scalar>,
}

/// One path given to the sandbox.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MountFile {
    /// Path inside the sandbox, absolute. The path of `workspace` or `tmpdir` means that one.
    pub path: String,
    /// Path on the host, absolute or beginning with `~/`. Absent: the image's own tree.
    pub source: Option<String>,
    /// ro (default; may be executed) or rw.
    pub mode: Option<Access>,
}

/// Who the task may talk to.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetworkFile {
    /// What happens to a destination that no rule names; absent means deny (PR-17).
    /// `allow` in tier loose only (PR-31).
    pub default: Option<NetworkDefault>,
    /// Destinations let through (PR-18): host, *.host, IP or CIDR, each with :port or
    /// :from-to where wanted.
    pub allow: Option<Vec<String>>,
    /// Destinations refused at once, beating `allow` (NW-08); same grammar.
    pub deny: Option<Vec<String>>,
}

/// Ceilings. All are whole numbers unless said otherwise; zero is refused.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LimitsFile {
    /// CPU time of one command's whole process tree, seconds (PR-19).
    #[schemars(range(min = r::SECONDS.min, max = r::SECONDS.max))]
    pub cpu_seconds: Option<Whole>,
    /// CPU bandwidth: CPUs such as 1.5, or thousandths such as 500m; 0.01 to 1024.
    #[schemars(extend("minimum" = 0.01, "maximum" = 1024))]
    pub cpus: Option<Scalar>,
    /// Memory including in-memory files, MiB; swap is never given (PR-20).
    #[schemars(range(min = r::MEMORY_MB.min, max = r::MEMORY_MB.max))]
    pub memory_mb: Option<Whole>,
    /// Open files of one process (PR-21).
    #[schemars(range(min = r::OPEN_FILES.min, max = r::OPEN_FILES.max))]
    pub open_files: Option<Whole>,
    /// Processes and threads at the same time (PR-22).
    #[schemars(range(min = r::PROCESSES.min, max = r::PROCESSES.max))]
    pub processes: Option<Whole>,
    /// Largest file a process may write, MiB (PX-05).
    #[schemars(range(min = r::SPACE_MB.min, max = r::SPACE_MB.max))]
    pub file_size_mb: Option<Whole>,
    /// Stack of one process, MiB (PX-05).
    #[schemars(range(min = r::STACK_MB.min, max = r::STACK_MB.max))]
    pub stack_mb: Option<Whole>,
    /// Size of each writable in-memory file system (/tmp, /dev/shm, /run), MiB (FS-05).
    #[schemars(range(min = r::SPACE_MB.min, max = r::SPACE_MB.max))]
    pub tmp_mb: Option<Whole>,
    /// Files and directories in each of those file systems.
    #[schemars(range(min = r::INODES.min, max = r::INODES.max))]
    pub tmp_inodes: Option<Whole>,
    /// Standard output and standard error together, MiB; more stops the task (EV-08).
    #[schemars(range(min = r::OUTPUT_MB.min, max = r::OUTPUT_MB.max))]
    pub output_mb: Option<Whole>,
    /// What may be copied out of /tmp/out, MiB.
    #[schemars(range(min = r::SPACE_MB.min, max = r::SPACE_MB.max))]
    pub out_mb: Option<Whole>,
    /// Block-device reads, MiB a second; absent means unlimited.
    #[schemars(range(min = r::RATE_MB.min, max = r::RATE_MB.max))]
    pub io_read_mb_per_second: Option<Whole>,
    /// Block-device writes, MiB a second; absent means unlimited.
    #[schemars(range(min = r::RATE_MB.min, max = r::RATE_MB.max))]
    pub io_write_mb_per_second: Option<Whole>,
}

/// The environment of a task.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EnvFile {
    /// Names taken from the caller's environment where they are set there. Exact names only.
    pub allow: Option<Vec<String>>,
    /// Variables that are set. Values are text or whole numbers.
    pub set: Option<Pairs>,
}
