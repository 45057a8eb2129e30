//! [`Pool`]: the transactions, their order, and what happens to them. Core's `CTxMemPool`.
//!
//! Input: decided changes. Output: the new content, the changes in order for the feed, a snapshot for readers. Which
//! transactions are accepted is decided in `accept`, what a block or a reorganisation does in `chain`.
//!
//! Invariants: every transaction's inputs are unspent in the chain at the pool's tip, or outputs of other transactions
//! of the pool, and none is spent twice; each change has the next sequence number. One writer.

use super::chain::Disconnected;
use super::cluster::{ChunkView, ClusterMember, ClusterView};
use super::entry::Entry;
use super::feed::{Change, ChangeKind, RemovalReason};
use super::min_fee::{Load, MinFee};
use super::snapshot::{PoolInfo, Snapshot};
use super::tables::{Member, Tables};
use super::txids::TxidMap;
use super::usage::{self, Usage};
use crate::graph::{FeeSize, Graph, Level, Limits, TxRef};
use crate::policy::{FeeRate, Settings};
use lydian_consensus::Coin;
use lydian_consensus::limits::WITNESS_SCALE_FACTOR;
use lydian_engine::Tip;
use lydian_fees::{Event, TxInfo};
use lydian_primitives::Txid;
use std::cell::Cell;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

/// The pool as its writer sees it.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) settings: Settings,
    pub(crate) graph: Graph,
    pub(crate) tables: Tables,
    pub(crate) tip: Tip,
    /// The transactions by the time of their entry.
    by_time: BTreeSet<(i64, TxRef)>,
    deltas: TxidMap<i64>,
    unbroadcast: TxidMap<()>,
    usage: Usage,
    /// Clusters whose views are not made yet, by any of their transactions.
    changed: HashSet<TxRef>,
    vsize: u64,
    fees: i64,
    /// Changes when it is asked, as in Core.
    min_fee: Cell<MinFee>,
    sequence: u64,
    updates: u32,
    changes: Vec<Change>,
    /// What happened, for the fee estimator; `None` if nothing estimates.
    fee_events: Option<Vec<Event>>,
    /// Transactions of disconnected blocks, and whether a block was disconnected since the last reorganisation ended.
    pub(super) disconnected: Disconnected,
    pub(super) is_reorganising: bool,
    /// Blocks that joined and left.
    pub(super) moves: u64,
    pub(crate) is_loaded: bool,
}

/// What the fee estimator needs to know of a transaction.
fn tx_info(entry: &Entry) -> TxInfo {
    let feerate = FeeRate::new(entry.fee.0, i64::from(entry.vsize)).fee_per_kvb();
    TxInfo { txid: entry.txid(), feerate, height: entry.height.0 }
}

