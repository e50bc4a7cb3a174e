//! A server that goes away: before the commit was sent nothing happened and
//! the caller may try again; after it, nobody knows, and the error says so.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use sandbar_domain::{Code, Disposition};
use sandbar_ports::store::Store as _;
use sandbar_store::SqlStore;
use sandbar_testkit::contract::store::sample;
use sandbar_testkit::engines::postgres::Postgres;

const PASS: u8 = 0;
/// Cut before the statement that has this in it reaches the server.
const CUT_BEFORE_INSERT: u8 = 1;
const CUT_BEFORE_COMMIT: u8 = 2;
/// Cut when the server's answer to the commit is there.
const CUT_AFTER_COMMIT: u8 = 3;

/// Stands between client and server.
fn proxy(at: &Path, server: PathBuf) -> Arc<AtomicU8> {
    let mode = Arc::new(AtomicU8::new(PASS));
    let listener = UnixListener::bind(at).expect("the proxy can listen");
    let armed = mode.clone();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let server = UnixStream::connect(&server).expect("the server is there");
            let armed = armed.clone();
            let clone = |stream: &UnixStream| stream.try_clone().expect("a stream can be cloned");
            let (to_client, from_server) = (clone(&client), clone(&server));
            let shared = Arc::new(AtomicU8::new(PASS));
            let cut = shared.clone();
            std::thread::spawn(move || {
                forward(client, server, |bytes| {
                    let has = |word: &[u8]| bytes.windows(word.len()).any(|part| part == word);
                    match armed.load(Ordering::SeqCst) {
                        CUT_BEFORE_INSERT if has(b"INSERT INTO \"plans\"") => false,
                        CUT_BEFORE_COMMIT if has(b"COMMIT") => false,
                        CUT_AFTER_COMMIT if has(b"COMMIT") => {
                            cut.store(CUT_AFTER_COMMIT, Ordering::SeqCst);
                            true
                        }
                        _ => true,
                    }
                })
            });
            std::thread::spawn(move || {
                forward(from_server, to_client, |_| {
                    shared.load(Ordering::SeqCst) != CUT_AFTER_COMMIT
                })
            });
        }
    });
    mode
}

/// Passes bytes on until `pass` says no or one end is closed.
fn forward(mut from: UnixStream, mut to: UnixStream, pass: impl Fn(&[u8]) -> bool) {
    let mut buffer = [0; 65_536];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        if !pass(&buffer[..length]) || to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    // Either end may be closed already.
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

#[test]
fn only_a_commit_without_an_answer_is_indeterminate() {
    let server = Postgres::start_own();
    let dir = tempfile::tempdir().expect("a directory can be made");
    let socket = dir.path().join(".s.PGSQL.5432");
    let mode = proxy(&socket, server.socket().expect("it is our own"));
    let database = server.database();
    let (address, _) = database.split_once('?').expect("it names a socket");
    let name = address.rsplit('/').next().expect("it names a database");
    let url = format!("{address}?host={}", dir.path().display());
    sandbar_testkit::run(async {
        let store = SqlStore::open(&url).await.expect("it opens");
        let resource = store.register(sample::resource(1)).await;
        let resource = resource.expect("it registers").id;
        for (n, cut, disposition, landed) in [
            (1, CUT_BEFORE_INSERT, Disposition::Retryable, "0"),
            (2, CUT_BEFORE_COMMIT, Disposition::Indeterminate, "0"),
            (3, CUT_AFTER_COMMIT, Disposition::Indeterminate, "1"),
        ] {
            mode.store(cut, Ordering::SeqCst);
            let plan = sample::plan(n, &format!("p{n}"), resource);
            let error = store.add_plan(plan.clone()).await.expect_err("it was cut");
            mode.store(PASS, Ordering::SeqCst);
            assert_eq!(error.code, Code::StoreUnavailable, "{n}: {error}");
            assert_eq!(error.disposition, disposition, "{n}: {error}");
            let query = format!("select count(*) from plans where name = 'p{n}'");
            assert_eq!(server.sql(name, &query), landed, "{n}");
            // The next call has a new connection, and an answer.
            let again = store.add_plan(plan).await;
            assert_eq!(again.is_ok(), landed == "0", "{n}: {again:?}");
        }
    });
}

#[test]
fn a_server_that_is_not_there_is_unavailable() {
    let dir = tempfile::tempdir().expect("a directory can be made");
    let url = format!("postgres://u@localhost/d?host={}", dir.path().display());
    let error = sandbar_testkit::run(SqlStore::open(&url)).expect_err("no server");
    assert_eq!(error.code, Code::StoreUnavailable, "{error}");
    assert_eq!(error.disposition, Disposition::Retryable, "{error}");
}
