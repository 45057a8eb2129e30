//! What blocks and reorganisations do to the pool: Core's `removeForBlock`, `DisconnectedBlockTransactions` and
//! `MaybeUpdateMempoolForReorg`.
//!
//! Input: connected and disconnected blocks in their order, and the end of a reorganisation. Output: the pool for the
//! new tip. Transactions of disconnected blocks wait until the chain is whole again, within Core's memory bound; then
//! they return in the order of the chain, and whatever is no longer final, mature or funded leaves.

use super::accept::{Chain, How};
use super::entry::{Entry, LockPoints};
use super::feed::RemovalReason;
use super::store::Pool;
use super::usage;
use crate::graph::TxRef;
use crate::limits::DISCONNECTED_BYTES_MAX;
use crate::policy::{Mode, NextBlock};
use lydian_consensus::HeaderView;
use lydian_consensus::limits::COINBASE_MATURITY;
use lydian_consensus::sequence::sequence_locks;
use lydian_consensus::tx::is_final;
use lydian_engine::Tip;
use lydian_primitives::{Block, BlockHash, Height, OutPoint, Transaction, Tx, Txid};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Transactions of disconnected blocks that may return.
#[derive(Debug, Default)]
pub(crate) struct Disconnected {
    /// The last transaction of the last block is at the front. A place is empty if the transaction was connected again.
    queue: VecDeque<Option<Arc<Transaction>>>,
    /// The places by txid, counted from the first one ever.
    places: HashMap<Txid, u64>,
    /// The number of places that were removed from the front.
    removed: u64,
    /// Core's usage of the transactions.
    bytes: u64,
}

impl Disconnected {
    pub(crate) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    fn place(&self, txid: &Txid) -> Option<usize> {
        usize::try_from(self.places.get(txid)? - self.removed).ok()
    }

    /// Adds the transactions of a block that left the chain. Returns those that do not fit any more: the ones that came
    /// first, which are the last of the highest block.
    fn add(&mut self, block: &Block) -> Vec<Arc<Transaction>> {
        let txs: Vec<Tx<'_>> = block.txs().collect();
        for tx in txs.into_iter().rev() {
            let Ok(owned) = Transaction::parse(tx.bytes()) else { unreachable!("a transaction of a parsed block") };
            self.bytes += bytes_of(owned.view());
            self.places.insert(tx.txid(), self.removed + self.queue.len() as u64);
            self.queue.push_back(Some(Arc::new(owned)));
        }
        let mut evicted = Vec::new();
        while self.bytes > DISCONNECTED_BYTES_MAX {
            let Some(front) = self.queue.pop_front() else { break };
            self.removed += 1;
            if let Some(tx) = front {
                self.forget(&tx);
                evicted.push(tx);
            }
        }
        evicted
    }

    fn forget(&mut self, tx: &Transaction) {
        self.places.remove(&tx.view().txid());
        self.bytes -= bytes_of(tx.view());
    }

    /// Removes the transactions of a block that joined the chain.
    fn remove(&mut self, block: &Block) {
        if self.is_empty() {
            return;
        }
        for tx in block.txs() {
            let taken = self.place(&tx.txid()).and_then(|place| self.queue.get_mut(place)?.take());
            if let Some(tx) = taken {
                self.forget(&tx);
            }
        }
    }

    /// Takes all, in the order of the chain.
    fn take(&mut self) -> Vec<Arc<Transaction>> {
        std::mem::take(self).queue.into_iter().rev().flatten().collect()
    }
}

/// The memory that Core would need for a waiting transaction, without the exact number of buckets of its map.
fn bytes_of(tx: Tx<'_>) -> u64 {
    usage::of_transaction(tx) + usage::WAITING
}

