//! What the harnesses share: scenes to break, judges that read plain files,
//! and counts that are printed and kept. Nothing here calls the product's own
//! code.

pub mod count;
pub mod image;
pub mod power;
pub mod scene;
pub mod tree;

/// Says whether the long sizes were asked for (`--long`).
pub fn is_long() -> bool {
    std::env::var_os("SANDBAR_TEST_LONG").is_some()
}
