//! [`PoolCopy`]: a node's mempool as a front end has it.
//!
//! Input: the messages of a stream. Output: the answers of [`Pool`], which are those of the node's own mempool. There
//! are two stages. What was received waits in groups, each with the [`State`] to which it leads; a snapshot is a group
//! that is made aside. What is applied is the copy that answers. A group is applied once the index has the block on
//! which the mempool stands; if a later one can be applied, all before it are applied with it.
//!
//! Invariants: the copy that answers is a mempool that a node had, on a block that the index had; a snapshot that
//! replaces it touches only what differs. What is received takes at most [`POOL_BYTES_MAX`]. One thread applies at a
//! time.

use crate::client::nodes::Nodes;
use crate::copy::{Change, Copy};
use crate::limits::POOL_BYTES_MAX;
use crate::message::{Answer, Message, Question, State};
use lydian_engine::Tip;
use lydian_index::ScriptHash;
use lydian_primitives::{BlockHash, OutPoint, Transaction, Txid};
use lydian_query::{FeeRow, Pool, PoolFees, PoolScript, PoolTotals, PoolTouched, QueryError, Unseen};
use lydian_stdx::{IgnorePoison, lock};
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, RwLock, RwLockReadGuard};
use std::time::Duration;
use tokio::time::Instant;

/// How long an answer waits for the mempool to reach the index's block before it looks again: less than 5 seconds in
/// all of its tries.
const PATIENCE: Duration = Duration::from_millis(200);

/// Blocks by which the mempool may move on, above which everything that is watched is looked at.
const BLOCKS_MAX: u32 = 2;

/// Why a stream cannot be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamFault {
    /// A message where another one must be.
    Order,
    /// More than [`POOL_BYTES_MAX`].
    TooMuch,
}

impl fmt::Display for StreamFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StreamFault::Order => f.write_str("the stream has a message that does not belong there"),
            StreamFault::TooMuch => write!(f, "the mempool takes more than {} MB", POOL_BYTES_MAX >> 20),
        }
    }
}

/// Changes, and the state that they lead to.
#[derive(Debug)]
struct Group {
    /// Replaces everything.
    snapshot: Option<Box<Copy>>,
    changes: Vec<Change>,
    state: State,
    bytes: usize,
}

/// What was received of a stream, and not applied.
#[derive(Debug, Default)]
struct Incoming {
    /// The number of the node.
    node: usize,
    /// A snapshot that is being received.
    snapshot: Option<Box<Copy>>,
    /// Whether the stream has begun its first snapshot.
    is_begun: bool,
    changes: Vec<Change>,
    /// The memory of `changes`.
    bytes: usize,
    groups: VecDeque<Group>,
    /// The last state, whether it was applied or not.
    last: Option<State>,
}

impl Incoming {
    fn bytes(&self) -> usize {
        let waiting: usize = self.groups.iter().map(|group| group.bytes).sum();
        waiting + self.bytes + self.snapshot.as_ref().map_or(0, |snapshot| snapshot.bytes())
    }

    fn state(&mut self, state: State) {
        let snapshot = self.snapshot.take();
        let changes = std::mem::take(&mut self.changes);
        let bytes = std::mem::take(&mut self.bytes) + snapshot.as_ref().map_or(0, |snapshot| snapshot.bytes());
        self.last = Some(state);
        if snapshot.is_some() {
            // What was before it does not matter any more.
            self.groups.clear();
        }
        match self.groups.back_mut().filter(|last| snapshot.is_none() && last.state.pool_tip == state.pool_tip) {
            Some(last) => {
                last.changes.extend(changes);
                last.state = state;
                last.bytes += bytes;
            }
            None => self.groups.push_back(Group { snapshot, changes, state, bytes }),
        }
    }
}

/// What readers have not seen.
#[derive(Debug, Default)]
struct Seen {
    unseen: Unseen,
    /// The block of the copy that answers.
    tip: Option<Tip>,
    /// Grows with each change, and with each block.
    version: u64,
    /// The version at which `unseen` was last taken.
    taken: u64,
    is_ended: bool,
}

/// What [`PoolCopy::apply`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Applied {
    /// The node whose snapshot answers from now on.
    pub(crate) snapshot_of: Option<usize>,
    /// The changes did not fit what the copy has: its next snapshot is needed.
    pub(crate) is_wrong: bool,
}

/// Fee and size of each chunk.
type Chunks = Vec<(i64, i64)>;

