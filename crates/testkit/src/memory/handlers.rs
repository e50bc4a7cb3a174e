//! Handlers for every protocol over content in memory: they project by the
//! rules of the domain and read and write at what was projected, so that a
//! route can be followed to its end.
//!
//! Storage is shared where it was said to be (a bind mount); a document of a
//! language server is a buffer that is filled by a refresh.

use std::collections::{BTreeMap, BTreeSet};

use sandbar_domain::ResourceId;
use sandbar_domain::graph::{AccessProjection, Ask, Handler, Handlers, Protocol, Rules};

/// What a handler of this kind refuses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MemRefusal {
    /// The protocol cannot do that there.
    #[error("{} cannot {what} {path}", .protocol.word())]
    Cannot {
        /// The protocol.
        protocol: Protocol,
        /// `read` or `write`.
        what: &'static str,
        /// The access path.
        path: String,
    },
    /// Nothing is there.
    #[error("nothing at {0}")]
    Missing(String),
}

/// Where content lies: the space (empty for the machine itself) and the path.
type Place = (String, String);

/// Handlers for all protocols, except those that are down.
#[derive(Debug, Default)]
pub struct MemHandlers {
    protocols: BTreeMap<Protocol, MemHandler>,
    down: BTreeSet<Protocol>,
    content: BTreeMap<Place, Vec<u8>>,
    buffers: BTreeMap<String, Vec<u8>>,
    /// Directories of containers, and the directories of the machine they are.
    binds: Vec<(Place, String)>,
}

/// One protocol: the rule, and the resources it does not answer for.
#[derive(Debug)]
struct MemHandler {
    protocol: Protocol,
    silent: BTreeSet<ResourceId>,
}

impl Handler for MemHandler {
    fn project_access(&self, ask: &Ask<'_>) -> Option<AccessProjection> {
        if self.silent.contains(&ask.target.id()) || self.silent.contains(&ask.binding.id()) {
            return None;
        }
        Rules::of(self.protocol).project_access(ask)
    }
}

impl Handlers for MemHandlers {
    fn handler(&self, protocol: Protocol) -> Option<&dyn Handler> {
        if self.down.contains(&protocol) {
            return None;
        }
        let handler = self.protocols.get(&protocol)?;
        Some(handler)
    }
}

impl MemHandlers {
    /// Returns handlers for every protocol, with nothing stored.
    pub fn new() -> Self {
        let handlers = Protocol::ALL.into_iter().map(|protocol| {
            let silent = BTreeSet::new();
            (protocol, MemHandler { protocol, silent })
        });
        Self {
            protocols: handlers.collect(),
            ..Self::default()
        }
    }

    /// Takes a protocol down, or brings it up again.
    pub fn set_down(&mut self, protocol: Protocol, down: bool) {
        if down {
            self.down.insert(protocol);
        } else {
            self.down.remove(&protocol);
        }
    }

    /// Lets every handler stop answering for a resource.
    pub fn silence(&mut self, resource: ResourceId) {
        for handler in self.protocols.values_mut() {
            handler.silent.insert(resource);
        }
    }

    /// Says that a directory of a container is one of the machine.
    pub fn bind(&mut self, container: &str, inside: &str, outside: &str) {
        let place = (container.to_owned(), inside.to_owned());
        self.binds.push((place, outside.to_owned()));
    }

    /// Puts content somewhere behind everybody's back.
    pub fn put(&mut self, space: &str, path: &str, bytes: &[u8]) {
        let place = self.resolve(space, path);
        self.content.insert(place, bytes.to_owned());
    }

    /// Returns what is stored somewhere.
    pub fn at(&self, space: &str, path: &str) -> Option<&[u8]> {
        self.content
            .get(&self.resolve(space, path))
            .map(Vec::as_slice)
    }

    /// Reads at a projection.
    pub fn read(&mut self, at: &AccessProjection) -> Result<Vec<u8>, MemRefusal> {
        self.allow(at, at.readable, "read")?;
        if at.protocol == Protocol::LspTextDocument {
            let path = file_of(&at.access_path);
            if !self.buffers.contains_key(&at.access_path) {
                self.refresh(&at.access_path);
            }
            let buffer = self.buffers.get(&at.access_path).cloned();
            return buffer.ok_or_else(|| MemRefusal::Missing(path.to_owned()));
        }
        let (space, path) = place_of(at);
        let found = self.at(&space, &path).map(<[u8]>::to_vec);
        found.ok_or(MemRefusal::Missing(path))
    }

    /// Writes at a projection; a document is edited in its buffer and saved.
    pub fn write(&mut self, at: &AccessProjection, bytes: &[u8]) -> Result<(), MemRefusal> {
        self.allow(at, at.writable, "write")?;
        if at.protocol == Protocol::LspTextDocument {
            self.buffers
                .insert(at.access_path.clone(), bytes.to_owned());
            self.put("", file_of(&at.access_path), bytes);
            return Ok(());
        }
        let (space, path) = place_of(at);
        self.put(&space, &path, bytes);
        Ok(())
    }

    /// Tells the server of a document that its file may have changed.
    pub fn refresh(&mut self, uri: &str) {
        match self.at("", file_of(uri)).map(<[u8]>::to_vec) {
            Some(bytes) => self.buffers.insert(uri.to_owned(), bytes),
            None => self.buffers.remove(uri),
        };
    }

    fn allow(
        &self,
        at: &AccessProjection,
        allowed: bool,
        what: &'static str,
    ) -> Result<(), MemRefusal> {
        if allowed && !self.down.contains(&at.protocol) {
            return Ok(());
        }
        Err(MemRefusal::Cannot {
            protocol: at.protocol,
            what,
            path: at.access_path.clone(),
        })
    }

    fn resolve(&self, space: &str, path: &str) -> Place {
        let within = self.binds.iter().filter_map(|((container, inside), out)| {
            let rest = path.strip_prefix(inside.as_str())?;
            let fits = container == space && (rest.is_empty() || rest.starts_with('/'));
            fits.then(|| (inside.len(), format!("{out}{rest}")))
        });
        match within.max() {
            Some((_, outside)) => (String::new(), outside),
            None => (space.to_owned(), path.to_owned()),
        }
    }
}

fn place_of(at: &AccessProjection) -> Place {
    match (at.protocol, at.access_path.split_once(':')) {
        // Archive calls name the container in the path.
        (Protocol::DockerApi, Some((container, path))) => (container.to_owned(), path.to_owned()),
        _ => (
            at.within.clone().unwrap_or_default(),
            at.access_path.clone(),
        ),
    }
}

fn file_of(uri: &str) -> &str {
    uri.strip_prefix("file://").unwrap_or(uri)
}
