//! A store in memory: the contract as plain as it can be written.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use sandbar_domain::plan::PlanState;
use sandbar_domain::resource::Resource;
use sandbar_domain::{Code, PlanId, ResourceId};
use sandbar_ports::exec::Owner;
use sandbar_ports::store::{
    CheckpointRecord, JournalQuery, JournalRecord, JournalStep, NewCheckpoint, NewPlan, PlanMark,
    PlanRecord, SandboxRecord, Store,
};
use sandbar_ports::{PortError, PortResult};

/// A store that lives as long as its last clone; clones share it.
#[derive(Debug, Clone, Default)]
pub struct MemStore(Arc<Mutex<Tables>>);

/// Everything, each list oldest first.
#[derive(Debug, Default)]
struct Tables {
    resources: Vec<Resource>,
    /// With the next checkpoint's number.
    plans: Vec<(PlanRecord, u64)>,
    sandboxes: Vec<SandboxRecord>,
    checkpoints: Vec<CheckpointRecord>,
    journal: Vec<JournalRecord>,
}

impl MemStore {
    /// Makes an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        // Every change below is made after its last check: a panic cannot
        // leave half of one.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tables {
    fn plan(&mut self, id: PlanId) -> PortResult<&mut (PlanRecord, u64)> {
        let found = self.plans.iter_mut().find(|(r, _)| r.plan.id == id);
        found.ok_or_else(|| {
            PortError::new(
                Code::PlanNotFound,
                format!("find plan {id}: there is none of that id"),
            )
        })
    }

    fn is_taken(&self, name: &str) -> bool {
        self.plans.iter().any(|(record, _)| {
            record.plan.name == name && record.plan.mark.state != PlanState::Discarded
        })
    }

    /// Checks a move without making it.
    fn check_move(&mut self, id: PlanId, from: &PlanMark, to: &PlanMark) -> PortResult<()> {
        let (record, _) = self.plan(id)?;
        let NewPlan { name, mark, .. } = record.plan.clone();
        if mark != *from {
            let state = mark.state.word();
            let who = match &mark.owner {
                Some(owner) => format!("it is {state}, driven by process {}", owner.pid),
                None => format!("it is {state} by now"),
            };
            return Err(PortError::new(
                Code::PlanBusy,
                format!("move plan {name}: {who}"),
            ));
        }
        let revived = from.state == PlanState::Discarded && to.state != PlanState::Discarded;
        if revived && self.is_taken(&name) {
            return Err(name_in_use(&name));
        }
        Ok(())
    }

    fn make_move(&mut self, id: PlanId, to: PlanMark, now_ms: i64) -> PortResult<PlanRecord> {
        let (record, _) = self.plan(id)?;
        record.plan.mark = to;
        record.changed_ms = now_ms;
        Ok(record.clone())
    }

    /// Checks what a sandbox record refers to.
    fn check_sandbox(&mut self, record: &SandboxRecord) -> PortResult<()> {
        plain([record.base_branch.as_deref(), record.base_head.as_deref()])?;
        self.plan(record.plan)?;
        if !self.resources.iter().any(|r| r.id == record.resource) {
            return Err(internal("its resource is not in the store"));
        }
        let twin = self.sandboxes.iter().any(|other| {
            other.plan == record.plan && other.resource == record.resource && other.id != record.id
        });
        if twin {
            return Err(PortError::new(
                Code::IllegalState,
                format!(
                    "record sandbox {}: plan {} has one for that resource",
                    record.id, record.plan
                ),
            ));
        }
        Ok(())
    }
}

#[async_trait]
impl Store for MemStore {
    async fn register(&self, new: Resource) -> PortResult<Resource> {
        let mut tables = self.tables();
        let known = tables
            .resources
            .iter_mut()
            .find(|known| known.kind == new.kind && known.root.path == new.root.path);
        if let Some(known) = known {
            known.root = new.root;
            return Ok(known.clone());
        }
        if tables.resources.iter().any(|known| known.id == new.id) {
            return Err(internal("an id that is taken"));
        }
        tables.resources.push(new.clone());
        Ok(new)
    }

    async fn resource(&self, id: ResourceId) -> PortResult<Option<Resource>> {
        let tables = self.tables();
        Ok(tables.resources.iter().find(|r| r.id == id).cloned())
    }

