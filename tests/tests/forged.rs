//! Stored objects that lie: names that lead out of a root are refused when
//! they are read, whatever their check sums say. The forger here has the
//! library and the store in its hands; the judge is the binary.
#![allow(
    clippy::disallowed_methods,
    reason = "tests inspect real trees with foreign means"
)]

use std::path::PathBuf;

use sandbar::Surroundings;
use sandbar::compose::{Opening, open};
use sandbar::domain::journal::{JournalKind, Phase};
use sandbar::domain::plan::PlanState;
use sandbar::domain::snapshot::Snapshot;
use sandbar::domain::{CheckpointId, Hash, JournalId};
use sandbar::ports::store::{JournalRecord, NewCheckpoint, PlanMark};
use sandbar_tests::fixture::{self, Repository};
use sandbar_tests::foreign::sh;
use sandbar_tests::judge::{self, Manifest};
use sandbar_tests::product::World;

/// Names that no directory can hold, and ways that lead out.
const WAYS: [&str; 7] = [
    "..",
    "../outside/b.txt",
    "/etc/passwd",
    "src/../../outside/b.txt",
    ".",
    "src//c.txt",
    "",
];

struct Scene {
    world: World,
    repo: Repository,
    before: Vec<(PathBuf, Manifest)>,
}

impl Scene {
    fn new() -> Self {
        let (world, repo) = (World::new(), fixture::small());
        sh(
            repo.scratch(),
            "mkdir outside; echo precious > outside/b.txt",
        );
        world.run(repo.root(), "p", "echo x > x.txt");
        let dirs = [
            repo.root().to_owned(),
            repo.scratch().join("outside"),
            world.sandbox(repo.root(), "p"),
            world.home(),
        ];
        let before = dirs.map(|dir| (dir.clone(), judge::manifest(&dir))).into();
        Self {
            world,
            repo,
            before,
        }
    }

    /// Opens the library on the data of this world.
    async fn library(&self) -> sandbar::Sandbar {
        let data = self.world.data().display().to_string();
        let opening = Opening {
            cwd: None,
            environment: vec![("SANDBAR_DATA_DIR".into(), data)],
            around: Surroundings::silent(),
        };
        open(opening).await.expect("the library opens")
    }

    fn assert_untouched(&self, at: &str) {
        for (dir, manifest) in &self.before {
            let what = format!("{} after {at}", dir.display());
            manifest.assert_same(&judge::manifest(dir), &what);
        }
        assert_eq!(sh(self.repo.scratch(), "ls"), "outside\nrepo\n", "{at}");
    }
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
        .block_on(future)
}

/// A directory object with one file of any name.
fn tree(name: &str, content: Hash) -> Vec<u8> {
    let mut bytes = b"sandbar.tree.v1\0".to_vec();
    bytes.extend_from_slice(&1u32.to_be_bytes());
    bytes.push(b'f');
    bytes.extend_from_slice(&u16::try_from(name.len()).expect("short").to_be_bytes());
    bytes.extend_from_slice(name.as_bytes());
    bytes.extend_from_slice(content.as_bytes());
    bytes
}

/// A list of one operation that makes a file at any path, its sum right.
fn operations(path: &str, content: Hash) -> Vec<u8> {
    let mut bytes = b"sandbar.ops.v1\0".to_vec();
    bytes.extend_from_slice(&1u64.to_be_bytes());
    bytes.push(b'c');
    bytes.extend_from_slice(&u16::try_from(path.len()).expect("short").to_be_bytes());
    bytes.extend_from_slice(path.as_bytes());
    bytes.push(b'f');
    bytes.extend_from_slice(content.as_bytes());
    let sum = Hash::of(&bytes);
    bytes.extend_from_slice(sum.as_bytes());
    bytes
}

