//! [`Query::fee_histogram`]: what the mempool pays, as the Electrum protocol and Esplora show it.

use crate::query::Query;

impl Query {
    /// Fee rates in satoshis per virtual byte, strictly falling, each with the virtual bytes that pay at least so much
    /// and less than the one before.
    pub fn fee_histogram(&self) -> Vec<(f64, i64)> {
        bins(&self.pool().chunks())
    }
}

/// The size of the first bin in virtual bytes, and by how much the next one is larger, in percent: those of ElectrumX.
const BIN_SIZE: i64 = 30_000;
const BIN_GROWTH: i64 = 110;

/// Fee rates in satoshis per virtual byte, strictly falling, each with the virtual bytes that pay at least so much and
/// less than the one before.
fn bins(chunks: &[(i64, i64)]) -> Vec<(f64, i64)> {
    let (mut bins, mut sum, mut size) = (Vec::new(), 0, BIN_SIZE);
    let mut last: Option<i64> = None;
    let rate_of = |(fee, vsize): (i64, i64)| fee * 1_000 / vsize.max(1);
    let mut end = |rate: i64, sum: &mut i64| {
        #[allow(clippy::cast_precision_loss, reason = "a fee rate has fewer than 53 bits")]
        bins.push((rate as f64 / 1_000.0, std::mem::take(sum)));
    };
    for chunk in chunks {
        let rate = rate_of(*chunk);
        if let Some(before) = last
            && sum >= size
            && rate < before
        {
            end(before, &mut sum);
            size = size * BIN_GROWTH / 100;
        }
        sum += chunk.1;
        last = Some(last.map_or(rate, |before| before.min(rate)));
    }
    if let Some(last) = last.filter(|_| sum > 0) {
        end(last, &mut sum);
    }
    bins
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fee_rates_of_the_histogram_fall_strictly() {
        assert_eq!(bins(&[]), []);
        assert_eq!(bins(&[(500, 250), (100, 100)]), [(1.0, 350)]);
        let equal = [(40_000, 20_000), (40_000, 20_000), (20_000, 20_000), (10_000, 20_000)];
        assert_eq!(bins(&equal), [(2.0, 40_000), (0.5, 40_000)]);
        let many: Vec<(i64, i64)> = (1..=500).rev().map(|rate| (rate * 1_000, 1_000)).collect();
        let bins = bins(&many);
        assert!(bins.windows(2).all(|pair| pair[0].0 > pair[1].0), "{bins:?}");
        assert_eq!(bins.iter().map(|bin| bin.1).sum::<i64>(), 500_000);
    }
}