    async fn add_plan(&self, plan: NewPlan) -> PortResult<PlanRecord> {
        let texts = [Some(plan.name.as_str()), Some(&plan.settings)];
        plain(texts.into_iter().chain(texts_of(plan.mark.owner.as_ref())))?;
        let mut tables = self.tables();
        if plan.mark.state != PlanState::Discarded && tables.is_taken(&plan.name) {
            return Err(name_in_use(&plan.name));
        }
        if tables.plans.iter().any(|(r, _)| r.plan.id == plan.id) {
            return Err(internal("an id that is taken"));
        }
        if !tables.resources.iter().any(|r| r.id == plan.resource) {
            return Err(internal("its resource is not in the store"));
        }
        let last = tables.plans.last().map_or(0, |(record, _)| record.sequence);
        let record = PlanRecord {
            sequence: last + 1,
            changed_ms: plan.created_ms,
            plan,
        };
        tables.plans.push((record.clone(), 1));
        Ok(record)
    }

    async fn plans(&self) -> PortResult<Vec<PlanRecord>> {
        let tables = self.tables();
        Ok(tables.plans.iter().map(|(r, _)| r.clone()).collect())
    }

    async fn plan(&self, id: PlanId) -> PortResult<Option<PlanRecord>> {
        Ok(self
            .tables()
            .plan(id)
            .ok()
            .map(|(record, _)| record.clone()))
    }

    async fn find_plans(&self, text: String) -> PortResult<Vec<PlanRecord>> {
        let tables = self.tables();
        let all = || tables.plans.iter().map(|(record, _)| record);
        let named = all().filter(|record| record.plan.name == text);
        // Not discarded before discarded, new before old.
        let best = named
            .max_by_key(|r| (r.plan.mark.state != PlanState::Discarded, r.sequence))
            .cloned();
        if let Some(record) = best {
            return Ok(vec![record]);
        }
        let prefix = text.to_ascii_uppercase();
        let fits = |r: &&PlanRecord| r.plan.id.to_string().starts_with(&prefix);
        Ok(match prefix.as_str() {
            "" => Vec::new(),
            _ => all().filter(fits).cloned().collect(),
        })
    }

    async fn newest_plan(&self, resource: ResourceId) -> PortResult<Option<PlanRecord>> {
        let tables = self.tables();
        let mut newest = tables.plans.iter().rev();
        let found = newest.find(|(record, _)| record.plan.resource == resource);
        Ok(found.map(|(record, _)| record.clone()))
    }

    async fn move_plan(
        &self,
        id: PlanId,
        from: PlanMark,
        to: PlanMark,
        now_ms: i64,
    ) -> PortResult<PlanRecord> {
        plain(texts_of(to.owner.as_ref()))?;
        let mut tables = self.tables();
        tables.check_move(id, &from, &to)?;
        tables.make_move(id, to, now_ms)
    }

    async fn add_sandbox(&self, sandbox: SandboxRecord) -> PortResult<()> {
        let mut tables = self.tables();
        tables.check_sandbox(&sandbox)?;
        if tables.sandboxes.iter().any(|other| other.id == sandbox.id) {
            return Err(internal("an id that is taken"));
        }
        tables.sandboxes.push(sandbox);
        Ok(())
    }

    async fn update_sandbox(&self, sandbox: SandboxRecord) -> PortResult<()> {
        let mut tables = self.tables();
        tables.check_sandbox(&sandbox)?;
        let mut all = tables.sandboxes.iter_mut();
        let old = all.find(|other| other.id == sandbox.id);
        *old.ok_or_else(|| internal("no sandbox of that id"))? = sandbox;
        Ok(())
    }

    async fn sandboxes(&self, plan: PlanId) -> PortResult<Vec<SandboxRecord>> {
        let tables = self.tables();
        let of_plan = tables.sandboxes.iter().filter(|s| s.plan == plan);
        Ok(of_plan.cloned().collect())
    }

    async fn add_checkpoint(&self, checkpoint: NewCheckpoint) -> PortResult<CheckpointRecord> {
        let commits = checkpoint.parts.iter().map(|part| part.commit.as_deref());
        let texts = [
            Some(checkpoint.step.as_str()),
            checkpoint.message.as_deref(),
        ];
        plain(commits.chain(texts))?;
        let mut tables = self.tables();
        tables.plan(checkpoint.plan)?;
        let known = |id| tables.sandboxes.iter().any(|sandbox| sandbox.id == id);
        if !checkpoint.parts.iter().all(|part| known(part.sandbox)) {
            return Err(internal("a sandbox of it is not in the store"));
        }
        let mut all = tables.checkpoints.iter();
        if all.any(|record| record.checkpoint.id == checkpoint.id) {
            return Err(internal("an id that is taken"));
        }
        let (_, next) = tables.plan(checkpoint.plan)?;
        let record = CheckpointRecord {
            sequence: *next,
            checkpoint,
        };
        *next += 1;
        tables.checkpoints.push(record.clone());
        Ok(record)
    }

