//! Ceilings far above what the tier starts with (PR-24).

use super::Lint;
use crate::extends::tier_word;
use crate::profile::{Limits, Profile};
use crate::quantity::{show_bytes, show_cpus, show_duration};

/// A limit this many times the tier's shipped one is worth a word.
const HIGH: u64 = 4;

type Show = fn(u64) -> String;

impl Lint<'_> {
    pub(super) fn limits(&mut self, profile: &Profile, shipped: &Profile) {
        let (own, base): (&Limits, &Limits) = (&profile.limits, &shipped.limits);
        let rows: [(&str, u64, u64, Show); 12] = [
            (
                "limits.cpu_seconds",
                own.cpu_seconds,
                base.cpu_seconds,
                |v| format!("{v}s"),
            ),
            ("limits.cpus", own.cpu_milli, base.cpu_milli, show_cpus),
            (
                "limits.memory_mb",
                own.memory_bytes,
                base.memory_bytes,
                show_bytes,
            ),
            ("limits.open_files", own.open_files, base.open_files, |v| {
                v.to_string()
            }),
            ("limits.processes", own.processes, base.processes, |v| {
                v.to_string()
            }),
            (
                "limits.file_size_mb",
                own.file_size_bytes,
                base.file_size_bytes,
                show_bytes,
            ),
            (
                "limits.stack_mb",
                own.stack_bytes,
                base.stack_bytes,
                show_bytes,
            ),
            ("limits.tmp_mb", own.tmp_bytes, base.tmp_bytes, show_bytes),
            ("limits.tmp_inodes", own.tmp_inodes, base.tmp_inodes, |v| {
                v.to_string()
            }),
            (
                "limits.output_mb",
                own.output_bytes,
                base.output_bytes,
                show_bytes,
            ),
            ("limits.out_mb", own.out_bytes, base.out_bytes, show_bytes),
            (
                "timeout_seconds",
                profile.timeout_ms,
                shipped.timeout_ms,
                show_duration,
            ),
        ];
        for (field, value, usual, show) in rows {
            if value > usual.saturating_mul(HIGH) {
                let tier = tier_word(profile.tier);
                self.warn(
                    "high_limit",
                    field,
                    None,
                    format!("{} is far above tier {tier}'s {}", show(value), show(usual)),
                    "measure the peak and take about 1.5 times that (PR-24)",
                );
            }
        }
        if own.tmp_bytes > own.memory_bytes {
            self.warn(
                "tmp_over_memory",
                "limits.tmp_mb",
                None,
                format!(
                    "{} of in-memory files cannot be filled with {} of memory",
                    show_bytes(own.tmp_bytes),
                    show_bytes(own.memory_bytes)
                ),
                "raise limits.memory_mb, or lower limits.tmp_mb",
            );
        }
    }
}
