//! Which crate may depend on which: the table, and the comparison of cargo's
//! own answer with it.

use serde_json::Value;

use super::Finding;

/// What one workspace crate may depend on.
struct Layer {
    name: &'static str,
    /// Crates of this workspace.
    inner: &'static [&'static str],
    /// Crates from outside; `None` where any will do that is not in [`HOMES`].
    outer: Option<&'static [&'static str]>,
}

const fn layer(
    name: &'static str,
    inner: &'static [&'static str],
    outer: Option<&'static [&'static str]>,
) -> Layer {
    Layer { name, inner, outer }
}

const BELOW: &[&str] = &["sandbar-domain", "sandbar-ports"];

/// Arrows: domain ← ports ← { adapters, app }, app → adapters, cli → app.
const LAYERS: &[Layer] = &[
    layer(
        "sandbar-domain",
        &[],
        Some(&["sha2", "similar", "thiserror", "ulid"]),
    ),
    layer(
        "sandbar-ports",
        &["sandbar-domain"],
        Some(&["async-trait", "thiserror", "rustix"]),
    ),
    layer("sandbar-fs", BELOW, None),
    layer("sandbar-git", BELOW, None),
    layer("sandbar-exec", BELOW, None),
    layer("sandbar-store", BELOW, None),
    layer("sandbar-docker", BELOW, None),
    layer("sandbar-lsp", BELOW, None),
    layer("sandbar-sql", BELOW, None),
    layer(
        "sandbar-testkit",
        BELOW,
        Some(&[
            "async-trait",
            "thiserror",
            "tokio",
            "proptest",
            "tempfile",
            "rustix",
        ]),
    ),
    layer(
        "sandbar",
        &[
            "sandbar-domain",
            "sandbar-ports",
            "sandbar-fs",
            "sandbar-git",
            "sandbar-exec",
            "sandbar-store",
            "sandbar-docker",
            "sandbar-lsp",
            "sandbar-sql",
        ],
        Some(&[
            "async-trait",
            "serde",
            "serde_json",
            "thiserror",
            "tokio",
            "toml",
            // Ids, in the composition.
            "getrandom",
            // Patches that git takes: hunks, blob ids, binary deltas.
            "miniz_oxide",
            "sha1",
            "similar",
        ]),
    ),
    layer(
        "sandbar-cli",
        &["sandbar"],
        Some(&[
            "anstream",
            "anstyle",
            "clap",
            "clap_complete",
            "indicatif",
            "serde",
            "serde_json",
            "tokio",
        ]),
    ),
    layer("sandbar-tests", &["sandbar", "sandbar-testkit"], None),
    layer("xtask", &[], Some(&["serde_json"])),
];

/// Crates from outside that live behind one adapter each.
const HOMES: &[(&str, &[&str])] = &[
    ("gix", &["sandbar-git"]),
    ("sea-orm", &["sandbar-store"]),
    ("sqlx", &["sandbar-store", "sandbar-sql"]),
    ("bollard", &["sandbar-docker"]),
    ("tower-lsp", &["sandbar-lsp"]),
    ("lsp-server", &["sandbar-lsp"]),
    (
        "rustix",
        &[
            "sandbar-ports",
            "sandbar-fs",
            "sandbar-git",
            "sandbar-exec",
            "sandbar-testkit",
        ],
    ),
    // Names of errno values that std does not know by kind.
    ("libc", &["sandbar-exec"]),
    ("nix", &[]),
    ("git2", &[]),
];

/// Compares `cargo metadata --no-deps` with the table.
pub(super) fn check(metadata: &Value) -> Vec<Finding> {
    let mut findings = Vec::new();
    let packages = metadata["packages"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        let manifest = package["manifest_path"].as_str().unwrap_or_default();
        let manifest = relative(manifest, metadata["workspace_root"].as_str());
        let Some(layer) = LAYERS.iter().find(|layer| layer.name == name) else {
            let advice = format!("give {name} a row in the table of xtask/src/tidy/layers.rs");
            findings.push(Finding::new(&manifest, 0, "unknown crate", advice));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let on = dependency["name"].as_str().unwrap_or_default();
            // Absent for normal ones, "dev" or "build" otherwise.
            let dev = dependency["kind"].as_str() == Some("dev");
            let optional = dependency["optional"].as_bool() == Some(true);
            if let Some(advice) = judge(layer, on, dev, optional) {
                findings.push(Finding::new(&manifest, 0, "layering", advice));
            }
        }
    }
    findings
}

