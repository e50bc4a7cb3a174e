//! Resources of the graph.

use std::collections::BTreeMap;

use sandbar_domain::graph::{Canonical, CapabilityChanges, FileId, Policy, Resource};
use sea_orm::entity::prelude::*;

use crate::convert::{self, BadRow};

const TABLE: &str = "graph_resources";

/// One resource. Texts that few resources have are null in the others.
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "graph_resources")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub generation: i64,
    pub type_name: String,
    pub name: String,
    pub location: Option<String>,
    pub capabilities: Option<String>,
    pub policy: Option<String>,
    pub content: Option<String>,
    pub device: Option<i64>,
    pub inode: Option<i64>,
    pub canonical: Option<String>,
    pub canonical_auto: Option<bool>,
    pub properties: Option<String>,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// Makes the row of a resource.
pub(crate) fn to_row(resource: &Resource, generation: i64) -> Model {
    let Resource {
        id,
        type_name,
        name,
        location,
        capabilities,
        policy,
        content,
        file,
        canonical,
        properties,
    } = resource;
    Model {
        id: id.to_string(),
        generation,
        type_name: type_name.clone(),
        name: name.clone(),
        location: location.clone(),
        capabilities: capabilities_to_text(*capabilities),
        policy: policy.map(|policy| policy.to_string()),
        content: content.clone(),
        device: file.map(|file| file.device.cast_signed()),
        inode: file.map(|file| file.inode.cast_signed()),
        canonical: canonical.map(|canonical| canonical.resource.to_string()),
        canonical_auto: canonical.map(|canonical| canonical.auto),
        properties: (!properties.is_empty()).then(|| properties_to_text(properties)),
    }
}

/// Reads the row of a resource.
pub(crate) fn from_row(row: Model) -> Result<Resource, BadRow> {
    let Model {
        id,
        generation: _,
        type_name,
        name,
        location,
        capabilities,
        policy,
        content,
        device,
        inode,
        canonical,
        canonical_auto,
        properties,
    } = row;
    let file = match (device, inode) {
        (None, None) => None,
        (Some(device), Some(inode)) => Some(FileId {
            device: device.cast_unsigned(),
            inode: inode.cast_unsigned(),
        }),
        _ => return Err(BadRow::new(TABLE, "device", "half a file id")),
    };
    let canonical = match (canonical, canonical_auto) {
        (None, None) => None,
        (Some(resource), Some(auto)) => Some(Canonical {
            resource: convert::parse(TABLE, "canonical", &resource)?,
            auto,
        }),
        _ => return Err(BadRow::new(TABLE, "canonical", "half a target")),
    };
    Ok(Resource {
        id: convert::parse(TABLE, "id", &id)?,
        type_name,
        name,
        location,
        capabilities: match capabilities {
            None => CapabilityChanges::default(),
            Some(text) => convert::word(TABLE, "capabilities", &text, capabilities_from_text)?,
        },
        policy: policy
            .map(|text| convert::word(TABLE, "policy", &text, Policy::from_word))
            .transpose()?,
        content,
        file,
        canonical,
        properties: match properties {
            None => BTreeMap::new(),
            Some(text) => convert::word(TABLE, "properties", &text, properties_from_text)?,
        },
    })
}

/// One character a capability: `+`, `-`, or `.` for what the type says.
fn capabilities_to_text(changes: CapabilityChanges) -> Option<String> {
    let CapabilityChanges {
        readable,
        writable,
        sandboxable,
        checkpointable,
    } = changes;
    let character = |change: Option<bool>| match change {
        None => '.',
        Some(true) => '+',
        Some(false) => '-',
    };
    let all = [readable, writable, sandboxable, checkpointable];
    (changes != CapabilityChanges::default()).then(|| all.map(character).iter().collect())
}

fn capabilities_from_text(text: &str) -> Option<CapabilityChanges> {
    let change = |byte: &u8| match byte {
        b'.' => Some(None),
        b'+' => Some(Some(true)),
        b'-' => Some(Some(false)),
        _ => None,
    };
    let [readable, writable, sandboxable, checkpointable] = text.as_bytes() else {
        return None;
    };
    Some(CapabilityChanges {
        readable: change(readable)?,
        writable: change(writable)?,
        sandboxable: change(sandboxable)?,
        checkpointable: change(checkpointable)?,
    })
}

/// Each key and value as its length in bytes, a colon and itself.
fn properties_to_text(properties: &BTreeMap<String, String>) -> String {
    let texts = properties.iter().flat_map(|(key, value)| [key, value]);
    texts.map(|text| format!("{}:{text}", text.len())).collect()
}

fn properties_from_text(mut text: &str) -> Option<BTreeMap<String, String>> {
    let mut next = || -> Option<String> {
        let (length, rest) = text.split_once(':')?;
        let length: usize = length.parse().ok()?;
        let (taken, rest) = rest.split_at_checked(length)?;
        text = rest;
        Some(taken.to_owned())
    };
    let mut properties = BTreeMap::new();
    while let Some(key) = next() {
        properties.insert(key, next()?);
    }
    text.is_empty().then_some(properties)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_come_back_and_every_cut_is_refused() {
        let pairs = [("", ""), ("a:1", "3:é"), ("k", "12")];
        let pairs = pairs.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let properties = BTreeMap::from(pairs);
        let text = properties_to_text(&properties);
        assert_eq!(properties_from_text(&text), Some(properties));
        assert_eq!(properties_from_text("1:a1:"), None);
        assert_eq!(properties_from_text("1:a"), None);
        assert_eq!(properties_from_text("x:a1:b"), None);
        assert_eq!(properties_from_text("1:a1:b!"), None);
    }
}
