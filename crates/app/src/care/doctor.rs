//! Diagnosis: what is there, what is damaged, what a person can do. Read-only.

use std::collections::HashSet;
use std::path::PathBuf;

use sandbar_domain::Hash;
use sandbar_domain::journal::{JournalKind, Phase};
use sandbar_domain::plan::PlanState;
use sandbar_ports::PortResult;
use sandbar_ports::exec::ViewReport;
use sandbar_ports::objects::StoreHealth;
use sandbar_ports::store::{JournalQuery, PlanRecord, SandboxState};

use crate::Sandbar;

/// The state of everything Sandbar keeps.
#[derive(Debug, Clone)]
pub struct Doctor {
    /// Which views work here.
    pub views: ViewReport,
    /// Always false: Sandbar isolates work, it does not contain hostile code (ENV-6).
    pub security_isolation: bool,
    /// How many plans there are, ended ones included.
    pub plans: u64,
    /// How many sandbox roots there are.
    pub sandboxes: u64,
    /// The content store.
    pub objects: StoreHealth,
    /// What a person should look at.
    pub findings: Vec<Finding>,
}

impl Doctor {
    /// The state where no data was ever recorded.
    pub fn without_data(views: ViewReport) -> Self {
        Self {
            views,
            security_isolation: false,
            plans: 0,
            sandboxes: 0,
            objects: StoreHealth::default(),
            findings: Vec::new(),
        }
    }
}

/// Something to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// A stable word.
    pub kind: &'static str,
    /// What it is about.
    pub subject: String,
    /// What it means and what to do.
    pub message: String,
}

impl Sandbar {
    /// Looks at everything and changes nothing.
    pub async fn doctor(&self) -> PortResult<Doctor> {
        let mut findings = Vec::new();
        for problem in self.parts.store.check().await? {
            let message = "the database is damaged: restore it from a copy".into();
            findings.push(Finding {
                kind: "store",
                subject: problem,
                message,
            });
        }
        let objects = self.parts.objects.verify().await?;
        for hash in &objects.damaged {
            let message = "a stored object does not match its name: checkpoints that need it cannot be restored".into();
            findings.push(Finding {
                kind: "object",
                subject: hash.to_string(),
                message,
            });
        }
        let places = self.parts.workspaces.places().await?;
        let known = self.look_at_plans(&places, &mut findings).await?;
        for place in places.iter().filter(|place| !known.contains(*place)) {
            findings.push(Finding {
                kind: "orphan",
                subject: place.display().to_string(),
                message: "no plan knows this sandbox directory: `sandbar gc` removes it".into(),
            });
        }
        self.look_at_pins(&places, &mut findings).await?;
        let count = |number: usize| u64::try_from(number).expect("a count fits 64 bits");
        Ok(Doctor {
            views: self.parts.runner.probe().await,
            security_isolation: false,
            plans: count(self.parts.store.plans().await?.len()),
            sandboxes: count(places.len()),
            objects,
            findings,
        })
    }

    async fn look_at_pins(
        &self,
        places: &[PathBuf],
        findings: &mut Vec<Finding>,
    ) -> PortResult<()> {
        for place in places {
            if let Some((dir, false)) = self.parts.pins.pins_of(place.clone()).await? {
                findings.push(Finding {
                    kind: "pins_gone",
                    subject: dir.display().to_string(),
                    message: format!(
                        "the git objects that the sandbox in {} borrows are gone: bring the repository back to where it was",
                        place.display()
                    ),
                });
            }
        }
        for holder in self.holders().await? {
            for dir in self.parts.pins.sweep(holder, true).await? {
                findings.push(Finding {
                    kind: "stray_pins",
                    subject: dir.display().to_string(),
                    message:
                        "these pins belong to a sandbox that is gone: `sandbar gc` removes them"
                            .into(),
                });
            }
        }
        Ok(())
    }

