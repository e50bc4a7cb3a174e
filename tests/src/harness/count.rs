//! Counts of a harness: points that were tried, violations that were found.
//! A pass is no violation; nothing is ever tried again.

use std::io::Write as _;

use super::is_long;

/// The directory below cargo's own that takes one file a harness and part.
pub const DIRECTORY: &str = "harnesses";

/// The counts of one part of a harness.
#[derive(Debug)]
pub struct Count {
    harness: &'static str,
    part: String,
    points: u64,
    notes: Vec<String>,
    violations: Vec<String>,
}

impl Count {
    /// Begins to count. Parts of one harness run as tests of their own.
    pub fn new(harness: &'static str, part: impl Into<String>) -> Self {
        Self {
            harness,
            part: part.into(),
            points: 0,
            notes: Vec::new(),
            violations: Vec::new(),
        }
    }

    /// Counts one point.
    pub fn point(&mut self) {
        self.points += 1;
    }

    /// Counts many points at once.
    pub fn points(&mut self, points: u64) {
        self.points += points;
    }

    /// Returns the points so far.
    pub fn tried(&self) -> u64 {
        self.points
    }

    /// Says what was found so far.
    pub fn violations(&self) -> &[String] {
        &self.violations
    }

    /// Adds something that the line is to say.
    pub fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Adds what was found at a point.
    pub fn found(&mut self, at: &str, violations: impl IntoIterator<Item = String>) {
        for violation in violations {
            let line = format!("{at}: {violation}");
            eprintln!("VIOLATION {line}");
            self.violations.push(line);
        }
    }

    /// Prints the counts, keeps them, and ends the test if anything was found,
    /// or if fewer than `least` points were tried.
    pub fn finish(self, least: u64) {
        let size = if is_long() { "long" } else { "short" };
        let mut line = format!(
            "harness {}: {} points, {} violations",
            self.harness,
            self.points,
            self.violations.len()
        );
        if !self.notes.is_empty() {
            line += &format!(" ({})", self.notes.join(", "));
        }
        println!("{line}");
        let record = serde_json::json!({
            "harness": self.harness,
            "part": self.part,
            "size": size,
            "points": self.points,
            "violations": self.violations.len(),
            "notes": self.notes,
        });
        self.keep(&record.to_string());
        assert!(
            self.violations.is_empty(),
            "{line}\n{}",
            self.violations.join("\n")
        );
        assert!(self.points >= least, "{line}, fewer than {least}");
    }

    fn keep(&self, record: &str) {
        let test = std::env::current_exe().expect("a test knows its own path");
        let target = test.ancestors().nth(3).expect("target/<profile>/deps");
        let dir = target.join(DIRECTORY);
        std::fs::create_dir_all(&dir).expect("a place for counts");
        let path = dir.join(format!("{}-{}.json", self.harness, self.part));
        let mut file = std::fs::File::create(path).expect("the file of the counts");
        writeln!(file, "{record}").expect("the counts are kept");
    }
}
