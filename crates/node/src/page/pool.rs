//! [`PoolWatch`]: the next blocks as the mempool would fill them, and each mined block beside its projection.
//!
//! Input: the mempool, and readers of the topic. Output: the projection of the mempool as it was a moment ago, and the
//! comparisons of the last [`COMPARED_MAX`] blocks. A thread of its own computes: a projection at most every two
//! seconds, at most a fiftieth of the time, and only while the page is open; a comparison for every block, from the
//! mempool just before it. Nothing waits for it.

use crate::clock::now_nanos;
use lydian_engine::Engine;
use lydian_mempool::graph::FeeSize;
use lydian_mempool::pool::{BlockContent, BlockOptions, ProjectedBlock, Snapshot};
use lydian_mempool::{Mempool, Mined};
use lydian_primitives::{BlockHash, Height, Txid};
use lydian_stdx::{AbortOnPanic, IgnorePoison, lock};
use std::collections::{HashSet, VecDeque};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, Weak};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Projected blocks.
const BLOCKS: usize = 8;

/// Blocks whose comparisons are kept: a day of them.
pub(super) const COMPARED_MAX: usize = 144;

/// Missing and added transactions that a comparison names, of each.
const NAMED_MAX: usize = 200;

/// How often the thread looks.
const TICK: Duration = Duration::from_millis(500);

/// The shortest time between two projections, and how often the time that one took must pass.
const PAUSE_NANOS: u64 = 2_000_000_000;
const PAUSE_FACTOR: u64 = 50;

/// A topic that was read this long ago has no readers.
const OPEN_NANOS: u64 = 5_000_000_000;

/// A projected block, without its transactions.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NextBlock {
    pub(super) count: usize,
    /// Without what is reserved for the header and the coinbase.
    pub(super) weight: usize,
    pub(super) vsize: u64,
    pub(super) fees: i64,
    /// In satoshi per virtual byte.
    pub(super) min: f64,
    pub(super) median: f64,
    pub(super) max: f64,
}

/// A mined block beside what was expected of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Compared {
    pub(super) height: u32,
    pub(super) hash: BlockHash,
    pub(super) time: u32,
    /// Transactions without the coinbase.
    pub(super) expected: usize,
    pub(super) mined: usize,
    pub(super) expected_fees: i64,
    pub(super) fees: i64,
    /// Expected, and not mined.
    pub(super) missing: usize,
    /// Mined, and not expected; and how many of them the mempool did not have.
    pub(super) added: usize,
    pub(super) unknown: usize,
    /// The first of them.
    pub(super) missing_txids: Vec<Txid>,
    pub(super) added_txids: Vec<Txid>,
}

#[derive(Debug, Default)]
struct Found {
    next_blocks: Vec<NextBlock>,
    compared: VecDeque<Arc<Compared>>,
}

#[derive(Debug)]
struct Shared {
    // Weak, since the parts end before the page does.
    mempool: Weak<Mempool>,
    engine: Weak<Engine>,
    /// When the topic was read last.
    read_nanos: AtomicU64,
    found: Mutex<Found>,
    is_ended: Mutex<bool>,
    ended: Condvar,
}

/// The thread and what it found. Dropping it ends the thread.
#[derive(Debug)]
pub(super) struct PoolWatch {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl PoolWatch {
    /// Has the mempool record its events, and begins.
    pub(super) fn start(mempool: &Arc<Mempool>, engine: &Arc<Engine>) -> io::Result<PoolWatch> {
        mempool.records().switch_on();
        let shared = Arc::new(Shared {
            mempool: Arc::downgrade(mempool),
            engine: Arc::downgrade(engine),
            read_nanos: AtomicU64::new(0),
            found: Mutex::default(),
            is_ended: Mutex::new(false),
            ended: Condvar::new(),
        });
        let watched = Arc::clone(&shared);
        let thread = Builder::new().name("page-mempool".to_owned()).spawn(move || {
            let _guard = AbortOnPanic;
            watched.run();
        })?;
        Ok(PoolWatch { shared, thread: Mutex::new(Some(thread)) })
    }

    /// The projected blocks, for a reader of the page.
    pub(super) fn next_blocks(&self) -> Vec<NextBlock> {
        self.shared.read_nanos.store(now_nanos().max(1), Ordering::Relaxed);
        lock(&self.shared.found).next_blocks.clone()
    }

    /// Ends the thread.
    pub(super) fn end(&self) {
        *lock(&self.shared.is_ended) = true;
        self.shared.ended.notify_all();
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread {
            // A panic was printed by then.
            let _ = thread.join();
        }
    }

