//! A progress bar, once something takes longer than a second (SRF-4).

use std::io::IsTerminal as _;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sandbar::ports::Progress;
use sandbar::ports::progress::Stage;

/// How long work stays silent.
const PATIENCE: Duration = Duration::from_secs(1);

/// Shows progress on a terminal.
#[derive(Debug)]
pub(crate) struct Bar {
    started: Instant,
    shown: Mutex<Option<(Stage, ProgressBar)>>,
}

impl Bar {
    /// Makes a bar if standard error is a terminal.
    pub(crate) fn for_terminal() -> Option<Self> {
        std::io::stderr().is_terminal().then(|| Self {
            started: Instant::now(),
            shown: Mutex::new(None),
        })
    }
}

impl Progress for Bar {
    fn update(&self, stage: Stage, done: u64, total: u64) {
        if self.started.elapsed() < PATIENCE {
            return;
        }
        let Ok(mut shown) = self.shown.lock() else {
            return;
        };
        if shown.as_ref().is_none_or(|(have, _)| *have != stage) {
            if let Some((_, bar)) = shown.take() {
                bar.finish_and_clear();
            }
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(8));
            let style = ProgressStyle::with_template("{msg} {human_pos}{prefix}")
                .unwrap_or_else(|_| ProgressStyle::default_bar());
            bar.set_style(style);
            bar.set_message(words(stage));
            *shown = Some((stage, bar));
        }
        if let Some((_, bar)) = shown.as_ref() {
            if total > 0 {
                bar.set_prefix(format!(" of {total}"));
            }
            bar.set_position(done);
            if total > 0 && done >= total {
                bar.finish_and_clear();
            }
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Ok(mut shown) = self.shown.lock()
            && let Some((_, bar)) = shown.take()
        {
            bar.finish_and_clear();
        }
    }
}

fn words(stage: Stage) -> &'static str {
    match stage {
        Stage::Copy => "copying files",
        Stage::Scan => "scanning files",
        Stage::Restore => "restoring files",
        Stage::Git => "preparing git",
        Stage::Stage => "staging files",
        Stage::Apply => "applying paths",
    }
}
