//! Which resource a directory belongs to.

use std::path::{Path, PathBuf};

use sandbar_domain::Code;
use sandbar_domain::resource::{Resource, ResourceType};
use sandbar_ports::git::Checkout;
use sandbar_ports::{PortError, PortResult};

use crate::Sandbar;

/// A registered resource, and where in it the caller stands.
#[derive(Debug, Clone)]
pub(crate) struct Located {
    /// The resource.
    pub(crate) resource: Resource,
    /// What git says of it.
    pub(crate) checkout: Option<Checkout>,
    /// The caller's directory below the root; empty at the root.
    pub(crate) subdir: PathBuf,
}

impl Sandbar {
    /// Registers the checkout that encloses `cwd`, else `cwd` itself.
    pub(crate) async fn locate(&self, cwd: &Path) -> PortResult<Located> {
        let here = self.parts.workspaces.identify(cwd.to_path_buf()).await?;
        let checkout = self.parts.git.discover(here.path.clone()).await?;
        let (kind, root) = match &checkout {
            Some(checkout) => {
                let root = self
                    .parts
                    .workspaces
                    .identify(checkout.root.clone())
                    .await?;
                (ResourceType::GitCheckout, root)
            }
            None => (ResourceType::FsDirectory, here.clone()),
        };
        if root.path.to_str().is_none() {
            let message = format!("use {}: the path is not UTF-8", root.path.display());
            return Err(PortError::new(Code::RootRefused, message));
        }
        if self.around.home.as_deref() == Some(&*root.path) {
            let message = format!("use {}: it is the home directory", root.path.display());
            return Err(PortError::new(Code::RootRefused, message));
        }
        let subdir = here
            .path
            .strip_prefix(&root.path)
            .unwrap_or(Path::new(""))
            .to_path_buf();
        let id = self.parts.names().resource();
        let resource = self
            .parts
            .store
            .register(Resource { id, kind, root })
            .await?;
        Ok(Located {
            resource,
            checkout,
            subdir,
        })
    }
}
