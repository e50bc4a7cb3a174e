//! Opening what is not there, not ours, damaged, newer, or not writable.
#![allow(
    clippy::disallowed_methods,
    reason = "the test lays out files and starts copies of itself"
)]

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Command;

use sandbar_domain::{Code, Disposition};
use sandbar_ports::store::Store as _;
use sandbar_store::SqlStore;
use sandbar_testkit::contract::store::sample;
use sandbar_testkit::engines::postgres::Postgres;
use sea_orm::{ConnectionTrait as _, Database};

fn url(file: &Path) -> String {
    format!("sqlite:{}", file.display())
}

/// Runs statements without this crate.
async fn sql(url: &str, statements: &str) {
    let db = Database::connect(url).await.expect("it connects");
    let done = db.execute_unprepared(statements).await;
    done.expect("the statements run");
    db.close().await.expect("it closes");
}

async fn one_plan(store: &SqlStore) {
    let resource = store.register(sample::resource(1)).await;
    let resource = resource.expect("it registers").id;
    let plan = sample::plan(1, "demo", resource);
    store.add_plan(plan).await.expect("it is added");
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .expect("it can be listed")
        .map(|entry| entry.expect("an entry").file_name().into_string())
        .map(|name| name.expect("UTF-8"))
        .collect();
    names.sort();
    names
}

#[test]
fn looking_creates_nothing() {
    sandbar_testkit::run(async {
        let dir = tempfile::tempdir().expect("a directory can be made");
        for absent in ["store.db", "no/store.db"] {
            let found = SqlStore::open_existing(&url(&dir.path().join(absent))).await;
            assert!(found.expect("absent is no error").is_none());
        }
        assert_eq!(names(dir.path()), [] as [&str; 0]);
        // What a crash leaves that came before the first commit.
        let file = dir.path().join("empty.db");
        fs::write(&file, b"").expect("it can be written");
        let found = SqlStore::open_existing(&url(&file)).await;
        assert!(found.expect("empty is no error").is_none());
        let store = SqlStore::open(&url(&file)).await.expect("it is made");
        one_plan(&store).await;
        let found = SqlStore::open_existing(&url(&file)).await;
        let found = found.expect("it opens").expect("it is there");
        assert_eq!(found.plans().await.expect("a read").len(), 1);
    });
}

#[test]
fn what_cannot_be_used_is_refused_by_kind() {
    sandbar_testkit::run(async {
        let dir = tempfile::tempdir().expect("a directory can be made");
        let at = |name: &str| dir.path().join(name);
        fs::write(at("garbage"), b"not a database\n".repeat(500)).expect("written");
        fs::create_dir(at("directory")).expect("made");
        sql(
            &format!("{}?mode=rwc", url(&at("foreign"))),
            "CREATE TABLE theirs (x)",
        )
        .await;
        let newer = at("newer");
        let store = SqlStore::open(&url(&newer)).await.expect("it is made");
        store.close().await;
        sql(&url(&newer), "UPDATE schema_version SET version = 999").await;
        for (name, code) in [
            ("garbage", Code::CorruptStore),
            ("foreign", Code::CorruptStore),
            ("newer", Code::NewerFormat),
            ("no/such/directory/x", Code::StoreUnavailable),
        ] {
            let before = fs::read(at(name)).ok();
            let error = SqlStore::open(&url(&at(name))).await.expect_err(name);
            assert_eq!(error.code, code, "{name}: {error}");
            assert_eq!(error.disposition, Disposition::Permanent, "{name}: {error}");
            assert_eq!(fs::read(at(name)).ok(), before, "{name} is unchanged");
        }
        for (name, code) in [
            ("garbage", Code::CorruptStore),
            ("newer", Code::NewerFormat),
            ("directory", Code::CorruptStore),
        ] {
            let error = SqlStore::open_existing(&url(&at(name))).await;
            let error = error.expect_err(name);
            assert_eq!(error.code, code, "{name}: {error}");
            assert!(error.message.starts_with("open "), "{error}");
        }
    });
}

#[test]
fn damage_inside_the_file_is_found() {
    sandbar_testkit::run(async {
        let dir = tempfile::tempdir().expect("a directory can be made");
        let file = dir.path().join("store.db");
        let store = SqlStore::open(&url(&file)).await.expect("it is made");
        one_plan(&store).await;
        store.close().await;
        // Every page but the first is overwritten; the version is on one of them
        // or not, so that opening may succeed.
        let mut bytes = fs::read(&file).expect("it can be read");
        bytes[4096..].fill(0xa5);
        fs::write(&file, bytes).expect("it can be written");
        let code = match SqlStore::open(&url(&file)).await {
            Err(error) => error.code,
            Ok(store) => {
                let wrong = store.check().await.expect("the check itself works");
                assert!(!wrong.is_empty(), "the check finds the damage");
                store.plans().await.expect_err("a damaged table").code
            }
        };
        assert_eq!(code, Code::CorruptStore);
    });
}

