//! The engine behind the ports: one cheap handle that carries out whole
//! operations on blocking threads. Its cores are synchronous; a dropped
//! future does not stop one half-way.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use sandbar_domain::resource::Root;
use sandbar_domain::{Change, Code, Entry, Hash, RelPath};
use sandbar_ports::git::Contents;
use sandbar_ports::objects::{Collected, Live, Objects, StoreHealth};
use sandbar_ports::pins::{Pin, Pins, ShareRequest, Sharing};
use sandbar_ports::progress::Stage;
use sandbar_ports::workspace::{
    Assemble, Capture, Captured, Create, Created, Place, Restore, Restored, Sealing, Workspaces,
};
use sandbar_ports::{PortError, PortResult};

use crate::data::DataDir;
use crate::objects::{self, ObjectStore};
use crate::scan::{CacheFile, Scan, scan};
use crate::sys;
use crate::workspace::{assemble, create, look, pins, place, restore};

/// Files, object store and workspaces of one data directory.
#[derive(Debug, Clone)]
pub struct FsEngine(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    data: DataDir,
    store: ObjectStore,
}

impl FsEngine {
    /// Opens a data directory, making it where it is missing. Errors:
    /// `network_file_system`, `newer_format`, `corrupt_store`.
    pub fn open(data_dir: &Path) -> PortResult<Self> {
        Self::over(DataDir::open(data_dir)?)
    }

    /// Opens a data directory that exists, and writes nothing by itself.
    /// Errors: `path_not_found` when there is none, and those of
    /// [`FsEngine::open`].
    pub fn open_read_only(data_dir: &Path) -> PortResult<Self> {
        Self::over(DataDir::open_read_only(data_dir)?)
    }

    fn over(data: DataDir) -> PortResult<Self> {
        let store = ObjectStore::open(&data)?;
        Ok(Self(Arc::new(Inner { data, store })))
    }

    /// Returns the resolved path of the data directory.
    pub fn data_dir(&self) -> &Path {
        self.0.data.path()
    }

    pub(crate) fn store(&self) -> &ObjectStore {
        &self.0.store
    }

    /// Copies one object, verified, to an open file; for large objects. On an
    /// error the file holds rubbish.
    pub fn copy_object(&self, hash: Hash, to: impl std::os::fd::AsFd) -> PortResult<()> {
        self.0.store.copy_to(hash, to)
    }

    /// Stores objects durably, in one transaction; the synchronous form.
    pub fn put_now(&self, contents: &[Vec<u8>]) -> PortResult<Vec<Hash>> {
        self.0.data.check_writable()?;
        let transaction = self.0.store.begin()?;
        let hashes = contents
            .iter()
            .map(|bytes| transaction.put(bytes))
            .collect::<PortResult<_>>()?;
        transaction.commit()?;
        self.0.store.compact_if_many()?;
        Ok(hashes)
    }

    async fn writing<T: Send + 'static>(
        &self,
        call: impl FnOnce(&Inner) -> PortResult<T> + Send + 'static,
    ) -> PortResult<T> {
        self.0.data.check_writable()?;
        self.blocking(call).await
    }

    async fn blocking<T: Send + 'static>(
        &self,
        call: impl FnOnce(&Inner) -> PortResult<T> + Send + 'static,
    ) -> PortResult<T> {
        let inner = Arc::clone(&self.0);
        tokio::task::spawn_blocking(move || call(&inner))
            .await
            .map_err(|error| {
                PortError::new(Code::Internal, format!("finish a file operation: {error}"))
            })?
    }
}

impl Inner {
    fn capture(&self, request: &Capture) -> PortResult<Captured> {
        let root = sys::open_root(&request.root).map_err(|error| match error.code {
            Code::PathNotFound => PortError::new(Code::SandboxGone, error.message),
            _ => error,
        })?;
        if request.install {
            self.data.check_writable()?;
        }
        let transaction = request.install.then(|| self.store.begin()).transpose()?;
        let cache = CacheFile::from(&request.cache);
        let scanned = scan(&Scan {
            root: &root,
            hidden: &request.hidden,
            rules: &*request.rules,
            cache: &cache,
            generation: self.store.generation(),
            transaction: transaction.as_ref(),
            leaves: false,
            cancel: &request.cancel,
            progress: &*request.progress,
            stage: Stage::Scan,
        })?;
        request.cancel.check()?;
        if let Some(transaction) = transaction {
            transaction.commit()?;
            self.store.compact_if_many()?;
        }
        if let Some(bytes) = scanned.cache.filter(|_| self.data.is_writable()) {
            cache.save(&bytes);
        }
        Ok(Captured {
            tree: scanned.assembled.root(),
            tally: scanned.assembled.tally,
        })
    }
}

#[async_trait]
impl Workspaces for FsEngine {
    async fn identify(&self, path: PathBuf) -> PortResult<Root> {
        self.blocking(move |inner| place::identify(inner.data.path(), &path))
            .await
    }

