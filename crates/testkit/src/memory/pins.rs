//! Pins in a world of one disk: everything can be shared, so nothing is ever
//! pinned, and to pin something all the same is refused by name.

use std::path::PathBuf;

use async_trait::async_trait;
use sandbar_domain::Code;
use sandbar_ports::pins::{Pin, Pins, ShareRequest, Sharing};
use sandbar_ports::{PortError, PortResult};

/// Shares everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct MemPins;

#[async_trait]
impl Pins for MemPins {
    async fn share(&self, _: ShareRequest) -> PortResult<Sharing> {
        Ok(Sharing::Shared)
    }

    async fn pin(&self, request: Pin) -> PortResult<()> {
        let message = format!("pin objects in {}: one disk", request.dir.display());
        Err(PortError::new(Code::NotAvailable, message))
    }

    async fn unpin(&self, _: PathBuf) -> PortResult<()> {
        Ok(())
    }

    async fn pins_of(&self, _: PathBuf) -> PortResult<Option<(PathBuf, bool)>> {
        Ok(None)
    }

    async fn sweep(&self, _: PathBuf, _: bool) -> PortResult<Vec<PathBuf>> {
        Ok(Vec::new())
    }
}
