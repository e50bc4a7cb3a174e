//! Sandbox roots on a disk in memory.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use sandbar_domain::resource::Root;
use sandbar_domain::{Code, Entry, Kind, RelPath};
use sandbar_ports::git::Contents as _;
use sandbar_ports::progress::Stage;
use sandbar_ports::workspace::{
    Assemble, Capture, Captured, CopiedFile, Create, Created, FileStat, Part, Place, Restore,
    Restored, Sealing, Workspaces,
};
use sandbar_ports::{PortError, PortResult};

use super::disk::{DEVICE, Disk, MemDisk, Node, What, fail};
use super::objects::MemObjects;
use super::scan::{Scan, Scanned};

/// The name of the pool in a place (STR-9).
const POOL: &str = "o";

/// Makes and keeps sandbox roots below `<data>/s`.
#[derive(Debug, Clone)]
pub struct MemWorkspaces {
    disk: MemDisk,
    objects: MemObjects,
    data: PathBuf,
    next: Arc<AtomicU32>,
}

impl MemWorkspaces {
    /// Uses `data` on the disk as the data directory; it is made when missing.
    pub fn new(disk: &MemDisk, objects: &MemObjects, data: &Path) -> PortResult<Self> {
        disk.hold().make_dirs(&data.join("s"))?;
        Ok(Self {
            disk: disk.clone(),
            objects: objects.clone(),
            data: data.to_owned(),
            next: Arc::default(),
        })
    }

    fn places_dir(&self) -> PathBuf {
        self.data.join("s")
    }

    fn check_place(&self, place: &Path) -> PortResult<()> {
        let name = place.file_name().map(std::ffi::OsStr::as_encoded_bytes);
        let ours = place.parent() == Some(&*self.places_dir()) && name.is_some_and(is_place_name);
        if ours {
            return Ok(());
        }
        Err(PortError::new(
            Code::RootRefused,
            format!("remove {}: no sandbox was made there", place.display()),
        ))
    }

    fn install(&self, found: &Scanned) {
        for bytes in &found.objects {
            self.objects.put_now(bytes);
        }
    }
}

fn is_place_name(name: &[u8]) -> bool {
    name.len() == 8 && name.iter().all(u8::is_ascii_lowercase)
}

#[async_trait]
impl Workspaces for MemWorkspaces {
    async fn identify(&self, path: PathBuf) -> PortResult<Root> {
        let root = self.disk.hold().root(&path)?;
        let refuse = |why: &str| {
            PortError::new(
                Code::RootRefused,
                format!("use {} as a root: {why}", root.path.display()),
            )
        };
        if root.path == Path::new("/") {
            return Err(refuse("it is the root of everything"));
        }
        if self.data.starts_with(&root.path) || root.path.starts_with(&self.data) {
            return Err(refuse("it and the data directory hold one another"));
        }
        Ok(root)
    }

