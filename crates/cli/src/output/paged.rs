//! Output that may be long: through a pager on a terminal, else straight out.

use std::ffi::OsString;
use std::io::{IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use anstream::{AutoStream, ColorChoice};
use sandbar::compose::Pager;

/// Whether a pager has the terminal: Ctrl-C is its business then.
static PAGING: AtomicBool = AtomicBool::new(false);

/// Says whether a pager has the terminal.
pub(crate) fn is_paging() -> bool {
    PAGING.load(Ordering::Relaxed)
}

/// Where long output goes.
pub(crate) struct Paged {
    pager: Option<Pager>,
    /// Whether a person reads along.
    terminal: bool,
    /// Whether that person wants colours.
    colours: bool,
}

impl Paged {
    /// Starts a pager where a person would want one: on a terminal, unless
    /// they said otherwise.
    pub(crate) fn open(no_pager: bool) -> Self {
        let terminal = std::io::stdout().is_terminal();
        let pager = match terminal && !no_pager {
            true => Pager::start(choice().as_deref()),
            false => None,
        };
        PAGING.store(pager.is_some(), Ordering::Relaxed);
        Self {
            pager,
            terminal,
            colours: AutoStream::choice(&std::io::stdout()) != ColorChoice::Never,
        }
    }

    /// Says whether a person reads along.
    pub(crate) fn is_for_people(&self) -> bool {
        self.terminal
    }

    /// Shows text. Returns false once nobody reads any more.
    pub(crate) fn print(&mut self, text: &str) -> bool {
        self.bytes(text.as_bytes())
    }

    /// Shows bytes, colours stripped where they are not wanted. Returns false
    /// once nobody reads any more.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> bool {
        let Some(pager) = &mut self.pager else {
            super::bytes(bytes);
            return true;
        };
        let mut strip = anstream::adapter::StripBytes::new();
        let written = if self.colours {
            pager.write_all(bytes)
        } else {
            strip
                .strip_next(bytes)
                .try_for_each(|part| pager.write_all(part))
        };
        // A reader that has seen enough is no error.
        written.is_ok()
    }

    /// Writes bytes exactly as they are, for programs.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> bool {
        match &mut self.pager {
            Some(pager) => pager.write_all(bytes).is_ok(),
            None => {
                super::raw(bytes);
                true
            }
        }
    }

    /// Waits until the reader has seen enough.
    pub(crate) fn finish(self) {
        if let Some(pager) = self.pager {
            // How a pager ends is its own affair.
            let _ = pager.finish();
        }
        PAGING.store(false, Ordering::Relaxed);
    }
}

/// What the person chose: `SANDBAR_PAGER`, else `PAGER`; set but empty is none.
fn choice() -> Option<OsString> {
    std::env::var_os("SANDBAR_PAGER").or_else(|| std::env::var_os("PAGER"))
}
