//! Failures, for people and for programs (SRF-3).

use std::error::Error as _;
use std::process::ExitCode;

use sandbar::domain::Code;
use sandbar::ports::PortError;
use serde_json::json;

use crate::output::style;

/// Sandbar's own failure in `run`, `exec` and `shell`.
const OWN: u8 = 125;

/// A failure, and how it ends the process.
#[derive(Debug)]
pub(crate) struct Failure {
    error: PortError,
    own: bool,
}

impl Failure {
    /// Wraps an error; `own` for the commands that pass exit codes on.
    pub(crate) fn new(error: PortError, own: bool) -> Self {
        Self { error, own }
    }

    /// Prints the failure and returns the exit code.
    pub(crate) fn report(self, json: bool) -> ExitCode {
        let error = &self.error;
        let hint = error
            .hint
            .clone()
            .unwrap_or_else(|| error.code.hint().to_owned());
        if json {
            let document = json!({"error": {
                "code": error.code.text(),
                "message": format!("failed to {error}"),
                "hint": hint,
                "subjects": error.subjects,
            }});
            crate::output::document(&document);
        } else {
            let (red, dim) = (style::BAD, style::DIM);
            anstream::eprintln!("{red}sandbar:{red:#} failed to {error}");
            let named = |subject: &&String| !error.message.contains(&***subject);
            for subject in error.subjects.iter().filter(named).take(20) {
                anstream::eprintln!("  {subject}");
            }
            let mut cause = error.source();
            while let Some(inner) = cause {
                anstream::eprintln!("  {dim}because: {inner}{dim:#}");
                cause = inner.source();
            }
            if !hint.is_empty() {
                anstream::eprintln!("  {dim}hint: {hint}{dim:#}");
            }
        }
        let usage = matches!(error.code, Code::Usage);
        ExitCode::from(if self.own && !usage {
            OWN
        } else {
            error.code.exit()
        })
    }
}

/// Prints what clap says; help and version are no failure.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    // A closed pipe is the reader's choice.
    let _ = error.print();
    if error.use_stderr() {
        ExitCode::from(2)
    } else {
        ExitCode::SUCCESS
    }
}
