//! Fixtures: repositories made by real git, a stand-in for the file layer,
//! and a foreign judge. Nothing here is part of the product.
#![allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "test support, shared by several test binaries"
)]

use std::collections::BTreeMap;
use std::fs;
use std::future::Future;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use sandbar_domain::resource::Root;
use sandbar_domain::{Hash, RelPath};
use sandbar_git::GixGit;
use sandbar_ports::git::{
    Checkout, Contents, GitRules, GitState as _, PrivateGit, PrivateRequest, RulesRequest,
};
use sandbar_ports::rules::{CarryRules, Verdict};
use sandbar_ports::workspace::{CopiedFile, FileStat, Part};
use std::sync::Arc;

pub const GIT: GixGit = GixGit::isolated();

pub fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
        .block_on(future)
}

/// A directory with a home of its own in which git sees no configuration.
pub struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.dir.path()).unwrap().join(name)
    }

    /// Makes a repository with one commit.
    pub fn repository(&self, name: &str) -> PathBuf {
        let root = self.path(name);
        git(
            &self.path("."),
            &["init", "-q", "-b", "main", root.to_str().unwrap()],
        );
        write(&root, "a.txt", "one\ntwo\nthree\n");
        write(&root, "src/lib.rs", "fn main() {}\n");
        git(&root, &["add", "."]);
        git(&root, &["commit", "-qm", "first"]);
        root
    }
}

