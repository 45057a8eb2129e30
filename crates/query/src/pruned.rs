//! [`PrunedBlocks`]: blocks that this node has pruned, fetched from peers when a request needs them.
//!
//! Input: a hash. Output: the bytes of the block, or why there are none. A [`BlockSource`] fetches them and compares
//! them with the header; this part has one fetch for all requests that need the same block, and keeps the blocks that
//! were needed last.
//!
//! Invariants: a request waits for a limited time; at most [`FETCH_WAITS_MAX`] wait, further ones are refused; at most
//! [`FETCHES_MAX`] blocks are fetched at a time; each wait counts for the request ([`Allowance`]). Nothing is written
//! to disk. Memory: [`FETCHED_BYTES_MAX`], and the blocks that requests are reading.

use crate::allowance::Allowance;
use crate::error::QueryError;
use crate::limits::{FETCH_WAITS_MAX, FETCHED_BYTES_MAX, FETCHES_MAX};
use lydian_primitives::{Block, BlockHash, Height};
use lydian_stdx::{IgnorePoison, lock};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

/// Fetches blocks from elsewhere.
pub trait BlockSource: Debug + Send + Sync {
    /// Begins to fetch a block of the chain, and passes it, or the reason why there is none, to `taker`. It must not
    /// wait, and the bytes are those that the header commits to.
    fn order(&self, hash: &BlockHash, taker: BlockTaker);
}

/// Takes the result of an order. A block may also come after its failure.
#[derive(Clone, Debug)]
pub struct BlockTaker(Arc<Shared>);

/// The longest wait until fewer blocks are fetched.
const TURN_WAIT_MAX: Duration = Duration::from_secs(10);

/// The longest wait for a result: longer than the source takes to give up.
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(40);

/// The pruned blocks of a node. A clone is the same.
#[derive(Clone, Debug)]
pub struct PrunedBlocks {
    source: Arc<dyn BlockSource>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// A fetch ended, or all of them.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    kept: Kept,
    fetches: HashMap<BlockHash, Arc<Fetch>>,
    /// Requests that wait.
    waiting: usize,
    is_ended: bool,
}

/// The result of a fetch, once there is one.
type Fetch = OnceLock<Result<Arc<[u8]>, String>>;

impl PrunedBlocks {
    pub fn new(source: Arc<dyn BlockSource>) -> PrunedBlocks {
        PrunedBlocks { source, shared: Arc::default() }
    }

    /// Requests that wait, and all further ones, get an error: the node stops.
    pub fn end(&self) {
        lock(&self.shared.state).is_ended = true;
        self.shared.changed.notify_all();
    }

    /// The bytes of a block; waits for them.
    pub(crate) fn get(&self, hash: &BlockHash, height: Height) -> Result<Arc<[u8]>, QueryError> {
        let mut state = lock(&self.shared.state);
        if let Some(bytes) = state.kept.get(hash) {
            return Ok(bytes);
        }
        if state.waiting >= FETCH_WAITS_MAX {
            return Err(QueryError::FetchesBusy { hash: *hash, height });
        }
        let allowance = Allowance::current();
        allowance.as_ref().map_or(Ok(()), Allowance::take)?;
        state.waiting += 1;
        let result = self.wait(state, hash, height);
        lock(&self.shared.state).waiting -= 1;
        if let Some(allowance) = allowance.filter(|_| result.is_err()) {
            allowance.take_back();
        }
        result
    }

    /// How many of these blocks are not here.
    pub(crate) fn missing(&self, hashes: &[BlockHash]) -> usize {
        let state = lock(&self.shared.state);
        hashes.iter().filter(|hash| !state.kept.has(hash)).count()
    }

    /// The bytes of a block, if they are here; otherwise they are fetched, and the caller asks again.
    pub(crate) fn get_later(&self, hash: &BlockHash, height: Height) -> Result<Arc<[u8]>, QueryError> {
        let mut state = lock(&self.shared.state);
        if let Some(bytes) = state.kept.get(hash) {
            return Ok(bytes);
        }
        if !state.is_ended && state.may_begin(hash) {
            drop(self.begin(state, hash));
        }
        Err(QueryError::NotFetched { hash: *hash, height, reason: "it is being fetched".to_owned() })
    }

