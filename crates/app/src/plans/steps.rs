//! Library steps: a checkpoint before each, one after each success, and a
//! failed step rolls back (CKP-1).

use std::future::Future;
use std::path::{Path, PathBuf};

use sandbar_domain::plan::PlanEvent;
use sandbar_ports::PortResult;

use super::capture::path_of;
use crate::Sandbar;

/// How a step ended.
#[derive(Debug)]
pub enum StepOutcome<T, E> {
    /// It succeeded; the number of the checkpoint after it.
    Done(T, u64),
    /// It failed, and the sandbox is as it was before.
    RolledBack(E),
}

impl Sandbar {
    /// Runs `step` with the sandbox root of a plan. On failure the sandbox is
    /// put back to what it was before the step.
    pub async fn step<T, E, F>(
        &self,
        plan: &str,
        cwd: &Path,
        name: &str,
        step: impl FnOnce(PathBuf) -> F + Send,
    ) -> PortResult<StepOutcome<T, E>>
    where
        F: Future<Output = Result<T, E>> + Send,
    {
        let plan = self.find_plan(plan, cwd).await?;
        let sandbox = self.live_sandbox(&plan).await?;
        let plan = self.take_up(&plan, PlanEvent::Execute).await?;
        let outcome = async {
            let (before, _) = self.save(&plan, &sandbox, "before").await?;
            match step(path_of(&sandbox)).await {
                Ok(value) => {
                    let (after, _) = self.save(&plan, &sandbox, name).await?;
                    Ok(StepOutcome::Done(value, after.sequence))
                }
                Err(error) => {
                    let part = super::checkpoint::part_of(&before, &sandbox)?;
                    let wanted = self.snapshot(part.snapshot).await?;
                    self.return_to(&plan, &sandbox, &before, &wanted).await?;
                    Ok(StepOutcome::RolledBack(error))
                }
            }
        }
        .await;
        let event = if outcome.is_ok() {
            PlanEvent::Finish
        } else {
            PlanEvent::Break
        };
        self.lay_down(&plan, event).await?;
        outcome
    }
}
