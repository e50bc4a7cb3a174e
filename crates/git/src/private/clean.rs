//! A clean start: what the copied files lack of a commit, and the index that
//! fits it (PLN-5). Content is what git would check out, external filters
//! apart. Reads objects, attributes of the commit and the user's index; writes
//! nothing.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use gix::ObjectId;
use gix::bstr::ByteSlice as _;
use gix::filter::plumbing;
use gix::filter::plumbing::pipeline::convert::{ToWorktreeOutcome, to_worktree};
use gix::worktree::stack::state::attributes::Source;
use sandbar_domain::{Code, Kind, RelPath};
use sandbar_ports::git::{Checkout, Clean, PrivateRequest, Start, Wanted};
use sandbar_ports::workspace::CopiedFile;
use sandbar_ports::{PortError, PortResult};

use super::stats;
use crate::index::{Entry, Index, Stat, mode};
use crate::open::{Scope, chain, failed, open};
use crate::reading;

/// What starting clean comes to.
#[derive(Debug, Default)]
pub(super) struct Started {
    /// The index of the commit.
    pub(super) index: Index,
    /// What differs from the copied files, sorted.
    pub(super) changes: Vec<Wanted>,
    /// What a person should know.
    pub(super) notes: Vec<String>,
}

/// Finds the commit that a text names; the short name of a local branch comes
/// before everything else that the text could mean.
pub(crate) fn resolve(checkout: &Checkout, rev: &str, scope: Scope) -> PortResult<Start> {
    let repository = open(&checkout.root, scope)?;
    let unknown = |why: &str| {
        let root = checkout.root.display();
        let message = format!("start from {rev:?}: {why} in {root}");
        PortError::new(Code::Usage, message).with_hint("name a commit, a branch or a tag")
    };
    let branch = format!("refs/heads/{rev}");
    let is_branch = gix::refs::FullName::try_from(branch.as_str()).is_ok()
        && matches!(repository.try_find_reference(branch.as_str()), Ok(Some(_)));
    let spec = if is_branch { branch.as_str() } else { rev };
    if rev == "HEAD" && !is_branch && checkout.head.is_none() {
        return Err(unknown("HEAD has no commit yet"));
    }
    let id = repository
        .rev_parse_single(spec)
        .map_err(|error| unknown("it names no commit").with_source(chain(&error)))?;
    let object = id
        .object()
        .map_err(|error| unknown("its object is missing").with_source(chain(&error)))?;
    let commit = object
        .peel_to_commit()
        .map_err(|error| unknown("it is no commit").with_source(chain(&error)))?;
    Ok(Start {
        commit: commit.id.to_string(),
        branch: is_branch.then_some(branch),
    })
}

/// Works out what starting from a commit takes.
pub(super) fn start(
    request: &PrivateRequest,
    clean: &Clean,
    repository: &gix::Repository,
    scope: Scope,
) -> PortResult<Started> {
    let what = format!("read commit {}", clean.start.commit);
    let commit = crate::hidden::object_id(&clean.start.commit)?;
    let tree = repository
        .find_commit(commit)
        .map_err(failed(what.clone()))?
        .tree_id()
        .map_err(failed(what.clone()))?;
    let wanted = repository.index_from_tree(&tree).map_err(failed(what))?;
    let mut own = Index::load(repository)?;
    stats::refresh(&mut own, &request.files);
    let mut known = HashMap::with_capacity(own.len());
    let mut sparse = false;
    for entry in own.entries().filter(|entry| entry.stage() == 0) {
        sparse |= entry.skip_worktree();
        known.insert(entry.path, entry);
    }
    let config = repository.config_snapshot();
    let mut work = Work {
        copied: request
            .files
            .iter()
            .map(|file| (file.path.as_str().as_bytes(), file))
            .collect(),
        modes: config.boolean("core.fileMode").unwrap_or(true),
        writer: Writer::of(repository, &wanted)?,
        submodules: Submodules {
            root: &request.checkout.root,
            scope,
            moved: Vec::new(),
            kept: HashSet::new(),
        },
        started: Started::default(),
    };
    let mut left_out = Vec::new();
    for entry in wanted.entries() {
        let path = entry.path(&wanted);
        let have = known.get(path.as_bytes()).copied();
        if have.is_none() && sparse {
            left_out.push(path.to_string());
            continue;
        }
        work.take(&rel(path)?, entry.mode.bits(), entry.id, have)?;
    }
    if !left_out.is_empty() {
        return Err(refused(
            "these are not in the index, and a sparse checkout does not say whether it wants them",
            clean,
            left_out,
        ));
    }
    for (path, _) in known.iter().filter(|(_, e)| e.mode() == mode::GITLINK) {
        work.submodules.leaves(&rel(path.as_bstr())?)?;
    }
    let moved = std::mem::take(&mut work.submodules.moved);
    if !moved.is_empty() {
        return Err(refused(
            "these submodules lie at another commit, and are not moved",
            clean,
            moved,
        ));
    }
    Ok(work.finish(&request.files, clean))
}

