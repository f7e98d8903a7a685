use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};

use super::page::{self, MOST};
use super::*;

const ID: &str = "0123456789abcdef0123456789abcdef";

/// A directory of one test, gone with it.
struct Base(PathBuf);

impl Base {
    fn new(test: &str) -> Self {
        let name = format!("orch-artifacts-{test}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path.canonicalize().unwrap())
    }

    fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Base {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const NO_FOLDERS: Folders<'_> = Folders {
    shown: &[],
    writable: &[],
};

fn make_in(path: &Path, folders: &Folders<'_>) -> Result<(Folder, Log), Error> {
    let wanted = Wanted {
        path,
        id: ID,
        output_bytes: 4 << 20,
        repeated: 10,
    };
    Folder::make(&wanted, folders)
}

fn receipt() -> Receipt {
    // Any receipt will do; the engine has one maker of them, which wants a whole task.
    let task = orch_policy::task::Task::default();
    let profile = orch_policy::builtin::builtin("strict", Path::new("/home/me"))
        .unwrap()
        .profile;
    let request = crate::request::Request {
        effective: orch_policy::limits::effective(&profile, &task).unwrap(),
        profile,
        profile_sha256: String::new(),
        task,
        inherited: Vec::new(),
        streams: crate::request::Streams::nothing(),
        out: None,
        artifacts: None,
        audit: None,
        reserved: Vec::new(),
    };
    crate::account::receipt(crate::account::Facts {
        task: ID,
        request: &request,
        fate: crate::account::Fate::NotFound,
        started: std::time::SystemTime::UNIX_EPOCH,
        wall: None,
        usage: Default::default(),
        outputs: &[],
        merged: b"",
        out: None,
        artifacts: None,
        missing: Vec::new(),
        left: Vec::new(),
        stages: Vec::new(),
    })
}

/// EV-05: only the owner reads it, and the room that was taken is given back.
#[test]
fn the_folder_of_a_task_is_its_owners_alone_and_takes_no_more_room_than_it_needs() {
    let base = Base::new("modes");
    let dir = base.join("made/deep");
    let (folder, mut log) = make_in(&dir, &NO_FOLDERS).unwrap();
    let stat = |name: &str| fs::symlink_metadata(dir.join(ID).join(name)).unwrap();
    log.add(b"hello").unwrap();
    let while_open = stat("output.log");
    log.end().unwrap();
    let receipt = receipt();
    folder.finish(&receipt).unwrap();
    assert_eq!(while_open.len(), 5);
    for (name, mode) in [("", 0o700), ("output.log", 0o600), ("receipt.json", 0o600)] {
        assert_eq!(stat(name).mode() & 0o7777, mode, "{name}");
        assert_eq!(stat(name).uid(), rustix::process::geteuid().as_raw());
    }
    // 512-byte blocks (stat(2)); 4 MiB were taken.
    assert!(stat("output.log").blocks() <= 16 && stat("receipt.json").blocks() <= 32);
    let text = fs::read_to_string(dir.join(ID).join("receipt.json")).unwrap();
    assert_eq!(text, receipt.document().unwrap());
    let mut names: Vec<_> = fs::read_dir(dir.join(ID))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["output.log", "receipt.json"]);
}

#[test]
fn a_task_that_was_not_started_leaves_no_folder_and_one_that_wrote_does() {
    let base = Base::new("left");
    let dir = base.join("made/deep");
    drop(make_in(&dir, &NO_FOLDERS).unwrap());
    assert!(!base.join("made").exists());
    let (folder, mut log) = make_in(&dir, &NO_FOLDERS).unwrap();
    log.add(b"x").unwrap();
    drop((folder, log));
    assert_eq!(fs::read(dir.join(ID).join("output.log")).unwrap(), b"x");
    // The same id twice is no other task's log written over.
    let again = make_in(&dir, &NO_FOLDERS).map(drop).unwrap_err();
    assert_eq!(again.code, Code::ArtifactsFailed);
    assert_eq!(fs::read(dir.join(ID).join("output.log")).unwrap(), b"x");
}

/// D11: the folder of a task leads artifacts nowhere else, and none are kept in it.
#[test]
fn a_task_can_neither_move_nor_change_what_is_kept() {
    let base = Base::new("folders");
    for name in ["read", "write", "victim"] {
        fs::create_dir(base.join(name)).unwrap();
    }
    symlink(base.join("victim"), base.join("read/planted")).unwrap();
    symlink(base.join("write"), base.join("into")).unwrap();
    symlink(base.join("victim"), base.join("own")).unwrap();
    let write = base.join("write");
    let handle: OwnedFd = File::open(&write).unwrap().into();
    let folders = Folders {
        shown: &[base.join("read"), write.clone()],
        writable: &[(write.as_path(), &handle)],
    };
    let try_in = |name: &str| make_in(&base.join(name), &folders);
    for name in ["read/planted", "write", "write/below/deep", "into/below"] {
        let error = try_in(name).map(drop).unwrap_err();
        assert_eq!(error.code, Code::ArtifactsFailed, "{name}");
    }
    let empty = |name: &str| fs::read_dir(base.join(name)).unwrap().next().is_none();
    assert!(empty("victim") && empty("write"));
    for name in ["read/own", "own", "beside", ""] {
        try_in(name).map(drop).unwrap();
    }
    assert!(empty("victim") && !base.join("beside").exists());
}

/// EV-05: pages, joined, are the output; a task that runs can be read.
#[test]
fn pages_are_the_output_and_say_whether_it_is_complete() {
    let base = Base::new("pages");
    let (folder, mut log) = make_in(&base.0, &NO_FOLDERS).unwrap();
    let bytes: Vec<u8> = (0..100_000_u32).map(|n| n.to_le_bytes()[0]).collect();
    log.add(&bytes).unwrap();
    let page = |offset, limit| page::read(&base.0, ID, offset, limit);
    let first = page(0, 10).unwrap();
    assert_eq!(
        (first.data.as_slice(), first.total),
        (&bytes[..10], 100_000)
    );
    assert!(!first.complete && first.next_offset() == 10);
    log.end().unwrap();
    folder.finish(&receipt()).unwrap();
    let (mut joined, mut pages) = (Vec::<u8>::new(), 0);
    loop {
        let next = u64::try_from(joined.len()).unwrap();
        let page = page(next, MOST).unwrap();
        assert!(page.complete && page.offset == next);
        if page.data.is_empty() {
            break;
        }
        joined.extend(&page.data);
        pages += 1;
    }
    assert!(joined == bytes && pages == 2);
    assert_eq!(page(100_001, 1).unwrap_err().code, Code::Usage);
    for limit in [0, MOST + 1] {
        assert_eq!(page(0, limit).unwrap_err().code, Code::LimitInvalid);
    }
}

/// D11: an id leads nowhere else, nor does what lies under it.
#[test]
fn ids_and_links_lead_nowhere_else() {
    let base = Base::new("ids");
    let code = |id: &str| page::read(&base.0, id, 0, 1).unwrap_err().code;
    let upper = ID.to_uppercase();
    for id in ["", ".", "..", "../x", "/etc", "x", &ID[1..], &upper] {
        assert_eq!(code(id), Code::Usage, "{id:?}");
    }
    assert_eq!(code(ID), Code::ArtifactsUnknown);
    let real = base.join("real");
    fs::create_dir(&real).unwrap();
    fs::write(real.join("output.log"), "secret").unwrap();
    symlink(&real, base.join(ID)).unwrap();
    assert_eq!(code(ID), Code::ArtifactsFailed);
    fs::remove_file(base.join(ID)).unwrap();
    fs::rename(&real, base.join(ID)).unwrap();
    let page = page::read(&base.0, ID, 0, 100).unwrap();
    assert_eq!(page.data, b"secret");
    let log = base.join(ID).join("output.log");
    fs::rename(&log, base.join("elsewhere")).unwrap();
    symlink(base.join("elsewhere"), &log).unwrap();
    assert_eq!(code(ID), Code::ArtifactsFailed);
    fs::remove_file(&log).unwrap();
    // Nobody waits for a pipe without a writer.
    let mode = Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &log, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    assert_eq!(code(ID), Code::ArtifactsFailed);
}
