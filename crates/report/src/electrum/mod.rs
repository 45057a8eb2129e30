//! The results of `lydian-lab electrum`: the types of the JSON file, and the tables made of them.

pub mod results;
pub mod table;

pub use table::to_markdown;

/// The most transactions of a wallet's script. A script with more is fat, and left out of loads.
pub const WALLET_TRANSACTIONS_MAX: u32 = 999;

/// The queries of Esplora's REST API.
pub const ESPLORA: [&str; 4] = ["esplora-script", "esplora-txs", "esplora-utxo", "esplora-outspends"];

/// The nearest-rank percentile of sorted values: that share of them is at most this value. The median of an even number
/// of values is the midpoint of the two middle ones.
pub fn percentile(sorted: &[f64], per_cent: usize) -> Option<f64> {
    let count = sorted.len();
    if per_cent == 50 && count.is_multiple_of(2) {
        return Some(f64::midpoint(*sorted.get((count / 2).checked_sub(1)?)?, *sorted.get(count / 2)?));
    }
    sorted.get((count * per_cent).div_ceil(100).max(1) - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_by_nearest_rank() {
        let values: Vec<f64> = (1..=200).map(f64::from).collect();
        assert_eq!(percentile(&values, 50), Some(100.5));
        assert_eq!(percentile(&values, 99), Some(198.0));
        assert_eq!(percentile(&values, 100), Some(200.0));
        assert_eq!(percentile(&values[..9], 50), Some(5.0));
        assert_eq!(percentile(&values[..1], 99), Some(1.0));
        assert_eq!((percentile(&[], 50), percentile(&[], 99)), (None, None));
    }
}
