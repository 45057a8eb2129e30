//! A fee rate with Core's rounding: `CFeeRate` (policy/feerate.h) on top of `FeeFrac` (util/feefrac.h).
//!
//! Input: fees in satoshi, virtual sizes in bytes. Output: fees, comparisons, text. Invariants: a rate is a fraction
//! and is never rounded before it is used; equal rates of different sizes are equal. Nothing overflows: products have
//! 128 bits, and a result beyond 64 bits is the nearest that fits.

use std::cmp::Ordering;
use std::fmt;

/// Virtual bytes per unit of the rates that options, RPC and logs show.
const KVB: i32 = 1000;

/// A fee per virtual size.
#[derive(Clone, Copy, Debug)]
pub struct FeeRate {
    /// In satoshi.
    fee: i64,
    /// In virtual bytes; positive. Core's rate without a size is the rate of no fee here, so that all rates have an
    /// order.
    vsize: i32,
}

impl FeeRate {
    /// The rate of no fee.
    pub const ZERO: FeeRate = FeeRate { fee: 0, vsize: KVB };

    /// A rate in satoshi per 1,000 virtual bytes.
    pub const fn per_kvb(fee: i64) -> FeeRate {
        FeeRate { fee, vsize: KVB }
    }

    /// The rate of a fee in satoshi that is paid for `vsize` virtual bytes. A size of zero or less gives
    /// [`FeeRate::ZERO`]; one above `i32::MAX` counts as that.
    pub fn new(fee: i64, vsize: i64) -> FeeRate {
        match i32::try_from(vsize) {
            Ok(..=0) => FeeRate::ZERO,
            Ok(vsize) => FeeRate { fee, vsize },
            Err(_) if vsize < 0 => FeeRate::ZERO,
            Err(_) => FeeRate { fee, vsize: i32::MAX },
        }
    }

    /// The fee in satoshi for a virtual size, rounded up: Core's `GetFee`. If the rate is negative, the fee is at most
    /// -1 unless the size is zero.
    pub fn fee(self, vsize: i64) -> i64 {
        let product = i128::from(self.fee) * i128::from(vsize);
        let size = i128::from(self.vsize);
        let fee = saturate(product.div_euclid(size) + i128::from(product.rem_euclid(size) != 0));
        if fee == 0 && vsize != 0 && self.fee < 0 { -1 } else { fee }
    }

    /// Satoshi per 1,000 virtual bytes, rounded down: Core's `GetFeePerK`.
    pub fn fee_per_kvb(self) -> i64 {
        saturate((i128::from(self.fee) * i128::from(KVB)).div_euclid(i128::from(self.vsize)))
    }

    /// The text in bitcoin per 1,000 virtual bytes, such as `0.00000100 BTC/kvB`: Core's `FeeRateFormat::BTC_KVB`.
    pub fn to_btc_per_kvb(self) -> String {
        let fee = self.fee_per_kvb();
        format!("{}.{:08} BTC/kvB", fee / 100_000_000, fee % 100_000_000)
    }

    /// The text in satoshi per virtual byte, such as `0.100 sat/vB`: Core's `FeeRateFormat::SAT_VB`.
    pub fn to_sat_per_vb(self) -> String {
        let fee = self.fee_per_kvb();
        format!("{}.{:03} sat/vB", fee / 1000, fee % 1000)
    }
}

fn saturate(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
}

impl Default for FeeRate {
    fn default() -> FeeRate {
        FeeRate::ZERO
    }
}

/// Compares the rates themselves: Core's `ByRatio`.
impl Ord for FeeRate {
    fn cmp(&self, other: &FeeRate) -> Ordering {
        (i128::from(self.fee) * i128::from(other.vsize)).cmp(&(i128::from(other.fee) * i128::from(self.vsize)))
    }
}