    async fn checkpoints(&self, plan: PlanId) -> PortResult<Vec<CheckpointRecord>> {
        let tables = self.tables();
        let all = tables.checkpoints.iter();
        Ok(all.filter(|r| r.checkpoint.plan == plan).cloned().collect())
    }

    async fn forget_plan(&self, id: PlanId) -> PortResult<()> {
        let mut tables = self.tables();
        let past = tables
            .checkpoints
            .iter()
            .any(|record| record.checkpoint.plan == id)
            || tables.journal.iter().any(|entry| entry.plan == id);
        if past {
            let message = format!("forget plan {id}: it has a past");
            return Err(PortError::new(Code::IllegalState, message));
        }
        tables.sandboxes.retain(|sandbox| sandbox.plan != id);
        tables.plans.retain(|(record, _)| record.plan.id != id);
        Ok(())
    }

    async fn drop_checkpoints(&self, plan: PlanId, sequence: Vec<u64>) -> PortResult<()> {
        self.tables().checkpoints.retain(|record| {
            record.checkpoint.plan != plan || !sequence.contains(&record.sequence)
        });
        Ok(())
    }

    async fn open_journal(&self, entry: JournalRecord) -> PortResult<JournalRecord> {
        let owner = texts_of(entry.owner.as_ref());
        plain(owner.into_iter().chain([Some(entry.payload.as_str())]))?;
        let mut tables = self.tables();
        tables.plan(entry.plan)?;
        if tables.journal.iter().any(|other| other.id == entry.id) {
            return Err(internal("an id that is taken"));
        }
        let last = tables.journal.last().map_or(0, |entry| entry.sequence);
        let entry = JournalRecord {
            sequence: last + 1,
            ..entry
        };
        tables.journal.push(entry.clone());
        Ok(entry)
    }

    async fn advance_journal(&self, step: JournalStep) -> PortResult<JournalRecord> {
        let JournalStep {
            id,
            from,
            to,
            ops,
            payload,
            owner,
            plan,
        } = step;
        let next_owner = plan.as_ref().and_then(|(_, to, _)| to.owner.as_ref());
        let owners = [owner.as_ref(), next_owner].map(texts_of);
        let owners = owners.into_iter().flatten();
        plain(owners.chain([Some(payload.as_str())]))?;
        let refused = |why: String| {
            PortError::new(
                Code::IllegalState,
                format!("move journal entry {id} to {}: {why}", to.word()),
            )
        };
        let mut tables = self.tables();
        let index = tables.journal.iter().position(|entry| entry.id == id);
        let index = index.ok_or_else(|| refused("there is none of that id".to_owned()))?;
        let now = tables.journal[index].phase;
        if now != from {
            return Err(refused(format!("it is {}", now.word())));
        }
        if from != to && !from.allows(to) {
            return Err(refused(format!("not after {}", from.word())));
        }
        if let Some((before, after, now_ms)) = plan {
            let plan = tables.journal[index].plan;
            tables.check_move(plan, &before, &after)?;
            tables.make_move(plan, after, now_ms)?;
        }
        let entry = &mut tables.journal[index];
        entry.phase = to;
        entry.ops = ops;
        entry.payload = payload;
        entry.owner = owner;
        Ok(entry.clone())
    }

    async fn journal(&self, of: JournalQuery) -> PortResult<Vec<JournalRecord>> {
        let tables = self.tables();
        let wanted = |entry: &&JournalRecord| match of {
            JournalQuery::Open => entry.phase.is_open(),
            JournalQuery::OfPlan(plan) => entry.plan == plan,
        };
        Ok(tables.journal.iter().filter(wanted).cloned().collect())
    }

    async fn check(&self) -> PortResult<Vec<String>> {
        Ok(Vec::new())
    }
}

fn name_in_use(name: &str) -> PortError {
    PortError::new(
        Code::NameInUse,
        format!("name a plan {name}: the name is in use"),
    )
}

fn internal(why: &str) -> PortError {
    PortError::new(Code::Internal, format!("record it: {why}"))
}

/// Returns the texts of an owner.
fn texts_of(owner: Option<&Owner>) -> [Option<&str>; 2] {
    [
        owner.map(|owner| owner.host.as_str()),
        owner.map(|owner| owner.boot.as_str()),
    ]
}

/// Refuses texts with a NUL, as the databases must.
fn plain<'a>(texts: impl IntoIterator<Item = Option<&'a str>>) -> PortResult<()> {
    if texts.into_iter().flatten().any(|text| text.contains('\0')) {
        return Err(PortError::new(
            Code::Usage,
            "record it: a text holds a NUL character",
        ));
    }
    Ok(())
}
