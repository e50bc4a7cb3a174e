//! How far a long operation is. A sink must not block.

/// What is being counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Copying a working state into a sandbox; files.
    Copy,
    /// Reading a tree; files.
    Scan,
    /// Restoring a sandbox; files.
    Restore,
    /// Preparing git; objects.
    Git,
    /// Staging an apply; files.
    Stage,
    /// Writing an apply; paths.
    Apply,
}

/// Receives progress. `total` is 0 while it is not known.
pub trait Progress: Send + Sync {
    /// Reports that `done` of `total` units of `stage` are over.
    fn update(&self, stage: Stage, done: u64, total: u64);
}

/// Shows nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn update(&self, _: Stage, _: u64, _: u64) {}
}
