//! Windows beside Linux (CP-13): where WSL starts programs of Windows, a task that runs
//! one has left every namespace.

use std::path::Path;

use orch_policy::{Code, Error};

/// Where the kernel shows its handlers (binfmt_misc, `Documentation/admin-guide`).
const HANDLERS: &str = "/proc/sys/fs/binfmt_misc";

/// # Errors
/// [`Code::ControlMissing`] where such a handler is switched on.
pub fn check() -> Result<(), Error> {
    check_at(Path::new(HANDLERS))
}

fn check_at(handlers: &Path) -> Result<(), Error> {
    let enabled = |name: &str| {
        std::fs::read_to_string(handlers.join(name))
            .is_ok_and(|text| text.lines().next() == Some("enabled"))
    };
    // With systemd WSL registers the second one.
    let on = ["WSLInterop", "WSLInterop-late"]
        .into_iter()
        .find(|name| enabled(name));
    match on {
        // The switch of all handlers at once.
        Some(name) if enabled("status") => Err(Error::new(
            Code::ControlMissing,
            "programs of Windows can be started here, and they run outside of every sandbox",
            "in /etc/wsl.conf: [interop] enabled=false; then wsl --shutdown; `orch doctor` \
             looks again",
        )
        .because(format!("{} is enabled", handlers.join(name).display()))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_handler_that_is_on_is_refused_cp13() {
        let place = std::env::temp_dir().join(format!("orch-interop-{}", std::process::id()));
        std::fs::create_dir(&place).unwrap();
        let write = |name: &str, text: &str| std::fs::write(place.join(name), text).unwrap();
        let allowed = || check_at(&place).is_ok();
        let mut seen = vec![allowed()];
        write("status", "enabled\n");
        write("qemu-arm", "enabled\ninterpreter /usr/bin/qemu-arm\n");
        seen.push(allowed());
        for name in ["WSLInterop", "WSLInterop-late"] {
            write(name, "disabled\ninterpreter /init\n");
            seen.push(allowed());
            write(name, "enabled\ninterpreter /init\n");
            seen.push(!allowed());
            write("status", "disabled\n");
            seen.push(allowed());
            write("status", "enabled\n");
            std::fs::remove_file(place.join(name)).unwrap();
        }
        std::fs::remove_dir_all(&place).unwrap();
        assert_eq!(seen, [true; 8]);
    }
}
