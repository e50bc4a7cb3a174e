//! Rules of a sandbox: ignored only where the base's and its own agree
//! (CKP-6). They are read when the first path is to be judged, since a scan
//! that finds nothing new needs no judgement.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use sandbar_domain::{Hash, RelPath};
use sandbar_ports::git::{Contents, GitRules};
use sandbar_ports::rules::{CarryRules, Verdict};
use sandbar_ports::{PortError, PortResult};

use super::engine::Engine;
use super::patterns::List;
use super::realm::Realm;
use super::{RULE_FILES, saved};
use crate::open::Scope;

/// Rules of the base, as saved, and those of the private git directory.
pub(crate) struct SandboxRules {
    root: PathBuf,
    scope: Scope,
    saved: Hash,
    contents: Arc<dyn Contents>,
    engines: OnceLock<Option<Engines>>,
    early: Mutex<Early>,
}

struct Engines {
    base: Engine,
    current: Engine,
}

/// What came before the engines were there, and what came of reading them.
#[derive(Default)]
struct Early {
    /// Directory, name and content of rule files.
    files: Vec<(String, String, Vec<u8>)>,
    fault: Option<PortError>,
}

impl SandboxRules {
    /// Describes rules; reads nothing.
    pub(crate) fn new(
        root: PathBuf,
        saved: Hash,
        contents: Arc<dyn Contents>,
        scope: Scope,
    ) -> Self {
        Self {
            root,
            scope,
            saved,
            contents,
            engines: OnceLock::new(),
            early: Mutex::default(),
        }
    }

    /// Returns the engines; none where the saved rules cannot be read.
    fn engines(&self) -> Option<&Engines> {
        if let Some(engines) = self.engines.get() {
            return engines.as_ref();
        }
        // Held throughout: whoever comes meanwhile waits, and no rule file
        // falls between the engines and those that came early.
        let mut early = self.early.lock().unwrap_or_else(PoisonError::into_inner);
        let engines = self.engines.get_or_init(|| match self.load() {
            Ok(engines) => {
                for (dir, name, content) in std::mem::take(&mut early.files) {
                    engines.current.enter(&dir, &name, &content);
                }
                Some(engines)
            }
            Err(error) => {
                early.fault = Some(error);
                None
            }
        });
        engines.as_ref()
    }

    /// Where the git directory is damaged, what is left of the current rules
    /// is the ignore files: whatever was done inside, a checkpoint can be
    /// taken.
    fn load(&self) -> PortResult<Engines> {
        let base = saved::decode(&self.contents.read(self.saved)?)?;
        let realm = Realm::load(&self.root, "", self.scope).unwrap_or_default();
        let current = Engine::new(realm, List::default(), base.track_ignored());
        Ok(Engines {
            base,
            current: current.probing(&self.root, self.scope),
        })
    }
}

impl CarryRules for SandboxRules {
    fn rule_files(&self) -> &[&str] {
        RULE_FILES
    }

    fn enter(&self, dir: Option<&RelPath>, name: &str, content: &[u8]) {
        let dir = dir.map_or("", RelPath::as_str);
        if self.engines.get().is_none() {
            let mut early = self.early.lock().unwrap_or_else(PoisonError::into_inner);
            if self.engines.get().is_none() {
                let file = (dir.to_owned(), name.to_owned(), content.to_vec());
                early.files.push(file);
                return;
            }
        }
        if let Some(engines) = self.engines() {
            engines.current.enter(dir, name, content);
        }
    }

    fn verdict(&self, path: &RelPath, is_dir: bool) -> Verdict {
        let Some(engines) = self.engines() else {
            return Verdict::Carry;
        };
        let base = engines.base.verdict(path.as_str(), is_dir);
        if matches!(base, Verdict::Carry | Verdict::Hide) {
            return base;
        }
        match engines.current.verdict(path.as_str(), is_dir) {
            Verdict::Ignore => base,
            current => current,
        }
    }

    fn identity(&self) -> Option<Hash> {
        Some(self.saved)
    }

    fn lasting(&self, path: &RelPath, is_dir: bool) -> bool {
        self.engines()
            .is_some_and(|engines| engines.base.verdict(path.as_str(), is_dir) == Verdict::Carry)
    }

    fn fault(&self) -> Option<PortError> {
        let mut early = self.early.lock().unwrap_or_else(PoisonError::into_inner);
        early.fault.take()
    }
}

impl GitRules for SandboxRules {
    fn save(&self) -> Vec<u8> {
        self.engines()
            .map_or_else(Vec::new, |engines| saved::encode(&engines.base))
    }

    fn is_tracked(&self, path: &RelPath) -> bool {
        self.engines()
            .is_some_and(|engines| engines.current.is_tracked(path.as_str()))
    }

    fn is_included(&self, path: &RelPath) -> bool {
        self.engines()
            .is_some_and(|engines| engines.base.is_included(path.as_str()))
    }

    fn includes(&self) -> String {
        self.engines().map_or_else(String::new, |engines| {
            String::from_utf8_lossy(engines.base.includes().raw()).into_owned()
        })
    }
}
