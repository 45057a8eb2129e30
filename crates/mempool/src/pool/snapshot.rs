//! [`Snapshot`]: the pool as it was at one moment, for readers.
//!
//! Invariants: a snapshot never changes, and taking one waits for nothing but the exchange of a pointer. It shares its
//! memory with the pool: a reader that keeps one keeps the transactions that have left since, so take one for each
//! request.

use super::bands::Bands;
use super::cluster::{ChunkView, ClusterView};
use super::entry::Entry;
use super::tables::{Member, Tables};
use super::txids::TxidMap;
use crate::graph::ChunkOrder;
use crate::policy::FeeRate;
use lydian_engine::Tip;
use lydian_primitives::{OutPoint, Txid, Wtxid};
use std::ops::Range;
use std::sync::Arc;

/// The content of the pool.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub(crate) tables: Tables,
    /// The chunks of the graph at that moment.
    pub(crate) order: ChunkOrder,
    pub(crate) info: PoolInfo,
    pub(crate) unbroadcast: TxidMap<()>,
    pub(crate) deltas: TxidMap<i64>,
}

/// A chunk of the pool.
#[derive(Clone, Debug)]
pub struct PoolChunk<'a> {
    pub cluster: &'a ClusterView,
    pub chunk: &'a ChunkView,
    /// The positions of its transactions in the cluster.
    pub range: Range<usize>,
}

impl<'a> PoolChunk<'a> {
    /// The chunk of a transaction.
    pub(super) fn of(member: &'a Member) -> PoolChunk<'a> {
        let found = member.cluster.chunk_at(member.position());
        let Some((chunk, range)) = found else { unreachable!("the clusters of a snapshot are in order") };
        PoolChunk { cluster: &member.cluster, chunk, range }
    }

    /// Its transactions in mining order.
    pub fn entries(&self) -> impl Iterator<Item = &'a Arc<Entry>> + use<'a> {
        self.cluster.entries().skip(self.range.start).take(self.range.len())
    }
}

/// Sums over the pool.
#[derive(Clone, Copy, Debug)]
pub struct PoolInfo {
    /// The block for which its transactions are valid in the next one.
    pub tip: Tip,
    /// The number of the next change: Core's `GetSequence`.
    pub sequence: u64,
    /// The number of changes that may matter to miners, blocks included: Core's `GetTransactionsUpdated`, which wraps
    /// around.
    pub updates: u32,
    /// The sum of virtual sizes.
    pub vsize: u64,
    /// The sum of fees without deltas, in satoshi.
    pub fees: i64,
    /// The memory that Core would need, which `-maxmempool` bounds.
    pub usage: u64,
    /// What a transaction must pay now: Core's `GetMinFee`.
    pub min_fee: FeeRate,
    /// Whether `mempool.dat` was read, or need not be.
    pub is_loaded: bool,
}

impl Snapshot {
    pub fn info(&self) -> &PoolInfo {
        &self.info
    }

    /// How much of it pays which feerate.
    pub fn bands(&self) -> &Bands {
        self.tables.bands()
    }

    pub fn len(&self) -> usize {
        self.tables.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn get(&self, txid: &Txid) -> Option<&Member> {
        self.tables.get(txid)
    }

    pub fn get_by_wtxid(&self, wtxid: &Wtxid) -> Option<&Member> {
        self.tables.get_by_wtxid(wtxid)
    }

    /// The transaction that spends an output.
    pub fn spender(&self, outpoint: &OutPoint) -> Option<&Arc<Entry>> {
        self.tables.spender(outpoint).map(Member::entry)
    }

    /// All transactions, in no order.
    pub fn members(&self) -> impl Iterator<Item = &Member> {
        self.tables.iter()
    }

    /// All transactions in mining order, parents before children: Core's `GetSortedScoreWithTopology`.
    pub fn in_mining_order(&self) -> Vec<&Member> {
        let mut members: Vec<&Member> = self.tables.iter().collect();
        members.sort_by_cached_key(|member| member.rank());
        members
    }

    /// The number of chunks.
    pub fn chunk_count(&self) -> usize {
        self.order.len()
    }

    /// The chunks of all clusters in mining order: Core's `GetBlockBuilderChunk` and `IncludeBuilderChunk`. Only those
    /// that are taken from the iterator are looked at.
    pub fn chunks_in_mining_order(&self) -> impl Iterator<Item = PoolChunk<'_>> {
        self.chunk_members().map(PoolChunk::of)
    }

    /// A transaction of each chunk, in mining order.
    pub(super) fn chunk_members(&self) -> impl Iterator<Item = &Member> {
        self.order.iter().map(|key| {
            let member = self.tables.at(key.slot);
            member.unwrap_or_else(|| unreachable!("the graph and the tables have the same transactions"))
        })
    }

    /// Each cluster once, in no order.
    pub fn clusters(&self) -> impl Iterator<Item = &Arc<ClusterView>> {
        self.tables.iter().filter(|member| member.position == 0).map(|member| &member.cluster)
    }

    /// The transactions that spend outputs of this one, sorted by txid.
    pub fn children(&self, entry: &Entry) -> Vec<Arc<Entry>> {
        self.tables.children(entry)
    }

    /// The transactions whose outputs this one spends, sorted by txid.
    pub fn parents(&self, entry: &Entry) -> Vec<&Member> {
        self.tables.parents(entry.tx.view())
    }

    /// The transactions that no peer is known to have seen.
    pub fn unbroadcast(&self) -> &TxidMap<()> {
        &self.unbroadcast
    }

    /// What `prioritisetransaction` added to fees, also of transactions that are not in the pool.
    pub fn deltas(&self) -> &TxidMap<i64> {
        &self.deltas
    }
}
