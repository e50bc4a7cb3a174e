//! Records to store: plain ones, and ones with every odd value.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use sandbar_domain::journal::{JournalKind, Phase};
use sandbar_domain::plan::PlanState;
use sandbar_domain::resource::{Resource, ResourceType, Root, Strategy};
use sandbar_domain::{CheckpointId, Hash, JournalId, PlanId, ResourceId, SandboxId};
use sandbar_ports::exec::{Owner, View};
use sandbar_ports::store::{
    CheckpointPart, JournalRecord, NewCheckpoint, NewPlan, PlanMark, SandboxRecord, SandboxState,
};

/// Texts that went wrong somewhere before: empty, spaces, quotes, wildcards,
/// several scripts, a direction mark, control characters, a long one.
pub fn odd_texts() -> Vec<String> {
    let mut texts: Vec<String> = [
        "",
        " ",
        "a b",
        "'",
        "\"; drop table plans; --",
        "%",
        "_",
        "\\",
        "é",
        "e\u{301}",
        "日本語",
        "🦀🏳️‍🌈",
        "\u{202e}rtl",
        "line\nbreak\ttab\r",
        "\u{1}\u{7f}\u{fffd}\u{10ffff}",
        "null",
    ]
    .into_iter()
    .map(str::to_owned)
    .collect();
    texts.push("x".repeat(1_000));
    texts
}

/// Paths by bytes, not all of them UTF-8.
pub fn odd_paths() -> Vec<PathBuf> {
    let mut paths: Vec<Vec<u8>> = vec![
        b"/".to_vec(),
        b"/a".to_vec(),
        b"/a\xff\xfe".to_vec(),
        b"/\xc3\x28".to_vec(),
        b"relative".to_vec(),
        b"/with space/and\nline".to_vec(),
        "/日本語/e\u{301}".as_bytes().to_vec(),
        b"".to_vec(),
    ];
    let mut long = vec![b'/'; 4_095];
    long[1..].fill(0x80);
    paths.push(long);
    paths
        .into_iter()
        .map(|bytes| OsString::from_vec(bytes).into())
        .collect()
}

/// Whole numbers at the edges.
pub const ODD_NUMBERS: [u64; 6] = [
    0,
    1,
    u32::MAX as u64 + 1,
    i64::MAX as u64,
    i64::MAX as u64 + 1,
    u64::MAX,
];

/// Times at the edges, most of them before 1970 or far away.
pub const ODD_TIMES: [i64; 6] = [0, -1, 1, i64::MIN, i64::MAX, 1_700_000_000_000];

/// A plan's id.
pub fn plan_id(n: u128) -> PlanId {
    PlanId::from_parts(1_700_000_000_000, n)
}

/// A resource's id.
pub fn resource_id(n: u128) -> ResourceId {
    ResourceId::from_parts(1_700_000_000_000, n)
}

/// A sandbox's id.
pub fn sandbox_id(n: u128) -> SandboxId {
    SandboxId::from_parts(1_700_000_000_000, n)
}

/// A checkpoint's id.
pub fn checkpoint_id(n: u128) -> CheckpointId {
    CheckpointId::from_parts(1_700_000_000_000, n)
}

/// A journal entry's id.
pub fn journal_id(n: u128) -> JournalId {
    JournalId::from_parts(1_700_000_000_000, n)
}

/// A plain directory with inode `n`.
pub fn resource(n: u64) -> Resource {
    Resource {
        id: resource_id(n.into()),
        kind: ResourceType::FsDirectory,
        root: Root {
            path: format!("/r/{n}").into(),
            device: 7,
            inode: n,
        },
    }
}

/// A plan in draft, without an owner, called `name`.
pub fn plan(n: u128, name: &str, resource: ResourceId) -> NewPlan {
    NewPlan {
        id: plan_id(n),
        name: name.to_owned(),
        resource,
        mark: at_rest(PlanState::Draft),
        settings: "{}".to_owned(),
        created_ms: 1_700_000_000_000,
    }
}

/// A mark without an owner.
pub fn at_rest(state: PlanState) -> PlanMark {
    PlanMark { state, owner: None }
}

/// A mark of an owner.
pub fn driven(state: PlanState, pid: u32) -> PlanMark {
    PlanMark {
        state,
        owner: Some(owner(pid)),
    }
}

/// An owner of that pid.
pub fn owner(pid: u32) -> Owner {
    Owner {
        host: "host-a".to_owned(),
        boot: "5d8b1a9e-0000-4000-8000-000000000001".to_owned(),
        pid_namespace: 4_026_531_836,
        pid,
        started: 123_456,
    }
}

/// A sandbox that is being made.
pub fn sandbox(n: u128, plan: PlanId, resource: ResourceId) -> SandboxRecord {
    SandboxRecord {
        id: sandbox_id(n),
        plan,
        resource,
        strategy: Strategy::CopyOnWrite,
        state: SandboxState::Creating,
        place: format!("/d/s/{n}").into(),
        root: None,
        view: View::Plain,
        base: None,
        base_branch: None,
        base_head: None,
        rules: None,
        ignored: 0,
        binds: Vec::new(),
        unsettled: Vec::new(),
    }
}

/// A checkpoint over one sandbox.
pub fn checkpoint(n: u128, plan: PlanId, sandbox: SandboxId) -> NewCheckpoint {
    NewCheckpoint {
        id: checkpoint_id(n),
        plan,
        parts: vec![CheckpointPart {
            sandbox,
            snapshot: Hash::of(&n.to_be_bytes()),
            commit: None,
        }],
        message: None,
        step: "manual".to_owned(),
        created_ms: 1_700_000_000_000,
    }
}

/// A journal entry that is being staged.
pub fn entry(n: u128, plan: PlanId) -> JournalRecord {
    JournalRecord {
        id: journal_id(n),
        sequence: 0,
        version: 1,
        kind: JournalKind::Apply,
        phase: Phase::Staging,
        plan,
        owner: None,
        ops: None,
        payload: "{}".to_owned(),
    }
}
