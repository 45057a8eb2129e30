//! Sizes that fees are paid for: weight adjusted for signature operations, in virtual bytes. Core's
//! `GetSigOpsAdjustedWeight` and `GetVirtualTransactionSize` (policy/policy.cpp).
//!
//! Input: weight, signature operation cost, `-bytespersigop`. Output: weight units or virtual bytes, at most
//! `i32::MAX`, which is the range of Core's entries. Pure.

use lydian_consensus::limits::WITNESS_SCALE_FACTOR;

/// The weight of a transaction, or that of its signature operations if it is more.
pub fn adjusted_weight(weight: usize, sigops_cost: usize, bytes_per_sigop: u32) -> i64 {
    let of_sigops = wide(sigops_cost).saturating_mul(i64::from(bytes_per_sigop));
    wide(weight).max(of_sigops).min(i64::from(i32::MAX))
}

/// The adjusted weight in virtual bytes, rounded up.
pub fn virtual_size(weight: usize, sigops_cost: usize, bytes_per_sigop: u32) -> i64 {
    let scale = wide(WITNESS_SCALE_FACTOR);
    (adjusted_weight(weight, sigops_cost, bytes_per_sigop) + scale - 1) / scale
}

fn wide(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sigops_count_as_bytes_if_they_are_more() {
        assert_eq!(virtual_size(400, 0, 20), 100);
        assert_eq!(virtual_size(401, 20, 20), 101, "rounded up; the operations are worth 400");
        assert_eq!((adjusted_weight(401, 21, 20), virtual_size(401, 21, 20)), (420, 105));
        assert_eq!(virtual_size(401, 1 << 40, 0), 101, "-bytespersigop=0");
        assert_eq!(adjusted_weight(1, usize::MAX, u32::MAX), i64::from(i32::MAX));
    }
}
