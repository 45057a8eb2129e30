//! The confirmations of one time horizon: Core's `TxConfirmStats`.
//!
//! Input: transactions that enter, leave and confirm, by height and bucket of feerates. Output: the lowest feerate that
//! confirmed in time often enough. Invariants: every counter has one place for each bucket; the operations on numbers
//! are Core's, in Core's order. Cost: an estimate adds up at most one number for each block and bucket.

use crate::codec::{CodecError, Corrupt, Decoder, Encoder};
use crate::limits::CONFIRMS_MAX;

/// A range of feerates and what became of its transactions: Core's `EstimatorBucket`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bucket {
    /// In satoshi per 1,000 virtual bytes; -1 if there is no such range.
    pub start: f64,
    pub end: f64,
    pub within_target: f64,
    pub total_confirmed: f64,
    pub in_mempool: f64,
    pub left_mempool: f64,
}

impl Default for Bucket {
    fn default() -> Bucket {
        Bucket { start: -1.0, end: -1.0, within_target: 0.0, total_confirmed: 0.0, in_mempool: 0.0, left_mempool: 0.0 }
    }
}

/// The details of an estimate: Core's `EstimationResult`.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct RawEstimate {
    /// Satoshi per 1,000 virtual bytes; -1 if there are too few data.
    pub median: f64,
    /// The lowest range of feerates that met the threshold.
    pub pass: Bucket,
    /// The highest range that failed to meet it.
    pub fail: Bucket,
    pub decay: f64,
    pub scale: u32,
}

/// The upper bounds of the buckets, inclusive.
#[derive(Clone, Debug)]
pub(crate) struct Buckets {
    bounds: Vec<f64>,
    /// The bounds in ascending order with their places: Core's `bucketMap`.
    sorted: Vec<(f64, usize)>,
}

impl Buckets {
    pub(crate) fn new(bounds: Vec<f64>) -> Buckets {
        let mut sorted: Vec<(f64, usize)> = bounds.iter().copied().zip(0..).collect();
        // Of equal bounds the last counts, as in Core's map.
        sorted.sort_by(|one, other| one.0.total_cmp(&other.0).then(other.1.cmp(&one.1)));
        Buckets { bounds, sorted }
    }

    pub(crate) fn bounds(&self) -> &[f64] {
        &self.bounds
    }

    /// The bucket of a feerate. A file may lack the bucket for the highest; then it is that of the highest bound.
    pub(crate) fn place(&self, feerate: f64) -> usize {
        let at = self.sorted.partition_point(|(bound, _)| *bound < feerate);
        self.sorted.get(at).or(self.sorted.last()).map_or(0, |(_, place)| *place)
    }
}

/// What a bucket range has gathered so far.
#[derive(Clone, Copy, Default, Debug)]
struct Range {
    confirmed: f64,
    total: f64,
    extra: i32,
    failed: f64,
    near: usize,
    far: usize,
}

impl Range {
    fn bucket(&self, bounds: &[f64]) -> Bucket {
        let (low, high) = (self.near.min(self.far), self.near.max(self.far));
        let start = if low == 0 { 0.0 } else { bounds[low - 1] };
        Bucket { start, end: bounds[high], ..self.counts() }
    }