    async fn look(&self, path: PathBuf, mark: String, follow: bool) -> PortResult<Vec<Place>> {
        let disk = self.disk.hold();
        let path = match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) if !follow => disk.resolve(parent)?.join(name),
            _ => disk.resolve(&path)?,
        };
        let mut places = Vec::new();
        for path in path.ancestors() {
            let (inode, kind) = match disk.get(path) {
                Some(node) => (node.inode, node.what.entry().map(|entry| entry.kind)),
                None if disk.is_dir(path) => (0, Some(Kind::Directory)),
                None => return Err(fail(Code::PathNotFound, path, "nothing is there")),
            };
            places.push(Place {
                root: Root {
                    path: path.to_owned(),
                    device: DEVICE,
                    inode,
                },
                kind,
                marked: disk.get(&path.join(&mark)).is_some(),
            });
        }
        places.reverse();
        Ok(places)
    }

    async fn identify_own(&self, path: PathBuf) -> PortResult<Root> {
        let gone = |_| fail(Code::SandboxGone, &path, "it is not there any more");
        let root = self.disk.hold().root(&path).map_err(gone)?;
        let inside = root.path.strip_prefix(self.places_dir()).ok();
        let place = inside.and_then(|rest| rest.components().next());
        match place {
            Some(name) if is_place_name(name.as_os_str().as_encoded_bytes()) => Ok(root),
            _ => Err(fail(Code::SandboxGone, &path, "no sandbox is there")),
        }
    }

    async fn reserve(&self) -> PortResult<PathBuf> {
        let mut number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut name = String::new();
        for _ in 0..8 {
            name.push(char::from(b'a' + (number % 26) as u8));
            number /= 26;
        }
        let place = self.places_dir().join(name);
        self.disk.hold().add(&place, What::Directory)?;
        Ok(place)
    }

    async fn create(&self, request: Create) -> PortResult<Created> {
        let mut disk = self.disk.hold();
        disk.check_root(&request.source)?;
        request.cancel.check()?;
        let found = Scan {
            disk: &disk,
            root: &request.source.path,
            hidden: &request.hidden,
            rules: &*request.rules,
        }
        .run()?;
        if let Some((path, why)) = found.tally.unsupported.first() {
            return Err(
                PortError::new(Code::UnsupportedEntry, format!("copy {path}: {why}"))
                    .with_subjects([path]),
            );
        }
        disk.add(&request.dest, What::Directory)?;
        let mut files = Vec::new();
        for (path, entry) in &found.carried {
            let (from, to) = (request.source.path.join(path), request.dest.join(path));
            let Some(source) = disk.get(&from).cloned() else {
                continue;
            };
            disk.add(&to, source.what.clone())?;
            disk.set_mtime(&to, source.mtime);
            let Some(copy) = disk.get(&to) else { continue };
            if entry.kind != Kind::Directory {
                files.push(CopiedFile {
                    path: path.clone(),
                    hash: entry.hash,
                    source: stat(&source),
                    copy: stat(copy),
                });
            }
        }
        let count = found.tally.files;
        request.progress.update(Stage::Copy, count, count);
        self.install(&found);
        Ok(Created {
            tree: found.tree.expect("a scan has a tree"),
            root: disk.root(&request.dest)?,
            tally: found.tally,
            files: files.into(),
            sealing: Sealing::done(),
        })
    }

    async fn assemble(&self, request: Assemble) -> PortResult<()> {
        let mut disk = self.disk.hold();
        request.cancel.check()?;
        disk.add(&request.dest, What::Directory)?;
        let made = assemble(&mut disk, &request);
        if made.is_err() {
            disk.remove(&request.dest)?;
        }
        made
    }

    async fn capture(&self, request: Capture) -> PortResult<Captured> {
        let disk = self.disk.hold();
        let gone = |error: PortError| match error.code {
            Code::PathNotFound => PortError::new(Code::SandboxGone, error.message),
            _ => error,
        };
        disk.check_root(&request.root).map_err(gone)?;
        request.cancel.check()?;
        let found = Scan {
            disk: &disk,
            root: &request.root.path,
            hidden: &request.hidden,
            rules: &*request.rules,
        }
        .run()?;
        if request.install {
            self.install(&found);
        }
        let count = found.tally.files;
        request.progress.update(Stage::Scan, count, count);
        Ok(Captured {
            tree: found.tree.expect("a scan has a tree"),
            tally: found.tally,
        })
    }

    async fn restore(&self, request: Restore) -> PortResult<Restored> {
        request.cancel.check()?;
        let wanted = {
            let mut wanted = Vec::new();
            let mut open = vec![(None, request.tree)];
            while let Some((dir, hash)) = open.pop() {
                for (name, entry) in self.objects.tree(hash)?.entries() {
                    let path = RelPath::child(dir.as_ref(), name).expect("a tree has valid names");
                    if entry.kind == Kind::Directory {
                        open.push((Some(path.clone()), entry.hash));
                    } else {
                        // All content must be there before the first change.
                        self.objects.read(entry.hash)?;
                    }
                    wanted.push((path, *entry));
                }
            }
            wanted.sort_by(|a, b| a.0.cmp(&b.0));
            wanted
        };
        let mut disk = self.disk.hold();
        match disk.get(&request.path).map(|node| &node.what) {
            None => disk.add(&request.path, What::Directory)?,
            Some(What::Directory) => {}
            Some(_) => {
                return Err(fail(Code::SandboxGone, &request.path, "it is no directory"));
            }
        }
        let mut restored = Restored {
            root: disk.root(&request.path)?,
            written: 0,
            removed: 0,
            kept_directories: Vec::new(),
        };
        // Rule files that come back can make more paths belong.
        for _ in 0..5 {
            let before = (restored.written, restored.removed);
            self.restore_once(&mut disk, &request, &wanted, &mut restored)?;
            if before == (restored.written, restored.removed) {
                break;
            }
        }
        if let Some((pool, dir)) = &request.pool {
            link_back(&mut disk, pool, &request.path.join(dir))?;
        }
        restored.kept_directories.sort_unstable();
        restored.kept_directories.dedup();
        Ok(restored)
    }

    async fn retire(&self, place: PathBuf) -> PortResult<()> {
        self.check_place(&place)?;
        let mut disk = self.disk.hold();
        for name in disk.names(&place) {
            if name != POOL {
                disk.remove(&place.join(name))?;
            }
        }
        Ok(())
    }

    async fn remove(&self, place: PathBuf) -> PortResult<()> {
        self.check_place(&place)?;
        self.disk.hold().remove(&place).map(|_| ())
    }

    async fn places(&self) -> PortResult<Vec<PathBuf>> {
        let dir = self.places_dir();
        let names = self.disk.hold().names(&dir);
        Ok(names
            .into_iter()
            .filter(|name| is_place_name(name.as_encoded_bytes()))
            .map(|name| dir.join(name))
            .collect())
    }
}

