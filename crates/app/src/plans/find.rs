//! Finding the plan that a person means: a name, an id prefix, or `@`.

use std::path::Path;

use sandbar_domain::Code;
use sandbar_ports::store::{PlanRecord, SandboxRecord, SandboxState};
use sandbar_ports::{PortError, PortResult};

use crate::Sandbar;

impl Sandbar {
    /// Finds a plan by name, unique id prefix, or `@`: the newest on the
    /// resource of `cwd`. Errors: `plan_not_found`, `ambiguous_plan`.
    pub async fn find_plan(&self, text: &str, cwd: &Path) -> PortResult<PlanRecord> {
        if text == "@" {
            if let Some(inside) = &self.around.inside {
                return self.one_plan(inside).await;
            }
            let located = self.locate(cwd).await?;
            let newest = self.parts.store.newest_plan(located.resource.id).await?;
            return newest.ok_or_else(|| no_plan(text, &located.resource.root.path));
        }
        self.one_plan(text).await
    }

    async fn one_plan(&self, text: &str) -> PortResult<PlanRecord> {
        let mut found = self.parts.store.find_plans(text.to_owned()).await?;
        match found.len() {
            0 => Err(no_plan(text, Path::new(""))),
            1 => Ok(found.remove(0)),
            _ => {
                let names: Vec<_> = found
                    .iter()
                    .map(|p| format!("{} ({})", p.plan.name, p.plan.id))
                    .collect();
                let message = format!("find plan {text}: it fits {}", names.join(", "));
                Err(PortError::new(Code::AmbiguousPlan, message).with_subjects(names))
            }
        }
    }

    /// Returns a name that no living plan has, made from a command's name.
    pub(crate) async fn free_name(&self, program: &str) -> PortResult<String> {
        let stem: String = Path::new(program)
            .file_name()
            .map(|name| name.to_string_lossy().to_lowercase())
            .unwrap_or_default()
            .chars()
            .filter(|c| c.is_ascii_alphanumeric() || *c == '-' || *c == '_')
            .take(24)
            .collect();
        let stem = if stem.is_empty() {
            "plan".to_owned()
        } else {
            stem
        };
        let taken: std::collections::HashSet<String> = self
            .parts
            .store
            .plans()
            .await?
            .into_iter()
            .map(|record| record.plan.name)
            .collect();
        let name = (1u64..)
            .map(|number| format!("{stem}-{number}"))
            .find(|name| !taken.contains(name))
            .expect("there are more numbers than plans");
        Ok(name)
    }

    /// Returns the sandbox of a plan on its resource; `None` before it is made.
    pub(crate) async fn sandbox_of(&self, plan: &PlanRecord) -> PortResult<Option<SandboxRecord>> {
        let all = self.parts.store.sandboxes(plan.plan.id).await?;
        Ok(all
            .into_iter()
            .find(|sandbox| sandbox.state != SandboxState::Creating))
    }

    /// Returns the sandbox of a plan, which must have been made.
    pub(crate) async fn made_sandbox(&self, plan: &PlanRecord) -> PortResult<SandboxRecord> {
        self.sandbox_of(plan).await?.ok_or_else(|| {
            let message = format!("use plan {}: it has no sandbox", plan.plan.name);
            PortError::new(Code::SandboxGone, message)
        })
    }
}

/// Says that there is no plan `text`; of `@`, that there is none on `root`.
pub fn no_plan(text: &str, root: &Path) -> PortError {
    let message = match text {
        "@" => format!("find a plan on {}: there is none", root.display()),
        _ => format!("find plan {text}: there is none of that name or id"),
    };
    PortError::new(Code::PlanNotFound, message)
}

/// Checks a plan name that a person chose: 1 to 64 characters that need no
/// quoting in a shell, not starting with `-`, and not `@`.
pub(crate) fn check_name(name: &str) -> PortResult<()> {
    let good = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    let length = name.chars().count();
    if (1..=64).contains(&length) && name.chars().all(good) && !name.starts_with(['-', '.']) {
        return Ok(());
    }
    let message = format!("name a plan {name:?}: letters, digits, '-', '_' and '.', at most 64");
    Err(PortError::new(Code::Usage, message))
}
