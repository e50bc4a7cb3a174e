//! The project's own commands: `cargo xtask test|tidy|conformance|bench|demo`.
//!
//! Not part of the product, and never linked into it: it may start processes
//! and read the source tree, and must never touch a user's data.

mod bench;
mod conformance;
mod demo;
mod process;
mod test;
mod tidy;
mod tree;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask COMMAND

  test                             everything that must hold: format, layering, lints,
                                   documentation, tests, conformance
  tidy                             layering and house rules only
  conformance [--rules A,B] [--long]
                                   one row a rule of the contract; writes docs/conformance.md
  bench [--runs N] [--tree small|npm] [--place DIR]
                                   beside cp, rsync and git on a fresh file system; needs root
  demo                             a tour on a throw-away repository
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((command, rest)) = arguments.split_first() else {
        eprint!("{HELP}");
        return ExitCode::from(2);
    };
    let result = match command.as_str() {
        "test" => test::run(rest),
        "tidy" => tidy::run(rest),
        "conformance" => conformance::run(rest),
        "bench" => bench::run(rest),
        "demo" => demo::run(rest),
        "help" | "--help" | "-h" => {
            print!("{HELP}");
            Ok(())
        }
        other => {
            eprintln!("xtask: no command called {other}\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("xtask {command}: {why}");
            ExitCode::FAILURE
        }
    }
}
