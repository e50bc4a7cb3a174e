//! Objects that a sandbox borrows from a repository on another file system,
//! and the pins that keep them there (STR-1).

use std::path::{Path, PathBuf};

use sandbar_ports::PortResult;
use sandbar_ports::git::{Checkout, PrivateGit};
use sandbar_ports::pins::{Pin, ShareRequest, Sharing};

use super::capture::GIT_DIR;
use crate::Sandbar;

/// Up to how many bytes of objects are copied rather than borrowed: a sandbox
/// that stands alone is worth a few milliseconds.
const SMALL: u64 = 16 << 20;

impl Sandbar {
    /// Settles how the objects of a checkout come into a sandbox. Returns
    /// where they are pinned, if they are borrowed.
    pub(crate) async fn pins_for(
        &self,
        checkout: &Checkout,
        place: &Path,
    ) -> PortResult<Option<PathBuf>> {
        let common = &checkout.common_dir;
        // In the in-place view what lies in the checkout is covered: there the
        // pins can be shown again only inside the private git directory. A
        // list of alternates has no way to write a line end.
        let holds = *common == checkout.root.join(GIT_DIR) || !common.starts_with(&checkout.root);
        let usable = holds && common.to_str().is_some_and(|path| !path.contains('\n'));
        let request = ShareRequest {
            place: place.to_path_buf(),
            from: common.join("objects"),
            holder: usable.then(|| common.clone()),
            small: SMALL,
        };
        match self.parts.pins.share(request).await? {
            Sharing::Shared => Ok(None),
            Sharing::Copied { bytes } => {
                if bytes > SMALL {
                    let size = bytes >> 20;
                    (self.around.say)(&format!(
                        "copying {size} MiB of git objects: they can be neither linked nor pinned"
                    ));
                }
                Ok(None)
            }
            Sharing::Pinned { dir, bytes: _ } => {
                // What an earlier data directory at this path left goes.
                self.parts.pins.sweep(common.clone(), false).await?;
                (self.around.say)(&format!(
                    "git objects are borrowed across file systems: they are pinned in {} while the plan needs them",
                    dir.display()
                ));
                Ok(Some(dir))
            }
        }
    }

    /// Makes the pins that a private git directory borrows from.
    pub(crate) async fn pin(
        &self,
        place: &Path,
        dir: Option<PathBuf>,
        private: &mut PrivateGit,
    ) -> PortResult<()> {
        let Some(dir) = dir else { return Ok(()) };
        let request = Pin {
            place: place.to_path_buf(),
            dir,
            parts: std::mem::take(&mut private.pins),
            cancel: self.around.cancel.clone(),
        };
        self.parts.pins.pin(request).await
    }

    /// Returns the shared git directories of all plans that can be found, each
    /// once: where pins may be.
    pub(crate) async fn holders(&self) -> PortResult<Vec<PathBuf>> {
        let mut found = Vec::new();
        for plan in self.parts.store.plans().await? {
            let resource = self.parts.store.resource(plan.plan.resource).await?;
            let Some(resource) = resource else { continue };
            // A checkout that is gone, or damaged, has none to show.
            if let Ok(Some(checkout)) = self.parts.git.discover(resource.root.path).await
                && !found.contains(&checkout.common_dir)
            {
                found.push(checkout.common_dir);
            }
        }
        Ok(found)
    }
}