impl MemWorkspaces {
    fn restore_once(
        &self,
        disk: &mut Disk,
        request: &Restore,
        wanted: &[(RelPath, Entry)],
        restored: &mut Restored,
    ) -> PortResult<()> {
        let root = &request.path;
        let now = Scan {
            disk,
            root,
            hidden: &request.hidden,
            rules: &*request.rules,
        }
        .run()?
        .carried;
        let wants = |path: &RelPath| {
            let found = wanted.binary_search_by(|(want, _)| want.cmp(path));
            found.ok().map(|index| wanted[index].1)
        };
        // Children before parents; what is ignored keeps its directories.
        for (path, entry) in now.iter().rev() {
            let want = wants(path);
            let stays = want.is_some_and(|want| {
                (want.kind == Kind::Directory) == (entry.kind == Kind::Directory)
            });
            if stays {
                continue;
            }
            let at = root.join(path);
            let empty = entry.kind != Kind::Directory || disk.names(&at).is_empty();
            if empty {
                disk.remove(&at)?;
                restored.removed += 1;
            } else if want.is_some() {
                return Err(PortError::new(
                    Code::IllegalState,
                    format!("restore {path}: ignored files lie where it must go"),
                )
                .with_subjects([path.as_str()]));
            } else {
                restored.kept_directories.push(path.clone());
            }
        }
        for (path, entry) in wanted {
            let at = root.join(path);
            let have = disk.get(&at).and_then(|node| node.what.entry());
            let same = match (have, entry.kind) {
                (Some(have), Kind::Directory) => have.kind == Kind::Directory,
                (have, _) => have == Some(*entry),
            };
            if same {
                continue;
            }
            restored.written += 1;
            if entry.kind == Kind::Directory {
                disk.add(&at, What::Directory)?;
            } else if let Some(have) = have
                && have.hash == entry.hash
                && have.kind.is_file()
                && entry.kind.is_file()
            {
                disk.set_executable(&at, entry.kind == Kind::Executable)?;
            } else {
                let what = What::of(entry.kind, self.objects.read(entry.hash)?);
                // A new file, as by rename: never written in place.
                disk.remove(&at)?;
                disk.add(&at, what)?;
            }
        }
        Ok(())
    }
}