/// The mempool of the node that is followed.
#[derive(Debug)]
pub(crate) struct PoolCopy {
    nodes: Arc<Nodes>,
    incoming: Mutex<Incoming>,
    /// Signalled when a group is complete.
    arrived: Condvar,
    /// Held by the thread that applies.
    applying: Mutex<()>,
    copy: RwLock<Copy>,
    seen: Mutex<Seen>,
    changed: Condvar,
    /// The chunks of the mempool, with the version at which they were asked for.
    chunks: Mutex<Option<(u64, Chunks)>>,
}

impl PoolCopy {
    pub(crate) fn new(nodes: Arc<Nodes>) -> PoolCopy {
        PoolCopy {
            nodes,
            incoming: Mutex::default(),
            arrived: Condvar::new(),
            applying: Mutex::default(),
            copy: RwLock::default(),
            seen: Mutex::default(),
            changed: Condvar::new(),
            chunks: Mutex::default(),
        }
    }

    /// Begins the stream of a node: what was received of another one is dropped.
    pub(crate) fn begin(&self, node: usize) {
        *lock(&self.incoming) = Incoming { node, ..Incoming::default() };
    }

    /// Takes a message after the greeting.
    pub(crate) fn receive(&self, message: Message) -> Result<(), StreamFault> {
        let mut incoming = lock(&self.incoming);
        match message {
            Message::Reset => {
                incoming.is_begun = true;
                incoming.snapshot = Some(Box::default());
                incoming.changes.clear();
                incoming.bytes = 0;
            }
            _ if !incoming.is_begun => return Err(StreamFault::Order),
            Message::Added(added) if added.spent.len() != added.tx.view().input_count() => {
                return Err(StreamFault::Order);
            }
            Message::Added(added) => match incoming.snapshot.as_mut() {
                Some(snapshot) => {
                    if !snapshot.add(added) {
                        return Err(StreamFault::Order);
                    }
                }
                None => incoming.push(Change::Added(added)),
            },
            Message::Removed(txid) => match incoming.snapshot.as_mut() {
                Some(snapshot) => {
                    if snapshot.remove(&txid).is_none() {
                        return Err(StreamFault::Order);
                    }
                }
                None => incoming.push(Change::Removed(txid)),
            },
            Message::State(state) => {
                incoming.state(state);
                self.arrived.notify_all();
            }
            Message::Hello(_) => return Err(StreamFault::Order),
        }
        if is_too_much(incoming.bytes()) { Err(StreamFault::TooMuch) } else { Ok(()) }
    }

    /// Waits until there is a group that was not applied, or the time is over.
    pub(crate) fn wait_for_group(&self, timeout: Duration) {
        let waits = |incoming: &mut Incoming| incoming.groups.is_empty();
        drop(self.arrived.wait_timeout_while(lock(&self.incoming), timeout, waits).ignore_poison());
    }

    /// The block of the first group that waits for the index.
    pub(crate) fn waits_for(&self) -> Option<Tip> {
        lock(&self.incoming).groups.front().map(|group| group.state.pool_tip)
    }

    /// Whether the node has announced this block: a group that leads to it was received, and not applied.
    pub(crate) fn has_group_of(&self, tip: &Tip) -> bool {
        lock(&self.incoming).groups.iter().any(|group| group.state.pool_tip == *tip)
    }

    /// The number of the node whose stream is read.
    pub(crate) fn node(&self) -> usize {
        lock(&self.incoming).node
    }

    /// The last state of the stream, applied or not.
    pub(crate) fn last_state(&self) -> Option<State> {
        lock(&self.incoming).last
    }

    /// The block of the copy that answers.
    pub(crate) fn tip(&self) -> Option<Tip> {
        lock(&self.seen).tip
    }

    /// Applies all groups up to the last one that may be: those whose block fits the index.
    pub(crate) fn apply(&self, fits_index: impl Fn(&Tip) -> bool) -> Applied {
        let _applying = lock(&self.applying);
        let (node, mut groups) = {
            let mut incoming = lock(&self.incoming);
            let count =
                incoming.groups.iter().rposition(|group| fits_index(&group.state.pool_tip)).map_or(0, |at| at + 1);
            (incoming.node, incoming.groups.drain(..count).collect::<Vec<Group>>())
        };
        let Some(state) = groups.last().map(|group| group.state) else { return Applied::default() };
        let snapshot = groups.iter().rposition(|group| group.snapshot.is_some());
        let rest = groups.split_off(snapshot.unwrap_or(0));
        let mut changes = Vec::new();
        let mut replacement = None;
        for group in rest {
            replacement = group.snapshot.or(replacement);
            changes.extend(group.changes);
        }
        let Some(mut next) = replacement else {
            let fits = self.change(changes, state);
            return Applied { snapshot_of: None, is_wrong: !fits };
        };
        let fits = next.apply(changes, &mut Unseen::default());
        next.state = Some(state);
        self.replace(next);
        Applied { snapshot_of: Some(node), is_wrong: !fits }
    }