    fn wait(&self, state: MutexGuard<'_, State>, hash: &BlockHash, height: Height) -> Result<Arc<[u8]>, QueryError> {
        let changed = &self.shared.changed;
        let must_wait = |state: &mut State| {
            let is_settled = state.is_ended || state.kept.has(hash) || state.fetches.contains_key(hash);
            !is_settled && state.fetches.len() >= FETCHES_MAX
        };
        let (mut state, turn) = changed.wait_timeout_while(state, TURN_WAIT_MAX, must_wait).ignore_poison();
        if state.is_ended {
            return Err(QueryError::Stopping);
        }
        if let Some(bytes) = state.kept.get(hash) {
            return Ok(bytes);
        }
        if turn.timed_out() {
            return Err(QueryError::FetchesBusy { hash: *hash, height });
        }
        let fetch = match state.fetches.get(hash) {
            Some(fetch) => Arc::clone(fetch),
            None => {
                let fetch = self.begin(state, hash);
                state = lock(&self.shared.state);
                fetch
            }
        };
        let is_open = |state: &mut State| !state.is_ended && fetch.get().is_none();
        let (mut state, _) = changed.wait_timeout_while(state, ANSWER_WAIT_MAX, is_open).ignore_poison();
        let failed = |reason: &str| QueryError::NotFetched { hash: *hash, height, reason: reason.to_owned() };
        match fetch.get() {
            Some(result) => result.clone().map_err(|reason| failed(&reason)),
            None if state.is_ended => Err(QueryError::Stopping),
            None => {
                state.fetches.retain(|_, other| !Arc::ptr_eq(other, &fetch));
                changed.notify_all();
                Err(failed("there is no answer"))
            }
        }
    }

    /// Begins to fetch a block. The source is called without the lock.
    fn begin(&self, mut state: MutexGuard<'_, State>, hash: &BlockHash) -> Arc<Fetch> {
        let fetch = Arc::<Fetch>::default();
        state.fetches.insert(*hash, Arc::clone(&fetch));
        drop(state);
        self.source.order(hash, BlockTaker(Arc::clone(&self.shared)));
        fetch
    }
}

impl State {
    fn may_begin(&self, hash: &BlockHash) -> bool {
        !self.fetches.contains_key(hash) && self.fetches.len() < FETCHES_MAX
    }
}

impl BlockTaker {
    /// The block, or the reason why there is none.
    pub fn take(&self, hash: &BlockHash, result: Result<Arc<Block>, String>) {
        let result: Result<Arc<[u8]>, String> = result.map(|block| block.as_bytes().into());
        let mut state = lock(&self.0.state);
        if let Ok(bytes) = &result {
            state.kept.put(*hash, Arc::clone(bytes));
        }
        if let Some(fetch) = state.fetches.remove(hash) {
            // Only this call sets it, since it is removed from the table.
            let _ = fetch.set(result);
        }
        drop(state);
        self.0.changed.notify_all();
    }
}

/// The blocks that were needed last.
#[derive(Debug, Default)]
struct Kept {
    /// Each with the time of its last use.
    blocks: HashMap<BlockHash, (Arc<[u8]>, u64)>,
    by_use: BTreeMap<u64, BlockHash>,
    uses: u64,
    bytes: usize,
}

/// What a kept block takes in addition to its bytes.
const BLOCK_FIXED_BYTES: usize = 256;

impl Kept {
    fn has(&self, hash: &BlockHash) -> bool {
        self.blocks.contains_key(hash)
    }

    fn get(&mut self, hash: &BlockHash) -> Option<Arc<[u8]>> {
        let (bytes, used) = self.blocks.get_mut(hash)?;
        self.uses += 1;
        self.by_use.remove(used);
        self.by_use.insert(self.uses, *hash);
        *used = self.uses;
        Some(Arc::clone(bytes))
    }

