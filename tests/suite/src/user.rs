//! orch started by somebody who is not root, on a host of the test's own making:
//! a private mount namespace with other files in place of the host's.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::call::orch;
use crate::place::Place;
use crate::rig::subtree::Subtree;
use crate::rig::{filter, host};

/// Who it is; nobody's login.
pub const UID: u32 = 4321;
const NAME: &str = "orch-suite-user";

/// A user, and what of the host looks different to it.
#[derive(Debug, Clone, Default)]
pub struct User {
    /// Files that stand in for the host's: path, content, mode.
    files: Vec<(PathBuf, String, u32)>,
    /// What else is mounted, and where.
    binds: Vec<(PathBuf, PathBuf)>,
    /// Files in which the process writes `0` while it is root still.
    joins: Vec<PathBuf>,
    /// System calls that give an errno (seccomp(2)).
    refused: Vec<(i64, u16)>,
}

impl User {
    /// With subordinate ids from `first` on.
    pub fn new(first: u32) -> Self {
        let grant = format!("{NAME}:{first}:65536\n");
        let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        Self::default()
            .file(
                "/etc/passwd",
                format!("{passwd}{NAME}:x:{UID}:{UID}::/:/bin/sh\n"),
                0o644,
            )
            .file("/etc/subuid", grant.clone(), 0o644)
            .file("/etc/subgid", grant, 0o644)
    }

    /// Puts another file in the place of one that is there.
    pub fn file(mut self, path: impl AsRef<Path>, content: impl Into<String>, mode: u32) -> Self {
        self.files.retain(|(other, ..)| other != path.as_ref());
        self.files
            .push((path.as_ref().to_owned(), content.into(), mode));
        self
    }

    /// Mounts one more directory.
    pub fn bind(mut self, source: PathBuf, target: PathBuf) -> Self {
        self.binds.push((source, target));
        self
    }

    /// Starts in this control group.
    pub fn join(mut self, procs: PathBuf) -> Self {
        self.joins.push(procs);
        self
    }

    /// Gives a system call an errno.
    pub fn refuse(mut self, number: i64, errno: i32) -> Self {
        self.refused
            .push((number, u16::try_from(errno).unwrap_or(1)));
        self
    }

    /// Makes a command one of this user. What it writes goes into `place`.
    pub fn starts(&self, command: &mut Command, place: &Place) -> io::Result<()> {
        let mut binds = Vec::new();
        for (index, (path, content, mode)) in self.files.iter().enumerate() {
            let file = place.join(format!("in-place-of-{index}"));
            std::fs::write(&file, content)?;
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(*mode))?;
            if !path.exists() {
                // Something has to be there to be covered. The package would make it.
                std::fs::write(path, "")?;
            }
            binds.push((text(&file)?, text(path)?));
        }
        for (source, target) in &self.binds {
            binds.push((text(source)?, text(target)?));
        }
        for path in [place.path().to_owned(), place.join("state")] {
            if path.exists() {
                chown(&path, Some(UID), Some(UID))?;
            }
        }
        let joins: Vec<CString> = self
            .joins
            .iter()
            .map(|path| text(path))
            .collect::<io::Result<_>>()?;
        command.env("HOME", place.path());
        let refused = self.refused.clone();
        // SAFETY: only system calls on what was prepared before.
        unsafe {
            command.pre_exec(move || become_user(&binds, &joins, &refused));
        }
        Ok(())
    }
}

