//! All refs of a repository as one list, and as the files that hold them.
//! Sandbar's own refs are never part of it.

use sandbar_ports::PortResult;

use crate::open::failed;

/// The prefix of Sandbar's own refs.
pub(crate) const HIDDEN: &str = "refs/sandbar/";

/// What a ref points at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// An object.
    Object(gix::ObjectId),
    /// Another ref.
    Symbolic(String),
}

impl Target {
    /// Returns it as the file of a loose ref has it.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Object(id) => id.to_string(),
            Self::Symbolic(name) => format!("ref: {name}"),
        }
    }
}

/// One ref.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ref {
    /// The full name.
    pub(crate) name: String,
    /// What it points at.
    pub(crate) target: Target,
    /// The object behind an annotated tag, where that is known.
    pub(crate) peeled: Option<gix::ObjectId>,
}

/// What [`all`] found.
#[derive(Debug, Clone, Default)]
pub(crate) struct Refs {
    /// Sorted by name.
    pub(crate) refs: Vec<Ref>,
    /// What is wrong with those that cannot be read.
    pub(crate) broken: Vec<String>,
}

/// Lists all refs, loose and packed.
pub(crate) fn all(repository: &gix::Repository) -> PortResult<Refs> {
    let what = "list the refs";
    let platform = repository.references().map_err(failed(what))?;
    let mut found = Refs::default();
    for reference in platform.all().map_err(failed(what))? {
        let reference = match reference {
            Ok(reference) => reference.detach(),
            Err(error) => {
                found.broken.push(crate::open::chain(&error));
                continue;
            }
        };
        let Ok(name) = std::str::from_utf8(reference.name.as_bstr()) else {
            continue;
        };
        if name.starts_with(HIDDEN) || !name.starts_with("refs/") {
            continue;
        }
        let target = match reference.target {
            gix::refs::Target::Object(id) => Target::Object(id),
            gix::refs::Target::Symbolic(name) => Target::Symbolic(name.as_bstr().to_string()),
        };
        let peeled = reference
            .peeled
            .filter(|peeled| target != Target::Object(*peeled));
        found.refs.push(Ref {
            name: name.to_owned(),
            target,
            peeled,
        });
    }
    found.refs.sort_by(|a, b| a.name.cmp(&b.name));
    found.refs.dedup_by(|a, b| a.name == b.name);
    Ok(found)
}

/// Splits refs into the content of `packed-refs` and loose files (name and
/// content): symbolic refs and those of one working tree are never packed.
pub(crate) fn files(refs: &[Ref]) -> (Vec<u8>, Vec<(String, Vec<u8>)>) {
    let mut packed = b"# pack-refs with: sorted \n".to_vec();
    let mut loose = Vec::new();
    for reference in refs {
        let Ref {
            name,
            target,
            peeled,
        } = reference;
        let own = ["refs/bisect/", "refs/worktree/", "refs/rewritten/"]
            .iter()
            .any(|prefix| name.starts_with(prefix));
        match target {
            Target::Object(id) if !own => {
                packed.extend_from_slice(format!("{id} {name}\n").as_bytes());
                if let Some(peeled) = peeled {
                    packed.extend_from_slice(format!("^{peeled}\n").as_bytes());
                }
            }
            target => loose.push((name.clone(), format!("{}\n", target.text()).into_bytes())),
        }
    }
    (packed, loose)
}