    async fn look_at_plans(
        &self,
        places: &[PathBuf],
        findings: &mut Vec<Finding>,
    ) -> PortResult<HashSet<PathBuf>> {
        let mut known = HashSet::new();
        let seen = &mut HashSet::new();
        // An undo that got stuck leaves its plan applied.
        let stuck: HashSet<_> = self
            .parts
            .store
            .journal(JournalQuery::Open)
            .await?
            .into_iter()
            .filter(|entry| entry.phase == Phase::NeedsAttention)
            .map(|entry| entry.plan)
            .collect();
        for plan in self.parts.store.plans().await? {
            let name = &plan.plan.name;
            let dead = |owner| !self.parts.runner.is_alive(owner);
            let orphan = plan.plan.mark.owner.as_ref().is_some_and(dead);
            let state = plan.plan.mark.state;
            if orphan && matches!(state, PlanState::Executing | PlanState::Applying) {
                findings.push(Finding {
                    kind: "dead_owner",
                    subject: name.clone(),
                    message: format!(
                        "it is {} and its process is dead: `sandbar recover`",
                        state.word()
                    ),
                });
            }
            if state == PlanState::NeedsAttention || stuck.contains(&plan.plan.id) {
                findings.push(self.describe_stuck(&plan).await?);
            }
            let gone = self.count_missing(&plan, seen).await?;
            if gone > 0 {
                findings.push(Finding {
                    kind: "missing_object",
                    subject: name.clone(),
                    message: format!(
                        "{gone} objects of its checkpoints are not in the store: those cannot be restored whole"
                    ),
                });
            }
            for sandbox in self.parts.store.sandboxes(plan.plan.id).await? {
                if sandbox.state == SandboxState::Ready && !places.contains(&sandbox.place) {
                    findings.push(Finding {
                        kind: "sandbox_gone",
                        subject: name.clone(),
                        message:
                            "its sandbox was removed by hand: `sandbar rollback` makes it again"
                                .into(),
                    });
                }
                known.insert(sandbox.place);
            }
        }
        Ok(known)
    }

    /// Counts what the checkpoints of a plan need and the store lacks. `seen`
    /// holds what was asked for before: checkpoints share most of it.
    async fn count_missing(
        &self,
        plan: &PlanRecord,
        seen: &mut HashSet<Hash>,
    ) -> PortResult<usize> {
        let mut gone = 0;
        for record in self.parts.store.checkpoints(plan.plan.id).await? {
            for part in &record.checkpoint.parts {
                if !seen.insert(part.snapshot) {
                    continue;
                }
                let Ok(snapshot) = self.snapshot(part.snapshot).await else {
                    gone += 1;
                    continue;
                };
                for tree in [Some(snapshot.tree), snapshot.git].into_iter().flatten() {
                    gone += self.count_missing_below(tree, seen).await?;
                }
            }
        }
        Ok(gone)
    }

    async fn count_missing_below(&self, tree: Hash, seen: &mut HashSet<Hash>) -> PortResult<usize> {
        if !seen.insert(tree) {
            return Ok(0);
        }
        let Ok(listed) = self.parts.objects.list(tree).await else {
            return Ok(1);
        };
        let asked = listed
            .into_iter()
            .map(|(_, entry)| entry.hash)
            .filter(|hash| seen.insert(*hash))
            .collect();
        Ok(self.parts.objects.missing(asked).await?.len())
    }

    async fn describe_stuck(&self, plan: &PlanRecord) -> PortResult<Finding> {
        let entries = self
            .parts
            .store
            .journal(JournalQuery::OfPlan(plan.plan.id))
            .await?;
        let entry = entries.iter().rev().find(|entry| entry.phase.is_open());
        let job = entry
            .and_then(|entry| crate::apply::Payload::decode(entry.version, &entry.payload).ok())
            .map(|payload| payload.job.display().to_string())
            .unwrap_or_default();
        let what = match entry.map(|entry| entry.kind) {
            Some(JournalKind::Undo) => "an undo",
            _ => "an apply",
        };
        Ok(Finding {
            kind: "needs_attention",
            subject: plan.plan.name.clone(),
            message: format!(
                "{what} was neither completed nor taken back; displaced files are in {job}: mend the cause, then `sandbar recover`"
            ),
        })
    }
}
