//! Settling what dead processes left: open applies first, then plans that
//! nobody drives any more, then half-made sandboxes (APL-9, STR-9).

use sandbar_domain::journal::JournalKind;
use sandbar_domain::plan::{PlanEvent, PlanState};
use sandbar_domain::{Code, JournalId};
use sandbar_ports::PortResult;
use sandbar_ports::store::{JournalQuery, PlanMark, PlanRecord, SandboxState};

use crate::Sandbar;
use crate::apply::Outcome;

/// What recovery settled; empty when there was nothing to do.
#[derive(Debug, Clone, Default)]
pub struct Recovered {
    /// Applies of dead processes: the plan's name and what each came to.
    pub applies: Vec<(String, Outcome)>,
    /// Undos of dead processes: the plan's name and what each came to.
    pub undos: Vec<(String, Outcome)>,
    /// Plans whose command lost its owner; they are in review now.
    pub plans: Vec<String>,
    /// Plans whose sandbox was never finished; they are forgotten.
    pub abandoned: Vec<String>,
    /// What could not be settled, and why.
    pub open: Vec<(String, String)>,
}

impl Recovered {
    fn settled(&mut self, kind: JournalKind, plan: String, outcome: Outcome) {
        match kind {
            JournalKind::Apply => self.applies.push((plan, outcome)),
            JournalKind::Undo => self.undos.push((plan, outcome)),
        }
    }

    /// Says whether there was anything to do.
    pub fn is_empty(&self) -> bool {
        self.applies.is_empty()
            && self.undos.is_empty()
            && self.plans.is_empty()
            && self.abandoned.is_empty()
            && self.open.is_empty()
    }
}

impl Sandbar {
    /// Settles what dead processes left, and says what came of it. A second
    /// call finds nothing to do.
    pub async fn recover(&self) -> PortResult<Recovered> {
        let mut report = Recovered::default();
        self.parts.objects.sweep().await?;
        self.recover_applies(&mut report).await?;
        for plan in self.parts.store.plans().await? {
            if plan.plan.mark.state == PlanState::Executing
                && self.is_orphan(&plan)
                && let Some(plan) = self.claim(&plan).await?
            {
                self.or_let_go(&plan, self.recover_plan(&plan, &mut report).await)
                    .await?;
            }
        }
        Ok(report)
    }

    /// Recovers at the start of a mutating command. What cannot be settled is
    /// said, and does not stop a command that may be about something else.
    pub(crate) async fn recover_dead(&self) -> PortResult<()> {
        let report = self.recover().await?;
        for (plan, outcome) in &report.applies {
            (self.around.say)(&format!(
                "recovered the apply of plan {plan}: {}",
                outcome.word()
            ));
        }
        for (plan, outcome) in &report.undos {
            (self.around.say)(&format!(
                "recovered the undo of plan {plan}: {}",
                outcome.word()
            ));
        }
        for plan in &report.plans {
            (self.around.say)(&format!(
                "plan {plan} lost its process; it is in review now"
            ));
        }
        for plan in &report.abandoned {
            (self.around.say)(&format!("removed the unfinished sandbox of plan {plan}"));
        }
        for (plan, reason) in &report.open {
            (self.around.say)(&format!("plan {plan} needs attention: {reason}"));
        }
        Ok(())
    }