    fn change(&self, changes: Vec<Change>, state: State) -> bool {
        let is_changed = !changes.is_empty();
        let mut copy = self.copy.write().ignore_poison();
        let mut seen = lock(&self.seen);
        let fits = copy.apply(changes, &mut seen.unseen);
        copy.state = Some(state);
        self.note(&mut seen, state.pool_tip, is_changed);
        fits
    }

    fn replace(&self, next: Box<Copy>) {
        let tip = next.state.map(|state| state.pool_tip);
        let old = self.copy();
        let mut unseen = if old.state.is_some() { Unseen::default() } else { Unseen::all() };
        old.differences(&next, &mut unseen);
        drop(old);
        let mut copy = self.copy.write().ignore_poison();
        let mut seen = lock(&self.seen);
        let is_changed = !unseen.is_empty();
        seen.unseen.extend(unseen);
        let old = std::mem::replace(&mut *copy, *next);
        if let Some(tip) = tip {
            self.note(&mut seen, tip, is_changed);
        }
        drop((seen, copy));
        // Outside of the locks, since it takes long.
        drop(old);
    }

    fn note(&self, seen: &mut Seen, tip: Tip, is_changed: bool) {
        // While the index took several blocks at a time, answers may have been without the mempool.
        if seen.tip.is_some_and(|before| before.height.0.saturating_add(BLOCKS_MAX) < tip.height.0) {
            seen.unseen = Unseen::all();
        }
        if is_changed || seen.tip != Some(tip) {
            seen.version += 1;
            seen.tip = Some(tip);
            self.changed.notify_all();
        }
    }

    /// Ends every wait.
    pub(crate) fn end(&self) {
        lock(&self.seen).is_ended = true;
        self.changed.notify_all();
        self.arrived.notify_all();
    }

    fn copy(&self) -> RwLockReadGuard<'_, Copy> {
        self.copy.read().ignore_poison()
    }

    /// Waits until the mempool has a transaction, or the time is over.
    pub(crate) fn wait_for_transaction(&self, txid: &Txid, timeout: Duration) {
        let mut version = lock(&self.seen).version;
        let until = Instant::now() + timeout;
        while !self.copy().has(txid) {
            let left = until.saturating_duration_since(Instant::now());
            let waits = |seen: &mut Seen| !seen.is_ended && seen.version == version;
            let seen = self.changed.wait_timeout_while(lock(&self.seen), left, waits).ignore_poison().0;
            version = seen.version;
            if seen.is_ended || left.is_zero() {
                return;
            }
        }
    }

    /// Estimated memory of the copy and of what waits.
    pub(crate) fn bytes(&self) -> usize {
        self.copy().bytes() + lock(&self.incoming).bytes()
    }

    /// Fee and size of each transaction, the best feerate first: chunks of a mempool without dependent transactions.
    fn single_chunks(&self) -> Vec<(i64, i64)> {
        let mut chunks: Vec<(i64, i64)> = self.copy().newest().map(|row| (row.fee, row.vsize)).collect();
        let wide = |value: i64| i128::from(value);
        chunks.sort_unstable_by(|(fee, size), (other_fee, other_size)| {
            (wide(*other_fee) * wide(*size)).cmp(&(wide(*fee) * wide(*other_size)))
        });
        chunks
    }
}

impl Incoming {
    fn push(&mut self, change: Change) {
        self.bytes += change.bytes();
        self.changes.push(change);
    }
}

fn is_too_much(bytes: usize) -> bool {
    bytes > POOL_BYTES_MAX
}

impl Pool for PoolCopy {
    fn of_script(&self, script: &ScriptHash) -> Result<PoolScript, QueryError> {
        let copy = self.copy();
        let Some(state) = copy.state else {
            return Err(QueryError::Failed("no node has sent its mempool yet: try again".to_owned()));
        };
        Ok(PoolScript { tip: Some(state.pool_tip), transactions: copy.of_script(script) })
    }

