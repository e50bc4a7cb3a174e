//! Foreign judges: `find`, `sha256sum`, `tar`, `git`. Each answer is text or a
//! digest, so that two of them can be compared and their difference be shown.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use crate::foreign::{bytes, command, git, output, text};

/// What is at each path of a tree, as `find` and `sha256sum` see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest(BTreeMap<Vec<u8>, String>);

/// Reads every entry below `dir`, the git directory included: kind, mode,
/// owner, size, modification time in nanoseconds, inode, link target, SHA-256.
/// Times of git's object files are left aside, since git freshens them; link
/// counts are not read at all.
pub fn manifest(dir: &Path) -> Manifest {
    let format = r"%P\0%y\0%m %U:%G %s %T@ %i\0%l\0";
    let listing = bytes(command(dir, "find").args([".", "-printf", format]));
    let mut fields = listing.split(|byte| *byte == 0);
    let mut entries = BTreeMap::new();
    let mut files: Vec<Vec<u8>> = Vec::new();
    while let (Some(path), Some(kind), Some(facts), Some(target)) =
        (fields.next(), fields.next(), fields.next(), fields.next())
    {
        let facts = String::from_utf8_lossy(facts);
        let facts: Vec<&str> = facts.split(' ').collect();
        let [mode, owner, size, time, inode] = facts[..] else {
            panic!("find printed {facts:?}");
        };
        let is_object = kind == b"f" && is_object(path);
        let time = if is_object { "-" } else { time };
        let (kind, target) = (
            String::from_utf8_lossy(kind),
            String::from_utf8_lossy(target),
        );
        let line = format!("{kind} {mode} {owner} {size} {time} {inode} {target}");
        if kind == "f" {
            files.push(path.to_vec());
        }
        entries.insert(path.to_vec(), line);
    }
    for (path, hash) in hashes(dir, &files) {
        let line = entries
            .get_mut(&path)
            .expect("only listed files are hashed");
        line.push(' ');
        line.push_str(&hash);
    }
    Manifest(entries)
}

fn is_object(path: &[u8]) -> bool {
    let path = String::from_utf8_lossy(path);
    path.starts_with(".git/objects/") || path.contains("/.git/objects/") || {
        path.starts_with(".git/modules/") && path.contains("/objects/")
    }
}

/// Asks `sha256sum` for the files of a tree.
fn hashes(dir: &Path, files: &[Vec<u8>]) -> Vec<(Vec<u8>, String)> {
    let mut child = command(dir, "xargs")
        .args(["-0", "-r", "sha256sum", "-z", "--"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("xargs starts");
    let mut input = child.stdin.take().expect("piped");
    let list: Vec<u8> = files
        .iter()
        .flat_map(|path| [b"./", path.as_slice(), b"\0"].concat())
        .collect();
    let writer = std::thread::spawn(move || input.write_all(&list));
    let result = child.wait_with_output().expect("xargs ends");
    writer
        .join()
        .expect("the writer does not panic")
        .expect("xargs reads its list");
    assert!(
        result.status.success(),
        "sha256sum failed in {}",
        dir.display()
    );
    result
        .stdout
        .split(|byte| *byte == 0)
        .filter(|line| !line.is_empty())
        .map(|line| {
            let hash = String::from_utf8_lossy(&line[..64]).into_owned();
            (line[68..].to_vec(), hash)
        })
        .collect()
}

impl Manifest {
    /// Counts the entries.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Says whether nothing is there, not even the directory itself.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the paths that differ, each with both sides.
    pub fn difference(&self, other: &Self) -> Vec<String> {
        let paths: std::collections::BTreeSet<_> = self.0.keys().chain(other.0.keys()).collect();
        paths
            .into_iter()
            .filter(|path| self.0.get(*path) != other.0.get(*path))
            .map(|path| {
                let side = |of: &Self| of.0.get(path).cloned().unwrap_or_else(|| "absent".into());
                let name = String::from_utf8_lossy(path);
                format!("{name}\n  - {}\n  + {}", side(self), side(other))
            })
            .collect()
    }

    /// Ends the test if `now` is not the same, naming what differs.
    pub fn assert_same(&self, now: &Self, what: &str) {
        let difference = self.difference(now);
        assert!(
            difference.is_empty(),
            "{what} changed:\n{}",
            difference.join("\n")
        );
    }
}

/// What is at each path of a working tree, `.git` aside: kind, executable bit
/// and content, as one word a path. For asking of each file whether it is
/// wholly old or wholly new.
pub fn contents(dir: &Path) -> BTreeMap<String, String> {
    let script = r#"find . -path ./.git -prune -o -mindepth 1 -type d -printf '%P directory\n'
        find . -path ./.git -prune -o -type l -printf '%P link %l\n'
        find . -path ./.git -prune -o -type f -perm -u+x -printf '%P executable ' -exec sha256sum {} \;
        find . -path ./.git -prune -o -type f ! -perm -u+x -printf '%P file ' -exec sha256sum {} \;
        find . -path ./.git -prune -o ! -type d ! -type l ! -type f -printf '%P special\n'"#;
    crate::foreign::sh(dir, script)
        .lines()
        .map(|line| {
            let mut words = line.splitn(3, ' ');
            let path = words.next().expect("a path").to_owned();
            let rest: Vec<&str> = words.collect();
            let rest = rest.join(" ");
            // sha256sum adds the name; the digest is enough.
            let word = rest.split("  ./").next().unwrap_or_default();
            (path, word.to_owned())
        })
        .collect()
}

/// Digests the tree as a sorted tar: times fixed, owners dropped, modes
/// reduced to the executable bit, the top `.git` left out.
pub fn tar_digest(dir: &Path) -> String {
    let tar = bytes(command(dir, "tar").args([
        "--create",
        "--sort=name",
        "--mtime=@0",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        "--mode=u=rwX,go=rX",
        "--hard-dereference",
        "--anchored",
        "--exclude=./.git",
        "--file=-",
        ".",
    ]));
    digest(&tar)
}

/// Digests bytes with `sha256sum`.
pub fn digest(content: &[u8]) -> String {
    let mut child = command(Path::new("/"), "sha256sum")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("sha256sum starts");
    let mut input = child.stdin.take().expect("piped");
    input.write_all(content).expect("sha256sum reads");
    drop(input);
    let result = child.wait_with_output().expect("sha256sum ends");
    String::from_utf8_lossy(&result.stdout[..64]).into_owned()
}

/// Returns the index as `git ls-files -s` prints it.
pub fn ls_files(dir: &Path) -> String {
    git(dir, &["ls-files", "-s"])
}

/// Returns HEAD and every ref outside `refs/sandbar/`.
pub fn for_each_ref(dir: &Path) -> String {
    let format = "--format=%(refname) %(objectname) %(symref)";
    let refs = git(dir, &["for-each-ref", format]);
    let refs: Vec<&str> = refs
        .lines()
        .filter(|line| !line.starts_with("refs/sandbar/"))
        .collect();
    format!("HEAD {}\n{}", head(dir), refs.join("\n"))
}

/// Returns the branch that HEAD is on, else the commit.
pub fn head(dir: &Path) -> String {
    let branch = output(command(dir, "git").args(["symbolic-ref", "-q", "HEAD"]));
    if branch.status.success() {
        return String::from_utf8_lossy(&branch.stdout).trim().to_owned();
    }
    git(dir, &["rev-parse", "HEAD"])
}

/// Ends the test unless git finds every object sound and reachable.
pub fn fsck(dir: &Path) {
    let result =
        output(command(dir, "git").args(["fsck", "--full", "--no-dangling", "--no-progress"]));
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&result.stdout),
        String::from_utf8_lossy(&result.stderr)
    );
    let bad: Vec<&str> = said
        .lines()
        .filter(|line| !line.starts_with("notice:"))
        .collect();
    assert!(
        result.status.success() && bad.is_empty(),
        "git fsck in {}: {}\n{}",
        dir.display(),
        result.status,
        bad.join("\n")
    );
}