fn refused(why: &str, clean: &Clean, mut paths: Vec<String>) -> PortError {
    paths.sort();
    let shown = paths.iter().take(10).cloned().collect::<Vec<_>>();
    let message = format!(
        "start from {}: {why}: {}",
        clean.start.commit,
        shown.join(", ")
    );
    PortError::new(Code::RepositoryRefused, message).with_subjects(paths)
}

/// The walk over the commit's paths.
struct Work<'a> {
    copied: HashMap<&'a [u8], &'a CopiedFile>,
    modes: bool,
    writer: Writer<'a>,
    submodules: Submodules<'a>,
    started: Started,
}

impl Work<'_> {
    /// Takes one path of the commit.
    fn take(
        &mut self,
        path: &RelPath,
        bits: u32,
        id: ObjectId,
        have: Option<Entry<'_>>,
    ) -> PortResult<()> {
        let bytes = path.as_str().as_bytes();
        let file = self.copied.get(bytes).copied();
        if bits == mode::GITLINK {
            if !self.submodules.stays(path, id)? {
                let directory = Some((Kind::Directory, Vec::new()));
                self.started.changes.push((path.clone(), directory));
            }
            self.started.index.append(bytes, bits, id, None, false);
            return Ok(());
        }
        let kind = match bits {
            mode::SYMLINK => Kind::Symlink,
            mode::EXECUTABLE => Kind::Executable,
            _ => Kind::File,
        };
        if file.is_none() && have.is_some_and(|have| have.skip_worktree()) {
            self.started.index.append(bytes, bits, id, None, true);
            return Ok(());
        }
        let stat = file
            .map(|file| (kind_of(file.copy.mode), Stat::of(&file.copy)))
            .filter(|(found, stat)| {
                let alike = *found == Some(kind)
                    || !self.modes && kind.is_file() && found.is_some_and(Kind::is_file);
                alike
                    && have.is_some_and(|have| {
                        have.id() == id && have.mode() == bits && have.stat() == *stat
                    })
            })
            .map(|(_, stat)| stat);
        if stat.is_none() {
            let content = self.writer.content(path, kind, id)?;
            self.started
                .changes
                .push((path.clone(), Some((kind, content))));
        }
        self.started.index.append(bytes, bits, id, stat, false);
        Ok(())
    }

    /// Lists the copied files that go, and ends.
    fn finish(mut self, files: &[CopiedFile], clean: &Clean) -> Started {
        let index = &self.started.index;
        let present: HashSet<&[u8]> = index.entries().map(|entry| entry.path).collect();
        let mut leads = HashSet::new();
        for path in &present {
            leads.extend(above(path));
        }
        let kept: HashSet<&RelPath> = clean.keep.iter().collect();
        let goes = |path: &RelPath| {
            let bytes = path.as_str().as_bytes();
            if present.contains(bytes) {
                return false;
            }
            if above(bytes).any(|dir| self.submodules.kept.contains(dir)) {
                return false;
            }
            // Where a file that was asked for and the commit want the same
            // name, the commit has it.
            let in_the_way = leads.contains(bytes) || above(bytes).any(|dir| present.contains(dir));
            in_the_way || !kept.contains(path)
        };
        let gone = files
            .iter()
            .filter(|file| goes(&file.path))
            .map(|file| (file.path.clone(), None));
        let gone: Vec<_> = gone.collect();
        self.started.changes.extend(gone);
        self.started.changes.sort_by(|a, b| a.0.cmp(&b.0));
        if !self.writer.filtered.is_empty() {
            let mut list = self.writer.filtered;
            list.truncate(10);
            self.started.notes.push(format!(
                "written as stored, since filters are not run: {}",
                list.join(", ")
            ));
        }
        self.started
    }
}

/// The directories above a path, outermost first.
fn above(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'/')
        .map(|(at, _)| &path[..at])
}

fn kind_of(word: u32) -> Option<Kind> {
    match word & 0o170_000 {
        0o120_000 => Some(Kind::Symlink),
        0o100_000 if word & 0o100 != 0 => Some(Kind::Executable),
        0o100_000 => Some(Kind::File),
        _ => None,
    }
}

