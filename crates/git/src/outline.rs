//! What a working tree says of its repository and its submodules. Reads two
//! small files; opens no repository and judges nothing.

use std::path::Path;

use sandbar_domain::RelPath;
use sandbar_ports::PortResult;
use sandbar_ports::git::Outline;

use crate::open::failed;
use crate::reading;

/// Describes the repository of a working tree; see the port.
pub(crate) fn outline(root: &Path) -> PortResult<Option<Outline>> {
    let own = root.join(".git");
    let git_dir = match reading::file(&own)? {
        Some(text) => {
            let text = String::from_utf8_lossy(&text);
            let Some(target) = text.trim_end().strip_prefix("gitdir: ") else {
                return Ok(None);
            };
            root.join(target)
        }
        None => own,
    };
    if !reading::present(&git_dir.join("HEAD")) {
        return Ok(None);
    }
    Ok(Some(Outline {
        git_dir: reading::resolved(&git_dir)?,
        submodules: submodules(root)?,
    }))
}

/// Lists the paths of `.gitmodules`; those that lead out of the root are no
/// paths of it.
fn submodules(root: &Path) -> PortResult<Vec<RelPath>> {
    let Some(bytes) = reading::file(&root.join(".gitmodules"))? else {
        return Ok(Vec::new());
    };
    let config = gix::config::File::from_bytes_no_includes(
        &bytes,
        gix::config::file::Metadata::from(gix::config::Source::Local),
        gix::config::file::init::Options::default(),
    )
    .map_err(failed(format!(
        "read {}",
        root.join(".gitmodules").display()
    )))?;
    let sections = config.sections_by_name("submodule").into_iter().flatten();
    let mut paths: Vec<RelPath> = sections
        .filter_map(|section| section.value("path"))
        .filter_map(|path| RelPath::new(std::str::from_utf8(&path).ok()?).ok())
        .collect();
    paths.sort();
    paths.dedup();
    Ok(paths)
}
