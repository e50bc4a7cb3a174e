//! The trees that are measured: many small files, and a real `node_modules`.
#![allow(
    clippy::disallowed_methods,
    reason = "xtask is no product: it makes what it measures"
)]

use std::path::{Path, PathBuf};

use super::measure::shell;
use crate::process::{Outcome, Step};

/// Real packages that together install about 25,000 files.
const PACKAGES: &str = "next@15 react@19 react-dom@19 typescript@5 eslint@9 jest@29 webpack@5 \
                        vite@6 date-fns@4 lodash@4 rxjs@7 @types/node@22";

/// One kind of tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tree {
    /// 50,000 files of about 1 KB in 500 directories.
    Small,
    /// What npm installs for an ordinary web project, all of it committed.
    NodeModules,
}

impl Tree {
    /// Returns the word of the command line, which also names its directory:
    /// not `node_modules`, or npm would take what is in it for its own.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::NodeModules => "npm",
        }
    }

    /// Reads the word.
    pub(super) fn from_word(word: &str) -> Outcome<Self> {
        [Self::Small, Self::NodeModules]
            .into_iter()
            .find(|tree| tree.word() == word)
            .ok_or_else(|| format!("no tree is called {word}: small or npm"))
    }

    /// Describes it.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Small => "50,000 small files",
            Self::NodeModules => "a node_modules tree",
        }
    }

    /// Makes it as a packed git repository below `place`.
    pub(super) fn make(self, place: &Path) -> Outcome<PathBuf> {
        let repo = place.join("repo");
        std::fs::create_dir_all(&repo).map_err(|why| format!("make {}: {why}", repo.display()))?;
        match self {
            Self::Small => small(&repo)?,
            Self::NodeModules => Step::words("npm install --ignore-scripts --no-audit --no-fund")
                .args(PACKAGES.split_whitespace())
                .dir(&repo)
                .run()?,
        }
        shell(&format!(
            "cd {} && git init -q -b main && git add -A -f . && \
             git -c user.name=bench -c user.email=bench@example.com commit -q -m all && git gc -q",
            repo.display()
        ))?;
        Ok(repo)
    }
}

/// Counts the files of a tree, git's own aside.
pub(super) fn count(repo: &Path) -> Outcome<usize> {
    let list = Step::words("git ls-files -z").dir(repo).read()?;
    Ok(list.matches('\0').count())
}

fn small(repo: &Path) -> Outcome {
    let mut random = Random(0x5eed);
    for dir in 0..500 {
        let dir = repo.join(format!("part-{dir:03}"));
        std::fs::create_dir(&dir).map_err(|why| format!("make {}: {why}", dir.display()))?;
        for file in 0..100 {
            let path = dir.join(format!("file-{file:02}.txt"));
            std::fs::write(&path, text(&mut random))
                .map_err(|why| format!("write {}: {why}", path.display()))?;
        }
    }
    Ok(())
}

/// About 1 KB of words, never the same twice.
fn text(random: &mut Random) -> String {
    let length = 800 + random.below(450);
    let mut text = String::with_capacity(length + 16);
    while text.len() < length {
        for _ in 0..3 + random.below(8) {
            let letter = char::from(b'a' + random.below(26) as u8);
            text.push(letter);
        }
        text.push(if random.below(9) == 0 { '\n' } else { ' ' });
    }
    text.push('\n');
    text
}

/// The same numbers on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        // xorshift64
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % bound
    }
}
