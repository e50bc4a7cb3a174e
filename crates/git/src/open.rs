//! Opens repositories so that nothing of them runs: no hook, no file system
//! monitor, no filter, no environment variable of git. The user's own and the
//! repository's configuration is read, since ignore and attribute rules and
//! the identity are in it.

use std::path::Path;

use gix::sec::Trust;
use sandbar_domain::Code;
use sandbar_ports::{PortError, PortResult};

use crate::reading;

/// Where configuration comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The machine's, the user's and the repository's.
    Everything,
    /// The repository's alone.
    Repository,
}

/// Opens the repository of a working tree or a git directory.
pub(crate) fn open(path: &Path, scope: Scope) -> PortResult<gix::Repository> {
    options(scope)
        .open(path)
        .map(|repository| {
            let mut local = repository.to_thread_local();
            local.object_cache_size_if_unset(16 << 20);
            local
        })
        .map_err(|error| {
            PortError::new(
                Code::RepositoryRefused,
                format!("open repository {}: {}", path.display(), chain(&error)),
            )
        })
}

/// Opens the private git directory of a sandbox. What is done inside may have
/// put a link in its place: nothing may be written through one.
pub(crate) fn open_inside(root: &Path, scope: Scope) -> PortResult<gix::Repository> {
    use rustix::fs::FileType;

    let refused = |what: &str| {
        PortError::new(
            Code::RepositoryRefused,
            format!("open repository {}: {what}", root.display()),
        )
    };
    for name in [".git", ".git/objects", ".git/refs", ".git/refs/sandbar"] {
        match reading::kind(&root.join(name)) {
            Some(FileType::Directory) => {}
            None if name == ".git/refs/sandbar" => {}
            _ => return Err(refused(&format!("{name} is no directory"))),
        }
    }
    if reading::present(&root.join(".git/commondir")) {
        return Err(refused(".git has become part of another repository"));
    }
    open(root, scope)
}

fn options(scope: Scope) -> gix::open::Options {
    use gix::open::permissions::{Attributes, Config, Environment};
    use gix::sec::Permission;

    let everything = scope == Scope::Everything;
    let mut environment = Environment::isolated();
    if everything {
        environment.home = Permission::Allow;
        environment.xdg_config_home = Permission::Allow;
    }
    let permissions = gix::open::Permissions {
        env: environment,
        config: Config {
            git_binary: false,
            system: everything,
            git: everything,
            user: everything,
            env: false,
            includes: true,
        },
        attributes: Attributes {
            git_binary: false,
            system: everything,
            git: everything,
        },
    };
    gix::open::Options::isolated()
        .permissions(permissions)
        // Ownership decides whether git would run what the repository says;
        // nothing is run here, and root may copy what belongs to others.
        .with(Trust::Full)
        .filter_config_section(|_| true)
        .strict_config(false)
        .config_overrides([
            "core.fsmonitor=false",
            "core.hooksPath=/dev/null",
            "gc.auto=0",
            "worktree.useRelativePaths=false",
            "diff.algorithm=histogram",
        ])
}

/// Joins an error with its causes, for people.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !cause_text.is_empty() && !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        next = cause.source();
    }
    text
}

/// Makes a port error of what gix says.
pub(crate) fn failed<E>(what: impl Into<String>) -> impl FnOnce(E) -> PortError
where
    E: std::error::Error + 'static,
{
    let what = what.into();
    move |error| PortError::new(Code::Io, format!("{what}: {}", chain(&error)))
}
