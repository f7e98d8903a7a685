//! Time, and what neighbours on the same machine can find out about one another.

use crate::doctor::check::{By, Check, Subject};
use crate::doctor::facts::{Facts, File};

/// Before this was written: 2025-01-01.
const PAST: u64 = 1_735_689_600;
/// Clock sources that every read of the time makes a slow device access of.
const SLOW: [&str; 4] = ["hpet", "acpi_pm", "refined-jiffies", "jiffies"];

pub fn checks(facts: &Facts) -> Vec<Check> {
    vec![clock(facts), clock_source(facts), smt(facts), ksm(facts)]
}

fn clock(facts: &Facts) -> Check {
    let subject = Subject("clock", "EV-04, adjtimex(2)");
    let costs = "receipts carry wrong times, and certificates may seem invalid";
    let fix = "timedatectl set-ntp true, or start chronyd or ntpd; in a virtual machine the host's \
               clock must be right";
    if facts.now < PAST {
        return Check::warn(subject, "shows a time before 2025", costs, fix);
    }
    match facts.clock_corrected {
        Some(true) => Check::ok(subject, "corrected from outside").by(By::Tried),
        Some(false) => Check::warn(
            subject,
            "nobody corrects it, as far as the kernel knows",
            costs,
            fix,
        )
        .by(By::Tried),
        None => Check::warn(
            subject,
            "the kernel does not say who corrects it",
            costs,
            fix,
        )
        .by(By::Tried),
    }
}

fn clock_source(facts: &Facts) -> Check {
    let subject = Subject("clock source", "vdso(7)");
    let Some(source) = facts.text(File::ClockSource) else {
        return Check::ok(subject, "not told here");
    };
    if !SLOW.contains(&source) {
        return Check::ok(subject, source);
    }
    Check::warn(
        subject,
        source,
        "every look at the time is a slow device access: time-outs stay exact, programs that \
         measure get slow",
        "boot with clocksource=tsc where the processor's counter is stable",
    )
}

fn smt(facts: &Facts) -> Check {
    let subject = Subject("hyper-threads", "Linux admin-guide: core-scheduling");
    if facts.text(File::Smt) != Some("1") {
        return Check::ok(subject, "no two share a core");
    }
    Check::warn(
        subject,
        "two share each core",
        "sandboxes that run on the two halves of a core can watch each other through its caches",
        "for tenants who do not trust one another: boot with nosmt, or \
         echo off > /sys/devices/system/cpu/smt/control",
    )
}

fn ksm(facts: &Facts) -> Check {
    let subject = Subject("shared memory pages", "Linux admin-guide: ksm");
    if facts.text(File::Ksm).is_none_or(|value| value != "1") {
        return Check::ok(subject, "equal pages are not merged");
    }
    Check::warn(
        subject,
        "equal pages are merged (KSM)",
        "by the time that a write takes, a sandbox can find out what another has in memory",
        "echo 2 > /sys/kernel/mm/ksm/run",
    )
}
