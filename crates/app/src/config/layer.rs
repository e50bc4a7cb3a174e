//! One source of configuration, flattened to dotted keys and texts.

use sandbar_domain::Code;
use sandbar_ports::{PortError, PortResult};
use toml::Value as Toml;

use super::Origin;
use super::keys::KEYS;

/// Values of one source.
#[derive(Debug, Clone)]
pub struct Layer {
    pub(super) origin: Origin,
    pub(super) values: Vec<(String, String)>,
}

impl Layer {
    /// Reads a TOML text. Errors: `bad_config` with line and reason.
    pub fn parse(text: &str, origin: Origin) -> PortResult<Self> {
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            let message = format!("read {}: {}", origin.describe(), error.message());
            PortError::new(Code::BadConfig, message).with_source(error)
        })?;
        let mut values = Vec::new();
        flatten("", table, &mut values);
        Ok(Self { origin, values })
    }

    /// Makes a layer of one flag.
    pub fn flag(name: &str, key: &str, value: String) -> Self {
        Self {
            origin: Origin::Flag(name.into()),
            values: vec![(key.into(), value)],
        }
    }

    /// Makes a layer of each variable that names a key: `SANDBAR_` and the key
    /// in capitals with `_` for `.` and `-`. Other variables are left alone.
    pub fn from_environment(vars: impl IntoIterator<Item = (String, String)>) -> Vec<Self> {
        vars.into_iter()
            .filter_map(|(name, value)| {
                let key = KEYS.iter().find(|key| variable(key.name) == name)?;
                let origin = Origin::Environment(name);
                Some(Self {
                    origin,
                    values: vec![(key.name.to_owned(), value)],
                })
            })
            .collect()
    }
}

/// Returns the environment variable of a key.
fn variable(key: &str) -> String {
    format!("SANDBAR_{}", key.to_uppercase().replace(['.', '-'], "_"))
}

fn flatten(prefix: &str, table: toml::Table, out: &mut Vec<(String, String)>) {
    for (name, value) in table {
        let key = if prefix.is_empty() {
            name
        } else {
            format!("{prefix}.{name}")
        };
        match value {
            Toml::Table(inner) => flatten(&key, inner, out),
            Toml::String(text) => out.push((key, text)),
            Toml::Integer(number) => out.push((key, number.to_string())),
            Toml::Boolean(value) => out.push((key, value.to_string())),
            Toml::Float(_) | Toml::Datetime(_) | Toml::Array(_) => {
                out.push((key, format!("a {}", value.type_str())));
            }
        }
    }
}
