//! Random names for temporary files, packs and places.

const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Returns 16 random characters: 80 bits.
pub(crate) fn random() -> String {
    characters::<16>()
}

/// Returns 8 random characters: 40 bits, for short paths.
pub(crate) fn short() -> String {
    characters::<8>()
}

fn characters<const N: usize>() -> String {
    let mut bytes = [0u8; N];
    getrandom::fill(&mut bytes).expect("the kernel gives random bytes once it has booted");
    bytes
        .iter()
        .map(|byte| char::from(ALPHABET[usize::from(byte & 31)]))
        .collect()
}
