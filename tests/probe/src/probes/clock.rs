//! B12: the clock and priorities above the ordinary.

use super::Probe;
use crate::outcome::Outcome;
use crate::raw;

pub(super) fn probes() -> Vec<Probe> {
    vec![
        Probe::new("B12.clock_settime", || {
            Outcome::of_call(raw::call(227, [0; 6]))
        }),
        // A null time would be taken as "set nothing" and succeed; a bad one is EFAULT.
        Probe::new("B12.settimeofday", || {
            Outcome::of_call(raw::call(164, [1, 0, 0, 0, 0, 0]))
        }),
        Probe::new("B12.adjtimex", || Outcome::of_call(raw::call(159, [0; 6]))),
        Probe::new("B12.clock_adjtime", || {
            Outcome::of_call(raw::call(305, [0; 6]))
        }),
        // The rest changes only the child, which ends at once.
        Probe::new("B12.sched_fifo", || {
            let priority = libc::sched_param { sched_priority: 1 };
            let priority = raw::address(&raw const priority);
            Outcome::of_call(raw::call(
                libc::SYS_sched_setscheduler,
                [0, i64::from(libc::SCHED_FIFO), priority, 0, 0, 0],
            ))
        }),
        Probe::new("B12.nice", || {
            Outcome::of_call(raw::call(libc::SYS_setpriority, [0, 0, -5, 0, 0, 0]))
        }),
        Probe::new("B12.ionice", || {
            // IOPRIO_CLASS_RT, level 4.
            Outcome::of_call(raw::call(
                libc::SYS_ioprio_set,
                [1, 0, (1 << 13) | 4, 0, 0, 0],
            ))
        }),
    ]
}
