//! Many processes on one store: no lock error reaches anyone, nothing is lost,
//! nothing is done twice.
#![allow(
    clippy::disallowed_methods,
    reason = "the test starts copies of itself"
)]

use std::io::Write as _;
use std::process::{Child, Command, Stdio};

use sandbar_domain::Code;
use sandbar_domain::journal::Phase;
use sandbar_domain::plan::PlanState;
use sandbar_ports::store::{JournalQuery, JournalStep, PlanMark, Store};
use sandbar_store::SqlStore;
use sandbar_testkit::contract::store::sample::{self, at_rest, driven};
use sandbar_testkit::engines::postgres::Postgres;

const PROCESSES: u32 = 8;
const TRANSACTIONS: u32 = 200;
const URL: &str = "SANDBAR_STORE_WORKER_URL";
const NUMBER: &str = "SANDBAR_STORE_WORKER_NUMBER";

/// The work of one process: mixed transactions, some on rows of its own, some
/// on rows that all fight for. Any answer but success or the refusal that the
/// fight explains is a failure. Returns how many checkpoints it added to the
/// plan they share.
async fn work(url: &str, number: u32, transactions: u32) -> u32 {
    let own = |k: u32| 1_000 * (u128::from(number) + 1) + u128::from(k);
    let mut checkpoints = 0;
    let mut store = SqlStore::open(url).await.expect("the store opens");
    let resource = store.register(sample::resource(1)).await.expect("register");
    let resource = resource.id;
    for k in 0..transactions {
        if k % 25 == 24 {
            store.close().await;
            store = SqlStore::open(url).await.expect("the store opens again");
        }
        let id = own(k);
        match k % 8 {
            0 => {
                let plan = sample::plan(id, &format!("{number}-{k}"), resource);
                store.add_plan(plan).await.expect("a name of its own");
            }
            1 => {
                let plan = sample::plan(own(k - 1), "", resource).id;
                let mine = driven(PlanState::Executing, number);
                let from = at_rest(PlanState::Draft);
                store
                    .move_plan(plan, from, mine, 1)
                    .await
                    .expect("own plan");
            }
            2 => {
                let plan = sample::plan(own(k - 2), "", resource).id;
                let sandbox = sample::sandbox(id, plan, resource);
                store.add_sandbox(sandbox).await.expect("own sandbox");
            }
            3 => {
                let name = "the one that all want";
                match store.add_plan(sample::plan(id, name, resource)).await {
                    Ok(_) => {}
                    Err(error) => assert_eq!(error.code, Code::NameInUse, "{error}"),
                }
            }
            4 => {
                let shared = store.find_plans("the one that all want".to_owned()).await;
                let shared = shared.expect("a search")[0].plan.id;
                let mut checkpoint = sample::checkpoint(id, shared, sample::sandbox_id(1));
                checkpoint.parts.clear();
                store.add_checkpoint(checkpoint).await.expect("a number");
                checkpoints += 1;
            }
            5 => {
                let shared = store.find_plans("the one that all want".to_owned()).await;
                let shared = shared.expect("a search").remove(0).plan;
                let to = PlanMark {
                    owner: Some(sample::owner(number)),
                    ..shared.mark.clone()
                };
                match store.move_plan(shared.id, shared.mark, to, 1).await {
                    Ok(_) => {}
                    Err(error) => assert_eq!(error.code, Code::PlanBusy, "{error}"),
                }
            }
            6 => {
                let plan = sample::plan(own(k - 6), "", resource).id;
                let entry = sample::entry(id, plan);
                store.open_journal(entry).await.expect("own entry");
            }
            _ => {
                let step = JournalStep {
                    id: sample::journal_id(own(k - 1)),
                    from: Phase::Staging,
                    to: Phase::Decided,
                    ops: None,
                    payload: k.to_string(),
                    owner: None,
                    plan: Some((
                        driven(PlanState::Executing, number),
                        at_rest(PlanState::Review),
                        2,
                    )),
                };
                store.advance_journal(step).await.expect("own step");
                let open = store.journal(JournalQuery::Open).await.expect("a read");
                assert!(!open.is_empty());
            }
        }
    }
    store.close().await;
    checkpoints
}

/// Run by itself: one process with a store of its own. Run by the tests below:
/// one of eight, on the store that they name, when they say so.
#[test]
fn worker() {
    let Ok(url) = std::env::var(URL) else {
        let dir = tempfile::tempdir().expect("a directory can be made");
        let url = format!("sqlite:{}", dir.path().join("store.db").display());
        assert_eq!(sandbar_testkit::run(work(&url, 0, 40)), 5);
        return;
    };
    let number = std::env::var(NUMBER).expect("its number");
    let number = number.parse().expect("a number");
    let mut line = String::new();
    std::io::stdin()
        .read_line(&mut line)
        .expect("the sign to start");
    let added = sandbar_testkit::run(work(&url, number, TRANSACTIONS));
    assert_eq!(added, TRANSACTIONS / 8);
}

fn start(url: &str, number: u32) -> Child {
    let own = std::env::current_exe().expect("the test knows its file");
    Command::new(own)
        .args(["--exact", "worker", "--nocapture"])
        .env(URL, url)
        .env(NUMBER, number.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a process can be started")
}

/// Lets eight processes loose on a store that does not exist yet, and counts.
fn storm(url: &str) {
    let mut children: Vec<Child> = (0..PROCESSES).map(|n| start(url, n)).collect();
    for child in &mut children {
        let mut pipe = child.stdin.take().expect("it is a pipe");
        pipe.write_all(b"go\n").expect("the child listens");
    }
    for child in children {
        let output = child.wait_with_output().expect("the child ends");
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        assert!(
            output.status.success(),
            "{}\n{}",
            text(&output.stdout),
            text(&output.stderr)
        );
        assert!(text(&output.stdout).contains("1 passed"), "it did the work");
    }
    sandbar_testkit::run(async {
        let store = SqlStore::open(url).await.expect("the store opens");
        assert_eq!(store.check().await.expect("a check"), [] as [String; 0]);
        let plans = store.plans().await.expect("a read");
        assert_eq!(plans.len() as u32, PROCESSES * TRANSACTIONS / 8 + 1);
        let numbers: Vec<u64> = plans.iter().map(|plan| plan.sequence).collect();
        assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
        let shared = store.find_plans("the one that all want".to_owned()).await;
        let shared = shared.expect("a search")[0].plan.id;
        let checkpoints = store.checkpoints(shared).await.expect("a read");
        let numbers: Vec<u64> = checkpoints.iter().map(|c| c.sequence).collect();
        let count = u64::from(PROCESSES * TRANSACTIONS / 8);
        assert_eq!(numbers, (1..=count).collect::<Vec<_>>());
        let open = store.journal(JournalQuery::Open).await.expect("a read");
        assert_eq!(open.len() as u64, count);
        assert!(open.iter().all(|entry| entry.phase == Phase::Decided));
    });
}

#[test]
fn eight_processes_on_a_new_sqlite_store() {
    let dir = tempfile::tempdir().expect("a directory can be made");
    storm(&format!("sqlite:{}", dir.path().join("store.db").display()));
}

#[test]
fn eight_processes_on_a_new_postgres_store() {
    let server = Postgres::get();
    storm(&server.database());
}
