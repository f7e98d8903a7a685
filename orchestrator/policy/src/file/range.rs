//! The ranges of the whole-number keys, once, for the loader and the schema.

/// Both ends are allowed values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// Smallest value that can be enforced.
    pub min: i64,
    /// Largest value that can be enforced.
    pub max: i64,
}

const fn range(min: i64, max: i64) -> Range {
    Range { min, max }
}

/// Seconds: to 365 days, beyond which a ceiling is a slip.
pub const SECONDS: Range = range(1, 31_536_000);
/// Memory, MiB: to 16 TiB; below 4 MiB not even the first process starts.
pub const MEMORY_MB: Range = range(4, 16 << 20);
/// `RLIMIT_NOFILE`: to the kernel's default `fs.nr_open`; 16 are needed to start.
pub const OPEN_FILES: Range = range(16, 1 << 20);
/// `pids.max`: to the kernel's `PID_MAX_LIMIT`.
pub const PROCESSES: Range = range(1, 4 << 20);
/// Files and in-memory file systems, MiB: to 16 TiB.
pub const SPACE_MB: Range = range(1, 16 << 20);
/// `RLIMIT_STACK`, MiB; arguments and environment live on it.
pub const STACK_MB: Range = range(1, 4096);
/// tmpfs `nr_inodes`; 16 are needed for what orch itself puts there.
pub const INODES: Range = range(16, 1 << 30);
/// Output kept by orch, MiB: to 64 GiB.
pub const OUTPUT_MB: Range = range(1, 64 << 10);
/// Bandwidth, MiB a second: to 1 TiB a second.
pub const RATE_MB: Range = range(1, 1 << 20);
/// CPU bandwidth, thousandths: `cpu.max` takes no quota under 1 ms in 100 ms.
pub const CPU_MILLI: Range = range(10, 1_024_000);
/// `uid` and `gid`: 65534 is the overflow id, 65535 means "none" to 16-bit calls.
pub const ID: Range = range(0, 65_533);
