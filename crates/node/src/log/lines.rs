//! Lines that other programs parse, exactly in Bitcoin Core's form. Input: numbers. Output: text.

use lydian_consensus::{Chain, U256};
use lydian_engine::TipUpdate;
use lydian_primitives::{BlockHash, Height};

/// The values of an `UpdateTip` line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TipLine {
    pub(crate) hash: BlockHash,
    pub(crate) height: Height,
    pub(crate) version: i32,
    pub(crate) chain_work: U256,
    /// Transactions in the chain up to this block.
    pub(crate) chain_tx_count: u64,
    /// Of the header, in seconds since 1970.
    pub(crate) time: u32,
    /// Of the best header.
    pub(crate) headers_height: Height,
    pub(crate) cache_bytes: u64,
    pub(crate) cache_coins: u64,
}

impl TipLine {
    pub(crate) fn of(tip: &TipUpdate, headers_height: Height) -> TipLine {
        TipLine {
            hash: tip.hash,
            height: tip.height,
            version: tip.header.version,
            chain_work: tip.chain_work,
            chain_tx_count: tip.transactions,
            time: tip.header.time,
            headers_height,
            cache_bytes: tip.cache_bytes,
            cache_coins: tip.coins,
        }
    }
}

/// `UpdateTip: new best=...`: Core's `UpdateTipLog`.
pub(crate) fn update_tip(tip: &TipLine, chain: Chain, now: i64) -> String {
    let work = log2(tip.chain_work);
    #[allow(clippy::cast_precision_loss, reason = "shown with one digit")]
    let cache_mib = tip.cache_bytes as f64 / f64::from(1 << 20);
    format!(
        "UpdateTip: new best={} height={} version=0x{:08x} log2_work={work:.6} tx={} date='{}' progress={:.6} cache={cache_mib:.1}MiB({}txo)",
        tip.hash,
        tip.height.0,
        tip.version,
        tip.chain_tx_count,
        iso8601(i64::from(tip.time)),
        progress(tip, chain, now),
        tip.cache_coins,
    )
}

/// Transactions of a chain at a given time, and how many are added each second: Core's `ChainTxData`
/// (kernel/chainparams.cpp of 31.99).
struct ChainTxData {
    time: i64,
    tx_count: f64,
    tx_rate: f64,
}

fn chain_tx_data(chain: Chain) -> ChainTxData {
    let (time, tx_count, tx_rate) = match chain {
        Chain::Main => (1_772_055_173, 1_315_805_869.0, 5.401_110_064_961_22),
        Chain::Test => (1_772_051_651, 536_108_416.0, 0.026_914_790_162_571_17),
        Chain::Testnet4 => (1_772_013_387, 14_191_421.0, 0.018_485_795_795_284_12),
        Chain::Signet => (1_772_055_248, 28_676_833.0, 0.067_366_234_363_389_29),
        Chain::Regtest => (0, 0.0, 0.001),
    };
    ChainTxData { time, tx_count, tx_rate }
}

/// Transactions that a public chain has at a time, by Core's `ChainTxData`.
pub(crate) fn expected_transactions(chain: Chain, now: i64) -> u64 {
    let data = chain_tx_data(chain);
    #[allow(clippy::cast_precision_loss, reason = "seconds are far below 2^53")]
    let seconds = now.saturating_sub(data.time).max(0) as f64;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an estimate, not negative")]
    let count = (data.tx_count + seconds * data.tx_rate) as u64;
    count
}

/// Seconds between blocks, the same on every chain.
const POW_TARGET_SPACING: i64 = 10 * 60;

/// Estimated share of the chain's transactions that is validated: Core's `GuessVerificationProgress`.
pub(crate) fn progress(tip: &TipLine, chain: Chain, now: i64) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "a share; transactions are far below 2^53")]
    let tx_count = tip.chain_tx_count as f64;
    if tx_count == 0.0 {
        return 0.0;
    }
    let data = chain_tx_data(chain);
    #[allow(clippy::cast_precision_loss, reason = "seconds are far below 2^53")]
    let since = |time: i64| (now - time) as f64;
    let total = if tx_count <= data.tx_count {
        data.tx_count + since(data.time) * data.tx_rate
    } else {
        // As in Core, within the last two hours the number of blocks counts, not the miners' timestamps.
        let blocks = i64::from(tip.headers_height.0.saturating_sub(tip.height.0));
        let is_recent = (now - i64::from(tip.time)).abs() <= 2 * 60 * 60;
        let time = if is_recent { now - blocks * POW_TARGET_SPACING } else { i64::from(tip.time) };
        tx_count + since(time) * data.tx_rate
    };
    (tx_count / total).min(1.0)
}

/// The base-2 logarithm of an amount of work.
pub(crate) fn log2(work: U256) -> f64 {
    let bits = work.bit_count();
    if bits == 0 {
        return f64::NEG_INFINITY;
    }
    // The upper 64 bits hold more digits than are shown.
    let shift = bits.saturating_sub(64);
    #[allow(clippy::cast_precision_loss, reason = "more digits than are shown")]
    let top = work.shifted_right(shift).low_u64() as f64;
    top.log2() + f64::from(shift)
}

/// `2009-01-03T18:15:05Z`.
pub(crate) fn iso8601(seconds: i64) -> String {
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Days are counted from 0000-03-01, so that the leap day is the last of its year; 400 years have 146,097 days.
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day_of_month:02}T{:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60)
}
