//! One in-memory world with one plan at a time, whose targets can be made to
//! fail in the middle of an apply or of its undo.
#![allow(dead_code, reason = "each test program uses its part")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use sandbar::config::{Config, Layer};
use sandbar::domain::apply::PathOp;
use sandbar::domain::resource::Root;
use sandbar::domain::{Entry, Kind, RelPath};
use sandbar::ports::PortResult;
use sandbar::ports::target::{
    Executed, Job, Kept, KeptFile, KeptPlace, RootLock, Takeout, Targets,
};
use sandbar::{
    ApplyReport, ApplyRequest, ExecRequest, Parts, Resulting, RunReport, RunRequest, Sandbar,
    Surroundings,
};
use sandbar_testkit::memory::disk::What;
use sandbar_testkit::memory::{
    FixedClock, MemDisk, MemGit, MemGraphStore, MemObjects, MemPins, MemRunner, MemStore,
    MemTargets, MemWorkspaces, SeqIds,
};

/// The real root.
pub(crate) const REAL: &str = "/home/project";

/// Everything beneath a directory, by relative path.
pub(crate) type Dump = BTreeMap<PathBuf, What>;

/// Directories of the real root that nothing can be written to from a call on.
#[derive(Debug, Default)]
pub(crate) struct Jam {
    /// From the next execute.
    pub(crate) execute: Option<String>,
    /// From the next undo.
    pub(crate) undo: Option<String>,
}

/// A composition in memory.
pub(crate) struct World {
    /// The disk.
    pub(crate) disk: MemDisk,
    /// What runs commands.
    pub(crate) runner: MemRunner,
    /// The use cases.
    pub(crate) sandbar: Sandbar,
    /// What will fail.
    pub(crate) jam: Arc<Mutex<Jam>>,
}

impl World {
    /// Makes a world with an empty real root.
    pub(crate) fn new() -> Self {
        let disk = MemDisk::new();
        let objects = MemObjects::new();
        let data = Path::new("/data");
        let runner = MemRunner::new(&disk);
        let jam = Arc::new(Mutex::new(Jam::default()));
        let targets = Jammed {
            inner: MemTargets::new(&disk, &objects, data),
            disk: disk.clone(),
            jam: jam.clone(),
        };
        let workspaces = MemWorkspaces::new(&disk, &objects, data).expect("a data directory");
        let parts = Parts {
            workspaces: Arc::new(workspaces),
            pins: Arc::new(MemPins),
            objects: Arc::new(objects.clone()),
            contents: Arc::new(objects.clone()),
            targets: Arc::new(targets),
            git: Arc::new(MemGit),
            store: Arc::new(MemStore::new()),
            graph: Arc::new(MemGraphStore::new()),
            runner: Arc::new(runner.clone()),
            clock: Arc::new(FixedClock::at(1_000_000)),
            ids: Arc::new(SeqIds::new()),
        };
        disk.hold().make_dirs(Path::new(REAL)).expect("a real root");
        let mut config = Config::default();
        // The sandbox of an applied plan is still looked at.
        config
            .add(Layer::flag("test", "sandbox.cleanup", "manual".into()))
            .expect("a good setting");
        Self {
            sandbar: Sandbar::new(parts, config, Surroundings::silent()),
            disk,
            runner,
            jam,
        }
    }

    /// Writes a file below `root`, or removes what is there.
    pub(crate) fn put(&self, root: &Path, path: &str, text: Option<&str>) {
        put(&self.disk, root, &root.join(path), text);
    }

    /// Reads everything beneath a directory.
    pub(crate) fn dump(&self, root: &Path) -> Dump {
        let disk = self.disk.hold();
        disk.below(root)
            .map(|(path, node)| {
                let path = path.strip_prefix(root).expect("it lies beneath").to_owned();
                (path, node.what.clone())
            })
            .collect()
    }

    /// Reads the real root.
    pub(crate) fn real(&self) -> Dump {
        self.dump(Path::new(REAL))
    }

    /// Makes a directory of the real root writable again.
    pub(crate) fn open(&self, dir: &str) {
        self.disk
            .hold()
            .set_read_only(&Path::new(REAL).join(dir), false);
    }

