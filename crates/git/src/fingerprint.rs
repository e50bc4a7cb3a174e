//! One value that changes whenever HEAD, a ref or the index does.

use sandbar_domain::Hash;
use sandbar_domain::hash::Hasher;
use sandbar_ports::PortResult;
use sandbar_ports::git::Checkout;

use crate::open::{Scope, open};
use crate::{reading, refs};

/// Hashes HEAD, all refs but Sandbar's own, what tells one version of the
/// index from another, and the names of the packs: while a repack is at work
/// objects move, and some could be met at neither place.
pub(crate) fn fingerprint(checkout: &Checkout, scope: Scope) -> PortResult<Hash> {
    let repository = open(&checkout.root, scope)?;
    let mut hasher = Hasher::new();
    hasher.update(&reading::followed(&checkout.git_dir.join("HEAD"))?.unwrap_or_default());
    for reference in refs::all(&repository)?.refs {
        hasher.update(b"\0");
        hasher.update(reference.name.as_bytes());
        hasher.update(b" ");
        hasher.update(reference.target.text().as_bytes());
    }
    for name in reading::names(&checkout.common_dir.join("objects/pack"))? {
        // A pack that is being written has no name yet.
        if name.ends_with(".pack") {
            hasher.update(b"\0");
            hasher.update(name.as_bytes());
        }
    }
    hasher.update(b"\0index");
    for part in reading::stamp(&repository.index_path())
        .into_iter()
        .flatten()
    {
        hasher.update(&part.to_be_bytes());
    }
    for name in STATE {
        let stamp = reading::stamp(&checkout.git_dir.join(name));
        for part in stamp.into_iter().flatten() {
            hasher.update(name.as_bytes());
            hasher.update(&part.to_be_bytes());
        }
    }
    Ok(hasher.finish())
}

/// Files that come and go with an operation in progress.
const STATE: &[&str] = &[
    "MERGE_HEAD",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "BISECT_LOG",
    "rebase-merge",
    "rebase-apply",
    "sequencer",
];
