//! Which paths of a checkout belong to its sandbox: gitignore semantics, the
//! index, `.worktreeinclude` and includes (PLN-5, CKP-6). A judgement touches
//! no disk, but for one look whether an untracked directory is a repository.

mod engine;
mod patterns;
mod realm;
mod sandbox;
mod saved;
mod state;
mod tracked;

pub(crate) use engine::Engine;
pub(crate) use sandbox::SandboxRules;
pub(crate) use state::StateRules;

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use sandbar_domain::{Hash, RelPath};
use sandbar_ports::PortResult;
use sandbar_ports::git::{GitRules, RulesRequest};
use sandbar_ports::rules::{CarryRules, Verdict};

use self::patterns::List;
use self::realm::Realm;
use crate::open::Scope;
use crate::reading;

/// Names of the files that hold rules.
const RULE_FILES: &[&str] = &[".gitignore"];

/// Rules of a real checkout.
pub(crate) struct BaseRules {
    engine: Engine,
}

impl BaseRules {
    /// Reads the index, the exclude files and `.worktreeinclude`.
    pub(crate) fn load(request: &RulesRequest, scope: Scope) -> PortResult<Self> {
        let root = &request.checkout.root;
        let mut includes = reading::file(&root.join(".worktreeinclude"))?.unwrap_or_default();
        for pattern in &request.includes {
            includes.push(b'\n');
            includes.extend_from_slice(pattern.as_bytes());
        }
        let engine = Engine::new(
            Realm::load(root, "", scope)?,
            List::parse(&includes),
            request.track_ignored,
        );
        Ok(Self {
            engine: engine.probing(root, scope),
        })
    }
}

impl CarryRules for BaseRules {
    fn rule_files(&self) -> &[&str] {
        RULE_FILES
    }

    fn enter(&self, dir: Option<&RelPath>, name: &str, content: &[u8]) {
        self.engine
            .enter(dir.map_or("", RelPath::as_str), name, content);
    }

    fn verdict(&self, path: &RelPath, is_dir: bool) -> Verdict {
        self.engine.verdict(path.as_str(), is_dir)
    }

    fn identity(&self) -> Option<Hash> {
        Some(Hash::of(&self.save()))
    }

    fn lasting(&self, path: &RelPath, is_dir: bool) -> bool {
        self.verdict(path, is_dir) == Verdict::Carry
    }
}

impl GitRules for BaseRules {
    fn save(&self) -> Vec<u8> {
        saved::encode(&self.engine)
    }

    fn is_tracked(&self, path: &RelPath) -> bool {
        self.engine.is_tracked(path.as_str())
    }

    fn is_included(&self, path: &RelPath) -> bool {
        self.engine.is_included(path.as_str())
    }

    fn includes(&self) -> String {
        String::from_utf8_lossy(self.engine.includes().raw()).into_owned()
    }
}

/// Lists those of `paths` that the present rules of a working tree ignore,
/// includes apart.
pub(crate) fn ignored<'p>(
    root: &Path,
    paths: impl Iterator<Item = &'p RelPath>,
    scope: Scope,
) -> PortResult<HashSet<RelPath>> {
    let engine = Engine::new(Realm::load(root, "", scope)?, List::default(), false);
    let mut entered = HashSet::new();
    let mut found = HashSet::new();
    for path in paths {
        let text = path.as_str();
        let above = text.match_indices('/').map(|(at, _)| &text[..at]);
        for dir in std::iter::once("").chain(above) {
            if entered.insert(dir.to_owned())
                && let Some(content) = reading::file(&root.join(dir).join(".gitignore"))?
            {
                engine.enter(dir, ".gitignore", &content);
            }
        }
        if engine.verdict(text, false) == Verdict::Ignore {
            found.insert(path.clone());
        }
    }
    Ok(found)
}

/// Shares rules behind the port's trait.
pub(crate) fn shared(rules: impl GitRules + 'static) -> Arc<dyn GitRules> {
    Arc::new(rules)
}