    /// Runs a command in the sandbox of a new plan.
    pub(crate) async fn run(&self, name: &str, program: &str) -> PortResult<RunReport> {
        let request = RunRequest {
            name: Some(name.into()),
            cwd: REAL.into(),
            argv: vec![program.into()],
            base: None,
            bring: sandbar::Bring::default(),
            view: None,
            rollback_on_failure: false,
            stdout_to_stderr: false,
        };
        self.sandbar.run(request).await
    }

    /// Runs a command in the sandbox of a plan.
    pub(crate) async fn exec(&self, name: &str, program: &str) -> PortResult<RunReport> {
        let request = ExecRequest {
            plan: name.into(),
            cwd: REAL.into(),
            argv: vec![program.into()],
            rollback_on_failure: false,
            stdout_to_stderr: false,
        };
        self.sandbar.exec(request).await
    }

    /// Applies a plan.
    pub(crate) async fn apply(&self, name: &str) -> PortResult<ApplyReport> {
        let request = ApplyRequest {
            plan: name.into(),
            cwd: REAL.into(),
            paths: Vec::new(),
            resources: Vec::new(),
            dry_run: false,
            resulting: Resulting::Uncommitted,
            onto_current: false,
            allow_filters: false,
        };
        self.sandbar.apply(request).await
    }
}

/// Writes a file, or removes what is there. Whatever is in the way beneath
/// `root` makes room.
pub(crate) fn put(disk: &MemDisk, root: &Path, path: &Path, text: Option<&str>) {
    let mut disk = disk.hold();
    let Some(text) = text else {
        disk.remove(path).expect("it is writable");
        return;
    };
    let above = path.ancestors().skip(1);
    for above in above.take_while(|above| *above != root) {
        if disk.get(above).is_some() && !disk.is_dir(above) {
            disk.remove(above).expect("it is writable");
        }
    }
    let what = What::of(Kind::File, text.as_bytes().to_vec());
    disk.put(path, what).expect("it is writable");
}

/// Targets that fail where they are told to.
struct Jammed {
    inner: MemTargets,
    disk: MemDisk,
    jam: Arc<Mutex<Jam>>,
}

impl Jammed {
    fn seal(&self, which: impl Fn(&mut Jam) -> Option<String>) {
        let dir = which(&mut self.jam.lock().expect("whole"));
        if let Some(dir) = dir {
            let dir = Path::new(REAL).join(dir);
            self.disk.hold().set_read_only(&dir, true);
        }
    }
}

#[async_trait]
impl Targets for Jammed {
    async fn lock(&self, root: Root) -> PortResult<Box<dyn RootLock>> {
        self.inner.lock(root).await
    }

    async fn observe(&self, root: Root, paths: Vec<RelPath>) -> PortResult<Vec<Option<Entry>>> {
        self.inner.observe(root, paths).await
    }

    async fn preflight(
        &self,
        root: Root,
        git_common_dir: Option<PathBuf>,
        ops: Vec<PathOp>,
    ) -> PortResult<KeptPlace> {
        self.inner.preflight(root, git_common_dir, ops).await
    }

    async fn stage(&self, job: Job) -> PortResult<()> {
        self.inner.stage(job).await
    }

    async fn execute(&self, job: Job) -> PortResult<Executed> {
        self.seal(|jam| jam.execute.take());
        self.inner.execute(job).await
    }

    async fn undo(&self, job: Job) -> PortResult<Executed> {
        self.seal(|jam| jam.undo.take());
        self.inner.undo(job).await
    }

    async fn sweep(&self, job: Job) -> PortResult<()> {
        self.inner.sweep(job).await
    }

    async fn settle(&self, job: Job) -> PortResult<Vec<Kept>> {
        self.inner.settle(job).await
    }

    async fn forget(&self, dir: PathBuf) -> PortResult<()> {
        self.inner.forget(dir).await
    }

    async fn kept(&self, job: Job) -> PortResult<Vec<KeptFile>> {
        self.inner.kept(job).await
    }

    async fn read_out(&self, what: Takeout) -> PortResult<Vec<u8>> {
        self.inner.read_out(what).await
    }

    async fn copy_out(&self, what: Takeout, to: PathBuf) -> PortResult<()> {
        self.inner.copy_out(what, to).await
    }
}