    async fn recover_applies(&self, report: &mut Recovered) -> PortResult<()> {
        for entry in self.parts.store.journal(JournalQuery::Open).await? {
            let alive = entry
                .owner
                .as_ref()
                .is_some_and(|owner| self.parts.runner.is_alive(owner));
            if alive {
                continue;
            }
            let Some(plan) = self.parts.store.plan(entry.plan).await? else {
                report
                    .open
                    .push((entry.plan.to_string(), "its plan is not recorded".into()));
                continue;
            };
            let name = plan.plan.name.clone();
            match self.resume(&entry, &plan).await {
                Ok(Some(outcome)) => report.settled(entry.kind, name, outcome),
                Ok(None) => {}
                // Taken back whole, with an error that says why.
                Err(_) if self.is_over_with(&plan, entry.id).await => {
                    report.settled(entry.kind, name, Outcome::Conflict);
                }
                Err(error) => report.open.push((name, format!("failed to {error}"))),
            }
        }
        // A process that died between taking up a plan and opening an entry
        // wrote nothing: the plan goes back to review.
        for plan in self.parts.store.plans().await? {
            let undone = match plan.plan.mark.state {
                PlanState::Applying => false,
                PlanState::Applied | PlanState::PartiallyApplied
                    if plan.plan.mark.owner.is_some() =>
                {
                    true
                }
                _ => continue,
            };
            if !self.is_orphan(&plan) || !self.is_settled(&plan).await {
                continue;
            }
            let Some(plan) = self.claim(&plan).await? else {
                continue;
            };
            if undone {
                self.or_let_go(&plan, self.drop_half_made(&plan).await)
                    .await?;
                self.let_go(&plan).await?;
            } else {
                let event = self.or_let_go(&plan, self.refusal(&plan).await).await?;
                self.lay_down(&plan, event).await?;
                report.plans.push(plan.plan.name);
            }
        }
        Ok(())
    }

    /// Removes the root that an undo of a dead process was making again: the
    /// plan is still applied, and its checkpoints have it all.
    async fn drop_half_made(&self, plan: &PlanRecord) -> PortResult<()> {
        for sandbox in self.parts.store.sandboxes(plan.plan.id).await? {
            if sandbox.state == SandboxState::Restoring {
                self.clean(&sandbox).await?;
            }
        }
        Ok(())
    }

    /// Makes this process the driver of an orphan before anything of it is
    /// touched. `None` when another was quicker: its driver had ended as it
    /// should since the list was read, or another recovery has it.
    async fn claim(&self, plan: &PlanRecord) -> PortResult<Option<PlanRecord>> {
        let mark = PlanMark {
            state: plan.plan.mark.state,
            owner: Some(self.parts.runner.owner()),
        };
        match self.swap(plan, mark).await {
            Ok(claimed) => Ok(Some(claimed)),
            Err(error) if matches!(error.code, Code::PlanBusy | Code::PlanNotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Passes a result on; after a failure the plan is an orphan again.
    async fn or_let_go<T>(&self, plan: &PlanRecord, result: PortResult<T>) -> PortResult<T> {
        if result.is_err() {
            let _ = self.let_go(plan).await;
        }
        result
    }

    /// Says whether a journal entry is closed by now.
    async fn is_over_with(&self, plan: &PlanRecord, entry: JournalId) -> bool {
        let of_plan = JournalQuery::OfPlan(plan.plan.id);
        let entries = self.parts.store.journal(of_plan).await;
        entries.is_ok_and(|all| {
            let mut ours = all.iter().filter(|one| one.id == entry);
            ours.next().is_some_and(|one| !one.phase.is_open())
        })
    }

    fn is_orphan(&self, plan: &PlanRecord) -> bool {
        plan.plan
            .mark
            .owner
            .as_ref()
            .is_none_or(|owner| !self.parts.runner.is_alive(owner))
    }

    async fn recover_plan(&self, plan: &PlanRecord, report: &mut Recovered) -> PortResult<()> {
        let sandboxes = self.parts.store.sandboxes(plan.plan.id).await?;
        let finished = sandboxes
            .iter()
            .any(|sandbox| sandbox.state != SandboxState::Creating);
        if finished {
            for sandbox in &sandboxes {
                if sandbox.state == SandboxState::Restoring {
                    self.finish_return(plan, sandbox).await?;
                }
            }
            self.lay_down(plan, PlanEvent::OwnerDied).await?;
            report.plans.push(plan.plan.name.clone());
            return Ok(());
        }
        for sandbox in sandboxes {
            self.parts.workspaces.remove(sandbox.place.clone()).await?;
        }
        self.drop_all_checkpoints(plan).await?;
        self.parts.store.forget_plan(plan.plan.id).await?;
        report.abandoned.push(plan.plan.name.clone());
        Ok(())
    }
}
