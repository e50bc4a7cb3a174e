//! What belongs to a sandbox though the ignore rules inside say otherwise: the
//! paths of its base, which an update may have moved, and those of a tree that
//! is about to be restored. Left out of a scan, the first would count as
//! deleted, and the second would be overwritten unsaved.

use std::collections::HashSet;
use std::sync::Arc;

use sandbar_domain::{Hash, RelPath};
use sandbar_ports::rules::{CarryRules, Everything, Verdict};
use sandbar_ports::store::SandboxRecord;
use sandbar_ports::{PortError, PortResult};

use super::checkpoint::part_of;
use crate::Sandbar;

/// Ignore rules, and paths that they do not touch.
struct Beyond {
    rules: Arc<dyn CarryRules>,
    /// Directories among them, and those above.
    paths: HashSet<RelPath>,
}

impl CarryRules for Beyond {
    fn rule_files(&self) -> &[&str] {
        self.rules.rule_files()
    }

    fn enter(&self, dir: Option<&RelPath>, name: &str, content: &[u8]) {
        self.rules.enter(dir, name, content);
    }

    fn verdict(&self, path: &RelPath, is_dir: bool) -> Verdict {
        match self.rules.verdict(path, is_dir) {
            Verdict::Ignore | Verdict::Look if self.paths.contains(path) => Verdict::Carry,
            other => other,
        }
    }

    fn identity(&self) -> Option<Hash> {
        self.rules.identity()
    }

    /// As the rules say: what is carried beyond them is asked for each time.
    fn lasting(&self, path: &RelPath, is_dir: bool) -> bool {
        self.rules.lasting(path, is_dir)
    }

    fn fault(&self) -> Option<PortError> {
        self.rules.fault()
    }
}

impl Sandbar {
    /// Returns the ignore rules of a sandbox. What its base holds is carried
    /// whatever they say, and so is what `trees` hold.
    pub(crate) async fn rules_over(
        &self,
        sandbox: &SandboxRecord,
        trees: &[Hash],
    ) -> PortResult<Arc<dyn CarryRules>> {
        let Some(saved) = sandbox.rules else {
            return Ok(Arc::new(Everything));
        };
        let root = sandbox.place.join("r");
        let contents = self.parts.contents.clone();
        let rules = self.parts.git.sandbox_rules(root, saved, contents).await?;
        let paths = self.paths_beyond(sandbox, trees).await?;
        if paths.is_empty() {
            return Ok(rules);
        }
        Ok(Arc::new(Beyond { rules, paths }))
    }

    /// Lists what the base and `trees` hold beyond the first base, all of
    /// which the saved rules carry, and the directories above.
    async fn paths_beyond(
        &self,
        sandbox: &SandboxRecord,
        trees: &[Hash],
    ) -> PortResult<HashSet<RelPath>> {
        let mut paths = HashSet::new();
        let all = self.parts.store.checkpoints(sandbox.plan).await?;
        let Some(first) = all.first() else {
            return Ok(paths);
        };
        let first = part_of(first, sandbox)?.snapshot;
        let mut trees = trees.to_vec();
        if let Some(base) = sandbox.base.filter(|base| *base != first) {
            trees.push(self.snapshot(base).await?.tree);
        }
        if trees.is_empty() {
            return Ok(paths);
        }
        let first = self.snapshot(first).await?.tree;
        for tree in trees {
            for change in self.parts.objects.diff(first, tree).await? {
                let mut path = change.new.map(|_| change.path);
                while let Some(at) = path {
                    path = at.parent();
                    if !paths.insert(at) {
                        break;
                    }
                }
            }
        }
        Ok(paths)
    }
}
