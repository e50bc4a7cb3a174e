//! Starting clean: the sandbox holds a commit, not the working state (PLN-5).
//! The copy of the working state is turned into it, so that what is alike
//! keeps its inode, its times and its place in the index.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sandbar_domain::resource::Ability;
use sandbar_domain::tree::{build, empty};
use sandbar_domain::{Code, Entry, Hash, Kind, RelPath};
use sandbar_ports::git::{Checkout, Clean, GitRules, RulesRequest, Start, Wanted};
use sandbar_ports::rules::Everything;
use sandbar_ports::store::{PlanRecord, SandboxRecord};
use sandbar_ports::workspace::{CacheKey, Capture, Created, Restore};
use sandbar_ports::{PortError, PortResult};

use super::abilities::demand;
use super::capture::{GIT_DIR, OWN_DIR};
use super::locate::Located;
use super::run::Settings;
use crate::Sandbar;
use crate::apply::{ApplyRequest, Resulting};

/// How much content is stored in one go, in bytes.
const BATCH: usize = 16 << 20;

impl Sandbar {
    /// Finds the commit that `--base` names, before anything is made.
    pub(crate) async fn start_of(
        &self,
        base: Option<&str>,
        located: &Located,
    ) -> PortResult<Option<Start>> {
        let Some(rev) = base else {
            return Ok(None);
        };
        let Some(checkout) = &located.checkout else {
            let root = located.resource.root.path.display();
            let message = format!("start from {rev:?}: {root} is not a checkout");
            return Err(PortError::new(Code::NotARepository, message));
        };
        let start = self.parts.git.resolve(checkout.clone(), rev.to_owned());
        start.await.map(Some)
    }

    /// Makes the files of a new sandbox those of the commit that its private
    /// git directory is at. Returns what was made, and its rules.
    pub(crate) async fn start_clean(
        &self,
        place: &Path,
        checkout: &Checkout,
        mut created: Created,
        changes: Vec<Wanted>,
        rules: Arc<dyn GitRules>,
        track_ignored: bool,
    ) -> PortResult<(Created, Arc<dyn GitRules>)> {
        let path = place.join("r");
        let hidden = vec![GIT_DIR.to_owned(), OWN_DIR.to_owned()];
        let cache = CacheKey::Named {
            place: place.to_path_buf(),
            name: "tree.cache",
        };
        let request = Restore {
            path: path.clone(),
            tree: self.clean_tree(created.tree, changes, &*rules).await?,
            hidden: hidden.clone(),
            // Whatever was copied and is not wanted goes.
            rules: Arc::new(Everything),
            cache: cache.clone(),
            pool: None,
            progress: self.around.progress.clone(),
            cancel: self.around.cancel.clone(),
        };
        created.root = self.parts.workspaces.restore(request).await?.root;
        // What counts as ignored is for the commit's own ignore files to say.
        let git_dir = path.join(GIT_DIR);
        let request = RulesRequest {
            checkout: Checkout {
                root: path,
                common_dir: git_dir.clone(),
                git_dir,
                ..checkout.clone()
            },
            includes: vec![rules.includes()],
            track_ignored,
        };
        let rules = self.parts.git.rules(request).await?;
        let request = Capture {
            root: created.root.clone(),
            hidden,
            rules: rules.clone(),
            cache,
            install: true,
            progress: self.around.progress.clone(),
            cancel: self.around.cancel.clone(),
        };
        created.tree = self.parts.workspaces.capture(request).await?.tree;
        Ok((created, rules))
    }

    /// Stores the tree of the commit with the untracked files that stay.
    async fn clean_tree(
        &self,
        copied: Hash,
        changes: Vec<Wanted>,
        rules: &dyn GitRules,
    ) -> PortResult<Hash> {
        let listed = self.parts.objects.list(copied).await?;
        let mut paths: BTreeMap<RelPath, Entry> = listed
            .into_iter()
            .filter(|(path, entry)| match entry.kind {
                // git has no empty directories.
                Kind::Directory => entry.hash == empty() && rules.is_included(path),
                _ => true,
            })
            .collect();
        let (mut open, mut size) = (Vec::new(), 0);
        for (path, change) in changes {
            match change {
                None => {
                    paths.remove(&path);
                }
                Some((Kind::Directory, _)) => {
                    paths.insert(path, Entry::new(Kind::Directory, empty()));
                }
                Some((kind, content)) => {
                    paths.insert(path, Entry::new(kind, Hash::of(&content)));
                    size += content.len();
                    open.push(content);
                }
            }
            if size >= BATCH {
                self.parts.objects.put(std::mem::take(&mut open)).await?;
                size = 0;
            }
        }
        let built = build(paths).map_err(|error| {
            PortError::new(Code::Internal, format!("make the clean tree: {error}"))
        })?;
        open.extend(built.objects);
        self.parts.objects.put(open).await?;
        Ok(built.root)
    }

    /// Refuses commits where there are none to make, and of a plan that started
    /// from another commit than HEAD: its series would bring the commits
    /// between along.
    pub(crate) fn refuse_elsewhere(
        &self,
        request: &ApplyRequest,
        plan: &PlanRecord,
        sandbox: &SandboxRecord,
    ) -> PortResult<()> {
        if request.resulting != Resulting::Uncommitted {
            let doing = format!("commit the result of plan {}", plan.plan.name);
            demand(sandbox.strategy, Ability::Commits, &doing)?;
        }
        let settings: Settings = serde_json::from_str(&plan.plan.settings).map_err(|error| {
            let message = format!("read the settings of plan {}", plan.plan.name);
            PortError::new(Code::CorruptStore, message).with_source(error)
        })?;
        if request.resulting == Resulting::Uncommitted
            || settings.start.is_none()
            || settings.start == sandbox.base_head
        {
            return Ok(());
        }
        let message = format!(
            "commit the result of plan {}: it started from {}, where HEAD was not",
            plan.plan.name,
            settings.start.unwrap_or_default()
        );
        Err(PortError::new(Code::CommitRefused, message)
            .with_hint("apply without `--commit`/`--branch`"))
    }

    /// Cuts the caller's directory to what a clean base has of it.
    pub(crate) async fn standing(
        &self,
        sandbox: &SandboxRecord,
        subdir: PathBuf,
    ) -> PortResult<PathBuf> {
        let Some(Ok(path)) = subdir.to_str().map(RelPath::new) else {
            return Ok(subdir);
        };
        let text = path.as_str();
        let above = text.match_indices('/').map(|(at, _)| &text[..at]);
        let dirs: Vec<RelPath> = above
            .chain([text])
            .filter_map(|dir| RelPath::new(dir).ok())
            .collect();
        let tree = self.base_of(sandbox).await?.tree;
        let found = self.parts.objects.lookup(tree, dirs.clone()).await?;
        let present = dirs
            .iter()
            .zip(found)
            .take_while(|(_, entry)| entry.is_some_and(|entry| entry.kind == Kind::Directory))
            .last();
        Ok(present
            .map(|(dir, _)| dir.as_str().into())
            .unwrap_or_default())
    }
}

/// Lists the untracked files that were asked for.
pub(crate) fn asked_for(start: Start, created: &Created, rules: &dyn GitRules) -> Clean {
    let keep = created
        .files
        .iter()
        .map(|file| &file.path)
        .filter(|path| !rules.is_tracked(path) && rules.is_included(path));
    Clean {
        start,
        keep: keep.cloned().collect(),
    }
}
