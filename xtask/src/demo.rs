//! A tour: the real binary on a throw-away repository, each command with its
//! output. What it prints is what a person would see.
#![allow(
    clippy::disallowed_methods,
    reason = "xtask is no product: it makes a repository to show"
)]

use std::path::PathBuf;

use crate::process::{Outcome, Step};
use crate::tree;

/// What is shown: a sentence, and a line that a person types. A line that is
/// expected to fail says with which exit code.
const TOUR: &[(&str, &str, u8)] = &[
    (
        "A repository with an uncommitted edit that must survive.",
        "git log --oneline; git status --short",
        0,
    ),
    (
        "Any command, on an exact private copy. It believes it is in the real place.",
        "sandbar run --name tidy-up -- sh -c \
         'pwd; sed -i s/teh/the/ guide.txt; echo new > notes.txt; git rm -q old.txt; \
          git commit -qam \"fix a typo\"; chmod +x build.sh'",
        0,
    ),
    (
        "The original has not changed.",
        "git log --oneline; git status --short",
        0,
    ),
    (
        "What the plan would bring back.",
        "sandbar status tidy-up; sandbar diff tidy-up --stat",
        0,
    ),
    (
        "The same as a patch that git takes.",
        "sandbar diff tidy-up --patch",
        0,
    ),
    (
        "Going on inside, and regretting it.",
        "sandbar exec tidy-up -- sh -c 'rm -rf guide.txt; echo junk > junk.txt'; \
         sandbar diff tidy-up --stat",
        0,
    ),
    ("Each step is a checkpoint.", "sandbar log tidy-up", 0),
    (
        "Back to the one after the first command.",
        "sandbar rollback tidy-up --to 2; sandbar diff tidy-up --stat",
        0,
    ),
    (
        "What would happen, then the real thing.",
        "sandbar apply tidy-up --dry-run",
        0,
    ),
    ("", "sandbar apply tidy-up", 0),
    (
        "The result has landed as changes; the person's own edit is still there.",
        "git status --short; cat mine.txt",
        0,
    ),
    (
        "A plan that clashes with newer work stops before anything is written.",
        "sandbar run --name clash -- sh -c 'echo theirs > mine.txt' && echo mine again > mine.txt",
        0,
    ),
    ("", "sandbar apply clash", 3),
    (
        "Nothing was lost; drop the plan.",
        "cat mine.txt; sandbar discard clash",
        0,
    ),
    ("How Sandbar itself is.", "sandbar doctor", 0),
];

/// Runs `cargo xtask demo`.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    if let Some(argument) = arguments.first() {
        return Err(format!("demo takes no argument, not {argument}"));
    }
    Step::new(tree::cargo())
        .args(["build", "--package", "sandbar-cli"])
        .dir(&tree::root())
        .run()?;
    let binaries = tree::target()?.join("debug");
    let place = Place::make()?;
    let repo = place.0.join("project");
    let shell = |line: &str| {
        let path = std::env::var("PATH").unwrap_or_default();
        Step::words("sh -c")
            .arg(format!("exec 2>&1; {line}"))
            .dir(&repo)
            .env("PATH", format!("{}:{path}", binaries.display()))
            .env("HOME", place.0.join("home"))
            .env("SANDBAR_DATA_DIR", place.0.join("data"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("NO_COLOR", "1")
    };
    shell(SETTING).read()?;
    for (sentence, line, code) in TOUR {
        if !sentence.is_empty() {
            println!("\n# {sentence}");
        }
        println!("$ {line}");
        // The exit code joins the output, so that an expected failure can be
        // told from another.
        let output = shell(&format!("({line}); echo \"exit $?\"")).read()?;
        let (output, end) = output
            .trim_end()
            .rsplit_once('\n')
            .map_or(("", output.trim_end()), |(output, end)| (output, end));
        println!("{output}");
        if *code != 0 {
            println!("[{end}]");
        }
        if end != format!("exit {code}") {
            return Err(format!("`{line}` ended with {end}, not {code}"));
        }
    }
    Ok(())
}

const SETTING: &str = "git init -q -b main . && git config user.name Demo && \
    git config user.email demo@example.com && \
    printf 'teh first line\\nsecond\\n' > guide.txt && echo old > old.txt && \
    echo mine > mine.txt && printf '#!/bin/sh\\n' > build.sh && git add -A && \
    git commit -qm 'begin' && echo 'not committed yet' >> mine.txt";

/// A directory that goes when dropped.
struct Place(PathBuf);

impl Place {
    fn make() -> Outcome<Self> {
        let dir = std::env::temp_dir().join(format!("sandbar-demo-{}", std::process::id()));
        for name in ["project", "home"] {
            std::fs::create_dir_all(dir.join(name))
                .map_err(|why| format!("make {}: {why}", dir.display()))?;
        }
        Ok(Self(dir))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