#[test]
fn a_row_that_makes_no_sense_is_named() {
    sandbar_testkit::run(async {
        let dir = tempfile::tempdir().expect("a directory can be made");
        let file = dir.path().join("store.db");
        let store = SqlStore::open(&url(&file)).await.expect("it is made");
        one_plan(&store).await;
        sql(&url(&file), "UPDATE plans SET state = 'asleep'").await;
        let error = store.plans().await.expect_err("an unknown state");
        assert_eq!(error.code, Code::CorruptStore);
        let text = error.to_string();
        assert!(text.contains("column state of table plans"), "{text}");
        let wrong = store.check().await.expect("the check itself works");
        assert_eq!(wrong, ["column state of table plans holds \"asleep\""]);
        sql(
            &url(&file),
            "PRAGMA foreign_keys = OFF; UPDATE plans SET state = 'draft'; DELETE FROM resources",
        )
        .await;
        let wrong = store.check().await.expect("the check itself works");
        assert_eq!(
            wrong,
            ["a row of plans refers to a missing one of resources"]
        );
    });
}

const LOOK_AT: &str = "SANDBAR_STORE_LOOK_AT";

/// Looks at the store that a test below names, from a process without rights;
/// by itself, at one that it makes.
#[test]
fn looker() {
    sandbar_testkit::run(async {
        let dir = tempfile::tempdir().expect("a directory can be made");
        let named = std::env::var(LOOK_AT);
        let url = match &named {
            Ok(url) => url.clone(),
            Err(_) => url(&dir.path().join("store.db")),
        };
        if named.is_err() {
            one_plan(&SqlStore::open(&url).await.expect("it is made")).await;
        }
        let store = SqlStore::open_existing(&url).await.expect("it opens");
        let store = store.expect("it is there");
        assert_eq!(store.plans().await.expect("a read").len(), 1);
        if named.is_ok() {
            let error = store.register(sample::resource(9)).await;
            let error = error.expect_err("a write must be refused");
            assert_eq!(error.code, Code::ReadOnly, "{error}");
        }
    });
}

#[test]
fn a_directory_that_cannot_be_written_can_be_looked_at() {
    let dir = tempfile::tempdir().expect("a directory can be made");
    let data = dir.path().join("data");
    fs::create_dir(&data).expect("made");
    let file = data.join("store.db");
    // A copy, since the account without rights may not reach the original.
    let program = dir.path().join("looker");
    let own = std::env::current_exe().expect("the test knows its file");
    fs::copy(own, &program).expect("it can be copied");
    let mode = |path: &Path, bits| {
        fs::set_permissions(path, fs::Permissions::from_mode(bits)).expect("a mode can be set");
    };
    mode(dir.path(), 0o755);
    let root = fs::metadata(dir.path()).expect("it is there").uid() == 0;
    let look = || {
        let mut command = if root {
            let mut command = Command::new("setpriv");
            command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
            command.arg(&program);
            command
        } else {
            Command::new(&program)
        };
        let output = command
            .args(["--exact", "looker", "--nocapture"])
            .env(LOOK_AT, url(&file))
            .env_remove("TMPDIR")
            .output()
            .expect("it can be started");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{out}\n{err}");
        assert!(out.contains("1 passed"), "it looked");
    };
    // In one runtime throughout: the connection lives no longer than that.
    sandbar_testkit::run(async {
        let store = SqlStore::open(&url(&file)).await.expect("it is made");
        one_plan(&store).await;
        for path in fs::read_dir(&data).expect("it can be listed") {
            mode(&path.expect("an entry").path(), 0o444);
        }
        mode(&data, 0o555);
        // While another process has it open, log and shared memory included.
        let open = ["store.db", "store.db-shm", "store.db-wal"];
        assert_eq!(names(&data), open);
        look();
        mode(&data, 0o755);
        store.close().await;
    });
    // And at rest.
    mode(&data, 0o555);
    assert_eq!(names(&data), ["store.db"]);
    look();
    assert_eq!(names(&data), ["store.db"], "nothing was made");
    mode(&data, 0o755);
}

#[test]
fn postgres_is_looked_at_and_refused_alike() {
    let server = Postgres::get();
    sandbar_testkit::run(async {
        let url = server.database();
        let found = SqlStore::open_existing(&url).await;
        assert!(found.expect("an empty database is no error").is_none());
        let store = SqlStore::open(&url).await.expect("it is made");
        one_plan(&store).await;
        let found = SqlStore::open_existing(&url).await.expect("it opens");
        let plans = found.expect("it is there").plans().await;
        assert_eq!(plans.expect("a read").len(), 1);
        sql(&url, "UPDATE schema_version SET version = 999").await;
        let error = SqlStore::open(&url).await.expect_err("a newer format");
        assert_eq!(error.code, Code::NewerFormat, "{error}");
        let absent = url.replace("/sb_", "/absent_");
        let error = SqlStore::open(&absent).await.expect_err("no database");
        assert_eq!(error.code, Code::StoreUnavailable, "{error}");
        let broken = "postgres://user:secret@:bad:/x";
        let error = SqlStore::open(broken).await.expect_err("no address");
        assert_eq!(error.code, Code::BadConfig, "{error}");
        assert!(!format!("{error:?}").contains("secret"), "{error:?}");
    });
}