fn judge(layer: &Layer, on: &str, dev: bool, optional: bool) -> Option<String> {
    let name = layer.name;
    if let Some((_, homes)) = HOMES.iter().find(|(home, _)| *home == on)
        && !homes.contains(&name)
        && !dev
    {
        return Some(format!(
            "{name} must not use {on}: its home is {}; ask for it through a port",
            if homes.is_empty() {
                "nowhere".to_owned()
            } else {
                homes.join(", ")
            }
        ));
    }
    let ours = on == "sandbar" || on.starts_with("sandbar-");
    if dev {
        // Tests may use the testkit and the layers that their crate may use.
        let allowed = !ours || on == "sandbar-testkit" || layer.inner.contains(&on);
        return (!allowed).then(|| {
            format!("the tests of {name} must not use {on}: move the test to sandbar-tests")
        });
    }
    if ours {
        if !layer.inner.contains(&on) {
            return Some(format!("{name} must not depend on {on}: go through a port"));
        }
        let adapter = !matches!(on, "sandbar-domain" | "sandbar-ports");
        if name == "sandbar" && adapter && !optional {
            return Some(format!(
                "{on} must be optional, behind a feature of its own"
            ));
        }
        return None;
    }
    let outer = layer.outer?;
    (!outer.contains(&on)).then(|| {
        format!(
            "{name} must not depend on {on}; if it has to, say why beside the table in \
             xtask/src/tidy/layers.rs"
        )
    })
}

fn relative(path: &str, root: Option<&str>) -> String {
    let root = root.unwrap_or_default();
    path.strip_prefix(root)
        .map_or(path, |rest| rest.trim_start_matches('/'))
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice(name: &str, on: &str, dev: bool, optional: bool) -> Option<String> {
        let layer = LAYERS
            .iter()
            .find(|layer| layer.name == name)
            .expect("known");
        judge(layer, on, dev, optional)
    }

    #[test]
    fn arrows_that_go_the_wrong_way_are_found() {
        for (name, on) in [
            ("sandbar-domain", "tokio"),
            ("sandbar-domain", "sandbar-ports"),
            ("sandbar-ports", "sandbar-fs"),
            ("sandbar-fs", "sandbar-git"),
            ("sandbar-fs", "gix"),
            ("sandbar-git", "sea-orm"),
            ("sandbar-store", "sandbar"),
            ("sandbar-cli", "sandbar-fs"),
            ("sandbar-cli", "sandbar-domain"),
            ("sandbar-cli", "gix"),
            ("sandbar", "gix"),
            ("sandbar", "sandbar-testkit"),
            ("sandbar-fs", "sandbar-testkit"),
        ] {
            assert!(advice(name, on, false, false).is_some(), "{name} -> {on}");
        }
        assert!(advice("sandbar", "sandbar-fs", false, false).is_some());
        assert!(advice("sandbar-fs", "sandbar-store", true, false).is_some());
    }

    #[test]
    fn arrows_that_the_layers_want_pass() {
        assert_eq!(advice("sandbar", "sandbar-fs", false, true), None);
        assert_eq!(advice("sandbar-cli", "sandbar", false, false), None);
        assert_eq!(advice("sandbar-git", "gix", false, false), None);
        assert_eq!(advice("sandbar-fs", "rustix", false, false), None);
        assert_eq!(advice("sandbar-fs", "sandbar-testkit", true, false), None);
        assert_eq!(advice("sandbar-fs", "proptest", true, false), None);
    }

    #[test]
    fn a_crate_without_a_row_is_found() {
        let metadata = serde_json::json!({
            "workspace_root": "/x",
            "packages": [{"name": "sandbar-new", "manifest_path": "/x/crates/new/Cargo.toml",
                          "dependencies": []}],
        });
        let findings = check(&metadata);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].at.0, "crates/new/Cargo.toml");
    }
}