impl Pool {
    pub(crate) fn new(settings: Settings, tip: Tip, now: i64) -> Pool {
        let count = usize::try_from(settings.cluster_count_max).unwrap_or(usize::MAX);
        let vbytes = u64::try_from(settings.cluster_vbytes_max).unwrap_or(0);
        let limits = Limits::new(count, vbytes.saturating_mul(WITNESS_SCALE_FACTOR as u64));
        Pool {
            settings,
            graph: Graph::new(limits),
            tables: Tables::new(),
            tip,
            by_time: BTreeSet::new(),
            deltas: TxidMap::default(),
            unbroadcast: TxidMap::default(),
            usage: Usage::default(),
            changed: HashSet::new(),
            vsize: 0,
            fees: 0,
            min_fee: Cell::new(MinFee::new(now)),
            // As in Core, the first change is the first.
            sequence: 1,
            updates: 0,
            changes: Vec::new(),
            fee_events: None,
            disconnected: Disconnected::default(),
            is_reorganising: false,
            moves: 0,
            is_loaded: false,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.tables.len()
    }

    /// The number of the next change.
    pub(crate) fn sequence(&self) -> u64 {
        self.sequence
    }

    pub(crate) fn get(&self, txid: &Txid) -> Option<&Member> {
        self.tables.get(txid)
    }

    pub(crate) fn entry_of(&self, node: TxRef) -> Option<&Arc<Entry>> {
        self.tables.at_node(node).map(Member::entry)
    }

    pub(crate) fn delta(&self, txid: &Txid) -> i64 {
        self.deltas.get(txid).unwrap_or(0)
    }

    /// The memory that Core would need.
    pub(crate) fn usage(&self) -> u64 {
        let clusters = self.graph.cluster_counts().map(|(count, clusters)| usage::of_cluster(count) * clusters as u64);
        let (deltas, chunks) = (self.deltas.len() as u64, self.graph.chunk_count() as u64);
        Usage { deltas, chunks, clusters: clusters.sum(), ..self.usage }.bytes()
    }

    /// What a transaction must pay now: Core's `GetMinFee`, which ages the feerate. So it must be asked when Core asks.
    pub(crate) fn min_fee(&self, now: i64) -> FeeRate {
        let (rate, aged) = self.aged_min_fee(now);
        self.min_fee.set(aged);
        rate
    }

    /// The same, for a question that Core does not ask: the feerate does not age.
    pub(crate) fn min_fee_seen(&self, now: i64) -> FeeRate {
        self.aged_min_fee(now).0
    }

    fn aged_min_fee(&self, now: i64) -> (FeeRate, MinFee) {
        let (usage, usage_max) = (self.usage(), self.settings.mempool_bytes_max);
        let mut min_fee = self.min_fee.get();
        let rate = min_fee.get(now, Load { usage, usage_max, incremental: self.settings.incremental_relay_fee });
        (rate, min_fee)
    }

    pub(super) fn unbroadcast(&self) -> &TxidMap<()> {
        &self.unbroadcast
    }

    /// The virtual size and the fees of all transactions.
    pub(super) fn sums(&self) -> (u64, i64) {
        (self.vsize, self.fees)
    }

    pub(crate) fn has_deltas(&self) -> bool {
        !self.deltas.is_empty()
    }

    /// Counts a change that may matter to miners.
    pub(crate) fn updated(&mut self) {
        self.updates = self.updates.wrapping_add(1);
    }

    /// Takes the changes since the last call.
    pub(crate) fn take_changes(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changes)
    }

    /// Keeps events for the fee estimator from now on.
    pub(crate) fn keep_fee_events(&mut self) {
        self.fee_events.get_or_insert_default();
    }

    /// Takes the events since the last call.
    pub(crate) fn take_fee_events(&mut self) -> Vec<Event> {
        self.fee_events.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// A block joined the chain, with these transactions of the pool in the order of the block.
    pub(crate) fn note_block_fees(&mut self, height: u32, mined: &[Arc<Entry>]) {
        if let Some(events) = &mut self.fee_events {
            let txs = mined.iter().map(|entry| tx_info(entry)).collect();
            events.push(Event::Block { height, txs });
        }
    }

    fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence - 1
    }

    /// The node of a transaction that is tried in the staging copy. Its parents must be in the graph.
    pub(crate) fn stage(&mut self, txid: Txid, adjusted_weight: i32, modified_fee: i64) -> TxRef {
        self.graph.add(FeeSize::new(modified_fee, adjusted_weight), txid.0)
    }

    /// Adds a transaction whose node is in the graph, with its dependencies.
    pub(crate) fn add(&mut self, entry: Entry, node: TxRef) -> Arc<Entry> {
        self.updated();
        let entry = Arc::new(entry);
        let txid = entry.txid();
        self.by_time.insert((entry.time, node));
        self.usage.add_transaction(entry.tx.view().input_count(), u64::from(entry.usage));
        self.vsize += u64::from(entry.vsize.unsigned_abs());
        self.fees += entry.fee.0;
        let cluster = Arc::new(ClusterView { members: Box::default(), chunks: Box::default() });
        let modified_fee = entry.fee.0.saturating_add(self.delta(&txid));
        let wtxid = entry.wtxid();
        self.tables.add(Member { entry: Arc::clone(&entry), wtxid, node, modified_fee, cluster, position: 0 });
        self.changed.insert(node);
        entry
    }

    /// Reports a transaction that was added: to the feed, and to the fee estimator with whether it counts. As in Core,
    /// after the pool was limited.
    pub(crate) fn announce(&mut self, entry: Arc<Entry>, spent: Arc<[Coin]>, counts: bool) {
        if self.fee_events.is_some() {
            let counts = counts && !entry.tx.view().inputs().any(|input| self.get(&input.prevout.txid).is_some());
            let tx = tx_info(&entry);
            self.fee_events.get_or_insert_default().push(Event::Added { tx, counts });
        }
        let sequence = self.next_sequence();
        self.changes.push(Change { sequence, entry, kind: ChangeKind::Added { spent } });
    }

