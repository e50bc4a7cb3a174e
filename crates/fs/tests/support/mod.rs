//! Scratch trees, their content as plain files, and a judge that shares no
//! code with the crate: `find` and `sha256sum`.
#![allow(
    dead_code,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    unreachable_pub,
    reason = "tests make and judge trees by plain means"
)]

use std::collections::HashMap;
use std::fs;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use sandbar_domain::apply::{self, Facts, Observed, PathOp};
use sandbar_domain::resource::Root;
use sandbar_domain::{Change, Code, Entry, Hash, Kind, RelPath, tree};
use sandbar_fs::target::{Contents, FsTargets};
use sandbar_ports::target::Job;
use sandbar_ports::{Cancel, PortError, PortResult, Silent};

/// Objects as plain files named by their hash.
pub struct Plain(pub PathBuf);

impl Contents for Plain {
    fn read(&self, hash: Hash) -> PortResult<Vec<u8>> {
        fs::read(self.0.join(hash.to_string()))
            .map_err(|_| PortError::new(Code::CorruptObject, format!("read {hash}")))
    }

    fn length(&self, hash: Hash) -> PortResult<u64> {
        Ok(self.read(hash)?.len() as u64)
    }

    fn has(&self, hash: Hash, _: u64) -> PortResult<bool> {
        Ok(self.0.join(hash.to_string()).exists())
    }

    fn put(&self, contents: Vec<Vec<u8>>) -> PortResult<()> {
        for bytes in contents {
            self.add(&bytes);
        }
        Ok(())
    }

    fn put_file(&self, file: BorrowedFd<'_>) -> PortResult<Hash> {
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
        Ok(self.add(&fs::read(path).unwrap()))
    }
}

impl Plain {
    pub fn add(&self, bytes: &[u8]) -> Hash {
        let hash = Hash::of(bytes);
        fs::write(self.0.join(hash.to_string()), bytes).unwrap();
        hash
    }
}

/// One scratch place: `root` is written to, `want` is what it should become.
pub struct Place {
    pub temp: tempfile::TempDir,
}

impl Place {
    /// Makes an empty place, on memory where there is some: durability is not
    /// the question here, and an fsync costs milliseconds on a disk.
    pub fn new() -> Self {
        let shm = Path::new("/dev/shm");
        let temp = if shm.is_dir() {
            tempfile::tempdir_in(shm).unwrap()
        } else {
            tempfile::tempdir().unwrap()
        };
        for name in ["root", "want", "objects", "data"] {
            fs::create_dir(temp.path().join(name)).unwrap();
        }
        Self { temp }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.temp.path().join(name)
    }

    pub fn root(&self) -> Root {
        let path = self.path("root");
        let seen = fs::metadata(&path).unwrap();
        Root {
            device: seen.dev(),
            inode: seen.ino(),
            path,
        }
    }

    pub fn objects(&self) -> Plain {
        Plain(self.path("objects"))
    }

    pub fn targets(&self) -> FsTargets {
        FsTargets::new(Arc::new(self.objects()), self.path("data"))
    }

    pub fn job(&self, ops: &[PathOp]) -> Job {
        Job {
            root: self.root(),
            dir: self.path("data").join("kept/job"),
            ops: ops.to_vec(),
            sources: Default::default(),
            progress: Arc::new(Silent),
            cancel: Cancel::new(),
        }
    }

    /// Decides what leads from `root` to `want`, as the product would.
    pub fn ops(&self) -> Vec<PathOp> {
        let (base, result) = (self.scan("root"), self.scan("want"));
        let mut paths: Vec<_> = base.keys().chain(result.keys()).cloned().collect();
        paths.sort();
        paths.dedup();
        let changes: Vec<_> = paths
            .into_iter()
            .filter_map(|p| {
                let (old, new) = (base.get(&p).copied(), result.get(&p).copied());
                Change::between(p, old, new)
            })
            .collect();
        let paths = apply::paths_to_observe(&changes);
        let found = paths.iter().map(|p| base.get(p).copied()).collect();
        let triage = apply::triage(&changes, &Observed::new(paths, found), Facts::default());
        apply::plan_ops(triage, &HashMap::new())
            .into_ops()
            .expect("nothing drifted")
    }

