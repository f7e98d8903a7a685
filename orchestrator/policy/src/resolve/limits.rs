//! Ceilings and time-outs: within range, never zero (H13).

use super::{Pick, Resolver};
use crate::error::{Code, Error};
use crate::file::range::{self, Range};
use crate::file::scalar::{Scalar, Whole};
use crate::file::{LimitsFile, ProfileFile};
use crate::profile::Limits;
use crate::quantity::{self, MIB};

type Get = fn(&LimitsFile) -> Option<&Whole>;

impl<'c> Resolver<'c> {
    pub(super) fn limits(&mut self) -> Result<Limits, Error> {
        let whole = |r: &mut Self, field: &str, range: Range, get: Get| {
            let pick = r.need(field, |file| get(file.limits.as_ref()?))?;
            in_range(&pick, pick.value.0, range)
        };
        let rate = |r: &mut Self, field: &str, get: Get| {
            let pick = r.pick(field, |file| get(file.limits.as_ref()?));
            pick.map(|pick| Ok(in_range(&pick, pick.value.0, range::RATE_MB)? * MIB))
                .transpose()
        };
        let r = self;
        Ok(Limits {
            cpu_seconds: whole(r, "limits.cpu_seconds", range::SECONDS, |l| {
                l.cpu_seconds.as_ref()
            })?,
            cpu_milli: r.cpus()?,
            memory_bytes: MIB
                * whole(r, "limits.memory_mb", range::MEMORY_MB, |l| {
                    l.memory_mb.as_ref()
                })?,
            open_files: whole(r, "limits.open_files", range::OPEN_FILES, |l| {
                l.open_files.as_ref()
            })?,
            processes: whole(r, "limits.processes", range::PROCESSES, |l| {
                l.processes.as_ref()
            })?,
            file_size_bytes: MIB
                * whole(r, "limits.file_size_mb", range::SPACE_MB, |l| {
                    l.file_size_mb.as_ref()
                })?,
            stack_bytes: MIB
                * whole(r, "limits.stack_mb", range::STACK_MB, |l| {
                    l.stack_mb.as_ref()
                })?,
            tmp_bytes: MIB * whole(r, "limits.tmp_mb", range::SPACE_MB, |l| l.tmp_mb.as_ref())?,
            tmp_inodes: whole(r, "limits.tmp_inodes", range::INODES, |l| {
                l.tmp_inodes.as_ref()
            })?,
            output_bytes: MIB
                * whole(r, "limits.output_mb", range::OUTPUT_MB, |l| {
                    l.output_mb.as_ref()
                })?,
            out_bytes: MIB * whole(r, "limits.out_mb", range::SPACE_MB, |l| l.out_mb.as_ref())?,
            io_read_bytes_per_second: rate(r, "limits.io_read_mb_per_second", |l| {
                l.io_read_mb_per_second.as_ref()
            })?,
            io_write_bytes_per_second: rate(r, "limits.io_write_mb_per_second", |l| {
                l.io_write_mb_per_second.as_ref()
            })?,
        })
    }

    fn cpus(&mut self) -> Result<u64, Error> {
        let pick = self.need("limits.cpus", |file| file.limits.as_ref()?.cpus.as_ref())?;
        let milli = quantity::cpus(&pick.value.to_string()).map_err(|e| restate(&pick, e))?;
        let Range { min, max } = range::CPU_MILLI;
        if i64::try_from(milli).is_ok_and(|milli| (min..=max).contains(&milli)) {
            return Ok(milli);
        }
        Err(pick.refuse(
            Code::LimitInvalid,
            format!("{} CPUs cannot be enforced", pick.value),
            "write CPUs from 0.01 to 1024, such as 1.5 or 500m",
        ))
    }

    /// Wall clock of a command and of the task, milliseconds.
    pub(super) fn timeouts(&mut self) -> Result<(u64, u64), Error> {
        let task = self.need("timeout_seconds", |file: &'c ProfileFile| {
            file.timeout_seconds.as_ref()
        })?;
        let task_ms = timeout(&task)?;
        let command = self.pick("command_timeout_seconds", |file: &'c ProfileFile| {
            file.command_timeout_seconds.as_ref()
        });
        let Some(command) = command else {
            return Ok((task_ms, task_ms));
        };
        let command_ms = timeout(&command)?;
        if command_ms > task_ms {
            return Err(command.refuse(
                Code::ProfileInvalid,
                format!(
                    "a command would have {}, the whole task has {} ({} of {})",
                    quantity::show_duration(command_ms),
                    quantity::show_duration(task_ms),
                    task.path,
                    task.layer.label,
                ),
                "lower command_timeout_seconds, or raise timeout_seconds",
            ));
        }
        Ok((command_ms, task_ms))
    }
}

fn timeout(pick: &Pick<'_, Scalar>) -> Result<u64, Error> {
    let ms = quantity::duration_ms(&pick.value.to_string()).map_err(|e| restate(pick, e))?;
    if ms / 1000 <= range::SECONDS.max.unsigned_abs() {
        return Ok(ms);
    }
    Err(pick.refuse(
        Code::LimitInvalid,
        format!("{} is more than 365 days", pick.value),
        "write seconds, or a duration such as 30s, 10m or 1h",
    ))
}

fn in_range<T>(pick: &Pick<'_, T>, value: i128, range: Range) -> Result<u64, Error> {
    let Range { min, max } = range;
    let remedy =
        format!("write a whole number from {min} to {max}, or remove the key to take the tier's");
    let what = match value {
        0 => "0 is not a limit; the kernel would take it for none".to_owned(),
        v if v < 0 => format!("{v} is negative"),
        v if v < i128::from(min) => format!("{v} is too small for anything to start"),
        v if v > i128::from(max) => format!("{v} is larger than can be enforced"),
        v => {
            return u64::try_from(v).map_err(|_| {
                pick.refuse(Code::LimitInvalid, format!("{v} is out of range"), remedy)
            });
        }
    };
    Err(pick.refuse(Code::LimitInvalid, what, remedy))
}

fn restate<T>(pick: &Pick<'_, T>, error: Error) -> Error {
    let remedy = error.remediation.clone();
    pick.refuse(error.code, error, remedy)
}
