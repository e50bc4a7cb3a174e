//! Output: documents for programs, sentences for people.

pub(crate) mod document;
pub(crate) mod graph;
pub(crate) mod human;
pub(crate) mod paged;
pub(crate) mod question;
pub(crate) mod style;
pub(crate) mod time;

use std::io::Write as _;

pub(crate) use document::document;

/// Prints text on standard output. A reader that closed the pipe has had
/// enough: that ends the command quietly.
pub(crate) fn print(text: &str) {
    bytes(text.as_bytes());
}

/// Prints bytes on standard output, colours stripped unless it is a terminal.
pub(crate) fn bytes(bytes: &[u8]) {
    let mut out = anstream::stdout().lock();
    if out.write_all(bytes).and_then(|()| out.flush()).is_err() {
        std::process::exit(0);
    }
}

/// Prints bytes on standard output exactly as they are.
pub(crate) fn raw(bytes: &[u8]) {
    let mut out = std::io::stdout().lock();
    if out.write_all(bytes).and_then(|()| out.flush()).is_err() {
        std::process::exit(0);
    }
}
