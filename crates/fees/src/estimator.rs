//! [`Estimator`]: Core's `CBlockPolicyEstimator`.
//!
//! Input: [`Event`]s of the mempool in their order; the bytes of a file. Output: feerates, and the bytes of a file.
//! Invariants: the three horizons have the same buckets; a transaction that is tracked is in all three. Cost: a
//! transaction that comes or goes changes three counters; a block decays 36,000 averages, unless all are zero.

use crate::codec::{CodecError, Corrupt, Decoder, Encoder, FILE_VERSION};
use crate::limits::{BUCKETS_MAX, BUCKETS_MIN};
use crate::stats::{Buckets, RawEstimate, Stats};
use lydian_primitives::Txid;
use std::collections::HashMap;

/// The highest upper bound: Core's `INF_FEERATE`.
const INF_FEERATE: f64 = 1e99;
const MIN_BUCKET_FEERATE: f64 = 100.0;
const MAX_BUCKET_FEERATE: f64 = 1e7;
const FEE_SPACING: f64 = 1.05;

/// The periods, the decay and the scale of each horizon.
const SHORT: (usize, f64, u32) = (12, 0.962, 1);
const MEDIUM: (usize, f64, u32) = (24, 0.9952, 2);
const LONG: (usize, f64, u32) = (42, 0.99931, 24);

/// Older estimates of a file are not valid, in blocks.
const OLDEST_ESTIMATE_HISTORY: u32 = 6 * 1_008;

const HALF_SUCCESS: f64 = 0.6;
const SUCCESS: f64 = 0.85;
const DOUBLE_SUCCESS: f64 = 0.95;

/// The average number of transactions per block that makes a range of buckets significant.
const SUFFICIENT_FEETXS: f64 = 0.1;
const SUFFICIENT_TXS_SHORT: f64 = 0.5;

/// A time horizon: Core's `FeeEstimateHorizon`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Horizon {
    Short,
    Medium,
    Long,
}

impl Horizon {
    pub const ALL: [Horizon; 3] = [Horizon::Short, Horizon::Medium, Horizon::Long];

    /// Core's `StringForFeeEstimateHorizon`.
    pub fn name(self) -> &'static str {
        match self {
            Horizon::Short => "short",
            Horizon::Medium => "medium",
            Horizon::Long => "long",
        }
    }
}

/// Core's `FeeEstimateMode`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Mode {
    #[default]
    Economical,
    /// Considers the longer horizons too.
    Conservative,
}

/// A transaction of the mempool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TxInfo {
    pub txid: Txid,
    /// Satoshi per 1,000 virtual bytes, rounded down, without any delta.
    pub feerate: i64,
    /// The height of the tip when it entered the mempool.
    pub height: u32,
}

/// Something that happened to the mempool.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A transaction was accepted. It counts if the limits of the mempool applied, it did not come in a package, it has
    /// no unconfirmed parents, and the chain was current.
    Added { tx: TxInfo, counts: bool },
    /// It left the mempool, but not for a block.
    Removed(Txid),
    /// A block joined the chain with these transactions of the mempool.
    Block { height: u32, txs: Vec<TxInfo> },
}

/// The answer for a target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SmartEstimate {
    /// Satoshi per 1,000 virtual bytes; `None` if there are too few data.
    pub feerate: Option<i64>,
    /// The target of the estimate, in blocks. It may be lower than the one asked for.
    pub target: u32,
}

#[derive(Clone, Copy, Debug)]
struct Tracked {
    height: u32,
    bucket: usize,
}

#[derive(Clone, Debug)]
pub struct Estimator {
    best_height: u32,
    /// The height of the first block that confirmed a tracked transaction.
    first_height: u32,
    /// The range of blocks of the file.
    historical_first: u32,
    historical_best: u32,
    tracked: HashMap<Txid, Tracked>,
    buckets: Buckets,
    short: Stats,
    medium: Stats,
    long: Stats,
}

impl Default for Estimator {
    fn default() -> Estimator {
        let mut bounds = Vec::new();
        let mut bound = MIN_BUCKET_FEERATE;
        while bound <= MAX_BUCKET_FEERATE {
            bounds.push(bound);
            bound *= FEE_SPACING;
        }
        bounds.push(INF_FEERATE);
        let stats = |(periods, decay, scale)| Stats::new(bounds.len(), periods, decay, scale);
        Estimator {
            best_height: 0,
            first_height: 0,
            historical_first: 0,
            historical_best: 0,
            tracked: HashMap::new(),
            short: stats(SHORT),
            medium: stats(MEDIUM),
            long: stats(LONG),
            buckets: Buckets::new(bounds),
        }
    }
}

