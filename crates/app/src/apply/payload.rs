//! What a journal entry of an apply holds beside its operations: all that
//! recovery needs, and nothing that can be read from the targets.

use std::path::PathBuf;

use sandbar_domain::Code;
use sandbar_domain::resource::Root;
use sandbar_ports::git::Landing;
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
    /// Commits to land, if any.
    pub(crate) landing: Option<SavedLanding>,
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
