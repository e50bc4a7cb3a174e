//! Moving a plan from state to state, with exactly one driver at a time.

use sandbar_domain::Code;
use sandbar_domain::plan::{PlanEvent, PlanState};
use sandbar_ports::store::{PlanMark, PlanRecord};
use sandbar_ports::{PortError, PortResult};

use crate::Sandbar;

impl Sandbar {
    /// Moves a plan by `event` and makes this process its driver. Errors:
    /// `plan_busy` while another lives, `illegal_state`.
    pub(crate) async fn take_up(
        &self,
        plan: &PlanRecord,
        event: PlanEvent,
    ) -> PortResult<PlanRecord> {
        if let Some(owner) = &plan.plan.mark.owner
            && self.parts.runner.is_alive(owner)
        {
            let message = format!(
                "use plan {}: process {} drives it",
                plan.plan.name, owner.pid
            );
            return Err(PortError::new(Code::PlanBusy, message));
        }
        let state = self.next_state(plan, event)?;
        let to = PlanMark {
            state,
            owner: Some(self.parts.runner.owner()),
        };
        self.swap(plan, to).await
    }

    /// Moves a plan by `event` and lets it rest.
    pub(crate) async fn lay_down(
        &self,
        plan: &PlanRecord,
        event: PlanEvent,
    ) -> PortResult<PlanRecord> {
        let state = self.next_state(plan, event)?;
        self.swap(plan, PlanMark { state, owner: None }).await
    }

    /// Computes the mark that `event` leads to, at rest.
    pub(crate) fn rest(&self, plan: &PlanRecord, event: PlanEvent) -> PortResult<PlanMark> {
        Ok(PlanMark {
            state: self.next_state(plan, event)?,
            owner: None,
        })
    }

    fn next_state(&self, plan: &PlanRecord, event: PlanEvent) -> PortResult<PlanState> {
        plan.plan.mark.state.after(event).map_err(|error| {
            let message = format!("use plan {}: {error}", plan.plan.name);
            PortError::new(Code::IllegalState, message)
        })
    }

    /// Gives a plan another mark, if it still has the one that is known.
    pub(crate) async fn swap(&self, plan: &PlanRecord, to: PlanMark) -> PortResult<PlanRecord> {
        let now = self.parts.clock.now_ms();
        self.parts
            .store
            .move_plan(plan.plan.id, plan.plan.mark.clone(), to, now)
            .await
    }
}