    /// The clusters of these nodes are about to change: what is left of them needs new views.
    pub(crate) fn touch(&mut self, nodes: &[TxRef]) {
        let mut seen: HashSet<TxRef> = HashSet::new();
        for node in nodes {
            if !seen.contains(node) {
                seen.extend(self.graph.cluster(*node, Level::Main));
            }
        }
        self.changed.extend(seen);
    }

    /// Removes transactions from the tables, in this order; the graph has let go of them, or is about to.
    pub(crate) fn forget(&mut self, nodes: &[TxRef], reason: RemovalReason) {
        for node in nodes {
            let Some(member) = self.tables.remove(*node) else { continue };
            self.updated();
            let entry = member.entry;
            self.changed.remove(node);
            self.by_time.remove(&(entry.time, *node));
            self.usage.remove_transaction(entry.tx.view().input_count(), u64::from(entry.usage));
            self.vsize -= u64::from(entry.vsize.unsigned_abs());
            self.fees -= entry.fee.0;
            self.remove_unbroadcast(&entry.txid());
            if let Some(events) = &mut self.fee_events
                && reason != RemovalReason::Block
            {
                events.push(Event::Removed(entry.txid()));
            }
            let sequence = self.next_sequence();
            self.changes.push(Change { sequence, entry, kind: ChangeKind::Removed { reason } });
        }
    }

    /// Removes nodes and their transactions.
    pub(crate) fn remove(&mut self, nodes: &[TxRef], reason: RemovalReason) {
        self.touch(nodes);
        self.graph.remove(nodes);
        self.forget(nodes, reason);
    }

    /// Removes transactions with all their descendants.
    pub(crate) fn remove_recursive(&mut self, nodes: &[TxRef], reason: RemovalReason) {
        let all = self.graph.descendants(nodes, Level::Main);
        self.remove(&all, reason);
    }

    /// Removes what is older than the expiry and its descendants, and then the worst chunks until the usage is within
    /// its bound: Core's `LimitMempoolSize`. Core's usage lacks the chunks of what a removal left of a cluster until it
    /// looks for the worst chunk again, because only then it orders the rest; so this may end with somewhat more. (Core
    /// lacks them until anything orders the rest, which many a question by RPC does. Here they lack until the end.)
    pub(crate) fn limit(&mut self, now: i64) {
        let expiry = i64::try_from(self.settings.expiry.as_secs()).unwrap_or(i64::MAX);
        let oldest = now.saturating_sub(expiry);
        let nodes: Vec<TxRef> =
            self.by_time.iter().take_while(|(time, _)| *time < oldest).map(|(_, node)| *node).collect();
        let mut unordered = 0;
        if !nodes.is_empty() {
            let mut all = self.graph.descendants(&nodes, Level::Main);
            self.sort_by_txid(&mut all);
            unordered = self.remove_and_count(&all, RemovalReason::Expiry);
        }
        while self.len() > 0 && self.usage() - usage::of_chunks(unordered) > self.settings.mempool_bytes_max {
            let Some(chunk) = self.graph.worst_chunk() else { return };
            // Weight units become virtual bytes, rounded up: Core's `ToFeePerVSize`.
            let scale = WITNESS_SCALE_FACTOR as i64;
            let vsize = (i64::from(chunk.feerate.size) + scale - 1) / scale;
            let rate = FeeRate::new(chunk.feerate.fee, vsize).fee_per_kvb();
            let rate = rate.saturating_add(self.settings.incremental_relay_fee.fee_per_kvb());
            self.min_fee.get_mut().evicted(FeeRate::per_kvb(rate));
            let mut nodes = chunk.nodes;
            self.sort_by_txid(&mut nodes);
            unordered = self.remove_and_count(&nodes, RemovalReason::SizeLimit);
        }
    }

    /// Removes nodes. Returns the number of chunks of what is left of their clusters, if that is more than one
    /// transaction.
    fn remove_and_count(&mut self, nodes: &[TxRef], reason: RemovalReason) -> usize {
        let gone: HashSet<TxRef> = nodes.iter().copied().collect();
        let mut left: HashSet<TxRef> = nodes.iter().flat_map(|node| self.graph.cluster(*node, Level::Main)).collect();
        left.retain(|node| !gone.contains(node));
        self.remove(nodes, reason);
        let mut chunks = 0;
        while let Some(node) = left.iter().next().copied() {
            let cluster = self.graph.cluster(node, Level::Main);
            if cluster.len() > 1 {
                chunks += self.graph.cluster_chunks(node).len();
            }
            for node in cluster {
                left.remove(&node);
            }
        }
        chunks
    }

