//! File systems in files: what was not made durable is not in the file, so
//! that a copy of the file is what a power failure leaves.
//!
//! The kernel is asked to write nothing by itself for ten minutes, and a test
//! takes its copy within the second. A plain `cp` of the file sees what the
//! file system gave to the block device, and nothing that is still in its
//! own page cache or journal.

use std::path::{Path, PathBuf};

use crate::foreign::{command, output, text};

/// Starts this test again in a mount namespace of its own, and says whether it
/// did: then the caller has nothing more to do. Elsewhere every sandbox that
/// somebody starts meanwhile would hold a copy of the mounts, and a file system
/// that is to go would stay.
pub fn isolated(test: &str) -> bool {
    const INSIDE: &str = "SANDBAR_TEST_NAMESPACE";
    if std::env::var_os(INSIDE).is_some() {
        return false;
    }
    let status = std::process::Command::new("unshare")
        .args(["--mount", "--propagation", "private"])
        .arg(std::env::current_exe().expect("a test knows its own path"))
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .status();
    let status = status.expect("unshare starts; it needs root");
    assert!(status.success(), "{test} in a namespace: {status}");
    true
}

/// Bytes of an image.
const SIZE: &str = "64M";

/// A mounted file system in a file.
pub struct Image {
    file: PathBuf,
    mount: PathBuf,
    device: String,
    options: &'static str,
}

/// The kinds of file system there are images of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// With its journal.
    Ext4,
    /// 300 MB at least, as its makers want.
    Xfs,
    /// Copy on write.
    Btrfs,
}

impl Image {
    /// Makes one called `name` below `place` and mounts it. The caller must be
    /// root.
    pub fn new(place: &Path, name: &str, kind: Kind) -> Self {
        let file = place.join(format!("{name}.image"));
        let mount = place.join(name);
        std::fs::create_dir(&mount).expect("a mount point");
        let size = if kind == Kind::Ext4 { SIZE } else { "320M" };
        text(command(place, "truncate").args(["-s", size]).arg(&file));
        let (make, options): (&[&str], _) = match kind {
            Kind::Ext4 => (
                &["mkfs.ext4", "-q", "-F", "-O", "has_journal"],
                "nodiscard,noatime,commit=600,noauto_da_alloc",
            ),
            Kind::Xfs => (&["mkfs.xfs", "-q", "-f"], "noatime"),
            Kind::Btrfs => (&["mkfs.btrfs", "-q", "-f"], "noatime,commit=600"),
        };
        text(system(place, make[0]).args(&make[1..]).arg(&file));
        let device = text(
            system(place, "losetup")
                .args(["--find", "--show"])
                .arg(&file),
        );
        let image = Self {
            file,
            mount,
            device: device.trim().to_owned(),
            options,
        };
        image.mount();
        image
    }

    /// Returns where it is mounted.
    pub fn root(&self) -> &Path {
        &self.mount
    }

    /// Copies the file as it is at this moment; nothing is made durable.
    pub fn copy(&self, to: &Path) {
        text(
            command(Path::new("/"), "cp")
                .args(["--sparse=always"])
                .args([&self.file, to]),
        );
    }

    /// Makes everything durable.
    pub fn sync(&self) {
        text(command(Path::new("/"), "sync").arg("-f").arg(&self.mount));
    }

    /// Goes back to a copy: what was mounted is gone, the copy is mounted in
    /// its place, on the same device.
    pub fn restore(&self, from: &Path) {
        self.unmount();
        // Through the device, so that what the kernel has of it in memory is the
        // same as what is in the file.
        let (input, out) = (
            format!("if={}", from.display()),
            format!("of={}", self.device),
        );
        text(command(Path::new("/"), "dd").args([
            "bs=1M",
            "conv=notrunc,fsync",
            "status=none",
            &input,
            &out,
        ]));
        self.mount();
    }

    fn mount(&self) {
        text(
            command(Path::new("/"), "mount")
                .args(["-o", self.options, &self.device])
                .arg(&self.mount),
        );
    }

    fn unmount(&self) {
        text(command(Path::new("/"), "umount").arg(&self.mount));
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        let _ = output(command(Path::new("/"), "umount").arg("-l").arg(&self.mount));
        let _ = output(system(Path::new("/"), "losetup").args(["-d", &self.device]));
    }
}

/// Prepares a program of the system's own directories.
fn system(dir: &Path, program: &str) -> std::process::Command {
    let mut command = command(dir, program);
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:/usr/sbin:/sbin"));
    command
}
