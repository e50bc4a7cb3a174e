//! A private PostgreSQL for the tests: in memory, on a socket of its own,
//! owned by an account that is not root, gone at the end.
#![allow(
    clippy::disallowed_methods,
    reason = "xtask is no product: it makes a directory for a server"
)]

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use super::setup::open_to_all;
use crate::process::{Outcome, Step, is_root};

/// A running server.
pub(super) struct Postgres {
    dir: PathBuf,
    server: Child,
}

/// Finds the directory with the newest server programs.
pub(super) fn programs() -> Option<PathBuf> {
    let mut found: Vec<(u32, PathBuf)> = std::fs::read_dir("/usr/lib/postgresql")
        .ok()?
        .flatten()
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.parse().ok()?;
            let bin = entry.path().join("bin");
            bin.join("initdb").is_file().then_some((version, bin))
        })
        .collect();
    found.sort();
    found.pop().map(|(_, bin)| bin)
}

impl Postgres {
    /// Makes a cluster and starts its server.
    pub(super) fn start() -> Outcome<Self> {
        let bin = programs().ok_or("no PostgreSQL server under /usr/lib/postgresql")?;
        let memory = Path::new("/dev/shm");
        let base = if memory.is_dir() {
            memory
        } else {
            Path::new("/tmp")
        };
        let dir = base.join(format!("sandbar-pg-{}", std::process::id()));
        std::fs::create_dir(&dir).map_err(|why| format!("make {}: {why}", dir.display()))?;
        open_to_all(&dir)?;
        let data = dir.join("data");
        as_owner(&bin.join("initdb"))
            .args([
                "-A",
                "trust",
                "-U",
                "sandbar",
                "-E",
                "UTF8",
                "--locale=C",
                "--no-sync",
                "-D",
            ])
            .arg(&data)
            .dir(&dir)
            .read()?;
        let mut server = as_owner(&bin.join("postgres"))
            .arg("-D")
            .arg(&data)
            .arg("-k")
            .arg(&dir)
            .args(["-c", "listen_addresses=", "-c", "max_connections=200"])
            .args(["-c", "fsync=off"])
            .dir(&dir)
            .into_command();
        let log = std::fs::File::create(dir.join("log"))
            .map_err(|why| format!("make the server's log: {why}"))?;
        let server = server
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(|why| format!("start the server: {why}"))?;
        let mut postgres = Self { dir, server };
        postgres.wait(&bin)?;
        eprintln!("{}", postgres.url());
        Ok(postgres)
    }

    /// Returns the address of its database.
    pub(super) fn url(&self) -> String {
        format!(
            "postgres://sandbar@localhost/postgres?host={}",
            self.dir.display()
        )
    }

    fn wait(&mut self, bin: &Path) -> Outcome {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let ready = Step::new(bin.join("pg_isready"))
                .args(["-q", "-U", "sandbar", "-h"])
                .arg(&self.dir)
                .succeeds();
            if ready {
                return Ok(());
            }
            let ended = self.server.try_wait().ok().flatten();
            if ended.is_some() || Instant::now() > deadline {
                let log = std::fs::read_to_string(self.dir.join("log")).unwrap_or_default();
                return Err(format!("the server did not start:\n{log}"));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // SIGINT is its fast shutdown. The child may be a wrapper that passes
        // the identity on by exec, so the pid is the server's.
        let _ = Step::words("kill -INT")
            .arg(self.server.id().to_string())
            .read();
        let _ = self.server.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// Starts a server program as an ordinary account, since it refuses root.
fn as_owner(program: &Path) -> Step {
    if is_root() {
        Step::words("setpriv --reuid=postgres --regid=postgres --clear-groups --").arg(program)
    } else {
        Step::new(program)
    }
}
