//! A private PostgreSQL server for one test process.
//!
//! Tests take the server that `SANDBAR_TEST_POSTGRES_URL` names, and start one
//! of their own where it is unset: on a Unix socket in a temporary directory,
//! as an account without rights, since PostgreSQL refuses root. It ends, and
//! its directory goes, when the value is dropped or its process dies.
#![allow(
    clippy::disallowed_methods,
    reason = "test support: starts a real server in a temporary directory"
)]

use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// The variable that names a server to use.
pub const URL: &str = "SANDBAR_TEST_POSTGRES_URL";

/// The account that the server runs as when the test is root: `nobody`.
const ACCOUNT: u32 = 65_534;

/// A server that is running.
#[derive(Debug)]
pub struct Postgres {
    url: String,
    bin: PathBuf,
    own: Option<Own>,
}

#[derive(Debug)]
struct Own {
    child: Child,
    dir: TempDir,
}

impl Postgres {
    /// Takes the server of the environment, or starts one. Panics with the
    /// reason where neither can be had: a test that needs a server must not
    /// pass without it.
    pub fn get() -> Self {
        let bin = binaries();
        match std::env::var(URL) {
            Ok(url) => Self {
                url,
                bin,
                own: None,
            },
            Err(_) => Self::start(bin),
        }
    }

    /// Starts a server of its own.
    pub fn start_own() -> Self {
        Self::start(binaries())
    }

    fn start(bin: PathBuf) -> Self {
        let dir = tempfile::Builder::new()
            .prefix("sbpg")
            .tempdir()
            .expect("a temporary directory can be made");
        let root = dir.path().metadata().is_ok_and(|found| found.uid() == 0);
        if root {
            chown(dir.path(), Some(ACCOUNT), Some(ACCOUNT))
                .expect("root may give a directory away");
        }
        // The shell holds the server: it ends it when the test ends, however
        // that may be, because the pipe to it closes then.
        let script = r#"
            dir=$1; bin=$2; cd "$dir" || exit 1
            "$bin/initdb" -D "$dir/data" -U sandbar -A trust -E UTF8 --locale=C.UTF-8 \
                --no-sync >"$dir/initdb.log" 2>&1 || { echo failed; exit 1; }
            "$bin/postgres" -D "$dir/data" -k "$dir" -c listen_addresses= \
                -c fsync=off -c max_connections=60 >"$dir/server.log" 2>&1 &
            server=$!
            echo started
            read -r _
            kill -QUIT $server 2>/dev/null; wait $server
            rm -rf "$dir/data" "$dir"/.s.PGSQL.*
        "#;
        let mut command = if root {
            let mut command = Command::new("setpriv");
            command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
            command.arg("sh");
            command
        } else {
            Command::new("sh")
        };
        let child = command
            .args(["-c", script, "sh"])
            .arg(dir.path())
            .arg(&bin)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell can be started");
        let url = format!(
            "postgres://sandbar@localhost/postgres?host={}",
            dir.path().display()
        );
        let mut server = Self {
            url,
            bin,
            own: Some(Own { child, dir }),
        };
        server.wait_until_ready();
        server
    }

    /// Waits until it answers.
    fn wait_until_ready(&mut self) {
        let own = self.own.as_mut().expect("only for a server of our own");
        let mut line = String::new();
        let out = own.child.stdout.as_mut().expect("it is a pipe");
        std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line)
            .expect("the shell can be read");
        let dir = own.dir.path();
        let log = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap_or_default();
        assert_eq!(line.trim(), "started", "initdb: {}", log("initdb.log"));
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            let output = Command::new(self.bin.join("psql"))
                .arg("-h")
                .arg(dir)
                .args(["-U", "sandbar", "-d", "postgres", "-qc", "select 1"])
                .output()
                .expect("psql can be started");
            if output.status.success() {
                return;
            }
            assert!(
                Instant::now() < until,
                "the server does not come up: {} {}",
                String::from_utf8_lossy(&output.stderr),
                log("server.log")
            );
        }
    }

    /// Returns the socket of a server of our own.
    pub fn socket(&self) -> Option<PathBuf> {
        let own = self.own.as_ref()?;
        Some(own.dir.path().join(".s.PGSQL.5432"))
    }

    /// Makes an empty database and returns its address.
    pub fn database(&self) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("sb_{}_{number}", std::process::id());
        self.sql("postgres", &format!("create database {name}"));
        self.address(&name)
    }

    /// Runs statements in a database with the server's own client, which knows
    /// nothing of Sandbar. Returns unaligned rows.
    pub fn sql(&self, database: &str, statements: &str) -> String {
        let output = Command::new(self.bin.join("psql"))
            .args(["-qAtX", "-v", "ON_ERROR_STOP=1", "-d"])
            .arg(self.address(database))
            .args(["-c", statements])
            .output()
            .expect("psql can be started");
        assert!(
            output.status.success(),
            "psql: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Returns the server's address with another database in it.
    fn address(&self, database: &str) -> String {
        let (path, query) = match self.url.split_once('?') {
            Some((path, query)) => (path, format!("?{query}")),
            None => (self.url.as_str(), String::new()),
        };
        let start = path.find("://").map_or(0, |at| at + 3);
        let host = path[start..].find('/').map_or(path.len(), |at| start + at);
        format!("{}/{database}{query}", &path[..host])
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let Some(own) = &mut self.own else { return };
        // Closing the pipe ends the server; waiting makes sure it is over
        // before its directory goes.
        if let Some(mut pipe) = own.child.stdin.take() {
            let _ = pipe.write_all(b"\n");
        }
        let _ = own.child.wait();
    }
}

/// Finds the binaries of the newest server on this machine.
fn binaries() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql");
    let newest = versions
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("bin"))
        .filter(|bin| bin.join("postgres").is_file() && bin.join("initdb").is_file())
        .max_by_key(|bin| version(bin));
    newest.expect(
        "PostgreSQL's server is needed: apt-get install -y --no-install-recommends postgresql",
    )
}

fn version(bin: &Path) -> u32 {
    let name = bin.parent().and_then(Path::file_name);
    let text = name.and_then(|name| name.to_str());
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}