    fn spenders(&self, outpoints: &[OutPoint]) -> Vec<Option<(Txid, bool)>> {
        let copy = self.copy();
        outpoints.iter().map(|outpoint| copy.spender(outpoint)).collect()
    }

    fn transaction(&self, txid: &Txid) -> Option<(Arc<Transaction>, bool)> {
        self.copy().transaction(txid)
    }

    fn fees(&self) -> PoolFees {
        self.copy().state.map_or(PoolFees { min: 0, relay: 0, incremental: 0 }, |state| state.fees)
    }

    fn estimate(&self, target: u32, is_conservative: bool) -> Option<i64> {
        let question = Question::Estimate { target, is_conservative };
        let take = |answer: Answer| match answer {
            Answer::Estimate(feerate) => Some(feerate),
            _ => None,
        };
        self.nodes.ask(&question, take).ok()??
    }

    fn totals(&self) -> PoolTotals {
        self.copy().totals()
    }

    fn txids(&self) -> Vec<Txid> {
        let take = |answer: Answer| match answer {
            Answer::PoolTxids(txids) => Some(txids),
            _ => None,
        };
        match self.nodes.ask(&Question::PoolTxids, take) {
            Ok(Some(txids)) => txids,
            Ok(None) | Err(_) => {
                let mut txids: Vec<Txid> = self.copy().newest().map(|row| row.txid).collect();
                txids.reverse();
                txids
            }
        }
    }

    fn chunks(&self) -> Vec<(i64, i64)> {
        let version = lock(&self.seen).version;
        if let Some((_, chunks)) = lock(&self.chunks).as_ref().filter(|(of, _)| *of == version) {
            return chunks.clone();
        }
        let take = |answer: Answer| match answer {
            Answer::PoolChunks(chunks) => Some(chunks),
            _ => None,
        };
        match self.nodes.ask(&Question::PoolChunks, take) {
            Ok(Some(chunks)) => {
                *lock(&self.chunks) = Some((version, chunks.clone()));
                chunks
            }
            Ok(None) | Err(_) => self.single_chunks(),
        }
    }

    fn recent(&self, count: usize) -> Vec<FeeRow> {
        self.copy().newest().take(count).collect()
    }

    fn take_touched(&self) -> Result<PoolTouched, QueryError> {
        let mut seen = lock(&self.seen);
        seen.taken = seen.version;
        Ok(seen.unseen.take())
    }

    fn wait(&self, timeout: Duration) {
        let waits = |seen: &mut Seen| !seen.is_ended && seen.taken == seen.version;
        drop(self.changed.wait_timeout_while(lock(&self.seen), timeout, waits).ignore_poison());
    }

