//! What is mounted in a sandbox is mounted there and nowhere else, also where the host's
//! mounts are shared, as systemd has them (mount_namespaces(7), "shared subtrees").

use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::call::{Call, ensure};
use crate::harness::{Test, Verdict, test};
use crate::place::{Place, names};

pub fn tests() -> Vec<Test> {
    vec![test(
        "spread::mounts_in_a_folder_stay_in_the_sandbox",
        stays,
    )]
}

/// A folder that is a shared mount, and what is mounted in it; gone with this.
struct Shared(PathBuf);

impl Shared {
    fn new(folder: PathBuf) -> Result<Self, String> {
        let made = Self(folder);
        made.mount(Some(&made.0), libc::MS_BIND)?;
        made.mount(None, libc::MS_SHARED)?;
        Ok(made)
    }

    fn mount(&self, source: Option<&Path>, flags: libc::c_ulong) -> Result<(), String> {
        let text = |path: &Path| CString::new(path.as_os_str().as_bytes());
        let source = source.map(text).transpose().map_err(|e| e.to_string())?;
        let target = text(&self.0).map_err(|e| e.to_string())?;
        let null = std::ptr::null();
        // SAFETY: strings that outlive the call, and plain numbers.
        let done = unsafe {
            let source = source.as_ref().map_or(null, |text| text.as_ptr());
            libc::mount(source, target.as_ptr(), null, flags, null.cast())
        };
        let error = std::io::Error::last_os_error();
        ensure!(done == 0, "mount {}: {error}", self.0.display());
        Ok(())
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // With all that is mounted below; the folder itself has one mount of its own.
        if let Ok(path) = CString::new(self.0.as_os_str().as_bytes()) {
            // SAFETY: a string that outlives the call.
            unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH) };
        }
    }
}

fn stays() -> Result<Verdict, String> {
    for tier in ["loose", "standard", "strict"] {
        let place = Place::new()?;
        let (folder, input) = (place.folder("folder")?, place.folder("input")?);
        let inner = folder.join("input");
        fs::create_dir(&inner)
            .and_then(|()| fs::write(input.join("file"), "input"))
            .map_err(|e| e.to_string())?;
        let shared = Shared::new(folder)?;

        let call = Call::new(tier)?.args(["--network", "none"]);
        let call = call
            .mount(&shared.0, ":/data")
            .mount(&input, ":/data/input");
        call.sh("cat /data/input/file").run()?.says("input")?;
        let seen = names(&inner)?;
        ensure!(seen.is_empty(), "{tier}: mounted on the host: {seen:?}");

        // The control: from another namespace that has a copy, too.
        let done = Command::new("unshare")
            .args(["--mount", "--propagation", "unchanged", "mount", "--bind"])
            .args([&input, &inner])
            .status();
        ensure!(done.is_ok_and(|done| done.success()), "no control");
        ensure!(names(&inner)? == ["file"], "the folder is not shared");
    }
    Ok(Verdict::Held)
}
