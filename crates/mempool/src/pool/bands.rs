//! [`Bands`]: how much of the pool pays which feerate.
//!
//! Input: each transaction that comes, goes, or whose chunk changes. Output: for each band of feerates the number of
//! transactions, their virtual bytes and fees. A transaction is counted at the feerate of its chunk, because a miner
//! takes chunks: a parent that its child pays for is in the band of both together.
//!
//! Invariant: the sums are those of the transactions in the tables, so the pool is never walked to make them. Cost: a
//! search in [`BAND_RATES`] for each transaction of a cluster that changes, of which there are at most 64.

use super::tables::Member;
use crate::graph::FeeSize;
use lydian_consensus::limits::WITNESS_SCALE_FACTOR;

/// The least feerate of each band, in satoshi per 1,000 virtual bytes: 0.1 sat/vB is Core's `-minrelaytxfee`, below
/// which only the first band is.
pub const BAND_RATES: [i64; BAND_COUNT] = [
    0, 100, 200, 500, 1_000, 2_000, 3_000, 4_000, 5_000, 6_000, 8_000, 10_000, 12_000, 15_000, 20_000, 25_000, 30_000,
    40_000, 50_000, 60_000, 80_000, 100_000, 120_000, 150_000, 180_000, 200_000, 250_000, 300_000, 400_000, 500_000,
    600_000, 800_000, 1_000_000, 1_500_000, 2_000_000,
];

pub const BAND_COUNT: usize = 35;

/// The transactions whose chunks pay a feerate of a band.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Band {
    pub count: u64,
    /// Virtual bytes that signature operations may have increased: Core's `GetTxSize`.
    pub vsize: u64,
    /// Without any deltas, in satoshi.
    pub fees: i64,
}

/// The sums of all bands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bands {
    bands: [Band; BAND_COUNT],
    /// Transactions that were counted or taken out since the start of the pool.
    moves: u64,
}

/// The band of a feerate in satoshi per weight unit; one below zero, after `prioritisetransaction`, is in the first.
pub fn band_of(feerate: FeeSize) -> usize {
    // The fee for 1,000 virtual bytes, multiplied by the size.
    let fee = i128::from(feerate.fee) * 1_000 * WITNESS_SCALE_FACTOR as i128;
    let is_reached = |rate: &i64| i128::from(*rate) * i128::from(feerate.size) <= fee;
    BAND_RATES.partition_point(is_reached).saturating_sub(1)
}

impl Bands {
    pub(super) fn new() -> Bands {
        Bands { bands: [Band::default(); BAND_COUNT], moves: 0 }
    }

    /// In the order of [`BAND_RATES`].
    pub fn all(&self) -> &[Band; BAND_COUNT] {
        &self.bands
    }

    /// The work since the start of the pool: transactions that were counted or taken out.
    pub fn moves(&self) -> u64 {
        self.moves
    }

    /// Counts a transaction. One whose cluster was not put in order yet has no chunk, and is not counted.
    pub(super) fn count(&mut self, member: &Member) {
        if let Some(band) = self.band(member) {
            let entry = &member.entry;
            band.count += 1;
            band.vsize += u64::from(entry.vsize.unsigned_abs());
            band.fees = band.fees.saturating_add(entry.fee.0);
        }
    }

    /// Takes out a transaction as it was counted.
    pub(super) fn take_out(&mut self, member: &Member) {
        if let Some(band) = self.band(member) {
            let entry = &member.entry;
            band.count -= 1;
            band.vsize -= u64::from(entry.vsize.unsigned_abs());
            band.fees = band.fees.saturating_sub(entry.fee.0);
        }
    }

    fn band(&mut self, member: &Member) -> Option<&mut Band> {
        let chunk = member.cluster.chunk_of(member.position())?;
        self.moves += 1;
        self.bands.get_mut(band_of(chunk.feerate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bounds_of_the_bands_rise() {
        assert!(BAND_RATES.is_sorted_by(|low, high| low < high));
    }

    #[test]
    fn a_feerate_is_in_the_band_whose_bound_it_reaches() {
        // 250 virtual bytes.
        let band = |fee| band_of(FeeSize::new(fee, 1_000));
        assert_eq!([band(0), band(24), band(25), band(249), band(250)], [0, 0, 1, 3, 4]);
        assert_eq!([band(-1), band(i64::MIN), band(i64::MAX)], [0, 0, BAND_COUNT - 1]);
        assert_eq!([band(499_999), band(500_000)], [BAND_COUNT - 2, BAND_COUNT - 1]);
        assert_eq!(band_of(FeeSize::new(1, 3)), band_of(FeeSize::new(1_000, 3_000)), "not rounded");
    }
}
