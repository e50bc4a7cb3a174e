//! Which checkpoints stay when there are too many (CKP-3).

/// Returns the sequence numbers to drop so that at most `max` stay: the first
/// and the newest are kept, of the others the oldest go first. `max` below 2
/// counts as 2, since both ends always stay.
pub fn prune(sequence: &[u64], max: usize) -> Vec<u64> {
    let mut sorted = sequence.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let surplus = sorted.len().saturating_sub(max.max(2));
    sorted.into_iter().skip(1).take(surplus).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_stay_and_the_oldest_between_go() {
        assert_eq!(prune(&[1, 2, 3, 4, 5], 3), [2, 3]);
        assert_eq!(prune(&[1, 2, 3], 3), [] as [u64; 0]);
        assert_eq!(prune(&[9, 4, 7], 0), [7]);
        assert_eq!(prune(&[], 50), [] as [u64; 0]);
    }
}
