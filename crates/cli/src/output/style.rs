//! The few colours that are used. `NO_COLOR` and pipes turn them off.

use anstyle::{AnsiColor, Style};

/// Something new or good.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// Something gone or bad.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// Something changed, or to be noticed.
pub(crate) const NOTE: Style = AnsiColor::Yellow.on_default();
/// Something that places other things.
pub(crate) const PLACE: Style = AnsiColor::Cyan.on_default();
/// Names.
pub(crate) const NAME: Style = Style::new().bold();
/// Side remarks.
pub(crate) const DIM: Style = Style::new().dimmed();
