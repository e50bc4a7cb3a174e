//! Path arguments of external tools: led into the sandbox, or refused (PRJ-2).

use super::ask::LiveSandbox;
use super::paths::{beneath, join};

/// Why a call with such an argument is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentRefused {
    /// Relative: relative to what, is not for the rule to guess.
    #[error("the path is relative")]
    Relative,
    /// `.`, `..` or an empty name in it: where it leads depends on links.
    #[error("the path has an empty, '.' or '..' component")]
    Component,
    /// In none of the sandboxed places.
    #[error("the path lies in no sandbox of the plan")]
    Outside,
}

/// Leads an absolute path into the sandbox whose real place holds it: of
/// several the innermost. A path that lies in a sandbox already stays as it is,
/// as every path does for a caller in the in-place view. Errors: the call is to
/// be refused.
pub fn rewrite_argument(path: &str, sandboxes: &[LiveSandbox]) -> Result<String, ArgumentRefused> {
    let names = path.strip_prefix('/').ok_or(ArgumentRefused::Relative)?;
    let names = names.strip_suffix('/').unwrap_or(names);
    let strange = |name: &str| matches!(name, "" | "." | "..");
    if !names.is_empty() && names.split('/').any(strange) {
        return Err(ArgumentRefused::Component);
    }
    if sandboxes
        .iter()
        .any(|live| beneath(path, &live.root).is_some())
    {
        return Ok(path.to_owned());
    }
    let inside = sandboxes
        .iter()
        .filter_map(|live| Some((live, beneath(path, &live.real)?)));
    let innermost = inside.max_by_key(|(live, _)| live.real.trim_end_matches('/').len());
    let (live, rest) = innermost.ok_or(ArgumentRefused::Outside)?;
    Ok(if live.in_place {
        path.to_owned()
    } else {
        join(&live.root, rest)
    })
}
