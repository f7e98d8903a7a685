//! Windows beside Linux: programs of Windows that a task could start (CP-13).

use crate::doctor::check::{Check, Subject};
use crate::doctor::facts::{Facts, File};

/// Handlers that WSL registers; with systemd there are two.
const HANDLERS: [File; 2] = [File::WslInterop, File::WslInteropLate];

pub fn check(facts: &Facts) -> Check {
    let subject = Subject("WSL interop", "CP-13, binfmt_misc");
    let fix = "in /etc/wsl.conf: [interop] enabled=false; then wsl --shutdown, and check with \
               `ls /proc/sys/fs/binfmt_misc`";
    let registered: Vec<File> = HANDLERS
        .into_iter()
        .filter(|file| facts.has(*file))
        .collect();
    let on: Vec<&str> = registered
        .iter()
        .filter(|file| {
            let text = facts.text(**file).unwrap_or_default();
            text.lines().next() != Some("disabled")
        })
        .map(|file| file.path())
        .collect();
    // The switch of all handlers at once.
    let all_off = facts.text(File::Binfmt) == Some("disabled");
    if !on.is_empty() && !all_off {
        return Check::missing(
            subject,
            format!("enabled: {}", on.join(" ")),
            "a task that starts a program of Windows leaves every namespace: files, network and \
             processes of Windows are open to it",
            fix,
        );
    }
    let release = facts.text(File::Release).unwrap_or_default();
    let is_wsl = release.to_ascii_lowercase().contains("microsoft");
    match (is_wsl, facts.has(File::Binfmt)) {
        (false, _) => Check::ok(subject, "this is not WSL"),
        (true, true) => Check::ok(subject, "WSL, and programs of Windows cannot be started"),
        // The handlers are the kernel's, whether they can be seen here or not.
        (true, false) => Check::missing(
            subject,
            "WSL, and binfmt_misc is not mounted: whether it is enabled cannot be seen",
            "a task may be able to start programs of Windows, outside of every namespace",
            format!("mount -t binfmt_misc none /proc/sys/fs/binfmt_misc; {fix}"),
        ),
    }
}
