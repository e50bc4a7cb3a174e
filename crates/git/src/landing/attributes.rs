//! Attributes of paths: what git would store of a file by line endings and
//! encodings, and which paths are under an external filter. No filter runs.

use std::io::Read as _;
use std::path::Path;

use gix::bstr::{BStr, BString, ByteSlice as _};
use gix::filter::plumbing;
use gix::filter::plumbing::pipeline::CrlfRoundTripCheck;
use gix::filter::plumbing::pipeline::convert::ToGitOutcome;
use gix::worktree::IndexPersistedOrInMemory;
use sandbar_domain::{Code, RelPath};
use sandbar_ports::{PortError, PortResult};

use crate::open::failed;

/// Reads the attributes of a sandbox.
pub(super) struct Attributes<'repo> {
    repository: &'repo gix::Repository,
    pipeline: plumbing::Pipeline,
    stack: gix::worktree::Stack,
    index: IndexPersistedOrInMemory,
}

impl<'repo> Attributes<'repo> {
    /// Reads attribute files of the working tree, else of the index.
    pub(super) fn of(repository: &'repo gix::Repository) -> PortResult<Self> {
        let (pipeline, index) = repository
            .filter_pipeline(None)
            .map_err(failed("read the attributes of the sandbox"))?;
        let (mut pipeline, stack) = pipeline.into_parts();
        let options = pipeline.options_mut();
        options.drivers.clear();
        options.crlf_roundtrip_check = CrlfRoundTripCheck::Skip;
        Ok(Self {
            repository,
            pipeline,
            stack,
            index,
        })
    }

    /// Converts the bytes of a file of the working tree to what git stores.
    pub(super) fn store_form(&mut self, path: &RelPath, bytes: Vec<u8>) -> PortResult<Vec<u8>> {
        let what = || format!("convert {path}");
        let repository = self.repository;
        let index = &*self.index;
        let at = Path::new(path.as_str());
        let entry = self
            .stack
            .at_path(at, None, &repository.objects)
            .map_err(failed(what()))?;
        let outcome = self
            .pipeline
            .convert_to_git(
                bytes.as_slice(),
                at,
                &mut |_, attributes| {
                    entry.matching_attributes(attributes);
                },
                &mut |buffer| {
                    use gix::objs::Find as _;
                    let Some(entry) = index.entry_by_path(path.as_str().into()) else {
                        return Ok(None);
                    };
                    let object = repository.objects.try_find(&entry.id, buffer)?;
                    Ok(object
                        .filter(|object| object.kind == gix::objs::Kind::Blob)
                        .map(|_| ()))
                },
            )
            .map_err(failed(what()))?;
        let converted = match outcome {
            ToGitOutcome::Unchanged(_) => None,
            ToGitOutcome::Buffer(buffer) => Some(buffer.to_vec()),
            ToGitOutcome::Process(mut process) => {
                let mut converted = Vec::new();
                process
                    .read_to_end(&mut converted)
                    .map_err(failed(what()))?;
                Some(converted)
            }
        };
        Ok(converted.unwrap_or(bytes))
    }

    /// Says whether a path is under an external filter.
    pub(super) fn is_filtered(&mut self, path: &BStr) -> PortResult<bool> {
        let what = || format!("read the attributes of {path}");
        let mut outcome = self.stack.selected_attribute_matches(["filter"]);
        let at = gix::path::from_bstr(path).map_err(failed(what()))?;
        let entry = self
            .stack
            .at_path(&*at, None, &self.repository.objects)
            .map_err(failed(what()))?;
        entry.matching_attributes(&mut outcome);
        Ok(outcome.iter_selected().any(|found| {
            matches!(
                found.assignment.state,
                gix::attrs::StateRef::Set | gix::attrs::StateRef::Value(_)
            )
        }))
    }

    /// Refuses paths under a `filter` attribute, or notes them.
    pub(super) fn refuse_filters(
        &mut self,
        paths: impl Iterator<Item = BString>,
        allowed: bool,
        notes: &mut Vec<String>,
    ) -> PortResult<()> {
        let mut found = Vec::new();
        for path in paths {
            if self.is_filtered(path.as_bstr())? {
                found.push(path.to_string());
            }
        }
        found.sort();
        found.dedup();
        if found.is_empty() {
            return Ok(());
        }
        let list = found.join(", ");
        if !allowed {
            return Err(PortError::new(
                Code::CommitRefused,
                format!("commit paths under a filter, which is not run here: {list}"),
            )
            .with_subjects(found));
        }
        notes.push(format!(
            "committed as they are, without their filter: {list}"
        ));
        Ok(())
    }
}
