//! Where objects of hidden commits go: the private git directory, and the
//! pool, which a rollback leaves alone and links back.

use std::path::{Path, PathBuf};

use gix::ObjectId;
use gix::objs::{Kind, WriteTo};
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;
use sandbar_domain::Code;
use sandbar_ports::effect::{effect, planted};
use sandbar_ports::{PortError, PortResult};

use crate::open::failed;
use crate::reading;

/// Writes objects that are missing, and keeps all of them in the pool.
pub(super) struct Sink<'a> {
    pub(super) repository: &'a gix::Repository,
    pool: Option<&'a Path>,
    /// Whether what is there already is in the pool: true of a new sandbox.
    pooled: bool,
    /// What this sink added to the pool, not durable yet.
    fresh: Vec<PathBuf>,
}

/// More files than this are made durable with all of their file system.
const FEW: usize = 8;

impl<'a> Sink<'a> {
    /// Makes a sink; `first` says that nothing was done in the sandbox yet.
    pub(super) fn new(
        repository: &'a gix::Repository,
        pool: Option<&'a Path>,
        first: bool,
    ) -> Self {
        let pool = pool.filter(|pool| reading::present(pool));
        Self {
            repository,
            pool,
            pooled: first || pool.is_none(),
            fresh: Vec::new(),
        }
    }

    /// Writes any object.
    pub(super) fn write(&mut self, object: &dyn WriteTo) -> PortResult<ObjectId> {
        let mut bytes = Vec::new();
        object
            .write_to(&mut bytes)
            .map_err(failed("encode a git object"))?;
        self.put(object.kind(), &bytes)
    }

    /// Writes a blob.
    pub(super) fn blob(&mut self, bytes: &[u8]) -> PortResult<ObjectId> {
        self.put(Kind::Blob, bytes)
    }

    fn put(&mut self, kind: Kind, bytes: &[u8]) -> PortResult<ObjectId> {
        use gix::objs::Write as _;

        let objects = &self.repository.objects;
        let id = gix::objs::compute_hash(self.repository.object_hash(), kind, bytes)
            .map_err(failed("name a git object"))?;
        let known = objects.exists_without_refresh(&id);
        if known && self.pooled {
            return Ok(id);
        }
        let path = self.loose(id);
        // A pack of the sandbox's own is no part of the pool: what is only in
        // one is written once more.
        if !known || !reading::present(&path) {
            effect("git-object", || {
                let written = objects.write_buf(kind, bytes);
                written.map_err(failed(format!("write object {id}")))
            })?;
        }
        self.keep(&path, id)?;
        Ok(id)
    }

    fn loose(&self, id: ObjectId) -> PathBuf {
        let hex = id.to_string();
        let objects = self.repository.objects.store_ref().path();
        objects.join(&hex[..2]).join(&hex[2..])
    }

    /// Makes durable what was added to the pool. A checkpoint leaves objects of
    /// the pool out of its snapshot, so that they must outlive a power failure
    /// by themselves, those that git inside wrote and never synced included.
    pub(super) fn finish(self) -> PortResult<()> {
        let skipped = self.fresh.is_empty() || planted("skip-pool-fsync");
        let Some(pool) = self.pool.filter(|_| !skipped) else {
            return Ok(());
        };
        let failed = |path: &Path, errno: Errno| {
            PortError::new(
                Code::Io,
                format!("make {} durable: {errno}", path.display()),
            )
        };
        let open = |path: &Path| {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            rustix::fs::open(path, flags, Mode::empty()).map_err(|errno| failed(path, errno))
        };
        if self.fresh.len() > FEW {
            let opened = open(pool)?;
            return effect("git-sync", || rustix::fs::syncfs(&opened))
                .map_err(|errno| failed(pool, errno));
        }
        for path in self.fresh.iter().map(PathBuf::as_path).chain([pool]) {
            let opened = open(path)?;
            effect("git-sync", || rustix::fs::fsync(&opened))
                .map_err(|errno| failed(path, errno))?;
        }
        Ok(())
    }

    fn keep(&mut self, path: &Path, id: ObjectId) -> PortResult<()> {
        let Some(pool) = self.pool else {
            return Ok(());
        };
        let hex = id.to_string();
        let kept = pool.join(format!("{}!{}", &hex[..2], &hex[2..]));
        let linked = effect("git-pool", || link(path, &kept));
        match linked {
            // No links here: the hidden commit lasts as long as no rollback
            // goes behind it, and the store is the authority.
            Ok(()) => {
                self.fresh.push(kept);
                Ok(())
            }
            Err(Errno::EXIST | Errno::XDEV | Errno::PERM | Errno::MLINK | Errno::OPNOTSUPP) => {
                Ok(())
            }
            Err(errno) => Err(PortError::new(
                Code::Io,
                format!("keep object {id} in {}: {errno}", pool.display()),
            )),
        }
    }
}

/// Links what the pool keeps back to where it was; what is there stays.
pub(super) fn link_back(pool: &Path, objects: &Path) -> PortResult<()> {
    let failed = |name: &str, errno: Errno| {
        PortError::new(
            Code::Io,
            format!("link {name} back from {}: {errno}", pool.display()),
        )
    };
    for name in reading::names(pool)? {
        let Some((dir, _)) = name.rsplit_once('!') else {
            continue;
        };
        let dir = objects.join(dir.replace('!', "/"));
        let mode = Mode::from_raw_mode(0o755);
        match effect("git-pool", || rustix::fs::mkdir(&dir, mode)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(failed(&name, errno)),
        }
        let to = objects.join(name.replace('!', "/"));
        match effect("git-pool", || link(&pool.join(&name), &to)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(failed(&name, errno)),
        }
    }
    Ok(())
}

fn link(from: &Path, to: &Path) -> Result<(), Errno> {
    rustix::fs::linkat(CWD, from, CWD, to, AtFlags::empty())
}
