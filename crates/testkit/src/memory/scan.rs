//! The scan of a root in memory: what is carried under the rules, and the
//! directory objects made of it.

use std::path::{Path, PathBuf};

use sandbar_domain::tree::Tree;
use sandbar_domain::{Code, Entry, Hash, Kind, RelPath};
use sandbar_ports::rules::{CarryRules, Verdict};
use sandbar_ports::workspace::Tally;
use sandbar_ports::{PortError, PortResult};

use super::disk::{Disk, What};

/// The most ignored paths that are named.
const NAMED: usize = 1_000;

/// What a scan found.
#[derive(Debug, Default)]
pub(super) struct Scanned {
    /// The hash of the root's directory object.
    pub(super) tree: Option<Hash>,
    /// Directory objects and contents to store.
    pub(super) objects: Vec<Vec<u8>>,
    /// Everything carried, by path below the root; parents first.
    pub(super) carried: Vec<(RelPath, Entry)>,
    /// What was counted.
    pub(super) tally: Tally,
}

/// What goes over a root.
pub(super) struct Scan<'a> {
    pub(super) disk: &'a Disk,
    pub(super) root: &'a Path,
    pub(super) hidden: &'a [String],
    pub(super) rules: &'a dyn CarryRules,
}

impl Scan<'_> {
    /// Scans the root.
    pub(super) fn run(&self) -> PortResult<Scanned> {
        let mut found = Scanned::default();
        let (tree, _) = self.directory(None, &mut found)?;
        found.tree = Some(tree);
        found.carried.sort_by(|a, b| a.0.cmp(&b.0));
        found.tally.ignored_paths.sort_unstable();
        found.tally.ignored_paths.truncate(NAMED);
        found.tally.unsupported.sort_unstable();
        Ok(found)
    }

    fn at(&self, path: Option<&RelPath>) -> PathBuf {
        match path {
            None => self.root.to_owned(),
            Some(path) => self.root.join(path),
        }
    }

    /// Returns the directory's object and whether anything is carried in it.
    fn directory(&self, dir: Option<&RelPath>, found: &mut Scanned) -> PortResult<(Hash, bool)> {
        let place = self.at(dir);
        let names = self.disk.names(&place);
        for rule_file in self.rules.rule_files() {
            if let Some(What::File { bytes, .. }) =
                self.disk.get(&place.join(rule_file)).map(|node| &node.what)
            {
                self.rules.enter(dir, rule_file, bytes);
            }
        }
        let mut entries: Vec<(Box<str>, Entry)> = Vec::new();
        for name in names {
            let lossy = name.to_string_lossy().into_owned();
            if dir.is_none() && self.hidden.iter().any(|hidden| name == hidden.as_str()) {
                continue;
            }
            let what = match self.disk.get(&place.join(&name)) {
                Some(node) => &node.what,
                None => continue,
            };
            let shown = match dir {
                Some(dir) => format!("{dir}/{lossy}"),
                None => lossy.clone(),
            };
            let path = RelPath::child(dir, &lossy);
            let is_dir = *what == What::Directory;
            let verdict = match &path {
                Ok(path) => self.rules.verdict(path, is_dir),
                Err(_) => Verdict::Carry,
            };
            match verdict {
                Verdict::Hide => continue,
                Verdict::Look if is_dir => {}
                Verdict::Ignore | Verdict::Look => {
                    ignore(&mut found.tally, shown);
                    continue;
                }
                Verdict::Carry => {}
            }
            let path = match path {
                Ok(path) if name.to_str().is_some() => path,
                Ok(_) => {
                    let why = "its name is not UTF-8".to_owned();
                    found.tally.unsupported.push((shown, why));
                    continue;
                }
                Err(error) => {
                    found.tally.unsupported.push((shown, error.to_string()));
                    continue;
                }
            };
            let entry = if is_dir {
                let mut beneath = Scanned::default();
                let (hash, carries) = self.directory(Some(&path), &mut beneath)?;
                if verdict == Verdict::Look && !carries {
                    ignore(&mut found.tally, shown);
                    continue;
                }
                merge(found, beneath);
                found.tally.directories += 1;
                Entry::new(Kind::Directory, hash)
            } else {
                let Some(entry) = what.entry() else {
                    let why = "it is a special file".to_owned();
                    found.tally.unsupported.push((shown, why));
                    continue;
                };
                let bytes = what.content().unwrap_or_default();
                found.tally.files += 1;
                if entry.kind.is_file() {
                    found.tally.bytes += bytes.len() as u64;
                }
                found.objects.push(bytes.to_vec());
                entry
            };
            found.carried.push((path, entry));
            entries.push((lossy.into(), entry));
        }
        let carries = !entries.is_empty();
        let tree = Tree::new(entries).map_err(|error| {
            PortError::new(Code::Internal, format!("scan {}: {error}", place.display()))
        })?;
        let bytes = tree.encode();
        let hash = Hash::of(&bytes);
        found.objects.push(bytes);
        Ok((hash, carries))
    }
}

fn ignore(tally: &mut Tally, path: String) {
    tally.ignored += 1;
    tally.ignored_paths.push(path);
}

fn merge(found: &mut Scanned, beneath: Scanned) {
    let Scanned {
        tree: _,
        objects,
        carried,
        tally,
    } = beneath;
    let Tally {
        files,
        directories,
        bytes,
        ignored,
        ignored_paths,
        unsupported,
    } = tally;
    found.objects.extend(objects);
    found.carried.extend(carried);
    found.tally.files += files;
    found.tally.directories += directories;
    found.tally.bytes += bytes;
    found.tally.ignored += ignored;
    found.tally.ignored_paths.extend(ignored_paths);
    found.tally.unsupported.extend(unsupported);
}