impl Pool {
    /// A block joined the chain and is its tip: its transactions and everything that conflicts with them leave.
    pub(crate) fn connect(&mut self, block: &Block, height: Height, now: i64) {
        self.tip = Tip { height, hash: block.hash() };
        self.moves += 1;
        self.updated();
        self.disconnected.remove(block);
        let mut mined = Vec::new();
        if self.len() > 0 || self.has_deltas() {
            // From the graph all at once, so that a cluster is put in order once.
            let node_of = |tx: Tx<'_>| self.get(&tx.txid()).map(|member| member.node);
            let found: Vec<Option<TxRef>> = block.txs().map(node_of).collect();
            let nodes: Vec<TxRef> = found.iter().copied().flatten().collect();
            self.touch(&nodes);
            self.graph.remove(&nodes);
            for (tx, node) in block.txs().zip(found) {
                match node {
                    Some(node) => {
                        mined.extend(self.entry_of(node).map(Arc::clone));
                        self.forget(&[node], RemovalReason::Block);
                    }
                    // What was in the pool has no conflicts there.
                    None => self.remove_conflicts(tx),
                }
                self.clear_delta(&tx.txid());
            }
        }
        self.note_block_fees(height.0, &mined);
        self.block_connected(now);
    }

    /// Removes what spends the coins of a transaction of a block, with all its descendants.
    fn remove_conflicts(&mut self, tx: Tx<'_>) {
        for input in tx.inputs() {
            let Some(spender) = self.tables.spender(&input.prevout) else { continue };
            let (txid, node) = (spender.entry.txid(), spender.node);
            self.clear_delta(&txid);
            self.remove_recursive(&[node], RemovalReason::Conflict);
        }
    }

    /// A block left the chain; `tip` is the block before it.
    pub(crate) fn disconnect(&mut self, block: &Block, tip: Tip) {
        self.tip = tip;
        self.is_reorganising = true;
        self.moves += 1;
        self.updated();
        for tx in self.disconnected.add(block) {
            self.remove_with_descendants(&tx);
        }
    }

    /// Removes a transaction with its descendants, or those alone if it is not in the pool: Core's `removeRecursive`.
    fn remove_with_descendants(&mut self, tx: &Transaction) {
        let txid = tx.view().txid();
        let nodes: Vec<TxRef> = match self.get(&txid) {
            Some(member) => vec![member.node],
            None => self.nodes_of_spenders(tx.view()),
        };
        if !nodes.is_empty() {
            self.remove_recursive(&nodes, RemovalReason::Reorg);
        }
    }

    fn nodes_of_spenders(&self, tx: Tx<'_>) -> Vec<TxRef> {
        let txid = tx.txid();
        let outputs = 0..u32::try_from(tx.output_count()).unwrap_or(u32::MAX);
        let spenders = outputs.filter_map(|vout| self.tables.spender(&OutPoint { txid, vout }));
        spenders.map(|spender| spender.node).collect()
    }

    /// Whether a reorganisation is not over for the pool.
    pub(crate) fn is_reorganising(&self) -> bool {
        self.is_reorganising
    }

    /// Whether the pool is for the block after this one, and complete.
    pub(crate) fn is_at(&self, tip: &Tip) -> bool {
        self.tip == *tip && !self.is_reorganising
    }

    /// Removes a transaction that was accepted by a wrong verdict, with its descendants.
    pub(crate) fn remove_invalid_transaction(&mut self, txid: &Txid) {
        if let Some(node) = self.get(txid).map(|member| member.node) {
            self.remove_recursive(&[node], RemovalReason::Conflict);
        }
    }

    /// The number of blocks that joined and left the chain.
    pub(crate) fn moves(&self) -> u64 {
        self.moves
    }

    /// The transactions that return after a reorganisation, in the order of the chain. Their coins, and those of
    /// [`Pool::coins_to_check`], are needed for [`Pool::reorganised`].
    pub(crate) fn disconnected_transactions(&self) -> Vec<Arc<Transaction>> {
        self.disconnected.queue.iter().rev().flatten().map(Arc::clone).collect()
    }

    /// The coins of the chain that must be looked at after a reorganisation: those of transactions that spend a
    /// coinbase or have a relative lock that depends on a block which left the chain.
    pub(crate) fn coins_to_check<H: HeaderView>(&self, next: &NextBlock<'_, H>) -> Vec<OutPoint> {
        let is_asked = |entry: &Entry| entry.spends_coinbase || !is_in_chain(entry.locks.highest, next);
        let asked = self.tables.iter().filter(|member| is_asked(&member.entry));
        asked
            .flat_map(|member| member.entry.tx.view().inputs().map(|input| input.prevout).collect::<Vec<_>>())
            .collect()
    }

