//! Finds the checkout that encloses a directory, and refuses by name what
//! cannot be sandboxed (STR-1). Reads only.

use std::path::{Path, PathBuf};

use gix::discover::repository::Path as Found;
use gix::discover::upwards::{Options, TrustPolicy};
use gix::sec::Trust;
use sandbar_domain::Code;
use sandbar_ports::git::Checkout;
use sandbar_ports::{PortError, PortResult};

use crate::index::{Index, mode};
use crate::open::{Scope, failed, open};
use crate::reading;

/// Finds the nearest checkout at or above `start`.
pub(crate) fn discover(start: &Path, scope: Scope) -> PortResult<Option<Checkout>> {
    let start = reading::resolved(start)?;
    let options = Options {
        trust: TrustPolicy::Assume(Trust::Full),
        ..Options::default()
    };
    let found = match gix::discover::upwards_opts(&start, options) {
        Ok((found, _)) => found,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => {
            return Err(failed(format!(
                "look for a repository above {}",
                start.display()
            ))(error));
        }
    };
    let (git_dir, workdir) = match found {
        Found::LinkedWorkTree { work_dir, git_dir } => (git_dir, work_dir),
        Found::WorkTree(root) => (root.join(".git"), root),
        Found::Repository(git_dir) => {
            return Err(refused(&git_dir, "it is bare: there is no working tree"));
        }
    };
    let root = reading::resolved(&workdir)?;
    let git_dir = reading::resolved(&git_dir)?;
    if start.starts_with(&git_dir) {
        return Err(refused(&start, "it is inside a git directory"));
    }
    refuse_formats(&root, &git_dir)?;
    let repository = open(&root, scope)?;
    describe(&repository, root, git_dir).map(Some)
}

fn describe(repository: &gix::Repository, root: PathBuf, git_dir: PathBuf) -> PortResult<Checkout> {
    let Some(workdir) = repository.workdir() else {
        return Err(refused(&root, "it is bare: there is no working tree"));
    };
    if reading::resolved(workdir)? != root {
        return Err(refused(
            &root,
            &format!("core.worktree leads to {}", workdir.display()),
        ));
    }
    let common_dir = reading::resolved(repository.common_dir())?;
    refuse_submodules(repository, &root, &git_dir)?;
    let head = repository
        .head()
        .map_err(failed(format!("read HEAD of {}", root.display())))?;
    let notes = notes(repository, &root)?;
    Ok(Checkout {
        branch: head.referent_name().map(|name| name.as_bstr().to_string()),
        head: head.id().map(|id| id.to_string()),
        root,
        git_dir,
        common_dir,
        notes,
    })
}

/// Refuses repository formats before gix meets them, so that they are named.
fn refuse_formats(root: &Path, git_dir: &Path) -> PortResult<()> {
    let common = match reading::followed(&git_dir.join("commondir"))? {
        Some(text) => git_dir.join(String::from_utf8_lossy(&text).trim_end()),
        None => git_dir.to_owned(),
    };
    let Some(bytes) = reading::followed(&common.join("config"))? else {
        return Ok(());
    };
    let config = gix::config::File::from_bytes_no_includes(
        &bytes,
        gix::config::file::Metadata::from(gix::config::Source::Local),
        gix::config::file::init::Options::default(),
    )
    .map_err(failed(format!(
        "read the configuration of {}",
        root.display()
    )))?;
    let value = |key: &str| {
        config
            .string(key)
            .map(|value| value.to_string().to_lowercase())
    };
    if let Some(format) = value("extensions.objectFormat").filter(|format| format != "sha1") {
        return Err(refused(
            root,
            &format!("its objects are named by {format}, not sha1"),
        ));
    }
    if let Some(storage) = value("extensions.refStorage").filter(|storage| storage != "files") {
        return Err(refused(
            root,
            &format!("its refs are kept as {storage}, not as files"),
        ));
    }
    Ok(())
}

/// Refuses submodules whose repository would stay outside the sandbox: their
/// git commands would reach the real one.
fn refuse_submodules(repository: &gix::Repository, root: &Path, git_dir: &Path) -> PortResult<()> {
    if !reading::present(&root.join(".gitmodules")) {
        return Ok(());
    }
    let own = git_dir == root.join(".git");
    for entry in Index::load(repository)?.entries() {
        if entry.mode() != mode::GITLINK {
            continue;
        }
        let Ok(path) = std::str::from_utf8(entry.path) else {
            continue;
        };
        let Some(link) = reading::file(&root.join(path).join(".git"))? else {
            continue;
        };
        let link = String::from_utf8_lossy(&link);
        let target = link.trim_end().strip_prefix("gitdir: ").unwrap_or("");
        if Path::new(target).is_absolute() || !own {
            return Err(refused(
                root,
                &format!(
                    "the repository of submodule {path} lies at {target}, outside .git/modules"
                ),
            ));
        }
    }
    Ok(())
}

fn notes(repository: &gix::Repository, root: &Path) -> PortResult<Vec<String>> {
    use gix::state::InProgress;

    let mut notes = Vec::new();
    if let Some(state) = repository.state() {
        let what = match state {
            InProgress::Merge => "a merge",
            InProgress::Bisect => "a bisect",
            InProgress::CherryPick | InProgress::CherryPickSequence => "a cherry-pick",
            InProgress::Revert | InProgress::RevertSequence => "a revert",
            InProgress::ApplyMailbox => "applying a mailbox",
            InProgress::ApplyMailboxRebase | InProgress::Rebase | InProgress::RebaseInteractive => {
                "a rebase"
            }
        };
        notes.push(format!(
            "{what} is in progress, and goes on inside the sandbox"
        ));
    }
    if repository.is_shallow().unwrap_or(false) {
        notes.push("the clone is shallow: older history is not there".to_owned());
    }
    let config = repository.config_snapshot();
    if config.boolean("core.sparseCheckout").unwrap_or(false) {
        notes.push("the checkout is sparse, and so is the sandbox".to_owned());
    }
    let promised = config.string("extensions.partialClone").is_some()
        || config
            .plumbing()
            .sections_by_name("remote")
            .is_some_and(|mut sections| {
                sections.any(|section| {
                    section
                        .value("promisor")
                        .is_some_and(|value| value == "true")
                })
            });
    if promised {
        notes.push(
            "the clone is partial: git fetches missing objects when it needs them".to_owned(),
        );
    }
    for filter in filters(root)? {
        let configured = config
            .plumbing()
            .section("filter", Some(filter.as_str().into()))
            .is_ok();
        notes.push(if configured {
            format!("files under the filter {filter} are copied as they are in the working tree")
        } else {
            format!("the filter {filter} is not configured: its files are carried as they are")
        });
    }
    Ok(notes)
}

/// Lists the filters that the attributes file at the root names.
fn filters(root: &Path) -> PortResult<Vec<String>> {
    let bytes = reading::file(&root.join(".gitattributes"))?.unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let mut filters: Vec<String> = text
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'))
        .flat_map(str::split_whitespace)
        .filter_map(|word| word.strip_prefix("filter="))
        .map(str::to_owned)
        .collect();
    filters.sort_unstable();
    filters.dedup();
    Ok(filters)
}

fn refused(path: &Path, why: &str) -> PortError {
    PortError::new(
        Code::RepositoryRefused,
        format!("use repository {}: {why}", path.display()),
    )
}