pub fn try_git(dir: &Path, args: &[&str]) -> (bool, String, String) {
    let output = Command::new("git")
        .args(["-c", "protocol.file.allow=always"])
        .args(args)
        .current_dir(dir)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", "/nonexistent")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_NAME", "A U Thor")
        .env("GIT_AUTHOR_EMAIL", "author@example.com")
        .env("GIT_COMMITTER_NAME", "C O Mitter")
        .env("GIT_COMMITTER_EMAIL", "committer@example.com")
        .env("GIT_AUTHOR_DATE", "1700000000 +0000")
        .env("GIT_COMMITTER_DATE", "1700000000 +0000")
        .env("GIT_EDITOR", "true")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .output()
        .unwrap();
    (
        output.status.success(),
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

pub fn git(dir: &Path, args: &[&str]) -> String {
    let (ok, out, err) = try_git(dir, args);
    assert!(ok, "git {args:?} in {}: {out}{err}", dir.display());
    out
}

pub fn write(root: &Path, path: &str, content: impl AsRef<[u8]>) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

pub fn discover(root: &Path) -> Checkout {
    run(GIT.discover(root.to_owned()))
        .unwrap()
        .expect("a checkout")
}

pub fn rules(checkout: &Checkout, includes: &[&str]) -> Arc<dyn GitRules> {
    run(GIT.rules(RulesRequest {
        checkout: checkout.clone(),
        includes: includes.iter().map(|text| (*text).to_owned()).collect(),
        track_ignored: false,
    }))
    .unwrap()
}

/// Walks a tree as a scan does; calls `each` with what is carried.
pub fn walk(root: &Path, rules: &dyn CarryRules, each: &mut dyn FnMut(&RelPath, &fs::Metadata)) {
    walk_in(root, None, rules, each);
}

fn walk_in(
    root: &Path,
    dir: Option<&RelPath>,
    rules: &dyn CarryRules,
    each: &mut dyn FnMut(&RelPath, &fs::Metadata),
) {
    let at = dir.map_or_else(|| root.to_owned(), |dir| root.join(dir));
    let mut names: Vec<String> = fs::read_dir(&at)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    for name in &names {
        if rules.rule_files().contains(&&**name)
            && fs::symlink_metadata(at.join(name)).unwrap().is_file()
        {
            rules.enter(dir, name, &fs::read(at.join(name)).unwrap());
        }
    }
    for name in &names {
        let path = RelPath::child(dir, name).unwrap();
        let meta = fs::symlink_metadata(root.join(&path)).unwrap();
        match rules.verdict(&path, meta.is_dir()) {
            Verdict::Carry => {
                each(&path, &meta);
                if meta.is_dir() {
                    walk_in(root, Some(&path), rules, each);
                }
            }
            Verdict::Look if meta.is_dir() => walk_in(root, Some(&path), rules, each),
            _ => {}
        }
    }
}

/// Lists the files and symlinks that are carried.
pub fn carried(root: &Path, rules: &dyn CarryRules) -> Vec<String> {
    let mut found = Vec::new();
    walk(root, rules, &mut |path, meta| {
        if !meta.is_dir() {
            found.push(path.as_str().to_owned());
        }
    });
    found.sort();
    found
}

pub fn stat(meta: &fs::Metadata) -> FileStat {
    FileStat {
        dev: meta.dev(),
        ino: meta.ino(),
        mode: meta.mode(),
        uid: meta.uid(),
        gid: meta.gid(),
        size: meta.size(),
        mtime_ns: i128::from(meta.mtime()) * 1_000_000_000 + i128::from(meta.mtime_nsec()),
        ctime_ns: i128::from(meta.ctime()) * 1_000_000_000 + i128::from(meta.ctime_nsec()),
    }
}

/// Copies what is carried, times included.
pub fn copy(source: &Path, dest: &Path, rules: &dyn CarryRules) -> Vec<CopiedFile> {
    fs::create_dir_all(dest).unwrap();
    let mut files = Vec::new();
    walk(source, rules, &mut |path, meta| {
        let (from, to) = (source.join(path), dest.join(path));
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        let content = if meta.is_dir() {
            fs::create_dir_all(&to).unwrap();
            return;
        } else if meta.is_symlink() {
            let target = fs::read_link(&from).unwrap();
            symlink(&target, &to).unwrap();
            rustix::fs::utimensat(
                rustix::fs::CWD,
                &to,
                &rustix::fs::Timestamps {
                    last_access: rustix::fs::Timespec {
                        tv_sec: meta.atime(),
                        tv_nsec: meta.atime_nsec(),
                    },
                    last_modification: rustix::fs::Timespec {
                        tv_sec: meta.mtime(),
                        tv_nsec: meta.mtime_nsec(),
                    },
                },
                rustix::fs::AtFlags::SYMLINK_NOFOLLOW,
            )
            .unwrap();
            target.into_os_string().into_encoded_bytes()
        } else {
            let content = fs::read(&from).unwrap();
            fs::write(&to, &content).unwrap();
            fs::set_permissions(&to, meta.permissions()).unwrap();
            fs::File::options()
                .write(true)
                .open(&to)
                .unwrap()
                .set_modified(meta.modified().unwrap())
                .unwrap();
            content
        };
        files.push(CopiedFile {
            path: path.clone(),
            hash: Hash::of(&content),
            source: stat(meta),
            copy: stat(&fs::symlink_metadata(&to).unwrap()),
        });
    });
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

/// Makes the directory that parts describe.
pub fn assemble(dest: &Path, pool: &Path, parts: &[Part]) {
    fs::create_dir_all(dest).unwrap();
    fs::create_dir_all(pool).unwrap();
    for part in parts {
        match part {
            Part::Directory(path) => fs::create_dir_all(dest.join(path)).unwrap(),
            Part::Write(path, bytes) => write(dest, path.as_str(), bytes),
            Part::Copy { from, to } => {
                if from.is_file() {
                    write(dest, to.as_str(), fs::read(from).unwrap());
                }
            }
            Part::CopyTree { from, to, except } => {
                if from.is_dir() {
                    copy_tree(from, &dest.join(to), except);
                }
            }
            Part::Link { from, to, except } => link_tree(from, from, &dest.join(to), pool, except),
        }
    }
}

fn copy_tree(from: &Path, to: &Path, except: &[String]) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if except.contains(&name) {
            continue;
        }
        if entry.file_type().unwrap().is_dir() {
            copy_tree(&entry.path(), &to.join(&name), &[]);
        } else {
            fs::copy(entry.path(), to.join(&name)).unwrap();
        }
    }
}

