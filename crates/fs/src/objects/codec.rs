//! How the bytes of one packed object are stored. It must never lose a byte:
//! what does not shrink is stored as it is.

use std::borrow::Cow;

/// The bytes as they are.
pub(super) const RAW: u8 = 0;
/// One LZ4 block.
pub(super) const LZ4: u8 = 1;

/// Below this size a saving is not worth the call.
const TINY: usize = 4096;

/// Encodes `bytes`; LZ4 only where it saves more than a tenth.
pub(super) fn encode(bytes: &[u8]) -> (u8, Cow<'_, [u8]>) {
    if bytes.len() < TINY {
        return (RAW, Cow::Borrowed(bytes));
    }
    let packed = lz4_flex::block::compress(bytes);
    if packed.len() < bytes.len() - bytes.len() / 10 {
        (LZ4, Cow::Owned(packed))
    } else {
        (RAW, Cow::Borrowed(bytes))
    }
}

/// Decodes what `encode` made; `None` for anything else.
pub(super) fn decode(codec: u8, stored: Vec<u8>, length: usize) -> Option<Vec<u8>> {
    match codec {
        RAW => (stored.len() == length).then_some(stored),
        LZ4 => lz4_flex::block::decompress(&stored, length)
            .ok()
            .filter(|bytes| bytes.len() == length),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_encoding_comes_back() {
        let noise: Vec<u8> = (0..4096u64)
            .flat_map(|n| sandbar_domain::Hash::of(&n.to_be_bytes()).as_bytes()[..1].to_vec())
            .collect();
        for (bytes, codec) in [
            (vec![], RAW),
            (vec![7; 100], RAW),
            (vec![7; 10_000], LZ4),
            (noise, RAW),
        ] {
            let (got, stored) = encode(&bytes);
            assert_eq!(got, codec);
            assert_eq!(decode(got, stored.into_owned(), bytes.len()), Some(bytes));
        }
        assert_eq!(decode(2, vec![1], 1), None);
        assert_eq!(decode(LZ4, vec![255; 9], 100), None);
        assert_eq!(decode(RAW, vec![1], 2), None);
    }
}
