//! What the workspace tests share: an engine on a temporary directory,
//! shorthand requests, and foreign judges.
#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    clippy::unwrap_used,
    clippy::disallowed_methods
)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use sandbar_domain::resource::Root;
use sandbar_domain::{Code, Hash};
use sandbar_fs::FsEngine;
use sandbar_ports::objects::Objects as _;
use sandbar_ports::rules::{CarryRules, Everything};
use sandbar_ports::workspace::{
    CacheKey, Capture, Captured, Create, Created, Restore, Restored, Workspaces as _,
};
use sandbar_ports::{Cancel, PortResult, Silent};

/// An engine with a source directory beside its data directory.
pub struct Bench {
    pub temp: Held,
    pub engine: FsEngine,
}

pub enum Held {
    Owned(tempfile::TempDir),
    Lent(PathBuf),
}

impl Held {
    pub fn path(&self) -> &Path {
        match self {
            Self::Owned(temp) => temp.path(),
            Self::Lent(path) => path,
        }
    }
}

impl Bench {
    /// In memory, where durability is not the question.
    pub fn new() -> Self {
        let memory = Path::new("/dev/shm");
        let temp = if memory.is_dir() {
            tempfile::tempdir_in(memory)
        } else {
            tempfile::tempdir()
        };
        Self::over(Held::Owned(temp.unwrap()))
    }

    /// On a disk, with its stamps.
    pub fn on_disk() -> Self {
        Self::over(Held::Owned(tempfile::tempdir().unwrap()))
    }

    /// In a new directory that someone else removes.
    pub fn in_dir(path: &Path) -> Self {
        std::fs::create_dir(path).unwrap();
        Self::over(Held::Lent(path.to_owned()))
    }

    fn over(temp: Held) -> Self {
        std::fs::create_dir(temp.path().join("src")).unwrap();
        let engine = FsEngine::open(&temp.path().join("data")).unwrap();
        Self { temp, engine }
    }

    pub fn source(&self) -> PathBuf {
        self.temp.path().join("src")
    }

    pub fn data(&self) -> PathBuf {
        self.temp.path().join("data")
    }

    pub fn write(&self, rel: &str, content: &[u8]) {
        write(&self.source(), rel, content);
    }

    pub fn create_in(&self, place: &Path) -> PortResult<Created> {
        self.create_with(place, Arc::new(Everything), &[])
    }

    pub fn create_with(
        &self,
        place: &Path,
        rules: Arc<dyn CarryRules>,
        hidden: &[&str],
    ) -> PortResult<Created> {
        let source = wait(self.engine.identify(self.source()))?;
        let mut created = wait(self.engine.create(Create {
            source,
            dest: place.join("r"),
            hidden: hidden.iter().map(|name| (*name).to_owned()).collect(),
            rules,
            progress: Arc::new(Silent),
            cancel: Cancel::new(),
        }))?;
        wait(created.sealing.wait())?;
        Ok(created)
    }

    /// A sandbox of the source.
    pub fn sandbox(&self) -> Sandbox<'_> {
        let place = wait(self.engine.reserve()).unwrap();
        let created = self.create_in(&place).unwrap();
        Sandbox {
            bench: self,
            place,
            created,
        }
    }

    pub fn diff(&self, old: Hash, new: Hash) -> Vec<String> {
        wait(self.engine.diff(old, new))
            .unwrap()
            .iter()
            .map(|change| format!("{} {}", change.kind().word(), change.path))
            .collect()
    }
}

pub struct Sandbox<'b> {
    pub bench: &'b Bench,
    pub place: PathBuf,
    pub created: Created,
}

impl Sandbox<'_> {
    pub fn root(&self) -> PathBuf {
        self.place.join("r")
    }

    pub fn write(&self, rel: &str, content: &[u8]) {
        write(&self.root(), rel, content);
    }

    pub fn cache(&self) -> CacheKey {
        CacheKey::Named {
            place: self.place.clone(),
            name: "tree.cache",
        }
    }

    pub fn capture(&self) -> Captured {
        self.capture_by(self.cache(), true, Arc::new(Everything))
            .unwrap()
    }

    pub fn capture_by(
        &self,
        cache: CacheKey,
        install: bool,
        rules: Arc<dyn CarryRules>,
    ) -> PortResult<Captured> {
        wait(self.bench.engine.capture(Capture {
            root: root_of(&self.root()),
            hidden: Vec::new(),
            rules,
            cache,
            install,
            progress: Arc::new(Silent),
            cancel: Cancel::new(),
        }))
    }

    pub fn restore(&self, tree: Hash) -> Restored {
        self.restore_by(tree, Arc::new(Everything)).unwrap()
    }

    pub fn restore_by(&self, tree: Hash, rules: Arc<dyn CarryRules>) -> PortResult<Restored> {
        wait(self.bench.engine.restore(Restore {
            path: self.root(),
            tree,
            hidden: Vec::new(),
            rules,
            cache: self.cache(),
            pool: None,
            progress: Arc::new(Silent),
            cancel: Cancel::new(),
        }))
    }
}

pub fn root_of(path: &Path) -> Root {
    use std::os::unix::fs::MetadataExt as _;
    let meta = std::fs::symlink_metadata(path).unwrap();
    Root {
        path: path.to_owned(),
        device: meta.dev(),
        inode: meta.ino(),
    }
}

pub fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
        .block_on(future)
}

pub fn write(root: &Path, rel: &str, content: &[u8]) {
    let path = root.join(rel);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

/// The judgement of tar: names, kinds, bytes, targets, the executable bit.
pub fn tar_digest(root: &Path) -> String {
    shell(
        root,
        "tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner \
         --mode='u=rwX,go=' --hard-dereference -cf - . | sha256sum",
    )
}

/// Everything that must not change about originals, by `find`.
pub fn sentinel(root: &Path) -> String {
    shell(
        root,
        "find . -printf '%p %y %m %s %T@ %i %n %l\\n' | sort; \
         find . -type f -print0 | sort -z | xargs -0r sha256sum",
    )
}

/// When each file and directory was read last.
pub fn access_times(root: &Path) -> String {
    // Listing comes first: the judge must not change what it judges.
    shell(
        root,
        "find . >/dev/null; find . ! -type l -printf '%p %A@\\n' | sort",
    )
}

pub fn shell(dir: &Path, script: &str) -> String {
    let output = Command::new("bash")
        .args(["-o", "pipefail", "-ec", script])
        .current_dir(dir)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The code of an error.
pub fn code<T: std::fmt::Debug>(result: PortResult<T>) -> Code {
    result.unwrap_err().code
}