    fn counts(&self) -> Bucket {
        Bucket {
            within_target: self.confirmed,
            total_confirmed: self.total,
            in_mempool: f64::from(self.extra),
            left_mempool: self.failed,
            ..Bucket::default()
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Stats {
    /// How much of the averages is left after each block.
    decay: f64,
    /// Blocks of a period.
    scale: u32,
    /// For each bucket, the average of the sum of feerates.
    feerates: Vec<f64>,
    /// For each bucket, the average number of transactions.
    counts: Vec<f64>,
    /// For each period and bucket, the average number of transactions that confirmed within it.
    confirmed: Vec<Vec<f64>>,
    /// For each period and bucket, the average number that left the mempool after it without confirming.
    failed: Vec<Vec<f64>>,
    /// For each of the last blocks and each bucket, the transactions that entered then and are unconfirmed.
    unconfirmed: Vec<Vec<i32>>,
    /// The same for all blocks before.
    old_unconfirmed: Vec<i32>,
    /// All averages are zero, so that a decay changes nothing: while the node catches up.
    is_blank: bool,
}

impl Stats {
    pub(crate) fn new(buckets: usize, periods: usize, decay: f64, scale: u32) -> Stats {
        let mut stats = Stats {
            decay,
            scale,
            feerates: vec![0.0; buckets],
            counts: vec![0.0; buckets],
            confirmed: vec![vec![0.0; buckets]; periods],
            failed: vec![vec![0.0; buckets]; periods],
            unconfirmed: Vec::new(),
            old_unconfirmed: Vec::new(),
            is_blank: true,
        };
        stats.size_counters(buckets);
        stats
    }

    fn size_counters(&mut self, buckets: usize) {
        self.unconfirmed = vec![vec![0; buckets]; lydian_stdx::saturating_usize(u64::from(self.confirms_max()))];
        self.old_unconfirmed = vec![0; buckets];
    }

    /// The highest target: Core's `GetMaxConfirms`.
    pub(crate) fn confirms_max(&self) -> u32 {
        let periods = u32::try_from(self.confirmed.len()).unwrap_or(u32::MAX);
        self.scale.saturating_mul(periods)
    }

    /// The place of a height in the ring of unconfirmed transactions. Heights wrap around, as in Core.
    fn ring_place(&self, height: u32) -> usize {
        height as usize % self.unconfirmed.len()
    }

    /// Core's `ClearCurrent`.
    pub(crate) fn clear_current(&mut self, height: u32) {
        let place = self.ring_place(height);
        for (old, count) in self.old_unconfirmed.iter_mut().zip(&mut self.unconfirmed[place]) {
            *old = old.wrapping_add(std::mem::take(count));
        }
    }

    /// Core's `Record`: a transaction confirmed after this many blocks, from 1 on.
    pub(crate) fn record(&mut self, blocks: u32, bucket: usize, feerate: f64) {
        let periods = blocks.saturating_add(self.scale - 1) / self.scale;
        for row in self.confirmed.iter_mut().skip(periods.saturating_sub(1) as usize) {
            row[bucket] += 1.0;
        }
        self.counts[bucket] += 1.0;
        self.feerates[bucket] += feerate;
        self.is_blank = false;
    }

    /// Core's `UpdateMovingAverages`.
    pub(crate) fn decay_averages(&mut self) {
        if self.is_blank {
            return;
        }
        let rows = self.confirmed.iter_mut().chain(&mut self.failed);
        for average in rows.chain([&mut self.feerates, &mut self.counts]).flatten() {
            *average *= self.decay;
        }
    }

    /// Core's `NewTx`.
    pub(crate) fn add_tx(&mut self, height: u32, bucket: usize) {
        let place = self.ring_place(height);
        let count = &mut self.unconfirmed[place][bucket];
        *count = count.wrapping_add(1);
    }

    /// Core's `removeTx`.
    pub(crate) fn remove_tx(&mut self, entry_height: u32, best_height: u32, bucket: usize, is_in_block: bool) {
        let blocks_ago = if best_height == 0 { 0 } else { best_height.wrapping_sub(entry_height) };
        if i32::try_from(blocks_ago).is_err() {
            return;
        }
        let count = if blocks_ago as usize >= self.unconfirmed.len() {
            &mut self.old_unconfirmed[bucket]
        } else {
            let place = self.ring_place(entry_height);
            &mut self.unconfirmed[place][bucket]
        };
        if *count > 0 {
            *count -= 1;
        }
        // Only a transaction that was not confirmed for an entire period is a failure.
        if !is_in_block && blocks_ago >= self.scale {
            let periods = (blocks_ago / self.scale) as usize;
            for row in self.failed.iter_mut().take(periods) {
                row[bucket] += 1.0;
                self.is_blank = false;
            }
        }
    }

    /// For each bucket, the transactions that have been in the mempool for at least this many blocks.
    fn waiting(&self, target: u32, height: u32) -> Vec<i32> {
        let mut waiting = self.old_unconfirmed.clone();
        for blocks in target..self.confirms_max() {
            let row = &self.unconfirmed[self.ring_place(height.wrapping_sub(blocks))];
            for (sum, count) in waiting.iter_mut().zip(row) {
                *sum = sum.wrapping_add(*count);
            }
        }
        waiting
    }

    /// Core's `EstimateMedianVal`. For a target that is not tracked, which only a strange file can ask for, there are
    /// no data.
    pub(crate) fn estimate(
        &self,
        buckets: &Buckets,
        target: u32,
        sufficient: f64,
        threshold: f64,
        height: u32,
    ) -> RawEstimate {
        let nothing = RawEstimate {
            median: -1.0,
            pass: Bucket::default(),
            fail: Bucket::default(),
            decay: self.decay,
            scale: self.scale,
        };
        let period = (target.saturating_add(self.scale - 1) / self.scale) as usize;
        if period == 0 || period > self.confirmed.len() {
            return nothing;
        }
        let (confirmed, failed) = (&self.confirmed[period - 1], &self.failed[period - 1]);
        let (bounds, waiting) = (buckets.bounds(), self.waiting(target, height));
        let last = bounds.len() - 1;
        // The range that is counted now, and the last one that met the threshold.
        let mut now = Range { near: last, far: last, ..Range::default() };
        let mut best = now;
        let (mut has_answer, mut is_new_range, mut is_passing) = (false, true, true);
        let (mut partial, mut fail) = (0.0, Bucket::default());
        for bucket in (0..=last).rev() {
            if std::mem::take(&mut is_new_range) {
                now.near = bucket;
            }
            now.far = bucket;
            now.confirmed += confirmed[bucket];
            partial += self.counts[bucket];
            now.total += self.counts[bucket];
            now.failed += failed[bucket];
            now.extra = now.extra.wrapping_add(waiting[bucket]);
            if partial < sufficient / (1.0 - self.decay) {
                continue;
            }
            partial = 0.0;
            let share = now.confirmed / (now.total + now.failed + f64::from(now.extra));
            if share < threshold {
                if std::mem::take(&mut is_passing) {
                    fail = now.bucket(bounds);
                }
            } else {
                fail = Bucket::default();
                (has_answer, is_passing, is_new_range) = (true, true, true);
                best = now;
                now = Range { near: now.near, far: now.far, ..Range::default() };
            }
        }
        let median = has_answer.then(|| self.median(best)).flatten();
        let pass = match (has_answer, self.has_transactions(best)) {
            (true, true) => best.bucket(bounds),
            (true, false) => best.counts(),
            (false, _) => Bucket::default(),
        };
        // What passed until the last buckets, which had too few transactions, failed there.
        if is_passing && !is_new_range {
            fail = now.bucket(bounds);
        }
        RawEstimate { median: median.unwrap_or(-1.0), pass, fail, ..nothing }
    }

    fn sum_of(&self, range: Range) -> f64 {
        let (low, high) = (range.near.min(range.far), range.near.max(range.far));
        let mut sum = 0.0;
        for count in &self.counts[low..=high] {
            sum += count;
        }
        sum
    }

    fn has_transactions(&self, range: Range) -> bool {
        self.sum_of(range) != 0.0
    }

    /// The average feerate of the bucket that has the median transaction of a range.
    fn median(&self, range: Range) -> Option<f64> {
        let mut left = self.sum_of(range);
        if left == 0.0 {
            return None;
        }
        left /= 2.0;
        for bucket in range.near.min(range.far)..=range.near.max(range.far) {
            if self.counts[bucket] < left {
                left -= self.counts[bucket];
            } else {
                return Some(self.feerates[bucket] / self.counts[bucket]);
            }
        }
        None
    }

    pub(crate) fn encode(&self, out: &mut Encoder) {
        out.double(self.decay);
        out.u32(self.scale);
        out.doubles(&self.feerates);
        out.doubles(&self.counts);
        out.rows(&self.confirmed);
        out.rows(&self.failed);
    }

    /// Core's `Read`, with its checks in their order.
    pub(crate) fn decode(from: &mut Decoder<'_>, buckets: usize) -> Result<Stats, CodecError> {
        let decay = from.double()?;
        if decay <= 0.0 || decay >= 1.0 {
            return Err(Corrupt::Decay.into());
        }
        let scale = from.u32()?;
        if scale == 0 {
            return Err(Corrupt::Scale.into());
        }
        let feerates = from.doubles()?;
        if feerates.len() != buckets {
            return Err(Corrupt::FeerateBuckets.into());
        }
        let counts = from.doubles()?;
        if counts.len() != buckets {
            return Err(Corrupt::CountBuckets.into());
        }
        let confirmed = from.rows()?;
        let confirms = u64::from(scale).saturating_mul(confirmed.count);
        if confirms == 0 || confirms > CONFIRMS_MAX {
            return Err(Corrupt::Confirms.into());
        }
        if confirmed.rows.iter().any(|row| row.len() != buckets) {
            return Err(Corrupt::ConfirmedBuckets.into());
        }
        let failed = from.rows()?;
        if failed.count != confirmed.count {
            return Err(Corrupt::FailedPeriods.into());
        }
        if failed.rows.iter().any(|row| row.len() != buckets) {
            return Err(Corrupt::FailedBuckets.into());
        }
        let (confirmed, failed) = (confirmed.rows, failed.rows);
        let (unconfirmed, old_unconfirmed) = (Vec::new(), Vec::new());
        let mut stats =
            Stats { decay, scale, feerates, counts, confirmed, failed, unconfirmed, old_unconfirmed, is_blank: false };
        stats.size_counters(buckets);
        Ok(stats)
    }
}
