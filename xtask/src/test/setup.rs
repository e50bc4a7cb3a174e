//! What the tests need on the machine: Debian packages, the test runner, and
//! scratch space in memory.
#![allow(
    clippy::disallowed_methods,
    reason = "xtask is no product: it makes scratch space"
)]

use std::path::{Path, PathBuf};

use crate::process::{Outcome, Step, is_on_path, is_root};

/// A program or file that must be there, and the Debian package it comes from.
const NEEDED: &[(&str, &str)] = &[
    ("git", "git"),
    ("strace", "strace"),
    ("tar", "tar"),
    ("unshare", "util-linux"),
    ("useradd", "passwd"),
    ("mkfs.ext4", "e2fsprogs"),
    ("mkfs.exfat", "exfatprogs"),
    ("mount.exfat-fuse", "exfat-fuse"),
    ("faketime", "faketime"),
    ("setfacl", "acl"),
    ("setfattr", "attr"),
    ("cc", "gcc"),
];

/// Installs what is missing, and nothing that is there.
pub(super) fn install() -> Outcome {
    let mut packages: Vec<&str> = NEEDED
        .iter()
        .filter(|(program, _)| !is_present(program))
        .map(|(_, package)| *package)
        .collect();
    if super::postgres::programs().is_none() {
        packages.push("postgresql");
    }
    if packages.is_empty() {
        eprintln!("every package is there");
    } else {
        install_packages(&packages)?;
    }
    for component in ["rustfmt", "clippy-driver"] {
        if !is_on_path(component) {
            return Err(format!("{component} is missing: add it with rustup"));
        }
    }
    if !Step::words("cargo nextest --version").succeeds() {
        eprintln!("cargo-nextest is missing: compiling it takes some minutes");
        Step::words("cargo install cargo-nextest --locked").run()?;
    }
    Ok(())
}

/// Installs Debian packages; needs root.
pub(crate) fn install_packages(packages: &[&str]) -> Outcome {
    let names = packages.join(" ");
    if !is_root() {
        return Err(format!(
            "these packages are missing: {names}; install them as root"
        ));
    }
    Step::words("apt-get update -q").run()?;
    Step::words("apt-get install -q -y --no-install-recommends")
        .args(packages)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .run()
}

/// Says whether a program is there, system directories included.
pub(crate) fn is_present(program: &str) -> bool {
    is_on_path(program)
        || ["/usr/sbin", "/sbin"]
            .iter()
            .any(|dir| Path::new(dir).join(program).is_file())
}

/// A directory in memory for tests where durability is no question; removed
/// at the end.
pub(super) struct Scratch {
    dir: PathBuf,
}

impl Scratch {
    /// Makes one, in shared memory where there is some.
    pub(super) fn new() -> Outcome<Self> {
        let memory = Path::new("/dev/shm");
        let base = if memory.is_dir() {
            memory.to_owned()
        } else {
            std::env::temp_dir()
        };
        let dir = base.join(format!("sandbar-test-{}", std::process::id()));
        std::fs::create_dir(&dir).map_err(|why| format!("make {}: {why}", dir.display()))?;
        // Accounts other than the caller's work below it too.
        open_to_all(&dir)?;
        Ok(Self { dir })
    }

    /// Returns its path.
    pub(super) fn path(&self) -> String {
        self.dir.display().to_string()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// Lets every account make files in a directory, as in a system's own.
pub(super) fn open_to_all(dir: &Path) -> Outcome {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o1777))
        .map_err(|why| format!("open {}: {why}", dir.display()))
}