/// Core's conversion of a median to a `CFeeRate`, of which 0 is an error.
fn feerate(median: f64) -> Option<i64> {
    #[allow(clippy::cast_possible_truncation, reason = "Core's llround; the conversion saturates")]
    let rounded = median.round() as i64;
    (rounded > 0).then_some(rounded)
}

impl Estimator {
    /// The events must come in the order in which they happened.
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::Added { tx, counts } => self.process_transaction(tx, *counts),
            Event::Removed(txid) => drop(self.remove(txid, false)),
            Event::Block { height, txs } => self.process_block(*height, txs),
        }
    }

    fn each_horizon(&mut self) -> [&mut Stats; 3] {
        [&mut self.medium, &mut self.short, &mut self.long]
    }

    /// Core's `processTransaction`.
    fn process_transaction(&mut self, tx: &TxInfo, counts: bool) {
        // Core ignores transactions of side chains, and after a start those that enter before the first block, unless
        // the file is as high as the tip.
        if !counts || tx.height != self.best_height || self.tracked.contains_key(&tx.txid) {
            return;
        }
        let bucket = self.buckets.place(as_double(tx.feerate));
        self.tracked.insert(tx.txid, Tracked { height: tx.height, bucket });
        for stats in self.each_horizon() {
            stats.add_tx(tx.height, bucket);
        }
    }

    /// Core's `_removeTx`. Returns whether the transaction was tracked.
    fn remove(&mut self, txid: &Txid, is_in_block: bool) -> bool {
        let Some(Tracked { height, bucket }) = self.tracked.remove(txid) else { return false };
        let best_height = self.best_height;
        for stats in self.each_horizon() {
            stats.remove_tx(height, best_height, bucket, is_in_block);
        }
        true
    }

    /// Core's `processBlock`.
    fn process_block(&mut self, height: u32, txs: &[TxInfo]) {
        if height <= self.best_height {
            return;
        }
        // First, so that the removal of transactions finds their age.
        self.best_height = height;
        for stats in self.each_horizon() {
            stats.clear_current(height);
            stats.decay_averages();
        }
        let mut has_counted = false;
        for tx in txs {
            has_counted |= self.process_block_tx(height, tx);
        }
        if self.first_height == 0 && has_counted {
            self.first_height = height;
        }
    }

    fn process_block_tx(&mut self, height: u32, tx: &TxInfo) -> bool {
        if !self.remove(&tx.txid, true) {
            return false;
        }
        let blocks = height.wrapping_sub(tx.height);
        if blocks == 0 || i32::try_from(blocks).is_err() {
            return false;
        }
        let feerate = as_double(tx.feerate);
        let bucket = self.buckets.place(feerate);
        for stats in self.each_horizon() {
            stats.record(blocks, bucket, feerate);
        }
        true
    }

    /// Forgets the transactions that are unconfirmed, which counts as a failure to confirm: Core's `FlushUnconfirmed`,
    /// at the end.
    pub fn flush_unconfirmed(&mut self) {
        let txids: Vec<Txid> = self.tracked.keys().copied().collect();
        for txid in txids {
            self.remove(&txid, false);
        }
    }

    /// The number of transactions that are tracked.
    pub fn tracked(&self) -> usize {
        self.tracked.len()
    }

    /// The highest target of a horizon: Core's `HighestTargetTracked`.
    pub fn highest_target(&self, horizon: Horizon) -> u32 {
        self.stats(horizon).confirms_max()
    }

    fn stats(&self, horizon: Horizon) -> &Stats {
        match horizon {
            Horizon::Short => &self.short,
            Horizon::Medium => &self.medium,
            Horizon::Long => &self.long,
        }
    }

    fn estimate(&self, horizon: Horizon, target: u32, threshold: f64) -> RawEstimate {
        let sufficient = if horizon == Horizon::Short { SUFFICIENT_TXS_SHORT } else { SUFFICIENT_FEETXS };
        self.stats(horizon).estimate(&self.buckets, target, sufficient, threshold, self.best_height)
    }

    /// Core's `estimateRawFee`: the feerate, if there is one, and how it was found. `None` for a target that the
    /// horizon does not track.
    pub fn raw(&self, target: u32, threshold: f64, horizon: Horizon) -> Option<(Option<i64>, RawEstimate)> {
        if target == 0 || target > self.highest_target(horizon) {
            return None;
        }
        let estimate = self.estimate(horizon, target, threshold);
        Some((feerate(estimate.median), estimate))
    }

    /// The blocks since estimates began.
    fn block_span(&self) -> u32 {
        if self.first_height == 0 { 0 } else { self.best_height - self.first_height }
    }

    /// The blocks of the file.
    fn historical_block_span(&self) -> u32 {
        if self.historical_first == 0 || self.best_height - self.historical_best > OLDEST_ESTIMATE_HISTORY {
            return 0;
        }
        self.historical_best - self.historical_first
    }

    /// Half of the span, so that there are enough data points that may fail.
    fn usable_target_max(&self) -> u32 {
        let span = self.block_span().max(self.historical_block_span());
        self.long.confirms_max().min(span / 2)
    }

    /// Core's `estimateCombinedFee`: a median, or -1.
    fn combined(&self, target: u32, threshold: f64, with_shorter: bool) -> f64 {
        let (short, medium) = (self.short.confirms_max(), self.medium.confirms_max());
        if target < 1 || target > self.long.confirms_max() {
            return -1.0;
        }
        let horizon = match target {
            _ if target <= short => Horizon::Short,
            _ if target <= medium => Horizon::Medium,
            _ => Horizon::Long,
        };
        let mut median = self.estimate(horizon, target, threshold).median;
        // A lower answer of a shorter horizon for its highest target counts.
        for (horizon, highest) in [(Horizon::Medium, medium), (Horizon::Short, short)] {
            if with_shorter && target > highest {
                let shorter = self.estimate(horizon, highest, threshold).median;
                #[allow(clippy::float_cmp, reason = "-1 stands for no answer")]
                let is_lower = shorter > 0.0 && (median == -1.0 || shorter < median);
                if is_lower {
                    median = shorter;
                }
            }
        }
        median
    }

    /// Core's `estimateConservativeFee`: the threshold of twice the target is met on the longer horizons too.
    fn conservative(&self, double_target: u32) -> f64 {
        let mut median = -1.0;
        if double_target <= self.short.confirms_max() {
            median = self.estimate(Horizon::Medium, double_target, DOUBLE_SUCCESS).median;
        }
        if double_target <= self.medium.confirms_max() {
            let long = self.estimate(Horizon::Long, double_target, DOUBLE_SUCCESS).median;
            if long > median {
                median = long;
            }
        }
        median
    }

    /// Core's `estimateSmartFee`.
    pub fn smart(&self, target: u32, mode: Mode) -> SmartEstimate {
        let nothing = |target| SmartEstimate { feerate: None, target };
        if target == 0 || target > self.long.confirms_max() {
            return nothing(target);
        }
        // There are no reasonable estimates for the next block.
        let target = target.max(2).min(self.usable_target_max());
        if target <= 1 {
            return nothing(target);
        }
        let is_conservative = mode == Mode::Conservative;
        let mut median = self.combined(target / 2, HALF_SUCCESS, true);
        let mut raise = |other: f64| {
            if other > median {
                median = other;
            }
            median
        };
        raise(self.combined(target, SUCCESS, true));
        let found = raise(self.combined(2 * target, DOUBLE_SUCCESS, !is_conservative));
        #[allow(clippy::float_cmp, reason = "-1 stands for no answer")]
        let is_missing = found == -1.0;
        if is_conservative || is_missing {
            raise(self.conservative(2 * target));
        }
        SmartEstimate { feerate: feerate(median), target }
    }

    /// The bytes of a file: Core's `Write`.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Encoder::default();
        out.i32(FILE_VERSION);
        out.u32(self.best_height);
        let is_newer = self.block_span() > self.historical_block_span() / 2;
        let (first, best) = match is_newer {
            true => (self.first_height, self.best_height),
            false => (self.historical_first, self.historical_best),
        };
        out.u32(first);
        out.u32(best);
        out.doubles(self.buckets.bounds());
        for stats in [&self.medium, &self.short, &self.long] {
            stats.encode(&mut out);
        }
        out.bytes
    }

    /// Reads the bytes of a file: Core's `Read`. Bytes behind the end are ignored.
    pub fn decode(bytes: &[u8]) -> Result<Estimator, CodecError> {
        let from = &mut Decoder::new(bytes);
        let version = from.i32()?;
        if version > FILE_VERSION {
            return Err(CodecError::NewVersion(version));
        }
        let best_height = from.u32()?;
        if version < FILE_VERSION {
            return Err(CodecError::OldVersion(version));
        }
        let (historical_first, historical_best) = (from.u32()?, from.u32()?);
        if historical_first > historical_best || historical_best > best_height {
            return Err(Corrupt::History.into());
        }
        let bounds = from.doubles()?;
        if !(BUCKETS_MIN..=BUCKETS_MAX).contains(&bounds.len()) {
            return Err(Corrupt::Buckets.into());
        }
        let mut stats = || Stats::decode(from, bounds.len());
        let (medium, short, long) = (stats()?, stats()?, stats()?);
        Ok(Estimator {
            best_height,
            first_height: 0,
            historical_first,
            historical_best,
            tracked: HashMap::new(),
            buckets: Buckets::new(bounds),
            short,
            medium,
            long,
        })
    }
}

#[allow(clippy::cast_precision_loss, reason = "Core converts a feerate to a double")]
fn as_double(feerate: i64) -> f64 {
    feerate as f64
}
