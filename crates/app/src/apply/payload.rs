//! What a journal entry of an apply holds beside its operations: all that
//! recovery needs, and nothing that can be read from the targets.

use std::path::PathBuf;

use sandbar_domain::resource::Root;
use sandbar_domain::{Code, Hash};
use sandbar_ports::git::{Checkout, Landing};
use sandbar_ports::{PortError, PortResult};
use serde::{Deserialize, Serialize};

/// The version of the form below.
pub(crate) const VERSION: u32 = 1;

/// The payload of an apply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Payload {
    /// The root's path, which is UTF-8 by registration.
    pub(crate) root: PathBuf,
    /// Its device.
    pub(crate) device: u64,
    /// Its inode.
    pub(crate) inode: u64,
    /// The directory of the job.
    pub(crate) job: PathBuf,
    /// Commits to land, if any; of an undo, those to take back.
    pub(crate) landing: Option<SavedLanding>,
    /// What HEAD was on, for a checkout.
    #[serde(default)]
    pub(crate) head: Option<SavedHead>,
    /// Whether a part of the result stays in the plan.
    #[serde(default)]
    pub(crate) rest: bool,
    /// How the base of the sandbox moves with it.
    #[serde(default)]
    pub(crate) rebase: Option<Rebase>,
    /// Of an undo: the entries that it takes back, oldest first.
    #[serde(default)]
    pub(crate) undoes: Vec<String>,
}

/// What HEAD of a checkout is on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SavedHead {
    /// The full name of its branch; none when detached.
    pub(crate) branch: Option<String>,
}

impl SavedHead {
    /// Remembers it.
    pub(crate) fn of(checkout: &Checkout) -> Self {
        Self {
            branch: checkout.branch.clone(),
        }
    }
}

/// Snapshots that are the base of a sandbox before and after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Rebase {
    from: String,
    to: String,
}

impl Rebase {
    /// Moves the base.
    pub(crate) fn new(from: Hash, to: Hash) -> Self {
        Self {
            from: from.to_string(),
            to: to.to_string(),
        }
    }

    /// Returns the base before.
    pub(crate) fn from(&self) -> PortResult<Hash> {
        read(&self.from)
    }

    /// Returns the base after.
    pub(crate) fn to(&self) -> PortResult<Hash> {
        read(&self.to)
    }
}

fn read(text: &str) -> PortResult<Hash> {
    text.parse()
        .map_err(|error| PortError::new(Code::CorruptStore, format!("read {text:?}: {error}")))
}

/// A landing in stored form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SavedLanding {
    refs: Vec<(String, Option<String>, String)>,
    commits: Vec<String>,
    index: Option<(Option<String>, String)>,
    notes: Vec<String>,
}

impl Payload {
    /// Makes the payload of an entry on a root that is to do nothing but its
    /// operations; its job gets a directory when it is opened.
    pub(crate) fn on(root: &Root) -> Self {
        Self {
            root: root.path.clone(),
            device: root.device,
            inode: root.inode,
            job: PathBuf::new(),
            landing: None,
            head: None,
            rest: false,
            rebase: None,
            undoes: Vec::new(),
        }
    }

    /// Returns the root as it was when the apply began.
    pub(crate) fn root(&self) -> Root {
        Root {
            path: self.root.clone(),
            device: self.device,
            inode: self.inode,
        }
    }

    /// Writes the stored form.
    pub(crate) fn encode(&self) -> PortResult<String> {
        serde_json::to_string(self).map_err(|error| {
            PortError::new(Code::Internal, "write a journal entry").with_source(error)
        })
    }

    /// Reads the stored form of a version.
    pub(crate) fn decode(version: u32, text: &str) -> PortResult<Self> {
        if version != VERSION {
            let message = format!("read a journal entry: its form {version} is not known");
            return Err(PortError::new(Code::NewerFormat, message));
        }
        serde_json::from_str(text).map_err(|error| {
            PortError::new(Code::CorruptStore, "read a journal entry").with_source(error)
        })
    }
}

impl From<Landing> for SavedLanding {
    fn from(landing: Landing) -> Self {
        let Landing {
            refs,
            commits,
            index,
            notes,
        } = landing;
        Self {
            refs,
            commits,
            index,
            notes,
        }
    }
}

impl From<SavedLanding> for Landing {
    fn from(landing: SavedLanding) -> Self {
        let SavedLanding {
            refs,
            commits,
            index,
            notes,
        } = landing;
        Self {
            refs,
            commits,
            index,
            notes,
        }
    }
}
