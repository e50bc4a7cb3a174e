//! The tools that there are: what Sandbar itself lets reach a resource.

use sandbar_domain::graph::{
    Access, BindingMode, QueryKind, QueryKinds, Registry, Scope, Slot, Tool, Toolbox,
};

/// What has a working directory, and so can be given to a command.
const PLACES: [&str; 3] = ["git-checkout", "git-submodule", "fs-directory"];

/// Returns the tools: a command that is run in a directory, and git in a
/// checkout.
pub(super) fn toolbox() -> Toolbox {
    let registry = Registry::builtin();
    let command = Slot {
        name: "directory".to_owned(),
        accepts: PLACES.map(str::to_owned).to_vec(),
        access: Access::ReadWrite,
        checkpointable: true,
        checkpoint_scope: Some(Scope::Snapshot),
        rollback: "sandbar rollback".to_owned(),
        queries: QueryKinds::of(&[QueryKind::Content]),
        richness: None,
        binding: BindingMode::Parameter,
    };
    let git = Slot {
        name: "checkout".to_owned(),
        accepts: PLACES[..2].iter().map(|&name| name.to_owned()).collect(),
        access: Access::ReadOnly,
        checkpointable: false,
        checkpoint_scope: None,
        rollback: String::new(),
        queries: QueryKinds::of(&[QueryKind::Content, QueryKind::History]),
        richness: None,
        binding: BindingMode::Parameter,
    };
    let tool = |name: &str, slot| Tool {
        name: name.to_owned(),
        slots: vec![slot],
    };
    let tools = vec![tool("run", command), tool("git", git)];
    Toolbox::new(&registry, tools).expect("the built-in tools take built-in types")
}
