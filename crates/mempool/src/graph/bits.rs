//! Sets of positions within a cluster, as the bits of a `u64`.
//!
//! Input: sets of at most 64 positions; output: sets and positions. Every function costs at most one step per member.

/// Returns the positions in `set`, ascending.
pub(super) fn ones(set: u64) -> impl Iterator<Item = usize> {
    let mut rest = set;
    std::iter::from_fn(move || {
        let next = first(rest)?;
        rest &= rest - 1;
        Some(next)
    })
}

/// Returns the lowest position in `set`.
pub(super) fn first(set: u64) -> Option<usize> {
    (set != 0).then(|| set.trailing_zeros() as usize)
}

/// Returns the set of `position` alone. `position` is below 64.
pub(super) fn bit(position: usize) -> u64 {
    1 << position
}

/// Returns the set of the positions below `count`.
pub(super) fn below(count: usize) -> u64 {
    if count >= 64 { u64::MAX } else { bit(count) - 1 }
}

pub(super) fn count(set: u64) -> usize {
    set.count_ones() as usize
}

/// Renumbers `set`, a subset of `kept`, by the rank of each position in `kept`.
pub(super) fn squeeze(set: u64, kept: u64) -> u64 {
    ones(set & kept).fold(0, |squeezed, position| squeezed | bit(count(kept & below(position))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_of_a_set() {
        assert_eq!(ones(0b1010).collect::<Vec<_>>(), [1, 3]);
        assert_eq!(ones(u64::MAX).count(), 64);
        assert_eq!((first(0), first(bit(63))), (None, Some(63)));
        assert_eq!((below(0), below(1), below(64)), (0, 1, u64::MAX));
        assert_eq!(squeeze(0b1_0010, 0b1_0110), 0b101);
        assert_eq!(squeeze(u64::MAX, u64::MAX), u64::MAX);
    }
}