    /// The order in which Core removes a set of transactions.
    pub(crate) fn sort_by_txid(&self, nodes: &mut [TxRef]) {
        nodes.sort_by_cached_key(|node| self.entry_of(*node).map(|entry| entry.txid()));
    }

    /// A block was connected at this time.
    pub(crate) fn block_connected(&mut self, now: i64) {
        self.min_fee.get_mut().block(now);
    }

    /// Adds to the fee by which a transaction is ordered, whether it is in the pool or not: Core's
    /// `PrioritiseTransaction`. Returns the new sum.
    pub(crate) fn prioritise(&mut self, txid: &Txid, delta: i64) -> i64 {
        let sum = self.delta(txid).saturating_add(delta);
        if sum == 0 {
            self.deltas.remove(txid);
        } else {
            self.deltas.insert(*txid, sum);
        }
        if let Some(member) = self.tables.get(txid) {
            // Core adds to the modified fee, which may have saturated, and so does this.
            let fee = member.modified_fee.saturating_add(delta);
            let member = Member { modified_fee: fee, ..member.clone() };
            let node = member.node;
            self.tables.set(member);
            self.touch(&[node]);
            self.graph.set_fee(node, fee);
            self.updated();
        }
        sum
    }

    /// Forgets what was added to the fee of a transaction.
    pub(crate) fn clear_delta(&mut self, txid: &Txid) {
        self.deltas.remove(txid);
    }

    pub(crate) fn add_unbroadcast(&mut self, txid: Txid) {
        if self.get(&txid).is_some() {
            self.unbroadcast.insert(txid, ());
        }
    }

    pub(crate) fn remove_unbroadcast(&mut self, txid: &Txid) {
        self.unbroadcast.remove(txid);
    }

    /// Replaces the entry of a transaction by one with other lock points.
    pub(crate) fn set_entry(&mut self, entry: Entry) {
        let Some(member) = self.tables.get(&entry.txid()).cloned() else { return };
        self.changed.insert(member.node);
        self.tables.set(Member { entry: Arc::new(entry), ..member });
    }

    /// The pool as it is now.
    pub(crate) fn snapshot(&mut self, now: i64) -> Snapshot {
        self.make_views();
        let info = PoolInfo {
            tip: self.tip,
            sequence: self.sequence,
            updates: self.updates,
            vsize: self.vsize,
            fees: self.fees,
            usage: self.usage(),
            min_fee: self.min_fee_seen(now),
            is_loaded: self.is_loaded,
        };
        Snapshot {
            tables: self.tables.clone(),
            order: self.graph.order(),
            info,
            unbroadcast: self.unbroadcast.clone(),
            deltas: self.deltas.clone(),
        }
    }

    fn make_views(&mut self) {
        while let Some(node) = self.changed.iter().next().copied() {
            let Some(shape) = self.graph.shape(node) else {
                self.changed.remove(&node);
                continue;
            };
            let of_node = |(node, _): &(TxRef, u64)| self.tables.at_node(*node).cloned();
            let members: Vec<Member> = shape.members.iter().filter_map(of_node).collect();
            assert_eq!(members.len(), shape.members.len(), "the graph and the tables have the same transactions");
            let view_of = |(member, (_, ancestors)): (&Member, &(TxRef, u64))| ClusterMember {
                entry: Arc::clone(&member.entry),
                modified_fee: member.modified_fee(),
                ancestors: *ancestors,
            };
            let chunks = shape.chunks.iter().map(|chunk| ChunkView {
                feerate: chunk.feerate,
                equal_size: chunk.equal_size,
                greatest: members[usize::from(chunk.greatest)].entry.txid(),
                end: chunk.end,
            });
            let chunks = chunks.collect();
            let view = ClusterView { members: members.iter().zip(&shape.members).map(view_of).collect(), chunks };
            let view = Arc::new(view);
            for (position, member) in (0..).zip(members) {
                self.changed.remove(&member.node);
                self.tables.set(Member { cluster: Arc::clone(&view), position, ..member });
            }
        }
    }
}
