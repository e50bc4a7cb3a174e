//! The rule of each protocol for the types that it reaches (PRJ-1 … PRJ-3).

use super::ask::{Ask, LiveSandbox};
use super::paths::{beneath, join, mount_of, path_to_uri, uri_to_path};
use super::{AccessProjection, Handler};
use crate::graph::arena::Seen;
use crate::graph::capability::Capabilities;
use crate::graph::types::Protocol;

/// The pure rules, as handlers. An adapter's handler applies them and adds
/// what only it knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rules;

/// Bound to something on a file system.
struct Filesystem;
/// Bound to a repository or something in it.
struct GitObject;
/// Bound to a container runtime or an image.
struct DockerApi;
/// Bound to a container, a volume or a mount.
struct ContainerExec;
/// Bound to a language server or a workspace of one.
struct Lsp;
/// Bound to one document.
struct LspTextDocument;
/// Bound to a database or something in it.
struct Sql;

impl Rules {
    /// Returns the rule for bound resources of a protocol.
    pub fn of(protocol: Protocol) -> &'static dyn Handler {
        match protocol {
            Protocol::Filesystem => &Filesystem,
            Protocol::GitObject => &GitObject,
            Protocol::DockerApi => &DockerApi,
            Protocol::ContainerExec => &ContainerExec,
            Protocol::Lsp => &Lsp,
            Protocol::LspTextDocument => &LspTextDocument,
            Protocol::Sql => &Sql,
        }
    }
}

/// An answer with what the target's type says.
fn answer(ask: &Ask<'_>, protocol: Protocol, access_path: String) -> AccessProjection {
    let capabilities = ask.target.capabilities();
    AccessProjection {
        access_path,
        protocol,
        within: None,
        crosses_sandbox: ask.crosses(),
        target_boundary: ask.target_boundary,
        readable: capabilities.has(Capabilities::READABLE),
        writable: capabilities.has(Capabilities::WRITABLE),
        read_richness: ask.target.kind().richness,
        generation: ask.generation,
    }
}

/// Follows places and names along the way; the last place said wins.
fn place_along(ask: &Ask<'_>, separator: char) -> Option<String> {
    let mut place = ask.binding_place.map(str::to_owned);
    for seen in &ask.path[1..] {
        match (seen.location(), &mut place) {
            (Some(own), _) => place = Some(own.to_owned()),
            (None, Some(place)) => {
                if !place.ends_with(separator) {
                    place.push(separator);
                }
                place.push_str(seen.name());
            }
            (None, None) => {}
        }
    }
    place
}

/// Leads a real path into a sandbox; none where it is not of it.
fn into_sandbox(path: &str, live: &LiveSandbox) -> Option<String> {
    let rest = beneath(path, &live.real)?;
    Some(if live.in_place {
        path.to_owned()
    } else {
        join(&live.root, rest)
    })
}

impl Handler for Filesystem {
    fn project_access(&self, ask: &Ask<'_>) -> Option<AccessProjection> {
        match ask.target.kind().protocol {
            Protocol::Filesystem if ask.engine_path.is_empty() => {
                let real = place_along(ask, '/').filter(|place| place.starts_with('/'))?;
                let path = match ask.sandbox {
                    Some(live) => into_sandbox(&real, live)?,
                    None => real,
                };
                Some(answer(ask, Protocol::Filesystem, path))
            }
            Protocol::GitObject => GitObject.project_access(ask),
            _ => None,
        }
    }
}

impl Handler for GitObject {
    /// Refs by full name, objects by id, entries as `tree:path`. The
    /// repository is that of the sandbox where there is one.
    fn project_access(&self, ask: &Ask<'_>) -> Option<AccessProjection> {
        if ask.target.kind().protocol != Protocol::GitObject {
            return None;
        }
        let name = ask.target.name();
        let said = ask.target.location();
        let path = match (ask.target.type_name(), said) {
            (_, Some(said)) => said.to_owned(),
            ("git-branch", None) => format!("refs/heads/{name}"),
            ("git-tag", None) => format!("refs/tags/{name}"),
            ("git-tree-entry" | "git-tree", None) => entry_of(ask).unwrap_or(name.to_owned()),
            (_, None) => name.to_owned(),
        };
        let mut projection = answer(ask, Protocol::GitObject, path);
        let within = match ask.sandbox {
            Some(live) if live.in_place => Some(live.real.clone()),
            Some(live) => Some(live.root.clone()),
            None => ask.binding_place.map(str::to_owned),
        };
        projection.within = within;
        Some(projection)
    }
}

/// Names a tree or entry by the nearest tree on the way that has an id.
fn entry_of(ask: &Ask<'_>) -> Option<String> {
    let trees = |at: &usize| {
        let seen = ask.path[*at];
        seen.type_name() == "git-tree" && seen.location().is_some()
    };
    let at = (0..ask.path.len()).rev().find(trees)?;
    let names: Vec<_> = ask.path[at + 1..].iter().map(|seen| seen.name()).collect();
    Some(format!("{}:{}", ask.path[at].location()?, names.join("/")))
}

