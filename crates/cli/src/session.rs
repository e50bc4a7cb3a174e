//! Opening the library for one command: configuration, composition, Ctrl-C.

use std::sync::Arc;

use sandbar::compose::{self, Opening};
use sandbar::ports::{Cancel, PortResult, Progress, Silent};
use sandbar::{Config, Sandbar, Surroundings};

use crate::output::style;
use crate::progress::Bar;

/// Opens everything for one command that makes plans.
pub(crate) async fn open(json: bool) -> PortResult<Sandbar> {
    compose::open(opening(json)).await
}

/// Opens everything for one command about plans there are; `None` where
/// nothing was ever recorded.
pub(crate) async fn open_existing(json: bool) -> PortResult<Option<Sandbar>> {
    compose::open_existing(opening(json)).await
}

/// Reads the configuration, and opens nothing.
pub(crate) fn configure() -> PortResult<Config> {
    compose::configure(&opening(false))
}

fn opening(json: bool) -> Opening {
    let cancel = Cancel::new();
    watch_interrupts(cancel.clone());
    let progress: Arc<dyn Progress> = match Bar::for_terminal() {
        Some(bar) if !json => Arc::new(bar),
        _ => Arc::new(Silent),
    };
    let around = Surroundings {
        home: std::env::home_dir(),
        inside: std::env::var("SANDBAR_PLAN")
            .ok()
            .filter(|plan| !plan.is_empty()),
        progress,
        cancel,
        say: Arc::new(|text| {
            let dim = style::DIM;
            anstream::eprintln!("{dim}sandbar:{dim:#} {text}");
        }),
    };
    Opening {
        cwd: crate::args::cwd().ok(),
        environment: environment(),
        around,
    }
}

/// Reads the variables that can be read as text; others name no setting.
pub(crate) fn environment() -> Vec<(String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// The first Ctrl-C asks the work to stop at a safe point, the second ends
/// the process at once: what is on disk is safe at every moment.
fn watch_interrupts(cancel: Cancel) {
    tokio::spawn(async move {
        if pressed().await {
            cancel.cancel();
        }
        if pressed().await {
            std::process::exit(130);
        }
    });
}

/// Waits for a Ctrl-C that is meant for this process, not for a pager.
async fn pressed() -> bool {
    loop {
        let pressed = tokio::signal::ctrl_c().await.is_ok();
        if !pressed || !crate::output::paged::is_paging() {
            return pressed;
        }
    }
}
