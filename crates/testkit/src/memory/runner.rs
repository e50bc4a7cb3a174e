//! Commands in memory: closures that act on the disk where a process would.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use sandbar_domain::Code;
use sandbar_ports::exec::{Owner, Run, RunEnd, Runner, View, ViewReport};
use sandbar_ports::{PortError, PortResult};

use super::disk::{MemDisk, What};

/// What a registered command does; returns its exit code.
pub type Program = Arc<dyn Fn(&Seat<'_>) -> u8 + Send + Sync>;

/// Runs registered closures. Clones share everything.
#[derive(Clone)]
pub struct MemRunner {
    disk: MemDisk,
    shared: Arc<Mutex<Shared>>,
}

struct Shared {
    programs: BTreeMap<OsString, Program>,
    /// Host, boot, namespace, pid and start of those that died.
    dead: HashSet<(String, String, u64, u32, u64)>,
    owner: Owner,
    in_place: bool,
}

impl MemRunner {
    /// Makes a runner without commands; process 1 owns what it drives, and the
    /// in-place view works.
    pub fn new(disk: &MemDisk) -> Self {
        let owner = Owner {
            host: "memory".to_owned(),
            boot: "first".to_owned(),
            pid_namespace: 1,
            pid: 1,
            started: 1,
        };
        Self {
            disk: disk.clone(),
            shared: Arc::new(Mutex::new(Shared {
                programs: BTreeMap::new(),
                dead: HashSet::new(),
                owner,
                in_place: true,
            })),
        }
    }

    fn hold(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a command by the first word of its line.
    pub fn install(&self, name: &str, program: impl Fn(&Seat<'_>) -> u8 + Send + Sync + 'static) {
        self.hold().programs.insert(name.into(), Arc::new(program));
    }

    /// Makes the caller another process from now on.
    pub fn become_process(&self, pid: u32) {
        self.hold().owner.pid = pid;
    }

    /// Ends the process that an owner is.
    pub fn kill(&self, owner: &Owner) {
        self.hold().dead.insert(key(owner));
    }

    /// Says whether the in-place view can be had from now on.
    pub fn allow_in_place(&self, allowed: bool) {
        self.hold().in_place = allowed;
    }
}

fn key(owner: &Owner) -> (String, String, u64, u32, u64) {
    let Owner {
        host,
        boot,
        pid_namespace,
        pid,
        started,
    } = owner;
    (host.clone(), boot.clone(), *pid_namespace, *pid, *started)
}

#[async_trait]
impl Runner for MemRunner {
    async fn probe(&self) -> ViewReport {
        let in_place = self.hold().in_place;
        ViewReport {
            in_place,
            reason: (!in_place).then(|| "it was forbidden by the test".to_owned()),
        }
    }

    async fn run(&self, request: Run) -> PortResult<RunEnd> {
        if request.view == View::InPlace && !self.hold().in_place {
            return Err(PortError::new(
                Code::NotAvailable,
                "run the command in place: it was forbidden by the test",
            ));
        }
        let name = request.argv.first().cloned().unwrap_or_default();
        let program = self.hold().programs.get(&name).cloned();
        let program = program.ok_or_else(|| {
            PortError::new(
                Code::CommandNotFound,
                format!("run {}: no such command", name.display()),
            )
        })?;
        let code = program(&Seat {
            disk: &self.disk,
            run: &request,
        });
        Ok(RunEnd {
            code,
            left_behind: Vec::new(),
        })
    }

    fn owner(&self) -> Owner {
        self.hold().owner.clone()
    }

    fn is_alive(&self, owner: &Owner) -> bool {
        let shared = self.hold();
        let here = owner.host == shared.owner.host;
        !here || owner.boot == shared.owner.boot && !shared.dead.contains(&key(owner))
    }
}

/// Where a command sits: paths mean what they would mean to a process.
pub struct Seat<'a> {
    disk: &'a MemDisk,
    run: &'a Run,
}

impl Seat<'_> {
    /// Returns the words of the command line.
    pub fn argv(&self) -> &[OsString] {
        &self.run.argv
    }

    /// Returns the request.
    pub fn request(&self) -> &Run {
        self.run
    }

    /// Translates a path: a relative one starts in the working directory, an
    /// absolute one below the real root leads into the sandbox where the view
    /// is in place.
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        if path.is_relative() {
            return self.run.sandbox.join(&self.run.subdir).join(path);
        }
        match path.strip_prefix(&self.run.real) {
            Ok(rest) if self.run.view == View::InPlace => self.run.sandbox.join(rest),
            _ => path.to_owned(),
        }
    }

    /// Writes a file; one that is there keeps its executable bit.
    pub fn write(&self, path: impl AsRef<Path>, bytes: &[u8]) -> PortResult<()> {
        let path = self.path(path);
        let mut disk = self.disk.hold();
        let executable = matches!(
            disk.get(&path).map(|node| &node.what),
            Some(What::File {
                executable: true,
                ..
            })
        );
        let bytes = bytes.to_vec();
        disk.put(&path, What::File { bytes, executable })
    }

    /// Reads a file.
    pub fn read(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        let disk = self.disk.hold();
        match &disk.get(&self.path(path))?.what {
            What::File { bytes, .. } => Some(bytes.clone()),
            _ => None,
        }
    }

    /// Sets the executable bit of a file.
    pub fn set_executable(&self, path: impl AsRef<Path>, to: bool) -> PortResult<()> {
        let path = self.path(path);
        self.disk.hold().set_executable(&path, to)
    }

    /// Puts a symlink in the place of whatever is there.
    pub fn symlink(&self, path: impl AsRef<Path>, target: &str) -> PortResult<()> {
        let what = What::Symlink(target.as_bytes().to_vec());
        let path = self.path(path);
        self.disk.hold().put(&path, what)
    }

    /// Removes a file, or a directory with all beneath.
    pub fn remove(&self, path: impl AsRef<Path>) -> PortResult<bool> {
        let path = self.path(path);
        self.disk.hold().remove(&path)
    }
}