/// Returns the id of a container or volume, in the sandbox where one is live.
fn engine_id(seen: Seen<'_>, sandboxes: &[LiveSandbox]) -> String {
    let live = sandboxes.iter().find(|live| live.boundary == seen.id());
    match live {
        Some(live) => live.root.clone(),
        None => seen.location().unwrap_or(seen.name()).to_owned(),
    }
}

impl Handler for DockerApi {
    /// Engine objects by id; what is inside as `id:path`, which is how the
    /// engine's archive calls name it.
    fn project_access(&self, ask: &Ask<'_>) -> Option<AccessProjection> {
        let kind = ask.target.type_name();
        if ask.target.kind().protocol == Protocol::DockerApi
            || matches!(kind, "container-instance" | "container-volume")
        {
            let id = engine_id(ask.target, ask.sandboxes);
            return Some(answer(ask, Protocol::DockerApi, id));
        }
        let mut inner = ContainerExec.project_access(ask)?;
        let within = inner.within.take()?;
        inner.access_path = format!("{within}:{}", inner.access_path);
        inner.protocol = Protocol::DockerApi;
        Some(inner)
    }
}

impl Handler for ContainerExec {
    /// Paths inside the container or volume: through the mount with the
    /// longest destination. What another mount covers cannot be reached.
    fn project_access(&self, ask: &Ask<'_>) -> Option<AccessProjection> {
        let engine = ask.engine_path.first()?;
        if engine.kind().protocol != Protocol::ContainerExec {
            return None;
        }
        let path = inside(ask.engine_path);
        let mount = |seen: &&Seen<'_>| seen.type_name() == "container-mount";
        let through = ask.engine_path.iter().rfind(mount).map(|seen| seen.id());
        let covering = mount_of(&path, ask.mounts);
        if covering.map(|mount| mount.resource) != through {
            return None;
        }
        let mut projection = answer(ask, Protocol::ContainerExec, path);
        projection.writable &= !covering.is_some_and(|mount| mount.read_only);
        projection.within = Some(engine_id(*engine, ask.sandboxes));
        Some(projection)
    }
}

/// The path beneath a container or volume. A place that is no absolute path
/// is the id of something, not a place in it.
fn inside(engine_path: &[Seen<'_>]) -> String {
    let below = engine_path.iter().skip(1);
    below.fold("/".to_owned(), |place, seen| {
        match seen.location().filter(|own| own.starts_with('/')) {
            Some(own) => own.to_owned(),
            None => join(&place, seen.name()),
        }
    })
}

/// The document or root URI of a resource, in the sandbox whose real place
/// holds it.
fn uri(ask: &Ask<'_>, property: &str) -> Option<String> {
    let said = ask.target.property(property).or(ask.target.location())?;
    let Some(path) = uri_to_path(said) else {
        return Some(said.to_owned());
    };
    let inside = ask
        .sandboxes
        .iter()
        .filter(|live| beneath(&path, &live.real).is_some());
    let innermost = inside.max_by_key(|live| live.real.trim_end_matches('/').len());
    match innermost {
        // The editor's spelling stays where nothing has to change.
        Some(live) if !live.in_place => Some(path_to_uri(&into_sandbox(&path, live)?)),
        _ => Some(said.to_owned()),
    }
}

impl Handler for Lsp {
    fn project_access(&self, ask: &Ask<'_>) -> Option<AccessProjection> {
        match ask.target.type_name() {
            "lsp-server" => Some(answer(ask, Protocol::Lsp, ask.target.name().to_owned())),
            "lsp-workspace" => {
                let root = uri(ask, "root_uri").unwrap_or(ask.target.name().to_owned());
                Some(answer(ask, Protocol::Lsp, root))
            }
            _ => LspTextDocument.project_access(ask),
        }
    }
}

impl Handler for LspTextDocument {
    /// A document is read from the server's buffer and written through
    /// `workspace/applyEdit`: outside every sandbox.
    fn project_access(&self, ask: &Ask<'_>) -> Option<AccessProjection> {
        if ask.target.kind().protocol != Protocol::LspTextDocument {
            return None;
        }
        let uri = uri(ask, "document_uri")?;
        let mut projection = answer(ask, Protocol::LspTextDocument, uri);
        projection.crosses_sandbox = true;
        projection.target_boundary = None;
        Some(projection)
    }
}

impl Handler for Sql {
    /// Quoted names, joined by dots, beneath the database.
    fn project_access(&self, ask: &Ask<'_>) -> Option<AccessProjection> {
        if ask.target.kind().protocol != Protocol::Sql {
            return None;
        }
        let database = ask.engine_path.first().copied();
        let names = match database {
            Some(_) => &ask.engine_path[1..],
            None => ask.path,
        };
        let quoted = |seen: &Seen<'_>| format!("\"{}\"", seen.name().replace('"', "\"\""));
        let names: Vec<_> = names.iter().map(quoted).collect();
        let mut projection = answer(ask, Protocol::Sql, names.join("."));
        projection.within = match (ask.sandbox, database) {
            (Some(live), _) => Some(live.root.clone()),
            (None, Some(it)) => Some(it.location().unwrap_or(it.name()).to_owned()),
            (None, None) => None,
        };
        Some(projection)
    }
}