    async fn look(&self, path: PathBuf, mark: String, follow: bool) -> PortResult<Vec<Place>> {
        self.blocking(move |_| look::look(&path, &mark, follow))
            .await
    }

    async fn identify_own(&self, path: PathBuf) -> PortResult<Root> {
        self.blocking(move |inner| place::identify_own(&inner.data, &path))
            .await
    }

    async fn reserve(&self) -> PortResult<PathBuf> {
        self.writing(|inner| place::reserve(&inner.data)).await
    }

    async fn create(&self, request: Create) -> PortResult<Created> {
        self.0.data.check_writable()?;
        let (tell, told) = tokio::sync::oneshot::channel();
        let inner = Arc::clone(&self.0);
        let work = tokio::task::spawn_blocking(move || {
            create::create(&inner.store, &request, |created| {
                // Nobody listens any more: the caller gave up.
                drop(tell.send(created));
            })
        });
        let end = async move {
            work.await.map_err(|error| {
                PortError::new(Code::Internal, format!("finish a copy: {error}"))
            })?
        };
        match told.await {
            Ok(mut created) => {
                created.sealing = Sealing::new(end);
                Ok(created)
            }
            // It ended without having come so far, and says why.
            Err(_) => Err(match end.await {
                Err(error) => error,
                Ok(()) => PortError::new(Code::Internal, "finish a copy: it told nothing"),
            }),
        }
    }

    async fn assemble(&self, request: Assemble) -> PortResult<()> {
        self.writing(move |_| assemble::assemble(&request)).await
    }

    async fn capture(&self, request: Capture) -> PortResult<Captured> {
        self.blocking(move |inner| inner.capture(&request)).await
    }

    async fn restore(&self, request: Restore) -> PortResult<Restored> {
        self.writing(move |inner| restore::restore(&inner.store, &request))
            .await
    }

    async fn retire(&self, place: PathBuf) -> PortResult<()> {
        self.writing(move |inner| place::retire(&inner.data, &place))
            .await
    }

    async fn remove(&self, place: PathBuf) -> PortResult<()> {
        self.writing(move |inner| place::remove(&inner.data, &place))
            .await
    }

    async fn places(&self) -> PortResult<Vec<PathBuf>> {
        self.blocking(|inner| place::places(&inner.data)).await
    }
}

#[async_trait]
impl Pins for FsEngine {
    async fn share(&self, request: ShareRequest) -> PortResult<Sharing> {
        self.writing(move |inner| pins::share(&inner.data, &request))
            .await
    }

    async fn pin(&self, request: Pin) -> PortResult<()> {
        self.writing(move |inner| pins::pin(&inner.data, &request))
            .await
    }

    async fn unpin(&self, place: PathBuf) -> PortResult<()> {
        self.writing(move |inner| pins::unpin(&inner.data, &place))
            .await
    }

    async fn pins_of(&self, place: PathBuf) -> PortResult<Option<(PathBuf, bool)>> {
        self.blocking(move |inner| pins::pins_of(&inner.data, &place))
            .await
    }

    async fn sweep(&self, holder: PathBuf, dry_run: bool) -> PortResult<Vec<PathBuf>> {
        self.blocking(move |inner| pins::sweep(&inner.data, &holder, dry_run))
            .await
    }
}

#[async_trait]
impl Objects for FsEngine {
    async fn put(&self, contents: Vec<Vec<u8>>) -> PortResult<Vec<Hash>> {
        let engine = self.clone();
        self.blocking(move |_| engine.put_now(&contents)).await
    }

    async fn get(&self, hash: Hash) -> PortResult<Vec<u8>> {
        self.blocking(move |inner| inner.store.read(hash)).await
    }

    async fn sweep(&self) -> PortResult<()> {
        self.blocking(|inner| inner.store.sweep()).await
    }

    async fn diff(&self, old: Hash, new: Hash) -> PortResult<Vec<Change>> {
        self.blocking(move |inner| objects::diff(&inner.store, old, new))
            .await
    }

    async fn lookup(&self, tree: Hash, paths: Vec<RelPath>) -> PortResult<Vec<Option<Entry>>> {
        self.blocking(move |inner| objects::lookup(&inner.store, tree, &paths))
            .await
    }

    async fn list(&self, tree: Hash) -> PortResult<Vec<(RelPath, Entry)>> {
        self.blocking(move |inner| objects::list(&inner.store, tree))
            .await
    }

    async fn missing(&self, hashes: Vec<Hash>) -> PortResult<Vec<Hash>> {
        self.blocking(move |inner| {
            let there = |hash: &Hash| inner.store.contains(hash);
            Ok(hashes.into_iter().filter(|hash| !there(hash)).collect())
        })
        .await
    }

    async fn collect(&self, live: Live) -> PortResult<Collected> {
        self.writing(move |inner| inner.store.collect(&live)).await
    }

    async fn verify(&self) -> PortResult<StoreHealth> {
        self.blocking(|inner| inner.store.verify()).await
    }
}

impl Contents for FsEngine {
    fn read(&self, hash: Hash) -> PortResult<Vec<u8>> {
        self.0.store.read(hash)
    }
}