fn stat(node: &Node) -> FileStat {
    let (mode, size) = match &node.what {
        What::Directory => (0o040_755, 0),
        What::File { bytes, executable } => {
            let mode = if *executable { 0o100_755 } else { 0o100_644 };
            (mode, bytes.len() as u64)
        }
        What::Symlink(target) => (0o120_777, target.len() as u64),
        What::Special => (0o010_644, 0),
    };
    FileStat {
        dev: DEVICE,
        ino: node.inode,
        mode,
        uid: 0,
        gid: 0,
        size,
        mtime_ns: node.mtime.into(),
        ctime_ns: node.mtime.into(),
    }
}

fn assemble(disk: &mut Disk, request: &Assemble) -> PortResult<()> {
    for part in &request.parts {
        match part {
            Part::Directory(to) => disk.make_dirs(&request.dest.join(to))?,
            Part::Write(to, bytes) => {
                let what = What::of(Kind::File, bytes.clone());
                disk.put(&request.dest.join(to), what)?;
            }
            Part::Copy { from, to } => {
                if let Some(node) = disk.get(from).cloned() {
                    disk.put(&request.dest.join(to), node.what)?;
                }
            }
            Part::CopyTree { from, to, except } => {
                copy_tree(disk, from, &request.dest.join(to), except, |_| true)?;
            }
            Part::Link { from, to, except } => {
                let kept = |name: &str| !name.starts_with("tmp_") && !name.ends_with(".lock");
                let copied = copy_tree(disk, from, &request.dest.join(to), except, kept)?;
                let Some(pool) = &request.pool else { continue };
                disk.make_dirs(pool)?;
                for (rel, what) in copied {
                    disk.put(&pool.join(rel.replace('/', "!")), what)?;
                }
            }
        }
    }
    Ok(())
}

/// Copies what is beneath `from`; returns the files by their path below it.
fn copy_tree(
    disk: &mut Disk,
    from: &Path,
    to: &Path,
    except: &[String],
    kept: impl Fn(&str) -> bool,
) -> PortResult<Vec<(String, What)>> {
    if !disk.is_dir(from) {
        return Ok(Vec::new());
    }
    let below: Vec<(String, What)> = disk
        .below(from)
        .filter_map(|(path, node)| {
            let rel = path.strip_prefix(from).ok()?.to_str()?.to_owned();
            Some((rel, node.what.clone()))
        })
        .filter(|(rel, _)| {
            let out = |out: &String| rel == out || rel.starts_with(&format!("{out}/"));
            !except.iter().any(out)
        })
        .collect();
    disk.make_dirs(to)?;
    let mut files = Vec::new();
    for (rel, what) in below {
        if what == What::Directory {
            disk.make_dirs(&to.join(&rel))?;
        } else if kept(rel.rsplit('/').next().unwrap_or(&rel)) {
            disk.put(&to.join(&rel), what.clone())?;
            files.push((rel, what));
        }
    }
    Ok(files)
}

fn link_back(disk: &mut Disk, pool: &Path, dir: &Path) -> PortResult<()> {
    for name in disk.names(pool) {
        let Some(name) = name.to_str() else { continue };
        let to = dir.join(name.replace('!', "/"));
        let what = disk.get(&pool.join(name)).map(|node| node.what.clone());
        if let (None, Some(what @ What::File { .. })) = (disk.get(&to), what) {
            disk.put(&to, what)?;
        }
    }
    Ok(())
}
