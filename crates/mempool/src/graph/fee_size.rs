//! A fee with a size, and how two of them compare as feerates.
//!
//! Input and output: plain numbers; the graph gives them no unit (the mempool uses satoshis and weight units, Core's
//! `FeePerWeight`). Comparison multiplies crosswise in 128 bits, so it is exact and cannot overflow. Sums saturate:
//! fees reach 2^63 only through `prioritisetransaction`, and must not stop the node even then.

use std::cmp::Ordering;
use std::ops::{Add, AddAssign};

/// A fee and a size. Their ratio is a feerate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FeeSize {
    pub fee: i64,
    /// Positive, except in the empty sum.
    pub size: i32,
}

impl FeeSize {
    #[must_use]
    pub const fn new(fee: i64, size: i32) -> FeeSize {
        FeeSize { fee, size }
    }

    /// Compares the two feerates; a higher feerate is `Greater`. Core's `ByRatio`.
    #[must_use]
    pub fn compare_feerate(&self, other: &FeeSize) -> Ordering {
        let own = i128::from(self.fee) * i128::from(other.size);
        own.cmp(&(i128::from(other.fee) * i128::from(self.size)))
    }

    /// Compares in mining order: `Less` goes first, which is the higher feerate, then the smaller size. Core's
    /// `ByRatioNegSize`, reversed.
    #[must_use]
    pub fn compare_mining(&self, other: &FeeSize) -> Ordering {
        other.compare_feerate(self).then(self.size.cmp(&other.size))
    }
}

impl Add for FeeSize {
    type Output = FeeSize;

    fn add(self, other: FeeSize) -> FeeSize {
        FeeSize { fee: self.fee.saturating_add(other.fee), size: self.size.saturating_add(other.size) }
    }
}

impl AddAssign for FeeSize {
    fn add_assign(&mut self, other: FeeSize) {
        *self = *self + other;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feerates_compare_exactly() {
        let high = FeeSize::new(i64::MAX, 3);
        assert_eq!(high.compare_feerate(&FeeSize::new(i64::MAX - 1, 3)), Ordering::Greater);
        assert_eq!(FeeSize::new(i64::MIN, i32::MAX).compare_feerate(&FeeSize::new(-1, 1)), Ordering::Less);
        assert_eq!(FeeSize::new(1, 2).compare_feerate(&FeeSize::new(2, 4)), Ordering::Equal);
    }

    #[test]
    fn at_one_feerate_the_smaller_is_mined_first() {
        assert_eq!(FeeSize::new(1, 2).compare_mining(&FeeSize::new(2, 4)), Ordering::Less);
        assert_eq!(FeeSize::new(3, 2).compare_mining(&FeeSize::new(1, 1)), Ordering::Less);
    }

    #[test]
    fn sums_saturate() {
        let sum = FeeSize::new(i64::MAX, i32::MAX) + FeeSize::new(1, 1);
        assert_eq!(sum, FeeSize::new(i64::MAX, i32::MAX));
    }
}