/// Three answers about a checkout that together say "the same state": tree,
/// index, refs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckoutState {
    /// [`tar_digest`].
    pub tree: String,
    /// [`ls_files`].
    pub index: String,
    /// [`for_each_ref`].
    pub refs: String,
}

/// Reads the state of a checkout, which must be sound.
pub fn checkout(dir: &Path) -> CheckoutState {
    fsck(dir);
    CheckoutState {
        tree: tar_digest(dir),
        index: ls_files(dir),
        refs: for_each_ref(dir),
    }
}

/// Asks git whether it would take a patch on top of the working tree.
pub fn git_apply_check(dir: &Path, patch: &[u8]) -> Result<(), String> {
    git_apply(dir, patch, &["--check"])
}

/// Has git apply a patch to the working tree. Empty patches are taken too.
pub fn git_apply(dir: &Path, patch: &[u8], options: &[&str]) -> Result<(), String> {
    let mut child = command(dir, "git")
        .args(["apply", "--allow-empty", "--whitespace=nowarn"])
        .args(options)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("git starts");
    let mut input = child.stdin.take().expect("piped");
    // git may end before it has read a patch that it refuses.
    let _ = input.write_all(patch);
    drop(input);
    let result = child.wait_with_output().expect("git ends");
    if result.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&result.stderr).into_owned())
    }
}

/// Returns what `git status` sees, without touching the index.
pub fn status(dir: &Path) -> String {
    text(command(dir, "git").args(["status", "--porcelain=v1", "--untracked-files=all"]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::sh;

    #[test]
    fn each_kind_of_change_shows_in_the_manifest() {
        for change in [
            "echo more >> f",
            "chmod +x f",
            "touch -d @1 f",
            "cp f g && mv g f && touch -r d f",
            "ln -sf elsewhere l",
            "touch n",
            "rm f",
            "touch .git/config.lock",
        ] {
            let dir = tempfile::tempdir().expect("scratch");
            let dir = dir.path();
            sh(dir, "echo a > f; mkdir d .git; ln -s f l; touch -d @5 f d");
            let before = manifest(dir);
            assert_eq!(before.difference(&manifest(dir)), [] as [String; 0]);
            sh(dir, change);
            assert!(!before.difference(&manifest(dir)).is_empty(), "{change}");
        }
    }

    #[test]
    fn times_of_objects_are_left_aside() {
        let dir = tempfile::tempdir().expect("scratch");
        let dir = dir.path();
        sh(dir, "mkdir -p .git/objects/aa; echo x > .git/objects/aa/bb");
        let before = manifest(dir);
        sh(dir, "touch -d @7 .git/objects/aa/bb");
        before.assert_same(&manifest(dir), "the repository");
        sh(dir, "echo y > .git/objects/aa/bb");
        assert_eq!(before.difference(&manifest(dir)).len(), 1);
    }

    #[test]
    fn the_digest_sees_bits_and_links_but_no_times() {
        let dir = tempfile::tempdir().expect("scratch");
        let dir = dir.path();
        sh(dir, "echo a > f; ln -s f l; mkdir .git; chmod 600 f");
        let before = tar_digest(dir);
        sh(dir, "touch -d @7 f; chmod 664 f; touch .git/x");
        assert_eq!(tar_digest(dir), before);
        for change in ["chmod u+x f", "ln -sf g l", "mkdir e", "echo b > f"] {
            let before = tar_digest(dir);
            sh(dir, change);
            assert_ne!(tar_digest(dir), before, "{change}");
        }
    }
}