    fn wait_for(&self, tip: &BlockHash) {
        let waits = |seen: &mut Seen| !seen.is_ended && seen.tip.is_none_or(|now| now.hash != *tip);
        drop(self.changed.wait_timeout_while(lock(&self.seen), PATIENCE, waits).ignore_poison());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_primitives::build::{MutInput, MutOutput, MutTx};
    use lydian_primitives::{Amount, Height};

    use crate::message::PoolTx;

    /// A transaction that spends this output and makes one.
    fn tx(prevout: OutPoint, script: u8) -> PoolTx {
        let input = MutInput { prevout, script_sig: Vec::new(), sequence: 0, witness: Vec::new() };
        let output = MutOutput { value: Amount(1), script_pubkey: vec![script] };
        let tx = MutTx { version: 2, inputs: vec![input], outputs: vec![output], lock_time: 0 };
        let tx = Arc::new(Transaction::parse(tx.encode()).unwrap());
        PoolTx { tx, fee: 100, vsize: 60, sequence: 1, time: 2, spent: vec![(ScriptHash([9; 32]), 101)] }
    }

    fn outpoint(number: u8) -> OutPoint {
        OutPoint { txid: Txid([number; 32]), vout: 0 }
    }

    fn state(height: u32) -> Message {
        let tip = Tip { height: Height(height), hash: BlockHash([u8::try_from(height).unwrap(); 32]) };
        let fees = PoolFees { min: 1, relay: 1, incremental: 1 };
        Message::State(State { sequence: 1, pool_tip: tip, tip, fees })
    }

    fn pool() -> PoolCopy {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        PoolCopy::new(Arc::new(Nodes::new(Vec::new(), runtime.handle().clone())))
    }

    fn receive(pool: &PoolCopy, messages: impl IntoIterator<Item = Message>) {
        messages.into_iter().for_each(|message| pool.receive(message).unwrap());
    }

    fn height(pool: &PoolCopy) -> Option<u32> {
        pool.tip().map(|tip| tip.height.0)
    }

    #[test]
    fn groups_wait_for_the_index_and_are_applied_together() {
        let pool = pool();
        pool.begin(3);
        assert_eq!(pool.receive(Message::Removed(Txid([1; 32]))), Err(StreamFault::Order));
        let (first, second) = (tx(outpoint(1), 1), tx(outpoint(2), 2));
        receive(&pool, [Message::Reset, Message::Added(first.clone()), state(5)]);
        assert!(pool.of_script(&ScriptHash([9; 32])).is_err());
        assert_eq!(pool.apply(|_| false), Applied::default());
        assert_eq!(pool.apply(|_| true).snapshot_of, Some(3));
        assert_eq!((height(&pool), pool.totals().count, pool.take_touched()), (Some(5), 1, Ok(PoolTouched::All)));
        // A state without changes touches nothing.
        receive(&pool, [state(5)]);
        assert_eq!(pool.apply(|_| true), Applied::default());
        assert_eq!(pool.take_touched(), Ok(PoolTouched::These(Default::default())));
        // Two blocks, of which the index gets the second one at once: never the state between.
        let txid = first.tx.view().txid();
        receive(&pool, [Message::Removed(txid), state(6), Message::Added(second.clone()), state(7), state(8)]);
        pool.apply(|tip| tip.height.0 == 5);
        assert_eq!((height(&pool), pool.waits_for().map(|tip| tip.height.0)), (Some(5), Some(6)));
        assert!(pool.transaction(&txid).is_some());
        pool.apply(|tip| tip.height.0 == 7);
        assert_eq!((height(&pool), pool.waits_for().map(|tip| tip.height.0)), (Some(7), Some(8)));
        assert!(pool.transaction(&txid).is_none() && pool.transaction(&second.tx.view().txid()).is_some());
        let PoolTouched::These(touched) = pool.take_touched().unwrap() else { panic!("all") };
        assert_eq!(touched.txids, [txid, second.tx.view().txid()].into());
        // A snapshot of another node touches what differs.
        pool.begin(4);
        let third = tx(OutPoint { txid: second.tx.view().txid(), vout: 0 }, 3);
        receive(&pool, [Message::Reset, Message::Added(second.clone()), Message::Added(third.clone()), state(8)]);
        assert_eq!(pool.apply(|_| true).snapshot_of, Some(4));
        let PoolTouched::These(touched) = pool.take_touched().unwrap() else { panic!("all") };
        assert_eq!(touched.txids, [third.tx.view().txid()].into());
        // Without its parent, it is another answer.
        receive(&pool, [Message::Reset, Message::Added(third.clone()), state(8)]);
        pool.apply(|_| true);
        let PoolTouched::These(touched) = pool.take_touched().unwrap() else { panic!("all") };
        assert_eq!(touched.txids, [third.tx.view().txid(), second.tx.view().txid()].into());
        // Changes that do not fit are noticed.
        receive(&pool, [Message::Removed(txid), state(8)]);
        assert!(pool.apply(|_| true).is_wrong);
        receive(&pool, [Message::Added(third), state(8)]);
        assert!(pool.apply(|_| true).is_wrong);
        assert_eq!((pool.totals().count, pool.recent(9).len()), (1, 1));
        // No node answers: the copy does.
        assert_eq!((pool.txids().len(), pool.chunks(), pool.estimate(6, false)), (1, vec![(100, 60)], None));
    }

    /// limit: POOL_BYTES_MAX at
    /// limit: POOL_BYTES_MAX above
    #[test]
    fn a_stream_that_sends_too_much_is_refused() {
        let pool = pool();
        pool.begin(0);
        receive(&pool, [Message::Reset, state(1)]);
        pool.apply(|_| true);
        let added = Change::Added(tx(outpoint(1), 1));
        lock(&pool.incoming).bytes = POOL_BYTES_MAX - added.bytes();
        let Change::Added(added) = added else { panic!() };
        assert_eq!(pool.receive(Message::Added(added)), Ok(()));
        assert_eq!(pool.receive(Message::Removed(Txid([1; 32]))), Err(StreamFault::TooMuch));
    }
}