    /// The chain is whole again: takes back what left it, or drops it, and removes what is not valid in the next block.
    /// Returns the transactions that were accepted again.
    pub(crate) fn reorganised<H: HeaderView>(&mut self, returns: bool, now: i64, chain: &Chain<'_, H>) -> Vec<Txid> {
        let returning = self.disconnected.take();
        self.is_reorganising = false;
        let how = How { mode: Mode::DISCONNECTED, ..How::single(now) };
        let mut returned = Vec::new();
        for tx in &returning {
            let txid = tx.view().txid();
            if !returns || tx.view().is_coinbase() || self.accept(tx, &how, chain).is_err() {
                self.remove_with_descendants(tx);
            } else if self.get(&txid).is_some() {
                returned.push(txid);
            }
        }
        self.relate_to_children(&returned);
        self.remove_invalid(chain);
        self.limit(now);
        returned
    }

    /// Adds the dependencies of transactions in the pool on those that returned, and removes what makes a cluster too
    /// large: Core's `UpdateTransactionsFromBlock`.
    fn relate_to_children(&mut self, returned: &[Txid]) {
        let mut pairs = Vec::new();
        for txid in returned.iter().rev() {
            let Some(member) = self.get(txid) else { continue };
            let (node, tx) = (member.node, Arc::clone(&member.entry.tx));
            pairs.extend(self.nodes_of_spenders(tx.view()).into_iter().map(|child| (node, child)));
        }
        let nodes: Vec<TxRef> = pairs.iter().flat_map(|(parent, child)| [*parent, *child]).collect();
        self.touch(&nodes);
        self.graph.add_dependencies(&pairs);
        // What is trimmed may be related to what is not.
        self.touch(&nodes);
        let trimmed = self.graph.trim();
        self.forget(&trimmed, RemovalReason::SizeLimit);
        let rest: Vec<TxRef> = nodes.into_iter().filter(|node| self.entry_of(*node).is_some()).collect();
        self.touch(&rest);
    }

    /// Core's `removeForReorg`.
    fn remove_invalid<H: HeaderView>(&mut self, chain: &Chain<'_, H>) {
        let (mut invalid, mut changed) = (Vec::new(), Vec::new());
        for member in self.tables.iter() {
            match self.check_again(&member.entry, chain) {
                Some(locks) if locks == member.entry.locks => {}
                Some(locks) => changed.push(Entry { locks, ..Entry::clone(&member.entry) }),
                None => invalid.push(member.node),
            }
        }
        changed.into_iter().for_each(|entry| self.set_entry(entry));
        if !invalid.is_empty() {
            self.remove_recursive(&invalid, RemovalReason::Reorg);
        }
    }

    /// The lock points of a transaction that may be in the next block; `None` for one that may not.
    fn check_again<H: HeaderView>(&self, entry: &Entry, chain: &Chain<'_, H>) -> Option<LockPoints> {
        let (tx, next) = (entry.tx.view(), &chain.next);
        if !is_final(tx, next.height, next.time()) {
            return None;
        }
        let locks = match is_in_chain(entry.locks.highest, next) {
            true => entry.locks,
            false => self.lock_points(tx, chain)?,
        };
        if !locks.locks.are_met(next.height, next.headers) {
            return None;
        }
        let is_immature = |prevout: &OutPoint| {
            if self.get(&prevout.txid).is_some() {
                return false;
            }
            let coin = chain.coins.get(prevout).and_then(Option::as_ref);
            coin.is_none_or(|coin| coin.is_coinbase && next.height.0.saturating_sub(coin.height.0) < COINBASE_MATURITY)
        };
        let is_mature = !entry.spends_coinbase || !tx.inputs().any(|input| is_immature(&input.prevout));
        is_mature.then_some(locks)
    }

    fn lock_points<H: HeaderView>(&self, tx: Tx<'_>, chain: &Chain<'_, H>) -> Option<LockPoints> {
        let next = &chain.next;
        let mut heights = Vec::with_capacity(tx.input_count());
        for input in tx.inputs() {
            let height = match self.get(&input.prevout.txid) {
                Some(_) => next.height,
                None => chain.coins.get(&input.prevout)?.as_ref()?.height,
            };
            heights.push(height);
        }
        let highest = heights.iter().copied().filter(|height| *height != next.height).max().unwrap_or(Height(0));
        let hash = next.headers.ancestor(highest).map_or(BlockHash::ZERO, |ancestor| ancestor.hash);
        let locks = sequence_locks(tx, heights.into_iter(), next.headers)?;
        Some(LockPoints { locks, highest: (highest, hash) })
    }
}