impl PartialOrd for FeeRate {
    fn partial_cmp(&self, other: &FeeRate) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for FeeRate {
    fn eq(&self, other: &FeeRate) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for FeeRate {}

/// The text in bitcoin per 1,000 virtual bytes, such as `0.00001000 BTC/kvB`: Core's `ToString`.
impl fmt::Display for FeeRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const COIN: i64 = 100_000_000;
        let fee = self.fee_per_kvb();
        write!(f, "{}.{:08} BTC/kvB", fee / COIN, fee % COIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Core's `GetFeeTest` (test/amount_tests.cpp).
    #[test]
    fn fees_are_rounded_up_away_from_nothing() {
        let fees = |rate: FeeRate, sizes: &[i64]| sizes.iter().map(|size| rate.fee(*size)).collect::<Vec<_>>();
        assert_eq!(fees(FeeRate::per_kvb(0), &[0, 100_000]), [0, 0]);
        assert_eq!(fees(FeeRate::per_kvb(1000), &[0, 1, 121, 999, 1000, 9000]), [0, 1, 121, 999, 1000, 9000]);
        assert_eq!(fees(FeeRate::per_kvb(-1000), &[0, 1, 121, 999, 1000, 9000]), [0, -1, -121, -999, -1000, -9000]);
        assert_eq!(
            fees(FeeRate::per_kvb(123), &[0, 8, 9, 121, 122, 999, 1000, 9000]),
            [0, 1, 2, 15, 16, 123, 123, 1107]
        );
        assert_eq!(
            fees(FeeRate::per_kvb(-123), &[0, 8, 9, 121, 122, 999, 1000, 9000]),
            [0, -1, -1, -14, -15, -122, -123, -1107]
        );
        assert_eq!(FeeRate::new(27, 789).fee(789), 27, "no rounding before use");
    }

    #[test]
    fn rates_per_thousand_are_rounded_down() {
        let per_kvb = |fee, vsize| FeeRate::new(fee, vsize).fee_per_kvb();
        assert_eq!([per_kvb(-1, 0), per_kvb(0, 0), per_kvb(1, 0), per_kvb(5, -1)], [0; 4]);
        assert_eq!([per_kvb(-1, 1000), per_kvb(1, 1000), per_kvb(2, 1001), per_kvb(-1, 1001)], [-1, 1, 1, -1]);
        assert_eq!([per_kvb(26, 789), per_kvb(27, 789)], [32, 34]);
        assert_eq!(per_kvb(i64::MAX, 1), i64::MAX, "does not overflow");
        assert_eq!(FeeRate::new(7, i64::MAX).fee(1), 1);
        assert_eq!(FeeRate::new(7, i64::MIN).fee(1), 0);
        assert_eq!(FeeRate::per_kvb(i64::MAX).fee(i64::MAX), i64::MAX);
    }

    #[test]
    fn rates_are_compared_without_rounding() {
        assert!(FeeRate::new(1, 3) > FeeRate::new(333, 1000) && FeeRate::new(1, 3) < FeeRate::new(334, 1000));
        assert_eq!(FeeRate::new(1, 2), FeeRate::new(500, 1000));
        assert!(FeeRate::new(-1, 2) < FeeRate::per_kvb(0));
    }

    /// Core's `ToStringTest` (test/amount_tests.cpp), and a negative rate as its format shows it.
    #[test]
    fn the_text_is_cores() {
        assert_eq!(FeeRate::per_kvb(1).to_string(), "0.00000001 BTC/kvB");
        assert_eq!(FeeRate::per_kvb(1).to_sat_per_vb(), "0.001 sat/vB");
        assert_eq!(FeeRate::per_kvb(123_456_789).to_string(), "1.23456789 BTC/kvB");
        assert_eq!(FeeRate::per_kvb(12_345).to_sat_per_vb(), "12.345 sat/vB");
        assert_eq!(FeeRate::ZERO.to_string(), "0.00000000 BTC/kvB");
        assert_eq!(FeeRate::per_kvb(-1).to_string(), "0.-0000001 BTC/kvB");
    }
}