    /// Adds a block; those that were not needed for the longest time make room.
    fn put(&mut self, hash: BlockHash, bytes: Arc<[u8]>) {
        if self.has(&hash) {
            return;
        }
        self.uses += 1;
        self.bytes += bytes.len() + BLOCK_FIXED_BYTES;
        self.by_use.insert(self.uses, hash);
        self.blocks.insert(hash, (bytes, self.uses));
        while self.bytes > FETCHED_BYTES_MAX && self.blocks.len() > 1 {
            let oldest = self.by_use.pop_first().and_then(|(_, hash)| self.blocks.remove(&hash));
            self.bytes -= oldest.map_or(0, |(bytes, _)| bytes.len() + BLOCK_FIXED_BYTES);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::FETCHES_PER_REQUEST_MAX;
    use lydian_primitives::RawBlock;
    use lydian_primitives::build::{MutBlock, MutTx};
    use std::thread;

    /// A source whose orders the test answers.
    #[derive(Debug, Default)]
    struct Peers {
        orders: Mutex<Vec<(BlockHash, BlockTaker)>>,
    }

    impl BlockSource for Peers {
        fn order(&self, hash: &BlockHash, taker: BlockTaker) {
            lock(&self.orders).push((*hash, taker));
        }
    }

    impl Peers {
        /// Waits until this number of orders is there, and takes them.
        fn take(&self, count: usize) -> Vec<(BlockHash, BlockTaker)> {
            for _ in 0..12_000 {
                if lock(&self.orders).len() >= count {
                    break;
                }
                thread::sleep(Duration::from_millis(5));
            }
            let orders = std::mem::take(&mut *lock(&self.orders));
            assert_eq!(orders.len(), count);
            orders
        }
    }

    fn new() -> (PrunedBlocks, Arc<Peers>) {
        let peers = Arc::<Peers>::default();
        (PrunedBlocks::new(Arc::<Peers>::clone(&peers)), peers)
    }

    /// A block of its own for each number.
    fn block(number: u32) -> Arc<Block> {
        let tx = MutTx { version: 1, inputs: Vec::new(), outputs: Vec::new(), lock_time: number };
        let mut block = MutBlock { header: lydian_primitives::Header::parse(&[0; 80]), txs: vec![tx] };
        block.header.nonce = number;
        Arc::new(RawBlock::new(block.encode()).parse().unwrap())
    }

    fn wait_for(blocks: &PrunedBlocks, what: impl Fn(&State) -> bool) {
        for _ in 0..12_000 {
            if what(&lock(&blocks.shared.state)) {
                return;
            }
            thread::sleep(Duration::from_millis(5));
        }
        panic!("it does not happen");
    }

    fn get(blocks: &PrunedBlocks, hash: BlockHash) -> thread::JoinHandle<Result<Arc<[u8]>, QueryError>> {
        let blocks = blocks.clone();
        thread::spawn(move || blocks.get(&hash, Height(7)))
    }

    #[test]
    fn requests_for_one_block_share_a_fetch() {
        let (blocks, peers) = new();
        let block = block(1);
        let waiting: Vec<_> = (0..5).map(|_| get(&blocks, block.hash())).collect();
        wait_for(&blocks, |state| state.waiting == 5);
        let (hash, taker) = peers.take(1).remove(0);
        assert_eq!(hash, block.hash());
        taker.take(&hash, Ok(Arc::clone(&block)));
        for one in waiting {
            assert_eq!(&*one.join().unwrap().unwrap(), block.as_bytes());
        }
        assert_eq!(&*blocks.get(&hash, Height(7)).unwrap(), block.as_bytes(), "it is kept");
        assert_eq!(lock(&blocks.shared.state).waiting, 0);
        peers.take(0);
    }

    #[test]
    fn a_failure_names_the_block_and_the_next_request_tries_again() {
        let (blocks, peers) = new();
        let block = block(1);
        let first = get(&blocks, block.hash());
        let (hash, taker) = peers.take(1).remove(0);
        taker.take(&hash, Err("no peer that has all blocks is connected".to_owned()));
        let error = first.join().unwrap().unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "block {hash} at height 7 is pruned and cannot be fetched: no peer that has all blocks is connected"
            )
        );
        // It arrives after all.
        taker.take(&hash, Ok(Arc::clone(&block)));
        assert!(blocks.get(&hash, Height(7)).is_ok());
        peers.take(0);
    }

    /// limit: FETCHES_MAX at
    /// limit: FETCHES_MAX above
    #[test]
    fn fetches_at_a_time() {
        let (blocks, peers) = new();
        let all: Vec<Arc<Block>> = (0..=u32::try_from(FETCHES_MAX).unwrap()).map(block).collect();
        let mut waiting: Vec<_> = all[..FETCHES_MAX].iter().map(|block| get(&blocks, block.hash())).collect();
        let mut orders = peers.take(FETCHES_MAX);
        waiting.push(get(&blocks, all[FETCHES_MAX].hash()));
        wait_for(&blocks, |state| state.waiting == FETCHES_MAX + 1);
        peers.take(0);
        let (hash, taker) = orders.remove(0);
        taker.take(&hash, Err("it was not sent".to_owned()));
        orders.extend(peers.take(1));
        for (hash, taker) in orders {
            taker.take(&hash, Ok(Arc::clone(all.iter().find(|block| block.hash() == hash).unwrap())));
        }
        let results: Vec<bool> = waiting.into_iter().map(|one| one.join().unwrap().is_ok()).collect();
        assert_eq!(results.iter().filter(|is_ok| !**is_ok).count(), 1);
    }

