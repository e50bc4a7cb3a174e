//! A world without git: every directory is a plain one. What needs a checkout
//! is refused by name, since there is none to be had here.

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

/// Finds no checkout anywhere.
#[derive(Debug, Clone, Copy, Default)]
pub struct MemGit;

fn none<T>(doing: &str) -> PortResult<T> {
    Err(PortError::new(
        Code::NotAvailable,
        format!("{doing}: there is no git in memory"),
    ))
}

#[async_trait]
impl GitState for MemGit {
    async fn discover(&self, _: PathBuf) -> PortResult<Option<Checkout>> {
        Ok(None)
    }

    async fn outline(&self, _: PathBuf) -> PortResult<Option<Outline>> {
        Ok(None)
    }

    async fn resolve(&self, _: Checkout, _: String) -> PortResult<Start> {
        none("find a commit")
    }

    async fn fingerprint(&self, _: Checkout) -> PortResult<Hash> {
        none("read the state of a checkout")
    }

    async fn rules(&self, _: RulesRequest) -> PortResult<Arc<dyn GitRules>> {
        none("read ignore rules")
    }

    async fn sandbox_rules(
        &self,
        _: PathBuf,
        _: Hash,
        _: Arc<dyn Contents>,
    ) -> PortResult<Arc<dyn GitRules>> {
        none("read ignore rules")
    }

    async fn state_rules(&self, _: PathBuf) -> PortResult<Arc<dyn CarryRules>> {
        none("make the rules of a git directory")
    }

    async fn private(&self, _: PrivateRequest) -> PortResult<PrivateGit> {
        none("make a private git directory")
    }

    async fn same_index(&self, _: Vec<u8>, _: Vec<u8>) -> PortResult<bool> {
        none("compare indexes")
    }

    async fn hide(&self, _: HideRequest) -> PortResult<String> {
        none("write a hidden commit")
    }

    async fn unhide(&self, _: PathBuf, _: PlanId, _: Vec<u64>) -> PortResult<()> {
        none("remove hidden commits")
    }

    async fn left_inside(&self, _: PathBuf, _: Checkout, _: Began) -> PortResult<Vec<String>> {
        none("read branches")
    }

    async fn prepare_landing(&self, _: LandingRequest) -> PortResult<Landing> {
        none("prepare commits")
    }

    async fn land(&self, _: Checkout, _: Landing) -> PortResult<()> {
        none("move refs")
    }

    async fn may_unland(&self, _: Checkout, _: Landing) -> PortResult<()> {
        none("look at refs")
    }

    async fn unland(&self, _: Checkout, _: Landing) -> PortResult<()> {
        none("move refs")
    }
}
