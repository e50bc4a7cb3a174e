//! Times whole commands, interleaved, with the disk quiet before each.

use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::process::{Outcome, Step};

/// A command that takes part.
struct Entrant {
    name: String,
    before: Option<String>,
    command: String,
    after: String,
}

/// What one entrant took in each round.
pub(super) struct Sample {
    /// Its name.
    pub(super) name: String,
    /// The exact command.
    pub(super) command: String,
    seconds: Vec<f64>,
    peak_kb: u64,
}

impl Sample {
    /// Returns the middle time in seconds.
    pub(super) fn median(&self) -> f64 {
        median(&self.seconds)
    }

    /// Returns the least time in seconds.
    pub(super) fn least(&self) -> f64 {
        self.seconds.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// Returns the greatest time in seconds.
    pub(super) fn most(&self) -> f64 {
        self.seconds.iter().copied().fold(0.0, f64::max)
    }

    /// Returns the most memory that any process of it had resident, in MB.
    pub(super) fn peak_mb(&self) -> f64 {
        self.peak_kb as f64 / 1024.0
    }

    /// Returns the median of own time over the other's, round by round.
    pub(super) fn median_ratio_over(&self, other: &Self) -> f64 {
        let pairs = self.seconds.iter().zip(&other.seconds);
        median(&pairs.map(|(own, other)| own / other).collect::<Vec<_>>())
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
    }
}

/// Commands measured against each other.
pub(super) struct Field {
    place: PathBuf,
    rounds: usize,
    entrants: Vec<Entrant>,
}

impl Field {
    /// Makes an empty field; `place` receives the notes of the clock.
    pub(super) fn new(place: &Path, rounds: usize) -> Self {
        Self {
            place: place.to_owned(),
            rounds,
            entrants: Vec::new(),
        }
    }

    /// Adds a command and what removes its result.
    pub(super) fn add(&mut self, name: &str, command: &str, after: &str) {
        self.entrants.push(Entrant {
            name: name.to_owned(),
            before: None,
            command: command.to_owned(),
            after: after.to_owned(),
        });
    }

    /// As [`Field::add`], with something that comes first and is not timed.
    pub(super) fn add_prepared(&mut self, name: &str, before: &str, command: &str, after: &str) {
        self.add(name, command, after);
        if let Some(last) = self.entrants.last_mut() {
            last.before = Some(before.to_owned());
        }
    }

    /// Runs the rounds, each in another order.
    pub(super) fn run(&self) -> Outcome<Vec<Sample>> {
        let mut samples: Vec<Sample> = self
            .entrants
            .iter()
            .map(|entrant| Sample {
                name: entrant.name.clone(),
                command: entrant.command.clone(),
                seconds: Vec::new(),
                peak_kb: 0,
            })
            .collect();
        for round in 0..self.rounds {
            for place in 0..self.entrants.len() {
                let index = (place + round) % self.entrants.len();
                let entrant = &self.entrants[index];
                if let Some(before) = &entrant.before {
                    shell(before)?;
                }
                shell("sync")?;
                let (seconds, peak_kb) = self.time(&entrant.command)?;
                samples[index].seconds.push(seconds);
                samples[index].peak_kb = samples[index].peak_kb.max(peak_kb);
                shell(&entrant.after)?;
                shell("sync")?;
            }
        }
        Ok(samples)
    }

    fn time(&self, command: &str) -> Outcome<(f64, u64)> {
        let note = self.place.join("peak");
        let step = Step::words("/usr/bin/time --quiet -f %M -o")
            .arg(&note)
            .args(["sh", "-ec", command]);
        let start = Instant::now();
        step.read()?;
        let seconds = start.elapsed().as_secs_f64();
        let peak = Step::words("cat").arg(&note).read()?;
        let peak = peak
            .trim()
            .parse()
            .map_err(|_| format!("time noted {peak:?}"))?;
        Ok((seconds, peak))
    }
}

/// Runs a line of shell that must succeed.
pub(super) fn shell(line: &str) -> Outcome {
    Step::words("sh -ec").arg(line).read().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_ratios() {
        let sample = |seconds: &[f64]| Sample {
            name: String::new(),
            command: String::new(),
            seconds: seconds.to_vec(),
            peak_kb: 2048,
        };
        let (one, two) = (sample(&[1.0, 4.0, 2.0]), sample(&[2.0, 2.0, 8.0]));
        assert_eq!((one.median(), one.least(), one.most()), (2.0, 1.0, 4.0));
        assert_eq!(one.median_ratio_over(&two), 0.5);
        assert_eq!(median(&[1.0, 3.0]), 2.0);
        assert_eq!(one.peak_mb(), 2.0);
    }
}
