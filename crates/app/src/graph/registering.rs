//! Roots are registered; what lies in them comes into the graph when it is
//! asked for, with the directories on the way and nothing beside them (DSC-1).

use std::path::{Path, PathBuf};

use sandbar_domain::graph::{FileId, Graph, Node, Sight, Sort};
use sandbar_domain::resource::{Resource, ResourceType, Root};
use sandbar_domain::{Code, Kind, RelPath, ResourceId};
use sandbar_ports::git::Outline;
use sandbar_ports::workspace::Place;
use sandbar_ports::{PortError, PortResult};

use super::card::{Card, card, card_of, no_resource};
use crate::Sandbar;

/// What a directory holds that is the root of a working tree.
const MARK: &str = ".git";

/// What was seen on the way to a path.
struct Way {
    sights: Vec<Sight>,
    /// The number of the innermost working tree's root.
    checkout: Option<usize>,
    /// Where submodules of that working tree are checked out.
    submodules: Vec<PathBuf>,
}

impl Sandbar {
    /// Registers the checkout that a path lies in, else the directory or file
    /// itself, unless a registered root holds it already; with the path, and
    /// the submodules of the checkout. Errors: `root_refused`,
    /// `path_not_found`, `graph_refused`.
    pub async fn add_resource(&self, path: &Path, cwd: &Path) -> PortResult<Card> {
        let mut graph = self.load_graph().await?;
        let way = self.look(&graph, cwd.join(path), true).await?;
        let last = way.sights.len() - 1;
        let root = way.checkout.unwrap_or(last);
        let top = PathBuf::from(&way.sights[root].path);
        if way.sights[root].sort == Sort::File || way.sights[root].sort == Sort::Symlink {
            let message = format!("use {} as a root: it is no directory", top.display());
            return Err(PortError::new(Code::RootRefused, message));
        }
        drop(self.parts.workspaces.identify(top.clone()).await?);
        if self.around.home.as_deref() == Some(&*top) {
            let message = format!("use {}: it is the home directory", top.display());
            return Err(PortError::new(Code::RootRefused, message));
        }
        let id = self.bring(&mut graph, &way, Some(root)).await?;
        // What was registered before and lies inside is no root any more.
        let tops = graph.nodes().filter(|n| graph.parents(*n).next().is_none());
        let mut inside: Vec<PathBuf> = tops
            .filter_map(|node| graph.location(node).map(PathBuf::from))
            .filter(|place| *place != top && place.starts_with(&top))
            .collect();
        inside.extend(way.submodules);
        inside.sort_unstable();
        for place in inside {
            match self.look(&graph, place, false).await {
                Ok(way) => drop(self.bring(&mut graph, &way, None).await?),
                Err(error) if error.code == Code::PathNotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(card_of(&graph, id))
    }

    /// Forgets a resource and what it alone contains; nothing on disk is
    /// touched. Returns what was forgotten. Errors: `resource_not_found`,
    /// `graph_refused` for what a project links.
    pub async fn forget_resource(&self, text: &str, cwd: &Path) -> PortResult<Vec<Card>> {
        let mut graph = self.load_graph().await?;
        let id = graph.id(self.known(&graph, text, cwd).await?);
        let before = graph.clone();
        let gone = |graph: &Graph| {
            if graph.node(id).is_none() {
                return Err(no_resource(text));
            }
            let changes = graph.removal(id);
            Ok((changes.clone(), changes))
        };
        let changes = self.change_graph(&mut graph, gone).await?;
        let ids = changes.iter().filter_map(|change| match change {
            sandbar_domain::graph::Change::Remove(id) => before.node(*id),
            _ => None,
        });
        Ok(ids.map(|node| card(&before, node)).collect())
    }

    /// Finds the resource that a person means: an id, the beginning of one, or
    /// a path, which is brought into the graph if it lies in a registered
    /// root. Errors: `resource_not_found`, `ambiguous_resource`,
    /// `path_not_found`.
    pub(super) async fn resolve(&self, text: &str, cwd: &Path) -> PortResult<(Graph, Node)> {
        let mut graph = self.load_graph().await?;
        if let Some(node) = by_id(&graph, text)? {
            return Ok((graph, node));
        }
        let path = cwd.join(text);
        let way = match self.look(&graph, path, false).await {
            Ok(way) => way,
            Err(error) if error.code == Code::PathNotFound && !text.contains('/') => {
                return Err(no_resource(text));
            }
            Err(error) => return Err(error),
        };
        let id = self.bring(&mut graph, &way, None).await?;
        let node = graph.node(id).expect("it was brought");
        Ok((graph, node))
    }

    /// As [`Sandbar::resolve`], and brings nothing: also for what is no more.
    async fn known(&self, graph: &Graph, text: &str, cwd: &Path) -> PortResult<Node> {
        if let Some(node) = by_id(graph, text)? {
            return Ok(node);
        }
        let path = cwd.join(text);
        let look = self
            .parts
            .workspaces
            .look(path.clone(), MARK.to_owned(), false);
        let path = match look.await {
            Ok(places) => places.last().map_or(path, |place| place.root.path.clone()),
            Err(error) if error.code == Code::PathNotFound => path,
            Err(error) => return Err(error),
        };
        let found = path.to_str().and_then(|path| graph.at_path(path));
        found.ok_or_else(|| no_resource(text))
    }

    /// Brings a path into the graph and returns its id.
    async fn bring(
        &self,
        graph: &mut Graph,
        way: &Way,
        root: Option<usize>,
    ) -> PortResult<ResourceId> {
        let path = &way.sights.last().expect("a way has an end").path;
        self.change_graph(graph, |graph| {
            let new_id = || self.parts.names().resource();
            graph.discover(&way.sights, root, new_id).map_err(|why| {
                let message = format!("find the resource at {path}: {why}");
                let error = PortError::new(Code::ResourceNotFound, message);
                match why {
                    sandbar_domain::graph::NotPlaced::NoRoot => {
                        error.with_hint("`sandbar resource add PATH` registers it")
                    }
                    sandbar_domain::graph::NotPlaced::InGit => {
                        error.with_hint("ask about the checkout, or about its git resource by id")
                    }
                }
            })
        })
        .await
    }

    /// Looks at everything on the way to a path.
    async fn look(&self, graph: &Graph, path: PathBuf, follow: bool) -> PortResult<Way> {
        let workspaces = &self.parts.workspaces;
        let places = workspaces.look(path, MARK.to_owned(), follow).await?;
        let mut way = Way {
            sights: Vec::with_capacity(places.len()),
            checkout: None,
            submodules: Vec::new(),
        };
        for place in places {
            let outline = match place.marked {
                true => self.parts.git.outline(place.root.path.clone()).await?,
                false => None,
            };
            let sort = sort(&place, outline.as_ref(), &way.submodules)?;
            let id = self.id_for(graph, &place.root, &sort).await?;
            if let Some(outline) = outline {
                let below = |path: &RelPath| place.root.path.join(path.as_str());
                way.checkout = Some(way.sights.len());
                way.submodules = outline.submodules.iter().map(below).collect();
            }
            way.sights.push(Sight {
                path: text(&place.root.path)?.to_owned(),
                sort,
                file: FileId {
                    device: place.root.device,
                    inode: place.root.inode,
                },
                id,
            });
        }
        // Only those of the checkout that was asked for, and only if they are
        // there.
        let mut there = Vec::new();
        for path in std::mem::take(&mut way.submodules) {
            let look = workspaces.look(path.clone(), MARK.to_owned(), false);
            if look
                .await
                .is_ok_and(|places| places.last().is_some_and(|last| last.marked))
            {
                there.push(path);
            }
        }
        way.submodules = there;
        Ok(way)
    }

    /// Returns the id that a place gets where the graph has none: a checkout
    /// that plans were made on keeps the id it has with them.
    async fn id_for(&self, graph: &Graph, root: &Root, sort: &Sort) -> PortResult<ResourceId> {
        let id = self.parts.names().resource();
        if !matches!(sort, Sort::Checkout { .. }) {
            return Ok(id);
        }
        let known = root.path.to_str().and_then(|path| graph.at_path(path));
        if known.is_some() {
            return Ok(id);
        }
        let kind = ResourceType::GitCheckout;
        let root = root.clone();
        let registered = self
            .parts
            .store
            .register(Resource { id, kind, root })
            .await?;
        Ok(match graph.node(registered.id) {
            None => registered.id,
            Some(_) => id,
        })
    }
}

/// Says what lies at a place. A submodule is what `.gitmodules` of the
/// checkout around it names and what has a repository.
fn sort(place: &Place, outline: Option<&Outline>, submodules: &[PathBuf]) -> PortResult<Sort> {
    if let Some(outline) = outline {
        let git_dir = text(&outline.git_dir)?.to_owned();
        return Ok(match submodules.contains(&place.root.path) {
            true => Sort::Submodule { git_dir },
            false => Sort::Checkout { git_dir },
        });
    }
    match place.kind {
        Some(Kind::Directory) => Ok(Sort::Directory),
        Some(Kind::File | Kind::Executable) => Ok(Sort::File),
        Some(Kind::Symlink) => Ok(Sort::Symlink),
        None => {
            let shown = place.root.path.display();
            let message = format!("use {shown}: it is a FIFO, socket or device");
            Err(PortError::new(Code::UnsupportedEntry, message))
        }
    }
}

fn text(path: &Path) -> PortResult<&str> {
    path.to_str().ok_or_else(|| {
        let message = format!("use {}: the path is not UTF-8", path.display());
        PortError::new(Code::UnsupportedEntry, message)
    })
}

/// Finds what an id or the beginning of one names.
fn by_id(graph: &Graph, text: &str) -> PortResult<Option<Node>> {
    let letters = text.to_ascii_uppercase();
    let id_like = |c: char| c.is_ascii_alphanumeric();
    if text.is_empty() || letters.len() > 26 || !letters.chars().all(id_like) {
        return Ok(None);
    }
    let fits = |node: &Node| graph.id(*node).to_string().starts_with(&letters);
    let mut found: Vec<Node> = graph.nodes().filter(fits).collect();
    match found.len() {
        0 => Ok(None),
        1 => Ok(found.pop()),
        more => {
            let ids: Vec<_> = found
                .iter()
                .take(20)
                .map(|node| graph.id(*node).to_string())
                .collect();
            let message = format!("find resource {text}: {more} ids begin so");
            let error = PortError::new(Code::AmbiguousResource, message).with_subjects(ids);
            Err(error.with_hint("give more characters of the id; a path is written ./NAME"))
        }
    }
}
