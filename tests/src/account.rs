//! A throw-away account, for what must hold for people who are not root.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::foreign::{command, output, text};

/// An account made with `useradd`, gone when dropped.
pub struct Account {
    name: String,
    uid: u32,
    gid: u32,
}

static NEXT: AtomicU32 = AtomicU32::new(0);

impl Account {
    /// Makes an account; the caller must be root.
    pub fn new() -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("sbt{}x{number}", std::process::id());
        let root = Path::new("/");
        // One at a time: the tools refuse to wait long for the password file.
        let lock = lock();
        text(command(root, "useradd").args([
            "--no-create-home",
            "--user-group",
            "--shell",
            "/bin/sh",
            &name,
        ]));
        drop(lock);
        let id = |option: &str| {
            let id = text(command(root, "id").args([option, &name]));
            id.trim().parse().expect("id prints a number")
        };
        let (uid, gid) = (id("-u"), id("-g"));
        Self { name, uid, gid }
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Has a command run as this account.
    pub fn owns<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.uid(self.uid).gid(self.gid).env("USER", &self.name)
    }

    /// Gives a tree to this account.
    pub fn give(&self, dir: &Path) {
        let owner = format!("{}:{}", self.uid, self.gid);
        text(
            command(Path::new("/"), "chown")
                .args(["-hR", &owner])
                .arg(dir),
        );
    }
}

impl Default for Account {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        let _lock = lock();
        let _ = output(command(Path::new("/"), "userdel").args(["--force", &self.name]));
    }
}

fn lock() -> File {
    let path = std::env::temp_dir().join("sandbar-tests-accounts.lock");
    let file = File::create(&path).expect("the lock of the accounts");
    file.lock().expect("the lock of the accounts is taken");
    file
}