fn text(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

/// In the child, between fork and exec.
fn become_user(
    binds: &[(CString, CString)],
    joins: &[CString],
    refused: &[(i64, u16)],
) -> io::Result<()> {
    let check = |result: i32| match result {
        -1 => Err(io::Error::last_os_error()),
        result => Ok(result),
    };
    let none = std::ptr::null();
    // SAFETY: null-terminated strings and plain numbers.
    unsafe {
        for procs in joins {
            let fd = check(libc::open(procs.as_ptr(), libc::O_WRONLY))?;
            check(i32::try_from(libc::write(fd, c"0".as_ptr().cast(), 1)).unwrap_or(-1))?;
            check(libc::close(fd))?;
        }
        check(libc::unshare(libc::CLONE_NEWNS))?;
        let private = libc::MS_PRIVATE | libc::MS_REC;
        check(libc::mount(none, c"/".as_ptr(), none, private, none.cast()))?;
        for (file, path) in binds {
            check(libc::mount(
                file.as_ptr(),
                path.as_ptr(),
                none,
                libc::MS_BIND,
                none.cast(),
            ))?;
        }
        for (number, errno) in refused {
            filter::load(*number, *errno)?;
        }
        check(libc::setgroups(0, std::ptr::null()))?;
        check(libc::setresgid(UID, UID, UID))?;
        check(libc::setresuid(UID, UID, UID))?;
    }
    Ok(())
}

/// orch where everybody can execute it.
pub fn program() -> Result<PathBuf, String> {
    static COPY: OnceLock<Result<(Place, PathBuf), String>> = OnceLock::new();
    let made = COPY.get_or_init(|| {
        let place = Place::new()?;
        let copy = place.join("orch");
        let made = std::fs::copy(orch(), &copy).and_then(|_| {
            let all = || std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(&copy, all())?;
            std::fs::set_permissions(place.path(), all())
        });
        made.map_err(|e| format!("copy orch: {e}"))?;
        Ok((place, copy))
    });
    match made {
        Ok((_, path)) => Ok(path.clone()),
        Err(why) => Err(why.clone()),
    }
}

/// Control groups that belong to the user, gone with this.
#[derive(Debug)]
pub struct Delegated {
    /// Version 1: one in each hierarchy. Version 2: the leaf of the one there is.
    groups: Vec<PathBuf>,
    /// Version 2.
    tree: Option<Subtree>,
}

impl Delegated {
    /// With these controllers of version 1, or what they are called on version 2.
    pub fn new(controllers: &[&str]) -> Result<Self, String> {
        if host::unified() && !controllers.is_empty() {
            Self::on_v2(controllers)
        } else {
            Self::on_v1(controllers)
        }
    }

    fn on_v2(controllers: &[&str]) -> Result<Self, String> {
        let mut names: Vec<&str> = controllers.to_vec();
        // Version 2 has the other two for every group.
        names.retain(|name| ["memory", "pids", "cpu"].contains(name));
        let tree = Subtree::new(&names)?;
        let leaf = tree.path().join(LEAF);
        std::fs::create_dir(&leaf)
            .and_then(|()| give(&leaf))
            .and_then(|()| give(&tree.path()))
            .map_err(|e| format!("delegate {}: {e}", tree.path().display()))?;
        Ok(Self {
            groups: vec![leaf],
            tree: Some(tree),
        })
    }

    fn on_v1(controllers: &[&str]) -> Result<Self, String> {
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let own = std::fs::read_to_string("/proc/self/cgroup").map_err(|e| e.to_string())?;
        let mut made = Self {
            groups: Vec::new(),
            tree: None,
        };
        for controller in controllers {
            let path = own
                .lines()
                .find_map(|line| {
                    let mut fields = line.splitn(3, ':').skip(1);
                    let names = fields.next()?;
                    let path = fields.next()?;
                    names
                        .split(',')
                        .any(|name| name == *controller)
                        .then(|| path.trim_start_matches('/').to_owned())
                })
                .ok_or(format!("no hierarchy with {controller}"))?;
            let group = Path::new("/sys/fs/cgroup")
                .join(controller)
                .join(path)
                .join(format!("orch-suite-{}-{number}", std::process::id()));
            std::fs::create_dir(&group).map_err(|e| format!("make {}: {e}", group.display()))?;
            made.groups.push(group.clone());
            give(&group).map_err(|e| format!("delegate {}: {e}", group.display()))?;
        }
        Ok(made)
    }

    /// The user, started in it.
    pub fn start(&self, user: User) -> User {
        self.groups
            .iter()
            .fold(user, |user, group| user.join(group.join("cgroup.procs")))
    }

    /// A command of root, started in it.
    pub fn enter(&self, command: &mut Command) {
        let groups = self.groups.clone();
        // SAFETY: only files are opened and written, in a child of its own.
        unsafe {
            command.pre_exec(move || {
                let mut groups = groups.iter();
                groups.try_for_each(|group| std::fs::write(group.join("cgroup.procs"), "0"))
            });
        }
    }

    /// Groups that orch has left in it.
    pub fn left(&self) -> Vec<PathBuf> {
        let tops = match &self.tree {
            Some(tree) => vec![tree.path()],
            None => self.groups.clone(),
        };
        let children = |group: &PathBuf| {
            let entries = std::fs::read_dir(group).into_iter().flatten().flatten();
            entries
                .map(|entry| entry.path())
                .filter(|path| path.is_dir() && !path.ends_with(LEAF))
                .collect::<Vec<_>>()
        };
        tops.iter().flat_map(children).collect()
    }
}

/// Where orch wants the processes of a group of version 2 to be.
const LEAF: &str = "main";

/// What an administrator or systemd does (cgroups(7), "delegation").
fn give(group: &Path) -> io::Result<()> {
    chown(group, Some(UID), Some(UID))?;
    for entry in std::fs::read_dir(group)? {
        let path = entry?.path();
        let theirs = |name: &str| path.ends_with(name);
        if !host::unified()
            || ["cgroup.procs", "cgroup.threads", "cgroup.subtree_control"]
                .into_iter()
                .any(theirs)
        {
            chown(path, Some(UID), Some(UID))?;
        }
    }
    Ok(())
}

impl Drop for Delegated {
    fn drop(&mut self) {
        if self.tree.is_some() {
            return;
        }
        for group in &self.groups {
            // A test that left something in it says so itself.
            let _ = std::fs::remove_dir(group);
        }
    }
}
