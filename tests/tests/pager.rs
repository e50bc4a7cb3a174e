//! Long output on a terminal goes through a pager, and only there.
#![allow(
    clippy::disallowed_methods,
    reason = "tests inspect real trees with foreign means"
)]

use std::path::Path;

use sandbar_tests::fixture::{self, Repository};
use sandbar_tests::product::{Done, World};

/// A plan with something to show.
struct Scene {
    world: World,
    repo: Repository,
}

/// A pager that marks each line.
const MARK: &str = "sed 's/^/paged:/'";

impl Scene {
    fn new() -> Self {
        let (world, repo) = (World::new(), fixture::small());
        world.run(
            repo.root(),
            "p",
            "echo more >> b.txt; seq 100000 > long.txt",
        );
        Self { world, repo }
    }

    fn root(&self) -> &Path {
        self.repo.root()
    }

    /// Runs a line on a terminal of its own, made by `script`.
    fn on_terminal(&self, line: &str, environment: &[(&str, &str)]) -> Done {
        let sandbar = self.world.command(self.root(), &[""; 0]);
        let program = sandbar.get_program().to_str().expect("UTF-8").to_owned();
        let mut command = self.world.command(self.root(), &[""; 0]);
        let mut script = std::process::Command::new("/usr/bin/script");
        script.args([
            "-qefc",
            &format!("stty -opost; exec '{program}' {line}"),
            "/dev/null",
        ]);
        script.current_dir(self.root()).env_clear();
        command.env("TERM", "xterm");
        for (name, value) in command.get_envs() {
            if let Some(value) = value {
                script.env(name, value);
            }
        }
        script.envs(environment.iter().copied());
        script.stdin(std::process::Stdio::null());
        Done::of(&mut script)
    }
}

// conformance: SRF-4 (pager and colour) partial: progress on a terminal
#[test]
fn diff_and_log_go_through_a_pager_on_a_terminal() {
    let scene = Scene::new();
    let diff = scene
        .on_terminal("diff p", &[("SANDBAR_PAGER", MARK)])
        .expect(0);
    assert!(diff.stdout.starts_with("paged:"), "{}", &diff.stdout[..80]);
    let marked = diff
        .stdout
        .lines()
        .filter(|line| line.starts_with("paged:"));
    assert!(marked.count() > 100_000);
    assert!(diff.stdout.contains("\u{1b}[32m+more"), "no colours");
    for line in ["log p", "diff p --stat", "log"] {
        let shown = scene.on_terminal(line, &[("PAGER", MARK)]).expect(0);
        assert!(
            shown.stdout.starts_with("paged:"),
            "{line}: {}",
            shown.stdout
        );
    }
    // The first of the two counts, and `NO_COLOR` holds in a pager too.
    let both = [
        ("SANDBAR_PAGER", MARK),
        ("PAGER", "false"),
        ("NO_COLOR", "1"),
    ];
    let plain = scene.on_terminal("diff p", &both).expect(0);
    assert!(
        plain.stdout.contains("paged:+more"),
        "not paged, or coloured"
    );
    assert!(
        !plain.stdout.contains('\u{1b}'),
        "colours in spite of NO_COLOR"
    );
}

// conformance: SRF-4 (no pager) partial: progress on a terminal
#[test]
fn nothing_is_paged_that_should_not_be() {
    let scene = Scene::new();
    let marked = [("PAGER", MARK)];
    for (line, environment) in [
        ("diff p --no-pager", &marked[..]),
        ("--no-pager log p", &marked),
        ("diff p --json", &marked),
        ("log p --json", &marked),
        ("status p", &marked),
        ("diff p", &[("PAGER", MARK), ("SANDBAR_PAGER", "")]),
        ("diff p", &[("PAGER", MARK), ("SANDBAR_PAGER", "cat")]),
        ("log p", &[("PAGER", "")]),
    ] {
        let shown = scene.on_terminal(line, environment).expect(0);
        assert!(!shown.stdout.contains("paged:"), "{line}");
        assert!(!shown.stdout.is_empty(), "{line}");
    }
    // Piped, the patch is for programs: no pager, no colour.
    let mut piped = scene.world.command(scene.root(), &["diff", "p"]);
    let piped = Done::of(piped.env("PAGER", MARK).env("TERM", "xterm")).expect(0);
    assert!(piped.stdout.contains("\n+more\n"));
    assert!(!piped.stdout.contains("paged:") && !piped.stdout.contains('\u{1b}'));
    // A failure is said, and not paged.
    let failed = scene.on_terminal("diff nobody", &marked).expect(5);
    assert!(!failed.stdout.contains("paged:"), "{}", failed.stdout);
}

// conformance: SRF-4 (a pager that ends early) partial: progress on a terminal
#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let scene = Scene::new();
    let head = scene
        .on_terminal("diff p", &[("PAGER", "head -n 1")])
        .expect(0);
    assert_eq!(head.stdout.lines().count(), 1, "{}", head.stdout);
    drop(scene.on_terminal("diff p", &[("PAGER", "true")]).expect(0));
    drop(scene.on_terminal("log p", &[("PAGER", "exit 3")]).expect(0));
}

// conformance: SRF-4 (less) partial: progress on a terminal
#[test]
fn without_a_choice_it_is_less_if_there_is_one() {
    let scene = Scene::new();
    let bin = scene.repo.scratch().join("bin");
    std::fs::create_dir(&bin).expect("a directory");
    sandbar_tests::foreign::sh(&bin, "ln -s \"$(command -v stty)\" \"$(command -v cat)\" .");
    let path = bin.to_str().expect("UTF-8").to_owned();
    let only = [("PATH", path.as_str())];
    let shown = scene.on_terminal("log p", &only).expect(0);
    assert!(
        shown.stdout.contains("base"),
        "{}{}",
        shown.stdout,
        shown.stderr
    );
    let less = bin.join("less");
    std::fs::write(&less, "#!/bin/sh\necho \"less $*\"; cat\n").expect("a script");
    sandbar_tests::foreign::sh(&bin, "chmod +x less");
    let shown = scene.on_terminal("log p", &only).expect(0);
    assert!(shown.stdout.starts_with("less -FRX\n"), "{}", shown.stdout);
    assert!(shown.stdout.contains("base"), "{}", shown.stdout);
}