    /// The comparisons, the oldest first.
    pub(super) fn compared(&self) -> Vec<Arc<Compared>> {
        lock(&self.shared.found).compared.iter().cloned().collect()
    }
}

impl Drop for PoolWatch {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    fn run(&self) {
        // The sequence number and the tip of the last projection, and when the next one may begin.
        let (mut shown, mut next_nanos) = (None, 0);
        while !self.is_ended() {
            let (Some(mempool), Some(engine)) = (self.mempool.upgrade(), self.engine.upgrade()) else { return };
            self.compare_mined(&mempool, &engine);
            let now = now_nanos();
            let snapshot = mempool.snapshot();
            let state = (snapshot.info().sequence, snapshot.info().tip);
            if self.is_open(now) && now >= next_nanos && shown != Some(state) {
                self.project(&snapshot, &engine);
                let end = now_nanos();
                next_nanos = end.saturating_add(PAUSE_NANOS.max(end.saturating_sub(now).saturating_mul(PAUSE_FACTOR)));
                shown = Some(state);
            }
        }
    }

    /// Waits a moment. Returns whether it is over.
    fn is_ended(&self) -> bool {
        let is_ended = lock(&self.is_ended);
        *self.ended.wait_timeout_while(is_ended, TICK, |is_ended| !*is_ended).ignore_poison().0
    }

    fn is_open(&self, now: u64) -> bool {
        let read = self.read_nanos.load(Ordering::Relaxed);
        read > 0 && now.saturating_sub(read) < OPEN_NANOS
    }

    fn project(&self, snapshot: &Snapshot, engine: &Engine) {
        let tip = snapshot.info().tip;
        let Some(median_time) = median_time(engine, &tip.hash) else { return };
        let height = Height(tip.height.0.saturating_add(1));
        let options = BlockOptions::default();
        let projection = snapshot.projection(&options, height, median_time, BLOCKS);
        let blocks = projection.blocks.iter().map(|block| NextBlock::new(block, options.reserved_weight)).collect();
        lock(&self.found).next_blocks = blocks;
    }

    fn compare_mined(&self, mempool: &Mempool, engine: &Engine) {
        for mined in mempool.records().take_blocks() {
            let Some(median_time) = median_time(engine, &mined.before.info().tip.hash) else { continue };
            let content = mined.before.block_content(&BlockOptions::default(), mined.tip.height, median_time);
            let compared = Compared::new(&mined, &content);
            let mut found = lock(&self.found);
            if found.compared.len() == COMPARED_MAX {
                found.compared.pop_front();
            }
            found.compared.push_back(Arc::new(compared));
        }
    }
}

/// The median time past of a block.
fn median_time(engine: &Engine, hash: &BlockHash) -> Option<i64> {
    engine.header_info(hash).map(|info| info.median_time)
}

/// Satoshi per virtual byte, with three decimals.
#[allow(clippy::cast_precision_loss, reason = "a fee rate has fewer than 53 bits")]
pub(super) fn rate(feerate: FeeSize) -> f64 {
    let per_kvb = i128::from(feerate.fee) * 4_000 / i128::from(feerate.size.max(1));
    per_kvb as f64 / 1_000.0
}

impl NextBlock {
    fn new(block: &ProjectedBlock, reserved_weight: usize) -> NextBlock {
        let content = &block.content;
        NextBlock {
            count: content.entries.len(),
            weight: content.weight.saturating_sub(reserved_weight),
            vsize: block.vsize,
            fees: content.fees.0,
            min: rate(block.min),
            median: rate(block.median),
            max: rate(block.max),
        }
    }
}

impl Compared {
    fn new(mined: &Mined, content: &BlockContent) -> Compared {
        let expected: HashSet<Txid> = content.entries.iter().map(|entry| entry.txid()).collect();
        let in_block: HashSet<Txid> = mined.txids.iter().copied().collect();
        let missing: Vec<Txid> =
            content.entries.iter().map(|entry| entry.txid()).filter(|txid| !in_block.contains(txid)).collect();
        let added: Vec<Txid> = mined.txids.iter().copied().filter(|txid| !expected.contains(txid)).collect();
        let unknown = added.iter().filter(|txid| mined.before.get(txid).is_none()).count();
        Compared {
            height: mined.tip.height.0,
            hash: mined.tip.hash,
            time: mined.time,
            expected: expected.len(),
            mined: mined.txids.len(),
            expected_fees: content.fees.0,
            fees: mined.fees.0,
            missing: missing.len(),
            added: added.len(),
            unknown,
            missing_txids: missing.into_iter().take(NAMED_MAX).collect(),
            added_txids: added.into_iter().take(NAMED_MAX).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feerates_are_in_satoshi_per_virtual_byte() {
        let rates =
            [(250, 1_000), (1, 1_000), (12_345, 4_000), (0, 4), (-4, 4)].map(|(fee, size)| FeeSize::new(fee, size));
        assert_eq!(rates.map(rate), [1.0, 0.004, 12.345, 0.0, -4.0]);
        assert!(rate(FeeSize::new(i64::MAX, 1)).is_finite());
    }
}
