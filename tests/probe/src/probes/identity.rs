//! A10, A11, H6: ids, capabilities and the filter of the task.

use super::Probe;
use crate::outcome::Outcome;
use crate::raw;

/// Id and field of `/proc/self/status`.
const FIELDS: &[(&str, &str)] = &[
    ("A10.uid", "Uid"),
    ("A10.gid", "Gid"),
    ("A10.groups", "Groups"),
    ("A10.no_new_privs", "NoNewPrivs"),
    ("A10.seccomp", "Seccomp"),
    ("A10.seccomp_filters", "Seccomp_filters"),
    ("A11.cap_inh", "CapInh"),
    ("A11.cap_prm", "CapPrm"),
    ("A11.cap_eff", "CapEff"),
    ("A11.cap_bnd", "CapBnd"),
    ("A11.cap_amb", "CapAmb"),
];

pub(super) fn probes() -> Vec<Probe> {
    FIELDS
        .iter()
        .map(|&(id, field)| {
            Probe::here(id, move || match raw::status_field(field) {
                Some(value) => {
                    Outcome::value(value.split_whitespace().collect::<Vec<_>>().join(","))
                }
                None => Outcome::error(format!("no {field} in /proc/self/status")),
            })
        })
        .chain([
            // H6: whether the session keyring can be named at all; the id is in `status`.
            Probe::new("H6.session_keyring", || {
                Outcome::of_call(raw::call(libc::SYS_keyctl, [0, -3, 1, 0, 0, 0]))
            }),
        ])
        .collect()
}