    /// limit: FETCH_WAITS_MAX at
    /// limit: FETCH_WAITS_MAX above
    #[test]
    fn further_requests_do_not_wait() {
        let (blocks, peers) = new();
        let (slow, other) = (block(1), block(2));
        let waiting: Vec<_> = (0..FETCH_WAITS_MAX).map(|_| get(&blocks, slow.hash())).collect();
        wait_for(&blocks, |state| state.waiting == FETCH_WAITS_MAX);
        let refused = blocks.get(&other.hash(), Height(9)).unwrap_err();
        assert_eq!(refused, QueryError::FetchesBusy { hash: other.hash(), height: Height(9) });
        assert!(refused.to_string().ends_with("try again"));
        let (hash, taker) = peers.take(1).remove(0);
        taker.take(&hash, Ok(slow));
        assert!(waiting.into_iter().all(|one| one.join().unwrap().is_ok()));
        let after = get(&blocks, other.hash());
        let (hash, taker) = peers.take(1).remove(0);
        taker.take(&hash, Ok(other));
        assert!(after.join().unwrap().is_ok());
    }

    /// limit: FETCHES_PER_REQUEST_MAX at
    /// limit: FETCHES_PER_REQUEST_MAX above
    #[test]
    fn blocks_of_one_request() {
        let (blocks, peers) = new();
        let all: Vec<Arc<Block>> = (0..=u32::try_from(FETCHES_PER_REQUEST_MAX).unwrap()).map(block).collect();
        let (last, others) = all.split_last().unwrap();
        let hashes: Vec<BlockHash> = others.iter().map(|block| block.hash()).collect();
        let request = {
            let (blocks, hashes, last) = (blocks.clone(), hashes.clone(), last.hash());
            thread::spawn(move || {
                Allowance::new(None).during(|| {
                    assert!(hashes.iter().all(|hash| blocks.get(hash, Height(7)).is_ok()));
                    (blocks.get(&last, Height(7)), hashes.iter().all(|hash| blocks.get(hash, Height(7)).is_ok()))
                })
            })
        };
        for block in others {
            let (hash, taker) = peers.take(1).remove(0);
            assert_eq!(hash, block.hash());
            taker.take(&hash, Ok(Arc::clone(block)));
        }
        let needed = FETCHES_PER_REQUEST_MAX + 1;
        assert_eq!(request.join().unwrap(), (Err(QueryError::TooManyFetches { needed }), true), "what is here is read");
        assert_eq!((blocks.missing(&hashes), blocks.missing(&[last.hash()])), (0, 1));
        assert_eq!(lock(&blocks.shared.state).waiting, 0);
        peers.take(0);
        // The next request.
        let next = get(&blocks, last.hash());
        let (hash, taker) = peers.take(1).remove(0);
        taker.take(&hash, Ok(Arc::clone(last)));
        assert!(next.join().unwrap().is_ok());
    }

    #[test]
    fn one_that_must_not_wait_asks_again() {
        let (blocks, peers) = new();
        let block = block(1);
        for _ in 0..2 {
            assert!(matches!(blocks.get_later(&block.hash(), Height(1)), Err(QueryError::NotFetched { .. })));
        }
        let (hash, taker) = peers.take(1).remove(0);
        taker.take(&hash, Ok(Arc::clone(&block)));
        assert_eq!(&*blocks.get_later(&hash, Height(1)).unwrap(), block.as_bytes());
    }

    #[test]
    fn the_end_of_the_node_ends_all_waits() {
        let (blocks, peers) = new();
        let waiting = get(&blocks, block(1).hash());
        let (hash, taker) = peers.take(1).remove(0);
        blocks.end();
        assert_eq!(waiting.join().unwrap(), Err(QueryError::Stopping));
        taker.take(&hash, Err("the network has ended".to_owned()));
        assert_eq!(blocks.get(&block(2).hash(), Height(1)), Err(QueryError::Stopping));
        peers.take(0);
    }

    /// limit: FETCHED_BYTES_MAX at
    /// limit: FETCHED_BYTES_MAX above
    #[test]
    fn blocks_that_were_not_needed_lately_make_room() {
        let mut kept = Kept::default();
        let hash = |number: u8| BlockHash([number; 32]);
        let quarter: Arc<[u8]> = vec![0; FETCHED_BYTES_MAX / 4 - BLOCK_FIXED_BYTES].into();
        (1..=4).for_each(|number| kept.put(hash(number), Arc::clone(&quarter)));
        assert_eq!((kept.bytes, kept.blocks.len()), (FETCHED_BYTES_MAX, 4));
        assert!(kept.get(&hash(1)).is_some());
        kept.put(hash(5), Arc::new([0; 1]));
        let left: Vec<bool> = (1..=5).map(|number| kept.has(&hash(number))).collect();
        assert_eq!(left, [true, false, true, true, true]);
        assert!(kept.bytes <= FETCHED_BYTES_MAX && kept.by_use.len() == 4);
    }
}
