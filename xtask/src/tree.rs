//! The source tree: where it is, and which files belong to it.
#![allow(
    clippy::disallowed_methods,
    reason = "xtask is no product: it reads the source tree"
)]

use std::path::{Path, PathBuf};

use crate::process::{Outcome, Step};

/// Returns the root of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask lies in the workspace")
        .to_owned()
}

/// One text file of the tree.
pub(crate) struct Source {
    /// Its path from the root, with `/`.
    pub(crate) path: String,
    /// What it holds.
    pub(crate) text: String,
}

/// Reads every text file that git tracks or would track.
pub(crate) fn sources() -> Outcome<Vec<Source>> {
    let root = root();
    let list = Step::words("git ls-files --cached --others --exclude-standard -z")
        .dir(&root)
        .read()?;
    let mut paths: Vec<&str> = list.split('\0').filter(|path| !path.is_empty()).collect();
    paths.sort_unstable();
    paths.dedup();
    let mut sources = Vec::new();
    for path in paths {
        // Deleted but not yet staged, a symlink to nowhere, or not text.
        let Ok(text) = std::fs::read_to_string(root.join(path)) else {
            continue;
        };
        sources.push(Source {
            path: path.to_owned(),
            text,
        });
    }
    Ok(sources)
}

/// Reads one file of the tree.
pub(crate) fn read(path: &str) -> Outcome<String> {
    std::fs::read_to_string(root().join(path)).map_err(|why| format!("read {path}: {why}"))
}

/// Writes one file of the tree, only if it differs; says whether it did.
pub(crate) fn write(path: &str, text: &str) -> Outcome<bool> {
    if read(path).is_ok_and(|old| old == text) {
        return Ok(false);
    }
    let full = root().join(path);
    if let Some(dir) = full.parent() {
        std::fs::create_dir_all(dir).map_err(|why| format!("make {}: {why}", dir.display()))?;
    }
    std::fs::write(full, text).map_err(|why| format!("write {path}: {why}"))?;
    Ok(true)
}

/// Returns the directory that cargo builds into.
pub(crate) fn target() -> Outcome<PathBuf> {
    let metadata = metadata(&["--no-deps"])?;
    metadata["target_directory"]
        .as_str()
        .map(PathBuf::from)
        .ok_or_else(|| "cargo metadata names no target directory".to_owned())
}

/// Asks cargo about the workspace.
pub(crate) fn metadata(options: &[&str]) -> Outcome<serde_json::Value> {
    let text = Step::new(cargo())
        .args(["metadata", "--format-version", "1"])
        .args(options)
        .dir(&root())
        .read()?;
    serde_json::from_str(&text).map_err(|why| format!("cargo metadata: {why}"))
}

/// Returns the cargo that started xtask.
pub(crate) fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}
