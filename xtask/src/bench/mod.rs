//! Measures Sandbar beside `cp -a`, `rsync` and git on a fresh file system, all
//! in one interleaved run. It reports; it never gates.
#![allow(
    clippy::disallowed_methods,
    reason = "xtask is no product: it makes what it measures"
)]

mod image;
mod measure;
mod trees;

use std::path::{Path, PathBuf};

use crate::process::{Outcome, Step, is_on_path, is_root};
use crate::test::{install_packages, is_present};
use crate::tree;
use measure::{Field, Sample};
use trees::Tree;

/// What was asked for.
struct Options {
    runs: usize,
    trees: Vec<Tree>,
    place: PathBuf,
}

fn options(arguments: &[String]) -> Outcome<Options> {
    let mut options = Options {
        runs: 5,
        trees: vec![Tree::Small, Tree::NodeModules],
        place: PathBuf::from("/var/tmp"),
    };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
        match word.as_str() {
            "--runs" => {
                let runs = value()?;
                options.runs = runs.parse().map_err(|_| format!("{runs} is no number"))?;
            }
            "--tree" => options.trees = vec![Tree::from_word(value()?)?],
            "--place" => options.place = PathBuf::from(value()?),
            other => return Err(format!("unknown argument {other}")),
        }
    }
    Ok(options)
}

/// Runs `cargo xtask bench`.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let options = options(arguments)?;
    if !is_root() {
        return Err("it mounts a file system: run it as root".to_owned());
    }
    let missing: Vec<&str> = [
        ("rsync", "rsync"),
        ("time", "time"),
        ("mkfs.ext4", "e2fsprogs"),
    ]
    .iter()
    .filter(|(program, _)| !is_present(program))
    .map(|(_, package)| *package)
    .collect();
    if !missing.is_empty() {
        install_packages(&missing)?;
    }
    Step::new(tree::cargo())
        .args(["build", "--release", "--package", "sandbar-cli"])
        .dir(&tree::root())
        .run()?;
    let binary = tree::target()?.join("release/sandbar");
    let image = image::Image::make(&options.place)?;
    println!("{}", conditions(&binary, &image.root()));
    for tree in &options.trees {
        if *tree == Tree::NodeModules && !is_on_path("npm") {
            println!(
                "\n{}: not measured, since npm is not installed",
                tree.title()
            );
            continue;
        }
        let place = image.root().join(tree.word());
        let repo = tree.make(&place)?;
        println!("\n{}: {} files", tree.title(), trees::count(&repo)?);
        creation(&binary, &place, &repo, options.runs)?;
        later(&binary, &place, &repo, options.runs)?;
    }
    Ok(())
}

/// Everything under which the figures were taken.
fn conditions(binary: &Path, root: &Path) -> String {
    let say = |line: &str| {
        Step::words(line)
            .read()
            .map_or_else(|why| why, |text| text.trim().to_owned())
    };
    let first = |text: String| text.lines().next().unwrap_or_default().to_owned();
    format!(
        "kernel {}, {} cores; {}\n{}; {}; {}\nSandbar {} ({} bytes), commit {}",
        say("uname -r"),
        say("nproc"),
        say(&format!(
            "findmnt -n -o SOURCE,FSTYPE,OPTIONS {}",
            root.display()
        )),
        say("git --version"),
        first(say("cp --version")),
        first(say("rsync --version")),
        say(&format!("{} --version", binary.display())),
        say(&format!("stat -c %s {}", binary.display())),
        say(&format!(
            "git -C {} rev-parse --short HEAD",
            tree::root().display()
        )),
    )
}