// conformance: BAD-3
#[test]
fn a_forged_tree_leads_nowhere() {
    // The forgery itself is sound: an honest name is taken.
    for (name, honest) in WAYS
        .map(|way| (way, false))
        .into_iter()
        .chain([("fine", true)])
    {
        let scene = Scene::new();
        let number = wait(async {
            let sandbar = scene.library().await;
            let parts = sandbar.parts();
            let plan = parts
                .store
                .find_plans("p".into())
                .await
                .expect("read")
                .remove(0);
            let last = parts.store.checkpoints(plan.plan.id).await.expect("read");
            let last = last.last().expect("there is one").clone();
            let mut part = last.checkpoint.parts[0].clone();
            let old = parts.objects.get(part.snapshot).await.expect("read");
            let old = Snapshot::decode(&old).expect("a snapshot");
            let content = b"forged\n".to_vec();
            let forged = tree(name, Hash::of(&content));
            let snapshot = Snapshot {
                tree: Hash::of(&forged),
                ..old
            };
            part.snapshot = snapshot.id();
            let objects = vec![content, forged, snapshot.encode()];
            parts.objects.put(objects).await.expect("stored");
            let checkpoint = NewCheckpoint {
                id: CheckpointId::from_parts(1, 1),
                parts: vec![part],
                ..last.checkpoint
            };
            let added = parts.store.add_checkpoint(checkpoint).await.expect("added");
            added.sequence.to_string()
        });
        let root = scene.repo.root();
        let line = ["rollback", "p", "--to", &number, "--json"];
        if honest {
            drop(scene.world.ok(root, &line));
            assert_eq!(sh(&scene.world.sandbox(root, "p"), "cat fine"), "forged\n");
            continue;
        }
        let done = scene.world.sandbar(root, &line).expect(1);
        let error = &done.json()["error"];
        assert_eq!(error["code"], "corrupt_object", "{name:?}: {}", done.stdout);
        scene.assert_untouched(&format!("a rollback to {name:?}"));
    }
}

// conformance: BAD-3 (the base of a plan)
#[test]
fn a_forged_base_stops_diff_and_apply() {
    for name in WAYS {
        let scene = Scene::new();
        wait(async {
            let sandbar = scene.library().await;
            let parts = sandbar.parts();
            let plan = parts
                .store
                .find_plans("p".into())
                .await
                .expect("read")
                .remove(0);
            let mut sandbox = parts
                .store
                .sandboxes(plan.plan.id)
                .await
                .expect("read")
                .remove(0);
            let forged = tree(name, Hash::of(b"x"));
            let base = Snapshot {
                base: None,
                tree: Hash::of(&forged),
                git: None,
            };
            let objects = vec![b"x".to_vec(), forged, base.encode()];
            parts.objects.put(objects).await.expect("stored");
            sandbox.base = Some(base.id());
            parts.store.update_sandbox(sandbox).await.expect("updated");
        });
        for line in [&["diff", "p", "--json"][..], &["apply", "p", "--json"]] {
            let done = scene.world.sandbar(scene.repo.root(), line).expect(1);
            let error = &done.json()["error"];
            assert_eq!(error["code"], "corrupt_object", "{name:?}: {}", done.stdout);
            scene.assert_untouched(&format!("{} from {name:?}", line[0]));
        }
    }
}

// conformance: BAD-3 (operations)
#[test]
fn a_forged_list_of_operations_is_never_carried_out() {
    for path in WAYS {
        let scene = Scene::new();
        let root = scene.repo.root().to_owned();
        let job = root.join(".git/forged");
        wait(async {
            let sandbar = scene.library().await;
            let parts = sandbar.parts();
            let plan = parts
                .store
                .find_plans("p".into())
                .await
                .expect("read")
                .remove(0);
            let resource = parts
                .store
                .resource(plan.plan.resource)
                .await
                .expect("read");
            let resource = resource.expect("there is one");
            let list = operations(path, Hash::of(b"forged\n"));
            let ops = Hash::of(&list);
            parts
                .objects
                .put(vec![list, b"forged\n".to_vec()])
                .await
                .expect("stored");
            let applying = PlanMark {
                state: PlanState::Applying,
                owner: None,
            };
            let mark = plan.plan.mark.clone();
            let moved = parts.store.move_plan(plan.plan.id, mark, applying, 0).await;
            drop(moved.expect("moved"));
            let payload = serde_json::json!({
                "root": resource.root.path, "device": resource.root.device,
                "inode": resource.root.inode, "job": job, "landing": null,
            });
            let entry = JournalRecord {
                id: JournalId::from_parts(1, 1),
                sequence: 0,
                version: 1,
                kind: JournalKind::Apply,
                phase: Phase::Decided,
                plan: plan.plan.id,
                owner: None,
                ops: Some(ops),
                payload: payload.to_string(),
            };
            drop(parts.store.open_journal(entry).await.expect("opened"));
        });
        for _ in 0..2 {
            let done = scene.world.sandbar(&root, &["recover", "--json"]);
            let said = format!("{}{}", done.stdout, done.stderr);
            assert!(said.contains("impossible operation"), "{path:?}: {said}");
            scene.assert_untouched(&format!("an operation at {path:?}"));
        }
    }
}
