//! What a private git directory consists of (STR-1). Everything is described
//! as parts for the file layer; nothing is written here, and the repository
//! is not touched.

mod clean;
mod config;
mod ident;
mod modules;
mod objects;
mod stats;

pub(crate) use clean::resolve;

use sandbar_domain::{Code, RelPath};
use sandbar_ports::git::{Checkout, PrivateGit, PrivateRequest, Start};
use sandbar_ports::workspace::Part;
use sandbar_ports::{PortError, PortResult};

use crate::index::Index;
use crate::open::{Scope, open};
use crate::{reading, refs};

/// Single files of the working tree's git directory that hold the state of
/// what is in progress.
const STATE_FILES: &[&str] = &[
    "MERGE_HEAD",
    "MERGE_MODE",
    "MERGE_MSG",
    "MERGE_RR",
    "MERGE_AUTOSTASH",
    "AUTO_MERGE",
    "SQUASH_MSG",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "REBASE_HEAD",
    "BISECT_LOG",
    "BISECT_NAMES",
    "BISECT_TERMS",
    "BISECT_START",
    "BISECT_RUN",
    "BISECT_HEAD",
    "BISECT_EXPECTED_REV",
    "BISECT_ANCESTORS_OK",
    "BISECT_FIRST_PARENT",
];

/// Files of the same place that outlast it.
const OWN_FILES: &[&str] = &[
    "ORIG_HEAD",
    "FETCH_HEAD",
    "COMMIT_EDITMSG",
    "info/sparse-checkout",
];

/// Directories of the same kind.
const STATE_DIRECTORIES: &[&str] = &["rebase-merge", "rebase-apply", "sequencer"];

/// Files that all working trees share.
const SHARED_FILES: &[&str] = &[
    "description",
    "shallow",
    "info/exclude",
    "info/attributes",
    "info/grafts",
];

/// Describes the private git directory of a sandbox.
pub(crate) fn private(request: &PrivateRequest, scope: Scope) -> PortResult<PrivateGit> {
    let checkout = &request.checkout;
    let repository = open(&checkout.root, scope)?;
    let mut made = PrivateGit::default();
    for directory in [
        "info",
        "objects/info",
        "objects/pack",
        "refs/heads",
        "refs/tags",
    ] {
        made.parts.push(Part::Directory(rel(directory)?));
    }
    let head = match &request.clean {
        Some(clean) if checkout.head.as_ref() != Some(&clean.start.commit) => moved(&clean.start),
        _ => head(checkout)?,
    };
    made.parts.push(Part::Write(rel("HEAD")?, head));
    let wish = config::Wish {
        allow_push: request.allow_push,
        worktree: None,
        root: &checkout.root,
    };
    made.parts.push(Part::Write(
        rel("config")?,
        config::of_repository(&repository, &wish),
    ));
    add_refs(&repository, &mut made)?;
    add_logs(checkout, &mut made.parts)?;
    add_state(checkout, request.clean.is_some(), &mut made.parts)?;
    if let Some(clean) = &request.clean {
        let started = clean::start(request, clean, &repository, scope)?;
        let index = started.index.to_bytes()?;
        made.parts.push(Part::Write(rel("index")?, index));
        made.changes = started.changes;
        made.notes.extend(started.notes);
    } else if reading::present(&repository.index_path()) {
        let mut index = Index::load(&repository)?;
        stats::refresh(&mut index, &request.files);
        made.parts
            .push(Part::Write(rel("index")?, index.to_bytes()?));
    }
    let objects = checkout.common_dir.join("objects");
    objects::add(request, &objects, "objects", &mut made)?;
    objects::show_pins(request, &mut made)?;
    modules::add(request, &mut made)?;
    Ok(made)
}

/// HEAD as text, on the branch that was named or on the commit.
fn moved(start: &Start) -> Vec<u8> {
    match &start.branch {
        Some(branch) => format!("ref: {branch}\n").into_bytes(),
        None => format!("{}\n", start.commit).into_bytes(),
    }
}

