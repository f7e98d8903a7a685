//! Block-device bandwidth, where the controller and a device are there.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use crate::call::ensure;
use crate::harness::Verdict;
use crate::limits::limited;
use crate::place::Place;

/// 4 MiB past the page cache at 1 MiB a second.
const SIZE: usize = 4 << 20;

/// Why the device of this path cannot be slowed down.
pub fn unfit(path: &Path) -> Result<Option<String>, String> {
    let dev = path.metadata().map_err(|e| e.to_string())?.dev();
    let (major, minor) = (libc::major(dev), libc::minor(dev));
    if !Path::new(&format!("/sys/dev/block/{major}:{minor}")).exists() {
        return Ok(Some(format!("{} is on no block device", path.display())));
    }
    let controllers = std::fs::read_to_string("/proc/cgroups").unwrap_or_default();
    let there = controllers.lines().any(|line| line.starts_with("blkio"));
    Ok((!there).then(|| "this kernel has no io controller".to_owned()))
}

/// The wall clock of one transfer inside.
fn transfer(limit: Option<&str>, command: &str) -> Result<Duration, String> {
    let place = Place::new()?;
    let folder = place.folder("data")?;
    let file = folder.join("file");
    std::fs::write(&file, vec![7; SIZE])
        .and_then(|()| std::fs::File::open(&file)?.sync_all())
        .and_then(|()| std::os::unix::fs::chown(&file, Some(1234), Some(1234)))
        .map_err(|e| e.to_string())?;
    let (_profile, call) = limited(&[limit.unwrap_or("open_files: 64")])?;
    let ended = call
        .args(["--folder".as_ref(), folder.as_os_str()])
        .sh(command)
        .run()?;
    ensure!(ended.code() == 0, "{ended:?}");
    let wall = ended.fact("/usage/wall_us").as_u64().ok_or("no wall")?;
    Ok(Duration::from_micros(wall))
}

fn bites(limit: &str, command: &str) -> Result<Verdict, String> {
    if let Some(reason) = unfit(&std::env::temp_dir())? {
        return Ok(Verdict::Skipped(reason));
    }
    let (free, slowed) = (transfer(None, command)?, transfer(Some(limit), command)?);
    ensure!(
        slowed > Duration::from_secs(2) && free < slowed / 2,
        "{SIZE} bytes took {free:?}, and {slowed:?} with {limit}"
    );
    Ok(Verdict::Held)
}

pub fn read() -> Result<Verdict, String> {
    bites(
        "io_read_mb_per_second: 1",
        "dd if=file of=/dev/null bs=1M iflag=direct 2>&1",
    )
}

pub fn write() -> Result<Verdict, String> {
    bites(
        "io_write_mb_per_second: 1",
        "dd if=/dev/zero of=file bs=1M count=4 oflag=direct conv=notrunc 2>&1",
    )
}
