//! One value that changes whenever HEAD, a ref or the index does.

use sandbar_domain::Hash;
use sandbar_domain::hash::Hasher;
use sandbar_ports::PortResult;
use sandbar_ports::git::Checkout;

use crate::open::{Scope, open};
use crate::{reading, refs};

/// Hashes HEAD, all refs but Sandbar's own, and what tells one version of the
/// index from another.
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
