//! Dropping a plan, and cleaning up after it (STR-9).

use std::path::Path;

use sandbar_domain::plan::PlanEvent;
use sandbar_ports::PortResult;
use sandbar_ports::store::{PlanRecord, SandboxRecord, SandboxState};

use crate::Sandbar;
use crate::config::Cleanup;

impl Sandbar {
    /// Drops a plan. Its state is saved first; checkpoints stay until
    /// retention, so that nothing that exists nowhere else is deleted unasked.
    pub async fn discard(&self, plan: &str, cwd: &Path) -> PortResult<PlanRecord> {
        self.recover_dead().await?;
        let plan = self.find_plan(plan, cwd).await?;
        self.refuse_busy(&plan)?;
        let sandbox = self.sandbox_of(&plan).await?;
        if let Some(sandbox) = &sandbox
            && sandbox.state == SandboxState::Ready
        {
            self.save(&plan, sandbox, "discard").await?;
        }
        let plan = self.lay_down(&plan, PlanEvent::Discard).await?;
        if let Some(sandbox) = sandbox
            && self.config.cleanup() == Cleanup::OnTerminal
        {
            self.clean(&sandbox).await?;
        }
        Ok(plan)
    }

    /// Removes the root of a sandbox; its checkpoints stay.
    pub(crate) async fn clean(&self, sandbox: &SandboxRecord) -> PortResult<()> {
        self.parts.workspaces.retire(sandbox.place.clone()).await?;
        let record = SandboxRecord {
            state: SandboxState::Cleaned,
            ..sandbox.clone()
        };
        self.parts.store.update_sandbox(record).await
    }
}