    /// Reads a tree by plain means; stores its content.
    pub fn scan(&self, name: &str) -> HashMap<RelPath, Entry> {
        let mut out = HashMap::new();
        self.walk(&self.path(name), None, &mut out);
        out
    }

    fn walk(&self, dir: &Path, at: Option<&RelPath>, out: &mut HashMap<RelPath, Entry>) {
        for entry in fs::read_dir(dir).unwrap() {
            let entry = entry.unwrap();
            let rel = RelPath::child(at, entry.file_name().to_str().unwrap()).unwrap();
            let seen = fs::symlink_metadata(entry.path()).unwrap();
            let found = if seen.is_dir() {
                self.walk(&entry.path(), Some(&rel), out);
                Entry::new(Kind::Directory, tree::empty())
            } else if seen.is_symlink() {
                let target = fs::read_link(entry.path()).unwrap();
                let bytes = target.into_os_string().into_encoded_bytes();
                Entry::new(Kind::Symlink, self.objects().add(&bytes))
            } else {
                let kind = match seen.permissions().mode() & 0o100 {
                    0 => Kind::File,
                    _ => Kind::Executable,
                };
                let bytes = fs::read(entry.path()).unwrap();
                Entry::new(kind, self.objects().add(&bytes))
            };
            out.insert(rel, found);
        }
    }

    /// Returns every name with type, mode, owner, link target, and the digest
    /// of every file, as foreign tools see them.
    pub fn digest(&self, name: &str) -> String {
        shell(
            &self.path(name),
            "find . -mindepth 1 -printf '%P %y %m %U:%G %l\\n' | LC_ALL=C sort; \
             find . -type f -print0 | LC_ALL=C sort -z | xargs -0r sha256sum",
        )
    }

    /// Makes `root` anew as a copy of `from`, and forgets every job.
    pub fn reset(&self, from: &str) {
        shell(
            self.temp.path(),
            &format!("rm -rf root data && cp -a {from} root && mkdir data"),
        );
    }
}

/// Runs a line of shell; returns what it prints.
pub fn shell(dir: &Path, line: &str) -> String {
    let out = Command::new("sh")
        .args(["-ec", line])
        .current_dir(dir)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success(), "{line}: {errors}");
    String::from_utf8(out.stdout).unwrap()
}

/// Awaits on this thread.
pub fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
        .block_on(future)
}

/// Fills `root` and `want` so that all six kinds of operation are needed, type
/// changes both ways among them.
pub fn six_kinds(place: &Place) {
    shell(
        place.temp.path(),
        "umask 022
         cd root
         echo untouched > keep; echo one > replaced; chmod 640 replaced
         mkdir -p gone/deep; echo x > gone/deep/x; echo y > gone/y; chmod 711 gone
         echo script > script; echo tool > tool; chmod 755 tool
         echo file > becomes-dir; mkdir -p becomes-file/in; echo z > becomes-file/in/z
         ln -s keep link; echo plain > becomes-link; mkdir -m 750 empty
         cd ..; rm -r want; cp -a root want; cd want
         echo two, longer > replaced; rm -r gone empty
         chmod 755 script; chmod 644 tool
         rm becomes-dir; mkdir -p becomes-dir/sub; echo n > becomes-dir/sub/n
         rm -r becomes-file; echo now a file > becomes-file
         ln -sfn replaced link; ln -sf keep becomes-link
         mkdir -p new/er; echo c > new/er/created; echo e > executable; chmod 755 executable
         ln -s nowhere dangling",
    );
}

/// Opens a place that another process made, with the job in its `ops`.
pub fn reopen(place: &Path) -> (FsTargets, Job) {
    let path = place.join("root");
    let seen = fs::metadata(&path).unwrap();
    let job = Job {
        root: Root {
            device: seen.dev(),
            inode: seen.ino(),
            path,
        },
        dir: place.join("data/kept/job"),
        ops: apply::decode_ops(&fs::read(place.join("ops")).unwrap()).unwrap(),
        sources: Default::default(),
        progress: Arc::new(Silent),
        cancel: Cancel::new(),
    };
    let objects = Plain(place.join("objects"));
    (FsTargets::new(Arc::new(objects), place.join("data")), job)
}
