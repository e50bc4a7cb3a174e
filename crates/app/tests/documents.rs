//! The pages that list codes and keys must not fall behind the code.

use sandbar::config::KEYS;
use sandbar::domain::Code;

// conformance: SRF-3 partial: the list of codes, CFG-2 partial: the list of keys
#[test]
fn every_code_and_key_is_documented() {
    let errors = include_str!("../../../docs/errors.md");
    for code in Code::ALL {
        let row = format!("| `{}` | {} |", code.text(), code.exit());
        assert!(errors.contains(&row), "docs/errors.md lacks {row}");
    }
    let rows = errors
        .lines()
        .filter(|line| line.starts_with("| `"))
        .count();
    assert_eq!(rows, Code::ALL.len());
    let keys = include_str!("../../../docs/configuration.md");
    for key in KEYS {
        assert!(
            keys.contains(&format!("| `{}` |", key.name)),
            "{}",
            key.name
        );
    }
}