/// HEAD as text; a HEAD that is a symlink becomes a file.
fn head(checkout: &Checkout) -> PortResult<Vec<u8>> {
    if let Some(text) = reading::file(&checkout.git_dir.join("HEAD"))? {
        return Ok(text);
    }
    match (&checkout.branch, &checkout.head) {
        (Some(branch), _) => Ok(format!("ref: {branch}\n").into_bytes()),
        (None, Some(id)) => Ok(format!("{id}\n").into_bytes()),
        (None, None) => Err(PortError::new(
            Code::RepositoryRefused,
            format!("read HEAD of {}: there is none", checkout.root.display()),
        )),
    }
}

fn add_refs(repository: &gix::Repository, made: &mut PrivateGit) -> PortResult<()> {
    let found = refs::all(repository)?;
    let (packed, loose) = refs::files(&found.refs);
    made.parts.push(Part::Write(rel("packed-refs")?, packed));
    for (name, content) in loose {
        // A name that is no path cannot have been a file either.
        let path = rel(&name)?;
        made.parts.push(Part::Write(path, content));
    }
    for broken in found.broken {
        made.notes.push(format!("a ref was left out: {broken}"));
    }
    Ok(())
}

fn add_logs(checkout: &Checkout, parts: &mut Vec<Part>) -> PortResult<()> {
    let linked = checkout.git_dir != checkout.common_dir;
    let tree = |from: std::path::PathBuf, to: &str, except: &[&str]| -> PortResult<Part> {
        Ok(Part::CopyTree {
            from,
            to: rel(to)?,
            except: except.iter().map(|name| (*name).to_owned()).collect(),
        })
    };
    parts.push(Part::Copy {
        from: checkout.git_dir.join("logs/HEAD"),
        to: rel("logs/HEAD")?,
    });
    let refs = checkout.common_dir.join("logs/refs");
    parts.push(tree(
        refs,
        "logs/refs",
        &["sandbar", "bisect", "worktree", "rewritten"],
    )?);
    for own in ["bisect", "worktree", "rewritten"] {
        let from = checkout.git_dir.join("logs/refs").join(own);
        if reading::present(&from) {
            parts.push(tree(from, &format!("logs/refs/{own}"), &[])?);
        }
    }
    // Rare logs of other pseudo refs lie beside that of HEAD.
    if !linked {
        for name in reading::names(&checkout.git_dir.join("logs"))? {
            if !matches!(&*name, "HEAD" | "refs") {
                parts.push(Part::Copy {
                    from: checkout.git_dir.join("logs").join(&name),
                    to: rel(&format!("logs/{name}"))?,
                });
            }
        }
    }
    Ok(())
}

/// Adds what is in progress, unless the start is clean, and what is not.
fn add_state(checkout: &Checkout, clean: bool, parts: &mut Vec<Part>) -> PortResult<()> {
    let (files, directories) = match clean {
        true => (&[][..], &[][..]),
        false => (STATE_FILES, STATE_DIRECTORIES),
    };
    let own = files
        .iter()
        .chain(OWN_FILES)
        .map(|name| (&checkout.git_dir, *name));
    let shared = SHARED_FILES
        .iter()
        .map(|name| (&checkout.common_dir, *name));
    for (dir, name) in own.chain(shared) {
        parts.push(Part::Copy {
            from: dir.join(name),
            to: rel(name)?,
        });
    }
    let own = directories.iter().map(|name| (&checkout.git_dir, *name));
    for (dir, name) in own.chain([(&checkout.common_dir, "rr-cache")]) {
        let from = dir.join(name);
        if reading::present(&from) {
            parts.push(Part::CopyTree {
                from,
                to: rel(name)?,
                except: Vec::new(),
            });
        }
    }
    Ok(())
}

/// Checks a path inside the private git directory.
fn rel(path: &str) -> PortResult<RelPath> {
    RelPath::new(path).map_err(|error| {
        PortError::new(
            Code::RepositoryRefused,
            format!("copy {path:?} of the git directory: {error}"),
        )
    })
}
