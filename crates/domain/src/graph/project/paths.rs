//! Arithmetic on absolute paths and `file:` URIs, at component borders. Never
//! looks at a file system.

use super::ask::Mount;

/// Returns what is left of `path` beneath `root`: empty for the root itself,
/// else without a leading slash.
pub(super) fn beneath<'a>(path: &'a str, root: &str) -> Option<&'a str> {
    let rest = path.strip_prefix(root.trim_end_matches('/'))?;
    match rest.strip_prefix('/') {
        Some(rest) => Some(rest),
        None if rest.is_empty() => Some(rest),
        None => None,
    }
}

/// Joins a root and what is beneath it.
pub(super) fn join(root: &str, rest: &str) -> String {
    let root = root.trim_end_matches('/');
    match (root, rest) {
        ("", "") => "/".to_owned(),
        (root, "") => root.to_owned(),
        (root, rest) => format!("{root}/{rest}"),
    }
}

/// Finds the mount that a path inside a container lies in: the one with the
/// longest destination (PRJ-3).
pub(super) fn mount_of<'a>(path: &str, mounts: &'a [Mount]) -> Option<&'a Mount> {
    let within = mounts
        .iter()
        .filter(|mount| beneath(path, &mount.destination).is_some());
    within.max_by_key(|mount| mount.destination.trim_end_matches('/').len())
}

const SCHEME: &str = "file://";

/// Returns the path of a `file:` URI without a host.
pub(super) fn uri_to_path(uri: &str) -> Option<String> {
    let path = uri.strip_prefix(SCHEME)?;
    let path = path.strip_prefix("localhost").unwrap_or(path);
    if !path.starts_with('/') {
        return None;
    }
    let bytes = path.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == b'%' {
            let digits = path.get(at + 1..at + 3)?;
            out.push(u8::from_str_radix(digits, 16).ok()?);
            at += 3;
        } else {
            out.push(bytes[at]);
            at += 1;
        }
    }
    String::from_utf8(out).ok()
}

/// Returns the `file:` URI of an absolute path.
pub(super) fn path_to_uri(path: &str) -> String {
    let mut uri = SCHEME.to_owned();
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/!$&'()*+,;=@".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn borders_are_respected() {
        assert_eq!(beneath("/a/b/c", "/a/b"), Some("c"));
        assert_eq!(beneath("/a/b", "/a/b/"), Some(""));
        assert_eq!(beneath("/a/bc", "/a/b"), None);
        assert_eq!(beneath("/etc", "/"), Some("etc"));
        assert_eq!(join("/", "etc"), "/etc");
        assert_eq!(join("/", ""), "/");
        assert_eq!(join("/a/", "b"), "/a/b");
    }

    #[test]
    fn uris_survive_the_way_there_and_back() {
        for path in ["/a b/ü%.rs", "/", "/x#y?z"] {
            assert_eq!(uri_to_path(&path_to_uri(path)).as_deref(), Some(path));
        }
        assert_eq!(uri_to_path("file:///a%20b").as_deref(), Some("/a b"));
        assert_eq!(uri_to_path("file:///a%2"), None);
        assert_eq!(uri_to_path("file://host/a"), None);
        assert_eq!(uri_to_path("untitled:Untitled-1"), None);
    }
}
