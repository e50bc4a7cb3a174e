//! The git directories of submodules, which lie in `modules/`. Each becomes
//! part of the private git directory, its working tree at the same place.

use std::path::{Component, Path, PathBuf};

use sandbar_ports::PortResult;
use sandbar_ports::git::{PrivateGit, PrivateRequest};
use sandbar_ports::workspace::Part;

use super::{config, objects, rel};
use crate::reading;

/// Adds the git directories of all submodules.
pub(super) fn add(request: &PrivateRequest, made: &mut PrivateGit) -> PortResult<()> {
    let from = request.checkout.git_dir.join("modules");
    group(request, &from, "modules", made)
}

/// Walks a directory that holds modules or further groups of them, since a
/// submodule's name may have slashes.
fn group(request: &PrivateRequest, from: &Path, to: &str, made: &mut PrivateGit) -> PortResult<()> {
    for name in reading::names(from)? {
        let (from, to) = (from.join(&name), format!("{to}/{name}"));
        if reading::present(&from.join("HEAD")) && reading::present(&from.join("objects")) {
            module(request, &from, &to, made)?;
        } else {
            group(request, &from, &to, made)?;
        }
    }
    Ok(())
}

fn module(
    request: &PrivateRequest,
    from: &Path,
    to: &str,
    made: &mut PrivateGit,
) -> PortResult<()> {
    let except = ["objects", "hooks", "modules", "config", "worktrees"];
    made.parts.push(Part::CopyTree {
        from: from.to_owned(),
        to: rel(to)?,
        except: except.iter().map(|name| (*name).to_owned()).collect(),
    });
    for directory in ["objects/info", "objects/pack"] {
        made.parts
            .push(Part::Directory(rel(&format!("{to}/{directory}"))?));
    }
    let bytes = reading::file(&from.join("config"))?.unwrap_or_default();
    let worktree = worktree(request, &bytes, from, to);
    if worktree.is_none() {
        made.notes.push(format!(
            "submodule repository {to}: its working tree lies elsewhere"
        ));
    }
    let wish = config::Wish {
        allow_push: request.allow_push,
        worktree: worktree.as_deref(),
        root: &request.checkout.root,
    };
    let config = config::of_bytes(&bytes, &wish)?;
    made.parts
        .push(Part::Write(rel(&format!("{to}/config"))?, config));
    let objects = format!("{to}/objects");
    objects::add(request, &from.join("objects"), &objects, made)?;
    group(
        request,
        &from.join("modules"),
        &format!("{to}/modules"),
        made,
    )
}

/// Says where a submodule's working tree is, from its git directory in the
/// sandbox; `None` if it is outside the checkout.
fn worktree(request: &PrivateRequest, config: &[u8], from: &Path, to: &str) -> Option<String> {
    let value = config::value(config, "core.worktree")?;
    let absolute = normal(&from.join(value));
    let inside = absolute.strip_prefix(&request.checkout.root).ok()?;
    // `.git` and each component of `to` is one step up.
    let ups = "../".repeat(to.split('/').count() + 1);
    Some(format!("{ups}{}", inside.to_str()?))
}

/// Removes `..` by text, as git does for this value.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                out.pop();
            }
            Component::CurDir => {}
            other => out.push(other),
        }
    }
    out
}
