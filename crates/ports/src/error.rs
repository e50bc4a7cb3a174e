//! The one error type of all ports.

use std::error::Error as StdError;
use std::fmt;

use sandbar_domain::{Code, Disposition};

/// What a port returns.
pub type PortResult<T> = Result<T, PortError>;

/// A failure of a port: a code of the closed list, what the caller may
/// conclude, and a fragment that reads well after "failed to …".
#[derive(Debug)]
pub struct PortError {
    /// The stable code.
    pub code: Code,
    /// What the caller may conclude.
    pub disposition: Disposition,
    /// What happened, in lower case, with the path or name it concerns.
    pub message: String,
    /// The paths or names it concerns, where there are several.
    pub subjects: Vec<String>,
    /// A better hint than the code's own.
    pub hint: Option<String>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl PortError {
    /// Makes an error with the code's usual disposition.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            disposition: code.disposition(),
            message: message.into(),
            subjects: Vec::new(),
            hint: None,
            source: None,
        }
    }

    /// Sets a more precise disposition.
    #[must_use]
    pub fn with_disposition(mut self, disposition: Disposition) -> Self {
        self.disposition = disposition;
        self
    }

    /// Sets the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Sets a hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Names what it concerns.
    #[must_use]
    pub fn with_subjects(mut self, subjects: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.subjects = subjects.into_iter().map(Into::into).collect();
        self
    }
}

impl fmt::Display for PortError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for PortError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