/// Making a private copy: everybody's way, cold each time.
fn creation(binary: &Path, place: &Path, repo: &Path, runs: usize) -> Outcome {
    let (source, text) = (repo.display(), place.display());
    let sandbar = binary.display();
    let mut field = Field::new(place, runs);
    field.add(
        "cp -a",
        &format!("cp -a {source} {text}/copy"),
        &format!("rm -rf {text}/copy"),
    );
    field.add(
        "rsync -a",
        &format!("rsync -a {source}/ {text}/synced/"),
        &format!("rm -rf {text}/synced"),
    );
    field.add(
        "git worktree add",
        &format!("git -C {source} worktree add -q --detach {text}/tree"),
        &format!("git -C {source} worktree remove --force {text}/tree"),
    );
    field.add(
        "sandbar run",
        &format!(
            "cd {source} && SANDBAR_DATA_DIR={text}/data {sandbar} run --name n -- true >/dev/null"
        ),
        &format!("rm -rf {text}/data"),
    );
    let samples = field.run()?;
    report(&samples, "cp -a");
    wanted(&samples, "sandbar run", "cp -a", 1.5, "at least");
    wanted(&samples, "sandbar run", "git worktree add", 1.0, "at least");
    if let Some(sample) = samples.iter().find(|sample| sample.name == "sandbar run") {
        println!(
            "  peak memory {:.0} MB (wanted: under 150)",
            sample.peak_mb()
        );
    }
    Ok(())
}

/// Working with one: status, ten changed files brought back, rollback.
fn later(binary: &Path, place: &Path, repo: &Path, runs: usize) -> Outcome {
    let (source, text) = (repo.display(), place.display());
    let sandbar = format!(
        "cd {source} && SANDBAR_DATA_DIR={text}/data {}",
        binary.display()
    );
    let edit = "git ls-files | head -10 | while read -r f; do echo more >> \"$f\"; done";
    std::fs::write(place.join("edit.sh"), edit).map_err(|why| format!("write a script: {why}"))?;
    let make = |name: &str| format!("{sandbar} run --name {name} -- sh {text}/edit.sh >/dev/null");
    measure::shell(&format!("{sandbar} run --name still -- true >/dev/null"))?;
    measure::shell(&format!("git -C {source} status >/dev/null"))?;

    let mut field = Field::new(place, runs);
    field.add(
        "git status",
        &format!("git -C {source} status >/dev/null"),
        "true",
    );
    field.add(
        "sandbar status",
        &format!("{sandbar} status still >/dev/null"),
        "true",
    );
    let samples = field.run()?;
    report(&samples, "git status");
    wanted(&samples, "git status", "sandbar status", 1.3, "at most");

    let mut field = Field::new(place, runs);
    let drop =
        |name: &str| format!("{sandbar} discard {name} >/dev/null; git -C {source} checkout -q .");
    field.add_prepared(
        "sandbar apply, ten files",
        &make("ten"),
        &format!("{sandbar} apply ten >/dev/null"),
        &drop("ten"),
    );
    field.add_prepared(
        "sandbar rollback, ten files",
        &make("back"),
        &format!("{sandbar} rollback back --to 1 >/dev/null"),
        &drop("back"),
    );
    report(&field.run()?, "sandbar apply, ten files");
    measure::shell(&format!("rm -rf {text}/data"))
}

fn report(samples: &[Sample], unit: &str) {
    let unit = samples.iter().find(|sample| sample.name == unit);
    println!(
        "  {:<28} {:>9} {:>9} {:>9} {:>7}",
        "", "median s", "least", "most", "ratio"
    );
    for sample in samples {
        let ratio = unit.map_or(f64::NAN, |unit| unit.median() / sample.median());
        println!(
            "  {:<28} {:>9.3} {:>9.3} {:>9.3} {:>7.2}",
            sample.name,
            sample.median(),
            sample.least(),
            sample.most(),
            ratio
        );
    }
    for sample in samples {
        println!("    {}: {}", sample.name, sample.command);
    }
}

/// Says how `other / name` compares with what is wanted; the median of the
/// ratios within each round, since the machine drifts between rounds.
fn wanted(samples: &[Sample], name: &str, other: &str, bound: f64, word: &str) {
    let find = |name: &str| samples.iter().find(|sample| sample.name == name);
    if let (Some(one), Some(two)) = (find(name), find(other)) {
        let ratio = two.median_ratio_over(one);
        println!("  {other} / {name}: {ratio:.2} (wanted: {word} {bound})");
    }
}
