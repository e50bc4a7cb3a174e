//! The table of configuration keys. A key that has no effect is not in it.

/// One configuration key.
#[derive(Debug)]
pub struct Key {
    /// Dotted name.
    pub name: &'static str,
    /// What its values look like.
    pub kind: Kind,
    /// The value when nobody sets one.
    pub default: fn() -> Value,
    /// Reads a value.
    pub parse: fn(&str) -> Option<Value>,
    /// Whether a project file may set it (it cannot loosen safety).
    pub project: bool,
    /// What it is for.
    pub about: &'static str,
}

/// The form of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `true` or `false`.
    Bool,
    /// A whole number from 2.
    Count,
    /// Days, such as `30d`.
    Days,
    /// One of some words.
    Words(&'static [&'static str]),
    /// Any text.
    Text,
}

impl Kind {
    /// Describes the form for a message.
    pub fn describe(self) -> String {
        match self {
            Self::Bool => "true or false".into(),
            Self::Count => "a whole number from 2".into(),
            Self::Days => "a number of days such as \"30d\"".into(),
            Self::Words(words) => format!("one of {}", words.join(", ")),
            Self::Text => "a text".into(),
        }
    }
}

/// A value that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A switch.
    Bool(bool),
    /// A number.
    Number(u64),
    /// A number of days.
    Days(u32),
    /// When to clean up.
    Cleanup(Cleanup),
    /// Which view.
    View(ViewChoice),
    /// A text.
    Text(String),
}

impl Value {
    /// Writes the value as it would be written in a file, without quotes.
    pub fn display(&self) -> String {
        match self {
            Self::Bool(value) => value.to_string(),
            Self::Number(value) => value.to_string(),
            Self::Days(value) => format!("{value}d"),
            Self::Cleanup(value) => value.word().into(),
            Self::View(value) => value.word().into(),
            Self::Text(value) => value.clone(),
        }
    }
}

/// When a sandbox root is removed (STR-9).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cleanup {
    /// After a complete apply.
    OnApply,
    /// After a complete apply or a discard.
    OnTerminal,
    /// Only by `gc`.
    Manual,
}

impl Cleanup {
    const ALL: [Self; 3] = [Self::OnApply, Self::OnTerminal, Self::Manual];

    /// Returns the word of the configuration.
    pub fn word(self) -> &'static str {
        match self {
            Self::OnApply => "on_apply",
            Self::OnTerminal => "on_terminal",
            Self::Manual => "manual",
        }
    }
}

/// Which view commands get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ViewChoice {
    /// In place where that works, else plain.
    Auto,
    /// In place, or fail.
    InPlace,
    /// Plain.
    Plain,
}

impl ViewChoice {
    const ALL: [Self; 3] = [Self::Auto, Self::InPlace, Self::Plain];

    /// Returns the word of the configuration.
    pub fn word(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::InPlace => "in-place",
            Self::Plain => "plain",
        }
    }

    /// Reads the word back.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|view| view.word() == word)
    }
}

fn bool(text: &str) -> Option<Value> {
    text.parse().ok().map(Value::Bool)
}

fn count(text: &str) -> Option<Value> {
    text.parse()
        .ok()
        .filter(|number| *number >= 2)
        .map(Value::Number)
}

fn days(text: &str) -> Option<Value> {
    text.strip_suffix('d')?.parse().ok().map(Value::Days)
}

fn cleanup(text: &str) -> Option<Value> {
    Cleanup::ALL
        .into_iter()
        .find(|value| value.word() == text)
        .map(Value::Cleanup)
}

fn view(text: &str) -> Option<Value> {
    ViewChoice::from_word(text).map(Value::View)
}

fn text(text: &str) -> Option<Value> {
    Some(Value::Text(text.to_owned()))
}

/// Every key, sorted by name.
pub const KEYS: &[Key] = &[
    Key {
        name: "plan.require_checkpoints",
        kind: Kind::Bool,
        default: || Value::Bool(false),
        parse: bool,
        project: false,
        about: "refuse to work where no checkpoint can be taken",
    },
    Key {
        name: "sandbox.checkpoint.enabled",
        kind: Kind::Bool,
        default: || Value::Bool(true),
        parse: bool,
        project: false,
        about: "take checkpoints before and after each command",
    },
    Key {
        name: "sandbox.checkpoint.max-per-plan",
        kind: Kind::Count,
        default: || Value::Number(50),
        parse: count,
        project: true,
        about: "how many checkpoints a plan keeps",
    },
    Key {
        name: "sandbox.cleanup",
        kind: Kind::Words(&["on_apply", "on_terminal", "manual"]),
        default: || Value::Cleanup(Cleanup::OnTerminal),
        parse: cleanup,
        project: true,
        about: "when a sandbox root is removed",
    },
    Key {
        name: "sandbox.retention",
        kind: Kind::Days,
        default: || Value::Days(30),
        parse: days,
        project: false,
        about: "how long checkpoints of ended plans and kept bytes stay",
    },
    Key {
        name: "sandbox.view",
        kind: Kind::Words(&["auto", "in-place", "plain"]),
        default: || Value::View(ViewChoice::Auto),
        parse: view,
        project: false,
        about: "how a command sees its sandbox",
    },
    Key {
        name: "store.url",
        kind: Kind::Text,
        default: || Value::Text(String::new()),
        parse: text,
        project: false,
        about: "the database; empty is the one in the data directory",
    },
];

/// Finds a key by name.
pub(super) fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

/// Returns the key that is most like `name`, if one is like it at all.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    KEYS.iter()
        .map(|key| (distance(name, key.name), key.name))
        .filter(|(distance, key)| *distance <= key.len() / 2)
        .min()
        .map(|(_, key)| key)
}

/// Levenshtein distance over characters.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let next = (corner + usize::from(x != *y))
                .min(row[j] + 1)
                .min(row[j + 1] + 1);
            corner = row[j + 1];
            row[j + 1] = next;
        }
    }
    row[b.len()]
}
