//! Dropping a plan, and cleaning up after it (STR-9).

use std::path::Path;

use sandbar_domain::journal::Phase;
use sandbar_domain::plan::PlanEvent;
use sandbar_domain::{Code, Hash};
use sandbar_ports::PortResult;
use sandbar_ports::store::{JournalQuery, JournalStep, PlanRecord, SandboxRecord, SandboxState};
use sandbar_ports::workspace::Tally;

use crate::Sandbar;
use crate::config::Cleanup;

/// How many paths a message names.
const NAMED: usize = 5;

impl Sandbar {
    /// Drops a plan. Its state is saved first; checkpoints stay until
    /// retention. What no checkpoint holds is named as it goes.
    pub async fn discard(&self, plan: &str, cwd: &Path) -> PortResult<PlanRecord> {
        self.recover_dead().await?;
        let plan = self.find_plan(plan, cwd).await?;
        self.refuse_busy(&plan)?;
        let sandbox = self.sandbox_of(&plan).await?;
        let cleaned = sandbox
            .clone()
            .filter(|sandbox| sandbox.state == SandboxState::Cleaned);
        let live = sandbox.filter(|sandbox| {
            matches!(sandbox.state, SandboxState::Ready | SandboxState::Restoring)
        });
        let plan = match &live {
            Some(sandbox) if plan.plan.mark.state.after(PlanEvent::Rework).is_ok() => {
                let plan = self.take_up(&plan, PlanEvent::Rework).await?;
                if let Err(error) = self.save_last(&plan, sandbox).await {
                    self.lay_down(&plan, PlanEvent::Finish).await?;
                    return Err(error);
                }
                plan
            }
            // An applied one whose root stayed: it may hold more by now.
            Some(sandbox) if plan.plan.mark.state.after(PlanEvent::Discard).is_ok() => {
                let plan = self.seize(&plan).await?;
                if let Err(error) = self.save_last(&plan, sandbox).await {
                    self.let_go(&plan).await?;
                    return Err(error);
                }
                plan
            }
            _ => plan,
        };
        self.give_up_applies(&plan).await?;
        let plan = self.lay_down(&plan, PlanEvent::Discard).await?;
        let dropped = match (live, cleaned) {
            (Some(sandbox), _) if self.config.cleanup() == Cleanup::OnTerminal => {
                self.clean_for_good(&sandbox).await
            }
            (_, Some(sandbox)) => self.parts.pins.unpin(sandbox.place).await,
            _ => Ok(()),
        };
        if let Err(error) = dropped {
            (self.around.say)(&format!("failed to {error}; `sandbar gc` tries again"));
        }
        Ok(plan)
    }

    /// Saves what a sandbox holds before it goes. A root that was removed by
    /// hand holds nothing.
    async fn save_last(&self, plan: &PlanRecord, sandbox: &SandboxRecord) -> PortResult<()> {
        match self.save(plan, sandbox, "discard").await {
            Ok((_, state)) => {
                if let Some(list) = unsaved(&state.tally) {
                    (self.around.say)(&format!(
                        "dropped with the sandbox, in no checkpoint: {list}"
                    ));
                }
                Ok(())
            }
            Err(error) if error.code == Code::SandboxGone => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Closes applies that could be neither completed nor undone: the person
    /// gives them up. What they displaced stays where it is until retention.
    async fn give_up_applies(&self, plan: &PlanRecord) -> PortResult<()> {
        let entries = self
            .parts
            .store
            .journal(JournalQuery::OfPlan(plan.plan.id))
            .await?;
        for entry in entries
            .into_iter()
            .filter(|entry| entry.phase == Phase::NeedsAttention)
        {
            let payload = crate::apply::Payload::decode(entry.version, &entry.payload)?;
            (self.around.say)(&format!(
                "an apply is given up; what it displaced stays in {}",
                payload.job.display()
            ));
            let step = JournalStep {
                id: entry.id,
                from: entry.phase,
                to: Phase::Aborted,
                ops: entry.ops,
                payload: entry.payload,
                owner: None,
                plan: None,
            };
            self.parts.store.advance_journal(step).await?;
        }
        Ok(())
    }

    /// Removes the root after an apply, unless it holds what was not brought
    /// back: paths git ignores, entries that cannot be carried, or what was
    /// written since `applied` was scanned. Returns why it stays.
    pub(crate) async fn clean_applied(
        &self,
        sandbox: &SandboxRecord,
        applied: Hash,
    ) -> PortResult<Option<String>> {
        let now = self.capture_tree(sandbox).await?;
        if now.tree != applied {
            return Ok(Some("it was written to during the apply".into()));
        }
        if let Some(list) = unsaved(&now.tally) {
            return Ok(Some(format!(
                "it holds what is not part of the result: {list}"
            )));
        }
        self.clean(sandbox).await?;
        Ok(None)
    }

    /// Removes the root of a sandbox that is never made again, and its pins
    /// in the person's repository; the files of its checkpoints stay.
    pub(crate) async fn clean_for_good(&self, sandbox: &SandboxRecord) -> PortResult<()> {
        self.clean(sandbox).await?;
        self.parts.pins.unpin(sandbox.place.clone()).await
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

/// Names what a scan met and no checkpoint holds.
fn unsaved(tally: &Tally) -> Option<String> {
    let unsupported = tally.unsupported.iter().map(|(path, _)| path);
    let mut names: Vec<&str> = unsupported
        .chain(&tally.ignored_paths)
        .map(String::as_str)
        .collect();
    let all = names.len();
    if all == 0 {
        return None;
    }
    names.truncate(NAMED);
    let more = if all > NAMED {
        format!(" and {} more", all - NAMED)
    } else {
        String::new()
    };
    Some(format!("{}{more}", names.join(", ")))
}
