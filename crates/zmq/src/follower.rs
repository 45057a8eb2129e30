//! The follower of the chain that feeds the notifications.
//!
//! Input: the blocks that join and leave the chain. Output: items of the queue ([`crate::queue`]), with a copy of what
//! the notifiers need of the block. A follower gets every block in order, whether it comes from a peer, a call or a
//! file, which the engine's events alone would not guarantee. Cost: a copy of the block if `rawblock` or `rawtx` is
//! published, 48 bytes for each transaction if `hashtx` or `rawtx` is, else nothing that grows with the block. It waits
//! if the queue is full.

use crate::queue::{BlockItem, Item};
use crate::shared::Shared;
use crate::topic::Topic;
use bytes::Bytes;
use lydian_engine::{ConnectedBlock, Follower, FollowerError, Left, Rows, Tip};
use lydian_primitives::BlockHash;
use lydian_stdx::lock;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct ZmqFollower {
    shared: Arc<Shared>,
}

impl ZmqFollower {
    pub(crate) fn new(shared: Arc<Shared>) -> ZmqFollower {
        ZmqFollower { shared }
    }

    /// Queues the block; `tip` is the tip after it joined or left.
    fn push(&self, block: &ConnectedBlock<'_>, tip: BlockHash, is_connected: bool, is_tip: bool) {
        let has = |topic| self.shared.has(topic);
        let has_txs = has(Topic::HashTx) || has(Topic::RawTx);
        let is_tip_wanted = is_tip && (has(Topic::HashBlock) || has(Topic::RawBlock));
        if !(has_txs || is_tip_wanted || has(Topic::Sequence)) {
            return;
        }
        let bytes = match has(Topic::RawTx) || is_tip && has(Topic::RawBlock) {
            true => Bytes::copy_from_slice(block.block.as_bytes()),
            false => Bytes::new(),
        };
        let txs = match has_txs {
            true => block.block.txs().map(|tx| (tx.txid(), place(tx.offset(), tx.bytes().len()))).collect(),
            false => Vec::new(),
        };
        let item = Item::Block(BlockItem { hash: block.block.hash(), is_connected, is_tip, bytes, txs });
        self.shared.push(item, Some(tip));
    }
}

fn place(offset: u32, size: usize) -> std::ops::Range<usize> {
    let start = lydian_stdx::saturating_usize(u64::from(offset));
    start..start.saturating_add(size)
}

impl Follower for ZmqFollower {
    fn name(&self) -> &str {
        "ZMQ"
    }

    fn has_files(&self) -> bool {
        false
    }

    fn durable_tip(&self) -> Option<Tip> {
        None
    }

    fn connect(&mut self, block: &ConnectedBlock<'_>, _: Option<Rows>) -> Result<(), FollowerError> {
        let (hash, bits) = (block.block.hash(), block.block.header().bits);
        let is_new = lock(&self.shared.tip_rule).connected(hash, bits);
        // As in Core, no tip is announced during initial block download; its transactions and the sequence are.
        self.push(block, hash, true, is_new && !self.shared.initial_download.is_on());
        Ok(())
    }

    fn disconnect(&mut self, block: &ConnectedBlock<'_>) -> Result<Left, FollowerError> {
        let header = block.block.header();
        lock(&self.shared.tip_rule).disconnected(block.block.hash(), header.bits);
        self.push(block, header.prev_block, false, false);
        Ok(Left::Block)
    }

    fn checkpoint(&mut self, _: Tip) -> Result<(), FollowerError> {
        Ok(())
    }

    fn clear(&mut self) -> Result<(), FollowerError> {
        Ok(())
    }
}