fn link_tree(base: &Path, from: &Path, to: &Path, pool: &Path, except: &[String]) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let below = entry
            .path()
            .strip_prefix(base)
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned();
        let name = entry.file_name().into_string().unwrap();
        if except.contains(&below) || name.starts_with("tmp_") || name.ends_with(".lock") {
            continue;
        }
        if entry.file_type().unwrap().is_dir() {
            link_tree(base, &entry.path(), to, pool, except);
            continue;
        }
        let target = to.join(&below);
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        if !target.exists() {
            fs::hard_link(entry.path(), &target).unwrap();
        }
        let pooled = pool.join(below.replace('/', "!"));
        if !pooled.exists() {
            fs::hard_link(entry.path(), pooled).unwrap();
        }
    }
}

/// A sandbox as the file layer would make it.
pub struct Sandbox {
    pub root: PathBuf,
    pub pool: PathBuf,
    pub made: PrivateGit,
    pub saved: Vec<u8>,
    pub files: Vec<CopiedFile>,
}

/// Copies a checkout and gives it its private git directory.
pub fn sandbox(place: &Place, name: &str, source: &Path) -> Sandbox {
    sandbox_with(place, name, source, false, &[])
}

pub fn sandbox_with(
    place: &Place,
    name: &str,
    source: &Path,
    allow_push: bool,
    includes: &[&str],
) -> Sandbox {
    let checkout = discover(source);
    let home = place.path(name);
    let (root, pool) = (home.join("r"), home.join("pool"));
    let rules = rules(&checkout, includes);
    let files = copy(source, &root, &*rules);
    let made = run(GIT.private(PrivateRequest {
        checkout,
        root: Root {
            path: root.clone(),
            device: fs::metadata(&root).unwrap().dev(),
            inode: fs::metadata(&root).unwrap().ino(),
        },
        place: home,
        pins: None,
        files: files.clone().into(),
        allow_push,
        clean: None,
    }))
    .unwrap();
    assemble(&root.join(".git"), &pool, &made.parts);
    Sandbox {
        root,
        pool,
        made,
        saved: rules.save(),
        files,
    }
}

/// Path, mode, size, modification time, inode and content of everything.
/// Link counts and times of object files are left out.
pub fn digest(root: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    digest_in(root, root, &mut found);
    found
}

fn digest_in(base: &Path, at: &Path, found: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(at).unwrap() {
        let path = entry.unwrap().path();
        let meta = fs::symlink_metadata(&path).unwrap();
        let name = path
            .strip_prefix(base)
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned();
        let content = if meta.is_dir() {
            digest_in(base, &path, found);
            String::new()
        } else if meta.is_symlink() {
            fs::read_link(&path).unwrap().display().to_string()
        } else {
            Hash::of(&fs::read(&path).unwrap()).to_string()
        };
        let times = if name.contains("objects/") {
            String::new()
        } else {
            format!("{}.{}", meta.mtime(), meta.mtime_nsec())
        };
        let size = if meta.is_dir() { 0 } else { meta.size() };
        found.insert(
            name,
            format!(
                "{:o} {size} {times} {} {content}",
                meta.permissions().mode(),
                meta.ino()
            ),
        );
    }
}

/// The judgement of git on a repository, as text.
pub fn judged(root: &Path) -> String {
    [
        &["status", "--porcelain=v2", "--branch", "--show-stash"][..],
        &["for-each-ref"],
        &["stash", "list"],
        &["log", "--all", "--oneline", "--decorate"],
        &["ls-files", "-s", "-t"],
        &["reflog", "--all"],
    ]
    .iter()
    .map(|args| format!("$ git {}\n{}\n", args.join(" "), git(root, args)))
    .collect()
}

pub fn make_executable(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A store of one object.
#[derive(Debug)]
struct Held(Vec<u8>);

impl Contents for Held {
    fn read(&self, hash: Hash) -> sandbar_ports::PortResult<Vec<u8>> {
        assert_eq!(hash, Hash::of(&self.0));
        Ok(self.0.clone())
    }
}

/// Holds saved rules as an object store would.
pub fn held(saved: &[u8]) -> Arc<dyn Contents> {
    Arc::new(Held(saved.to_vec()))
}
