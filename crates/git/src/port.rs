//! The port, each call on a blocking thread.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use sandbar_domain::{Code, Hash, PlanId};
use sandbar_ports::git::{
    Began, Checkout, Contents, GitRules, GitState, HideRequest, Landing, LandingRequest, Outline,
    PrivateGit, PrivateRequest, RulesRequest, Start,
};
use sandbar_ports::rules::CarryRules;
use sandbar_ports::{PortError, PortResult};

use crate::index::Index;
use crate::open::Scope;
use crate::rules::{BaseRules, SandboxRules, StateRules, shared};
use crate::{discover, fingerprint, hidden, landing, outline, private};

/// git without a git process. Cheap to clone.
#[derive(Debug, Clone, Copy)]
pub struct GixGit {
    scope: Scope,
}

impl Default for GixGit {
    fn default() -> Self {
        Self::new()
    }
}

impl GixGit {
    /// Reads the machine's, the user's and the repository's configuration, as
    /// git does; `GIT_*` variables are not looked at.
    pub const fn new() -> Self {
        Self {
            scope: Scope::Everything,
        }
    }

    /// Reads the repository's configuration alone.
    pub const fn isolated() -> Self {
        Self {
            scope: Scope::Repository,
        }
    }

    async fn blocking<T: Send + 'static>(
        self,
        call: impl FnOnce(Scope) -> PortResult<T> + Send + 'static,
    ) -> PortResult<T> {
        let scope = self.scope;
        tokio::task::spawn_blocking(move || call(scope))
            .await
            .unwrap_or_else(|error| {
                Err(PortError::new(
                    Code::Internal,
                    format!("finish a git operation: {error}"),
                ))
            })
    }
}

#[async_trait]
impl GitState for GixGit {
    async fn discover(&self, start: PathBuf) -> PortResult<Option<Checkout>> {
        self.blocking(move |scope| discover::discover(&start, scope))
            .await
    }

    async fn outline(&self, root: PathBuf) -> PortResult<Option<Outline>> {
        self.blocking(move |_| outline::outline(&root)).await
    }

    async fn resolve(&self, checkout: Checkout, rev: String) -> PortResult<Start> {
        self.blocking(move |scope| private::resolve(&checkout, &rev, scope))
            .await
    }

    async fn fingerprint(&self, checkout: Checkout) -> PortResult<Hash> {
        self.blocking(move |scope| fingerprint::fingerprint(&checkout, scope))
            .await
    }

    async fn rules(&self, request: RulesRequest) -> PortResult<Arc<dyn GitRules>> {
        self.blocking(move |scope| BaseRules::load(&request, scope).map(shared))
            .await
    }

    async fn sandbox_rules(
        &self,
        root: PathBuf,
        saved: Hash,
        contents: Arc<dyn Contents>,
    ) -> PortResult<Arc<dyn GitRules>> {
        Ok(shared(SandboxRules::new(root, saved, contents, self.scope)))
    }

    async fn state_rules(&self, pool: PathBuf) -> PortResult<Arc<dyn CarryRules>> {
        self.blocking(move |_| Ok(Arc::new(StateRules::load(&pool)?) as Arc<dyn CarryRules>))
            .await
    }

    async fn private(&self, request: PrivateRequest) -> PortResult<PrivateGit> {
        self.blocking(move |scope| private::private(&request, scope))
            .await
    }

    async fn same_index(&self, a: Vec<u8>, b: Vec<u8>) -> PortResult<bool> {
        self.blocking(move |_| Ok(a == b || Index::parse(&a)?.same_entries(&Index::parse(&b)?)))
            .await
    }

    async fn hide(&self, request: HideRequest) -> PortResult<String> {
        self.blocking(move |scope| hidden::hide(&request, scope))
            .await
    }

    async fn unhide(&self, root: PathBuf, plan: PlanId, sequence: Vec<u64>) -> PortResult<()> {
        self.blocking(move |scope| hidden::unhide(&root, plan, &sequence, scope))
            .await
    }

    async fn left_inside(
        &self,
        root: PathBuf,
        checkout: Checkout,
        began: Began,
    ) -> PortResult<Vec<String>> {
        self.blocking(move |scope| hidden::left_inside(&root, &checkout, &began, scope))
            .await
    }

    async fn prepare_landing(&self, request: LandingRequest) -> PortResult<Landing> {
        self.blocking(move |scope| landing::prepare(&request, scope))
            .await
    }

    async fn land(&self, checkout: Checkout, landing: Landing) -> PortResult<()> {
        self.blocking(move |scope| landing::land(&checkout, &landing, scope))
            .await
    }

    async fn may_unland(&self, checkout: Checkout, landing: Landing) -> PortResult<()> {
        self.blocking(move |scope| landing::may_unland(&checkout, &landing, scope))
            .await
    }

    async fn unland(&self, checkout: Checkout, landing: Landing) -> PortResult<()> {
        self.blocking(move |scope| landing::unland(&checkout, &landing, scope))
            .await
    }
}
