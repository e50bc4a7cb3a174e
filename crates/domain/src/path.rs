//! Relative paths inside a root. A value of this type cannot leave its root.

use std::fmt;

/// The longest name of one component, in bytes.
pub const MAX_NAME: usize = 255;
/// The longest path, in bytes.
pub const MAX_PATH: usize = 4095;

/// A UTF-8 path relative to a root: one or more names joined by `/`, none of
/// them empty, `.` or `..` (ENV-3). Ordered by bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelPath(Box<str>);

/// Why a text is not a [`RelPath`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadPath {
    /// No name at all.
    #[error("the path is empty")]
    Empty,
    /// Starts with `/`.
    #[error("the path is absolute")]
    Absolute,
    /// An empty, `.` or `..` component.
    #[error("the path has an empty, '.' or '..' component")]
    Component,
    /// A NUL byte.
    #[error("the path has a NUL byte")]
    Nul,
    /// A name of more than 255 bytes.
    #[error("a name is longer than 255 bytes")]
    NameTooLong,
    /// More than 4,095 bytes.
    #[error("the path is longer than 4,095 bytes")]
    TooLong,
    /// Not UTF-8.
    #[error("the path is not UTF-8")]
    NotUtf8,
}

impl RelPath {
    /// Checks `text` and wraps it.
    pub fn new(text: &str) -> Result<Self, BadPath> {
        if text.is_empty() {
            return Err(BadPath::Empty);
        }
        if text.starts_with('/') {
            return Err(BadPath::Absolute);
        }
        if text.len() > MAX_PATH {
            return Err(BadPath::TooLong);
        }
        text.split('/').try_for_each(check_name)?;
        Ok(Self(text.into()))
    }

    /// Checks bytes that came from a file system or a git object.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BadPath> {
        Self::new(std::str::from_utf8(bytes).map_err(|_| BadPath::NotUtf8)?)
    }

    /// Appends one name.
    pub fn join(&self, name: &str) -> Result<Self, BadPath> {
        check_name(name)?;
        let text = format!("{}/{name}", self.0);
        if text.len() > MAX_PATH {
            return Err(BadPath::TooLong);
        }
        Ok(Self(text.into()))
    }

    /// Appends `name` to `parent`, where `None` is the root itself.
    pub fn child(parent: Option<&Self>, name: &str) -> Result<Self, BadPath> {
        match parent {
            Some(parent) => parent.join(name),
            None if name.contains('/') => Err(BadPath::Component),
            None => Self::new(name),
        }
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the last name.
    pub fn name(&self) -> &str {
        self.0.rsplit('/').next().expect("a path has a name")
    }

    /// Returns the directory that holds it; `None` is the root.
    pub fn parent(&self) -> Option<Self> {
        self.0
            .rsplit_once('/')
            .map(|(parent, _)| Self(parent.into()))
    }

    /// Iterates over the names, outermost first.
    pub fn names(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('/')
    }

    /// Counts the names.
    pub fn depth(&self) -> usize {
        self.names().count()
    }

    /// Says whether it is `dir` or lies beneath it.
    pub fn is_within(&self, dir: &Self) -> bool {
        self.0
            .strip_prefix(&*dir.0)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

fn check_name(name: &str) -> Result<(), BadPath> {
    match name {
        "" | "." | ".." => Err(BadPath::Component),
        name if name.contains('/') => Err(BadPath::Component),
        name if name.contains('\0') => Err(BadPath::Nul),
        name if name.len() > MAX_NAME => Err(BadPath::NameTooLong),
        _ => Ok(()),
    }
}

impl fmt::Display for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

impl AsRef<std::path::Path> for RelPath {
    fn as_ref(&self) -> &std::path::Path {
        std::path::Path::new(&*self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_paths_are_refused_by_kind() {
        for (text, why) in [
            ("", BadPath::Empty),
            ("/etc/passwd", BadPath::Absolute),
            ("..", BadPath::Component),
            ("a/../b", BadPath::Component),
            ("a//b", BadPath::Component),
            ("a/", BadPath::Component),
            ("./a", BadPath::Component),
            ("a\0b", BadPath::Nul),
        ] {
            assert_eq!(RelPath::new(text), Err(why), "{text:?}");
        }
        assert_eq!(RelPath::new(&"n".repeat(256)), Err(BadPath::NameTooLong));
        assert_eq!(RelPath::new(&"n/".repeat(2048)), Err(BadPath::TooLong));
        assert_eq!(RelPath::from_bytes(b"a\xff"), Err(BadPath::NotUtf8));
        assert_eq!(RelPath::child(None, "a/b"), Err(BadPath::Component));
    }

    #[test]
    fn within_respects_component_borders() {
        let path = |text| RelPath::new(text).expect("valid");
        assert!(path("a/b").is_within(&path("a")));
        assert!(path("a").is_within(&path("a")));
        assert!(!path("ab").is_within(&path("a")));
    }
}