/// Whether a block is in the chain below the next block: Core's `TestLockPointValidity`.
fn is_in_chain<H: HeaderView>((height, hash): (Height, BlockHash), next: &NextBlock<'_, H>) -> bool {
    height < next.height && next.headers.ancestor(height).is_some_and(|ancestor| ancestor.hash == hash)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_primitives::build::{MutBlock, MutInput, MutOutput, MutTx};
    use lydian_primitives::{Amount, Header, RawBlock};

    /// A block of transactions with scripts of these sizes.
    fn block(scripts: &[u64]) -> Block {
        let tx = |(index, size): (usize, &u64)| {
            let prevout = OutPoint { txid: Txid([1; 32]), vout: u32::try_from(index).unwrap() };
            let input = MutInput { prevout, script_sig: Vec::new(), sequence: 0, witness: Vec::new() };
            let script_pubkey = vec![0; usize::try_from(*size).unwrap()];
            let output = MutOutput { value: Amount(1), script_pubkey };
            MutTx { version: 2, inputs: vec![input], outputs: vec![output], lock_time: 0 }
        };
        let (prev_block, merkle_root) = (BlockHash::ZERO, [0; 32]);
        let header = Header { version: 1, prev_block, merkle_root, time: 0, bits: 0, nonce: 0 };
        let block = MutBlock { header, txs: scripts.iter().enumerate().map(tx).collect() };
        RawBlock::new(block.encode()).parse().unwrap()
    }

    fn usages(block: &Block) -> u64 {
        block.txs().map(bytes_of).sum()
    }

    fn txids(txs: &[Arc<Transaction>]) -> Vec<Txid> {
        txs.iter().map(|tx| tx.view().txid()).collect()
    }

    fn txids_of(block: &Block) -> Vec<Txid> {
        block.txs().map(|tx| tx.txid()).collect()
    }

    /// limit: DISCONNECTED_BYTES_MAX at
    /// limit: DISCONNECTED_BYTES_MAX above
    #[test]
    fn the_first_to_come_are_the_first_to_go() {
        let mut waiting = Disconnected::default();
        let mut blocks = Vec::new();
        for size in 0..6 {
            blocks.push(block(&[3_000_000 + size, 60 + size]));
            assert!(waiting.add(&blocks[blocks.len() - 1]).is_empty());
        }
        // The last one fills it.
        let left = DISCONNECTED_BYTES_MAX - waiting.bytes;
        let empty = usages(&block(&[0, 0]));
        blocks.push(block(&[left - empty - 16, 0]));
        assert!(waiting.add(&blocks[6]).is_empty());
        assert_eq!(waiting.bytes, DISCONNECTED_BYTES_MAX);
        blocks.push(block(&[0]));
        let evicted = waiting.add(&blocks[7]);
        assert_eq!(txids(&evicted), [txids_of(&blocks[0])[1]], "the last transaction of the highest block");
        let evicted = waiting.add(&block(&[700]));
        assert_eq!(txids(&evicted), [txids_of(&blocks[0])[0]]);
        assert_eq!(waiting.place(&txids_of(&blocks[1])[1]), Some(0));
    }

    #[test]
    fn what_is_connected_again_does_not_return() {
        let mut waiting = Disconnected::default();
        let blocks = [block(&[50, 60, 70]), block(&[80, 90])];
        blocks.iter().for_each(|block| drop(waiting.add(block)));
        waiting.remove(&block(&[50, 60]));
        let left = [txids_of(&blocks[1]), vec![txids_of(&blocks[0])[2]]].concat();
        assert_eq!(waiting.bytes, usages(&blocks[1]) + bytes_of(blocks[0].tx(2)));
        assert_eq!(txids(&waiting.take()), left, "in the order of the chain");
        assert!(waiting.is_empty() && waiting.bytes == 0 && waiting.take().is_empty());
    }
}
