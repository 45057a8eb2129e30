//! [`MinFee`]: the feerate that a full pool asks for, and how it falls again. Core's `CTxMemPool::GetMinFee`.
//!
//! When the worst chunk is evicted, its feerate and the incremental relay feerate together become the minimum. After
//! the next block it halves every twelve hours: in half that time while less than half of the pool's memory is in use,
//! and in a quarter of it below a quarter. Below half of the incremental relay feerate it becomes zero.
//!
//! Times are in seconds since 1970. Core computes in double precision and writes the result back when it is asked, so
//! the steps depend on when it is asked; here as well. A block sets the time anew without a step: a feerate that is not
//! asked for between two blocks does not fall.

use crate::policy::FeeRate;

/// Core's `ROLLING_FEE_HALFLIFE`, in seconds.
const HALF_LIFE: f64 = 43_200.0;
/// The feerate is computed anew after this many seconds.
const STEP: i64 = 10;

/// The rolling minimum feerate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MinFee {
    /// In satoshi per 1,000 virtual bytes.
    rate: f64,
    updated: i64,
    /// Whether a block came after the last eviction.
    has_block: bool,
}

/// What the decay depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Core's usage of the pool, and its bound.
    pub(crate) usage: u64,
    pub(crate) usage_max: u64,
    pub(crate) incremental: FeeRate,
}

impl MinFee {
    pub(crate) fn new(now: i64) -> MinFee {
        MinFee { rate: 0.0, updated: now, has_block: false }
    }

    /// The feerate at a time: Core's `GetMinFee`.
    pub(crate) fn get(&mut self, now: i64, load: Load) -> FeeRate {
        if !self.has_block || self.rate == 0.0 {
            return rounded(self.rate);
        }
        if now > self.updated.saturating_add(STEP) {
            let half_life = match () {
                () if load.usage < load.usage_max / 4 => HALF_LIFE / 4.0,
                () if load.usage < load.usage_max / 2 => HALF_LIFE / 2.0,
                () => HALF_LIFE,
            };
            #[allow(clippy::cast_precision_loss, reason = "seconds, as in Core")]
            let passed = (now - self.updated) as f64;
            self.rate /= 2.0_f64.powf(passed / half_life);
            self.updated = now;
            #[allow(clippy::cast_precision_loss, reason = "a feerate, as in Core")]
            let incremental = load.incremental.fee_per_kvb() as f64;
            if self.rate < incremental / 2.0 {
                self.rate = 0.0;
                return FeeRate::ZERO;
            }
        }
        rounded(self.rate).max(load.incremental)
    }

    /// A chunk was evicted. `rate` is its feerate with the incremental one. Core's `trackPackageRemoved`.
    pub(crate) fn evicted(&mut self, rate: FeeRate) {
        #[allow(clippy::cast_precision_loss, reason = "a feerate, as in Core")]
        let rate = rate.fee_per_kvb() as f64;
        if rate > self.rate {
            self.rate = rate;
            self.has_block = false;
        }
    }

    /// A block was connected.
    pub(crate) fn block(&mut self, now: i64) {
        self.updated = now;
        self.has_block = true;
    }
}

/// Core's `llround`.
fn rounded(rate: f64) -> FeeRate {
    #[allow(clippy::cast_possible_truncation, reason = "the conversion saturates")]
    FeeRate::per_kvb(rate.round() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOAD: Load = Load { usage: 100, usage_max: 100, incremental: FeeRate::per_kvb(100) };

    /// Core's `MempoolSizeLimitTest` (test/mempool_tests.cpp), its part about time.
    #[test]
    fn it_falls_after_a_block_and_faster_when_there_is_room() {
        let mut fee = MinFee::new(42);
        assert_eq!(fee.get(42, LOAD), FeeRate::ZERO);
        fee.evicted(FeeRate::per_kvb(9_900));
        fee.evicted(FeeRate::per_kvb(5_000));
        assert_eq!(fee.get(1_000_000, LOAD).fee_per_kvb(), 9_900, "no block came");
        fee.block(42);
        let mut now = 42 + 43_200;
        assert_eq!(fee.get(now, LOAD).fee_per_kvb(), 4_950);
        now += 10;
        assert_eq!(fee.get(now, LOAD).fee_per_kvb(), 4_950, "it is not computed in the first ten seconds");
        now += 21_600 - 10;
        assert_eq!(fee.get(now, Load { usage: 49, ..LOAD }).fee_per_kvb(), 2_475);
        now += 10_800;
        assert_eq!(fee.get(now, Load { usage: 24, ..LOAD }).fee_per_kvb(), 1_238);
        now += 4 * 43_200;
        assert_eq!(fee.get(now, LOAD).fee_per_kvb(), 100, "the incremental feerate is the least");
        now += 43_200;
        assert_eq!(fee.get(now, LOAD), FeeRate::ZERO, "below half of it");
        assert_eq!(fee.get(now - 1_000, LOAD), FeeRate::ZERO);
    }
}
