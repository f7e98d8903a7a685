//! H3 at the source: a container whose filter cannot be loaded never gets a guest,
//! and a lease whose filter cannot be loaded never becomes one.

use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use orch_engine::launcher::pair;
use orch_engine::range;
use orch_policy::profile::Tier;
use orch_policy::spec::oci::{Ids, UserNamespace, for_libcontainer};
use orch_policy::syscalls;
use orch_wire::guest::{FromLease, Lease, Tmpfs};
use orch_wire::launch::{Create, ROOTFS, Reply, Request};
use orch_wire::rootfs::Entry;
use orch_wire::{Channel, WireError};

use crate::harness::{Test, Verdict, test};
use crate::rig::host::{PATIENCE, eventually, nothing_left};
use crate::rig::{Result, at, ensure, lease};

pub fn tests() -> Vec<Test> {
    vec![
        test("hazards::H3::no_guest_without_its_filter", || {
            refused(|_, guest| guest.clear())
        }),
        test("hazards::H3::no_guest_with_half_a_filter", || {
            // Without its last instruction it does not return, and does not load.
            refused(|_, guest| guest.truncate(guest.len().saturating_sub(8)))
        }),
        test("hazards::H3::no_lease_without_its_filter", || {
            refused(|lease, _| lease.clear())
        }),
    ]
}

/// What a container came to whose filters were changed.
#[derive(Debug)]
enum Came {
    /// The lease is there.
    Ready,
    /// It said what failed.
    Broken(String),
    /// Nobody ever answered.
    #[expect(dead_code, reason = "shown where a test fails")]
    Nothing(String),
}

fn refused(change: fn(&mut Vec<u8>, &mut Vec<u8>)) -> Result<Verdict> {
    // Control: the same container with both filters as they are.
    let came = create(|_, _| ())?;
    ensure(matches!(came, Came::Ready), || {
        format!("the control: {came:?}")
    })?;
    match create(change)? {
        Came::Ready => Err("there is a lease without a filter".to_owned()),
        Came::Broken(step) => {
            ensure(step == "filter", || format!("another step failed: {step}"))?;
            Ok(Verdict::Held)
        }
        // Whoever was to be the guest has ended, or was never there.
        Came::Nothing(_) => Ok(Verdict::Held),
    }
}

/// The least that a lease can be staged in.
fn create(change: fn(&mut Vec<u8>, &mut Vec<u8>)) -> Result<Came> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let id = format!("{:08x}{number:08x}", std::process::id());
    let say = |e: orch_policy::Error| format!("{e:?}");
    let engine = lease::engine()?;
    let range = range::take(&engine).map_err(say)?;
    let ids = Ids {
        first: range.first,
        count: range::COUNT,
    };
    let spec = for_libcontainer(Path::new(ROOTFS), &UserNamespace::New(ids))
        .map_err(at("the configuration"))?;
    let mut guest_filter = syscalls::guest().map_err(say)?.bytes().to_vec();
    let mut filter = syscalls::lease(Tier::Strict).map_err(say)?.bytes().to_vec();
    change(&mut filter, &mut guest_filter);
    let directory = |path: &str| Entry::Dir { path: path.into() };
    let request = Request::Create(Box::new(Create {
        id: id.clone(),
        number: range.number,
        host_id: range.first,
        ids: range::COUNT,
        config: serde_json::to_vec(&spec).map_err(at("the configuration"))?,
        entries: ["/proc", "/dev", "/dev/pts", "/dev/mqueue", "/tmp"]
            .map(directory)
            .into(),
        root_bytes: 1 << 20,
        root_inodes: 1024,
        guest_filter,
        first: None,
    }));
    let (ours, theirs) = pair().map_err(say)?;
    engine
        .send(
            &request,
            &[theirs.as_fd(), range.lock.as_fd(), engine.guest().as_fd()],
        )
        .map_err(say)?;
    drop(theirs);
    let (answers, lease_end) = pair().map_err(say)?;
    let wanted = Lease {
        hostname: b"sandbox".to_vec(),
        tmpfs: vec![Tmpfs {
            path: b"/tmp".to_vec(),
            size: 1 << 20,
            inodes: 1024,
            mode: 0o1777,
            exec: false,
        }],
        dirs: Vec::new(),
        readonly: Vec::new(),
        masked: Vec::new(),
        writable_root: None,
        filter,
        id: orch_engine::lease::LEASE_ID,
        tty_gid: 5,
    };
    // Where there is no guest any more, that is what the answers will say.
    let control = Channel::new(ours);
    let _ = control.send(&wanted, &[lease_end.as_fd()]);
    drop(lease_end);
    let replied = engine.reply();
    let came = match (&replied, Channel::new(answers).recv::<FromLease>()) {
        (Ok((Reply::Created { .. }, _)), Ok((FromLease::Ready, _))) => Came::Ready,
        (_, Ok((FromLease::Broken { step, .. }, _))) => Came::Broken(step),
        (_, Err(WireError::Closed)) => Came::Nothing(format!("{replied:?}")),
        (_, other) => return Err(format!("{replied:?}, {other:?}")),
    };
    // Ends the launcher, and with it whatever is there.
    drop((replied, control, engine));
    eventually("nothing left", PATIENCE, || nothing_left(&id).ok())?;
    Ok(came)
}
