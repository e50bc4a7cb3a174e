//! One repository as the rules see it: the checkout itself, a submodule in
//! it, or a repository nested in it. Each has its own index and excludes.

use std::path::Path;

use gix::glob::pattern::Case;
use sandbar_ports::PortResult;

use super::patterns::List;
use super::tracked::Tracked;
use crate::index::Index;
use crate::open::{Scope, failed, open};
use crate::reading;

/// What a repository says about its working tree, ignore files apart.
#[derive(Debug, Clone, Default)]
pub(crate) struct Realm {
    /// Where its working tree is, relative to the root; empty for the root.
    pub(crate) prefix: String,
    /// The paths of its index, relative to its working tree.
    pub(crate) tracked: Tracked,
    /// `info/exclude`.
    pub(crate) exclude: List,
    /// `core.excludesFile`.
    pub(crate) user: List,
    /// Ignore files that are in the index only, since a sparse checkout left
    /// them out: directory (relative to its working tree) and content.
    pub(crate) absent: Vec<(String, Vec<u8>)>,
    /// Whether case matters.
    pub(crate) folds: bool,
}

impl Realm {
    /// Reads a repository.
    pub(crate) fn load(workdir: &Path, prefix: &str, scope: Scope) -> PortResult<Self> {
        let repository = open(workdir, scope)?;
        let index = Index::load(&repository)?;
        let mut absent = Vec::new();
        for entry in index.entries().filter(|entry| entry.skip_worktree()) {
            let Ok(path) = std::str::from_utf8(entry.path) else {
                continue;
            };
            let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
            if name == ".gitignore"
                && let Ok(blob) = repository.find_blob(entry.id())
            {
                absent.push((dir.to_owned(), blob.data.clone()));
            }
        }
        let exclude = reading::followed(&repository.common_dir().join("info/exclude"))?;
        let user = excludes_file(&repository, scope)?;
        let config = repository.config_snapshot();
        Ok(Self {
            prefix: prefix.to_owned(),
            tracked: Tracked::of(&index),
            exclude: List::parse(&exclude.unwrap_or_default()),
            user: List::parse(&user.unwrap_or_default()),
            absent,
            folds: config.boolean("core.ignoreCase").unwrap_or(false),
        })
    }

    /// Cuts a path of the root to one of its working tree.
    pub(crate) fn relative<'p>(&self, path: &'p str) -> &'p str {
        if self.prefix.is_empty() {
            path
        } else {
            path.get(self.prefix.len() + 1..).unwrap_or("")
        }
    }

    /// Says how patterns compare letters.
    pub(crate) fn case(&self) -> Case {
        if self.folds {
            Case::Fold
        } else {
            Case::Sensitive
        }
    }
}

fn excludes_file(repository: &gix::Repository, scope: Scope) -> PortResult<Option<Vec<u8>>> {
    let config = repository.config_snapshot();
    let path = match config.trusted_path("core.excludesFile") {
        Ok(Some(path)) => path,
        Err(error) => return Err(failed("read core.excludesFile")(error)),
        Ok(None) if scope == Scope::Repository => return Ok(None),
        Ok(None) => {
            let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
            let Some(base) = set("XDG_CONFIG_HOME")
                .map(std::path::PathBuf::from)
                .or_else(|| set("HOME").map(|home| Path::new(&home).join(".config")))
            else {
                return Ok(None);
            };
            base.join("git/ignore")
        }
    };
    let base = repository.workdir().unwrap_or_else(|| repository.git_dir());
    reading::followed(&base.join(path))
}
