//! `cargo xtask test`: everything that must hold before a change lands, in
//! stages that stop at the first failure and say what took how long.

mod ground;
mod postgres;
mod setup;
mod stages;

pub(crate) use ground::Ground;
pub(crate) use setup::{install_packages, is_present};

use std::time::{Duration, Instant};

use crate::process::Outcome;

/// The stages so far, and what they cost.
struct Record {
    rows: Vec<(&'static str, Duration, &'static str)>,
}

impl Record {
    fn stage<T>(&mut self, name: &'static str, work: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
        eprintln!("\n== {name}");
        let start = Instant::now();
        let result = work();
        let word = if result.is_ok() { "ok" } else { "FAILED" };
        self.rows.push((name, start.elapsed(), word));
        result.map_err(|why| format!("stage {name}: {why}"))
    }

    fn print(&self) {
        println!("\nstage                     seconds");
        for (name, time, word) in &self.rows {
            println!("{name:<24} {:>8.1}  {word}", time.as_secs_f64());
        }
        let total: Duration = self.rows.iter().map(|(_, time, _)| *time).sum();
        println!("{:<24} {:>8.1}", "all", total.as_secs_f64());
    }
}

/// Runs `cargo xtask test`.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    if let Some(argument) = arguments.first() {
        return Err(format!("test takes no argument, not {argument}"));
    }
    let mut record = Record { rows: Vec::new() };
    let result = stages::all(&mut record);
    record.print();
    // The closing lines are what a build server reads.
    let summary = result?;
    println!("{}", summary.line);
    println!("{} passed, 0 failed", summary.passed);
    Ok(())
}