fn rel(path: &gix::bstr::BStr) -> PortResult<RelPath> {
    let refused = |why: String| {
        PortError::new(
            Code::UnsupportedEntry,
            format!("check out {}: {why}", path.to_str_lossy()),
        )
    };
    let text = path
        .to_str()
        .map_err(|_| refused("its name is not UTF-8".to_owned()))?;
    RelPath::new(text).map_err(|error| refused(error.to_string()))
}

/// Makes working tree content of blobs, by the attributes of the commit.
struct Writer<'repo> {
    repository: &'repo gix::Repository,
    pipeline: plumbing::Pipeline,
    stack: gix::worktree::Stack,
    /// Paths under a filter that was not run.
    filtered: Vec<String>,
}

impl<'repo> Writer<'repo> {
    fn of(repository: &'repo gix::Repository, wanted: &gix::index::State) -> PortResult<Self> {
        let what = "read the attributes of a commit";
        let stack = repository
            .attributes_only(wanted, Source::IdMapping)
            .map_err(failed(what))?
            .detach();
        let (mut pipeline, stack) = gix::filter::Pipeline::new(repository, stack)
            .map_err(failed(what))?
            .into_parts();
        pipeline.options_mut().drivers.clear();
        Ok(Self {
            repository,
            pipeline,
            stack,
            filtered: Vec::new(),
        })
    }

    fn content(&mut self, path: &RelPath, kind: Kind, id: ObjectId) -> PortResult<Vec<u8>> {
        let what = || format!("check out {path}");
        let blob = self.repository.find_blob(id).map_err(failed(what()))?;
        if kind == Kind::Symlink {
            return Ok(blob.detach().data);
        }
        let mut asked = self.stack.selected_attribute_matches(["filter", "ident"]);
        let entry = self
            .stack
            .at_path(Path::new(path.as_str()), None, &self.repository.objects)
            .map_err(failed(what()))?;
        entry.matching_attributes(&mut asked);
        let (mut filter, mut ident) = (false, false);
        for found in asked.iter_selected() {
            use gix::attrs::StateRef;
            let on = match found.assignment.state {
                StateRef::Set => true,
                // `ident` with a value is not `ident`.
                StateRef::Value(_) => found.assignment.name.as_str() == "filter",
                StateRef::Unset | StateRef::Unspecified => false,
            };
            match found.assignment.name.as_str() {
                "ident" => ident = on,
                _ => filter = on,
            }
        }
        if filter {
            self.filtered.push(path.to_string());
        }
        let stored = match ident {
            true => super::ident::expand(&blob.data, id),
            false => blob.detach().data,
        };
        let options = to_worktree::Options {
            can_delay: plumbing::driver::apply::Delay::Forbid,
            unknown_encoding: to_worktree::UnknownEncoding::Ignore,
        };
        let outcome = self
            .pipeline
            .convert_to_worktree(
                &stored,
                path.as_str().into(),
                &mut |_, attributes| {
                    entry.matching_attributes(attributes);
                },
                options,
            )
            .map_err(failed(what()))?;
        match outcome {
            ToWorktreeOutcome::Unchanged(bytes) => Ok(bytes.to_vec()),
            ToWorktreeOutcome::Buffer(bytes) => Ok(bytes.to_vec()),
            ToWorktreeOutcome::Process(_) => Err(PortError::new(
                Code::Internal,
                format!("check out {path}: a filter was about to run"),
            )),
        }
    }
}

/// Submodules keep the files that they have.
struct Submodules<'a> {
    root: &'a Path,
    scope: Scope,
    /// Paths of those that lie at another commit than the wanted one.
    moved: Vec<String>,
    /// Paths of those that stay.
    kept: HashSet<Vec<u8>>,
}

impl Submodules<'_> {
    /// Judges one that the commit has; false if it has no files here.
    fn stays(&mut self, path: &RelPath, id: ObjectId) -> PortResult<bool> {
        let Some(head) = self.head(path)? else {
            return Ok(false);
        };
        self.kept.insert(path.as_str().as_bytes().to_vec());
        if head != Some(id) {
            self.moved.push(path.to_string());
        }
        Ok(true)
    }

    /// Judges one of the user's index.
    fn leaves(&mut self, path: &RelPath) -> PortResult<()> {
        let known = self.kept.contains(path.as_str().as_bytes());
        if !known && self.head(path)?.is_some() {
            self.moved.push(path.to_string());
        }
        Ok(())
    }

    /// HEAD of a submodule: outer none without a working tree, inner without
    /// a commit.
    fn head(&self, path: &RelPath) -> PortResult<Option<Option<ObjectId>>> {
        let at = self.root.join(path.as_str());
        if !reading::present(&at.join(".git")) {
            return Ok(None);
        }
        let repository = open(&at, self.scope)?;
        Ok(Some(repository.head_id().ok().map(gix::Id::detach)))
    }
}
