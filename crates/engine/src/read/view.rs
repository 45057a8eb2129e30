//! Reads while the engine works: headers, blocks and undo data, for callers such as the RPC server. Input: hashes,
//! heights. Output: the current state, each answer consistent in itself.
//!
//! Invariants: no read waits for validation, only for single locks of the header tree; nothing is changed.

use crate::chainstate::blocks::read_block;
use crate::chainstate::manager::ChainstateManager;
use crate::engine::Engine;
use crate::error::EngineError;
use lydian_chain::{BlockPart, BlockUndo, HeaderId, HeaderTree, Node, StoredBytes, UndoParts};
use lydian_coins::Tip;
use lydian_consensus::{Coin, HeaderView};
use lydian_primitives::{Block, BlockHash, Height, RawBlock, Reader};
use lydian_stdx::lock;
use std::collections::HashSet;

/// A header and its place in the tree.
#[derive(Clone, Copy, Debug)]
pub struct HeaderInfo {
    pub id: HeaderId,
    pub node: Node,
    pub median_time: i64,
    /// Whether it is on the active chain.
    pub is_active: bool,
    /// The block after it on the active chain.
    pub next: Option<BlockHash>,
    /// The tip of the active chain at the same moment.
    pub tip: Tip,
}

impl HeaderInfo {
    /// The number of confirmations, as in Core: 1 for the tip, -1 off the active chain.
    pub fn confirmations(&self) -> i64 {
        match self.is_active {
            true => i64::from(self.tip.height.0) - i64::from(self.node.height.0) + 1,
            false => -1,
        }
    }

    /// Whether the block was stored and then pruned: Core's `IsBlockPruned`.
    pub fn is_pruned(&self) -> bool {
        self.node.block.is_none() && self.node.sequence.is_some()
    }
}

/// The end of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainTip {
    pub height: Height,
    pub hash: BlockHash,
    /// Blocks above the fork with the active chain.
    pub branch_length: u32,
    pub status: ChainTipStatus,
}

/// The status of a branch, in Core's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainTipStatus {
    Active,
    Invalid,
    HeadersOnly,
    ValidFork,
    ValidHeaders,
}

impl ChainTipStatus {
    pub fn name(self) -> &'static str {
        match self {
            ChainTipStatus::Active => "active",
            ChainTipStatus::Invalid => "invalid",
            ChainTipStatus::HeadersOnly => "headers-only",
            ChainTipStatus::ValidFork => "valid-fork",
            ChainTipStatus::ValidHeaders => "valid-headers",
        }
    }
}

impl Engine {
    /// The header with a hash; `None` if it is unknown.
    pub fn header_info(&self, hash: &BlockHash) -> Option<HeaderInfo> {
        let tree = self.chainstate().tree();
        tree.find(hash).map(|id| info(&tree, id))
    }

    /// The header of the active chain at a height; `None` above the tip.
    pub fn header_info_at(&self, height: Height) -> Option<HeaderInfo> {
        let tree = self.chainstate().tree();
        tree.active(height).map(|id| info(&tree, id))
    }

    /// The header with a hash and those after it on the active chain, at most `count`, at one moment; none if it is not
    /// on the active chain.
    pub fn active_infos(&self, hash: &BlockHash, count: usize) -> Vec<HeaderInfo> {
        let tree = self.chainstate().tree();
        let Some(start) = tree.find(hash).filter(|id| tree.is_active(*id)) else { return Vec::new() };
        let heights = (tree.height(start).0..=tree.height(tree.tip()).0).take(count);
        heights.filter_map(|height| tree.active(Height(height))).map(|id| info(&tree, id)).collect()
    }

    /// The header of the tip.
    pub fn tip_info(&self) -> HeaderInfo {
        let tree = self.chainstate().tree();
        info(&tree, tree.tip())
    }

    /// The header of the settled block: the last one that every follower in step has. Servers announce it, so that an
    /// answer of an index is never behind it.
    pub fn settled_info(&self) -> HeaderInfo {
        let settled = self.chainstate().active.journal.settled();
        let tree = self.chainstate().tree();
        // Between two steps of a disconnection it may not be on the active chain.
        info(&tree, if tree.is_active(settled.id) { settled.id } else { tree.tip() })
    }

    /// Height and hash of the settled block: see [`Engine::settled_info`].
    pub fn settled_tip(&self) -> Tip {
        let info = self.settled_info();
        Tip { height: info.node.height, hash: info.node.hash }
    }

    /// The header with most work.
    pub fn best_header_info(&self) -> HeaderInfo {
        let tree = self.chainstate().tree();
        info(&tree, tree.best_header())
    }

    /// The ancestor of a block at a height, which may be the block itself.
    pub fn ancestor_info(&self, id: HeaderId, height: Height) -> Option<HeaderInfo> {
        let tree = self.chainstate().tree();
        tree.ancestor(id, height).map(|id| info(&tree, id))
    }

    /// The hash of the active chain's block at a height.
    pub fn hash_at(&self, height: Height) -> Option<BlockHash> {
        let tree = self.chainstate().tree();
        tree.active(height).map(|id| *tree.hash(id))
    }

    /// Runs `look` on the header tree at one moment. Incoming blocks wait meanwhile: only for single queries.
    pub fn with_tree<T>(&self, look: impl FnOnce(&HeaderTree) -> T) -> T {
        look(&self.chainstate().tree())
    }

    /// The bytes of a block as they were stored; `None` if they are missing.
    pub fn raw_block(&self, info: &HeaderInfo) -> Result<Option<RawBlock>, EngineError> {
        match info.node.block {
            Some(position) => Ok(Some(self.chainstate().store.read_block(position)?)),
            None => Ok(None),
        }
    }

    /// Bytes of a block as they were stored, from `start` on; `None` if it is missing or does not have them.
    pub fn block_part(&self, info: &HeaderInfo, start: u32, size: u32) -> Result<Option<Vec<u8>>, EngineError> {
        let Some(block) = info.node.block else { return Ok(None) };
        Ok(self.block_parts(&[BlockPart { block, start, size }])?.pop().flatten())
    }

    /// Parts of blocks as they were stored, read at the same time; `None` for one that its block does not have.
    pub fn block_parts(&self, parts: &[BlockPart]) -> Result<Vec<Option<Vec<u8>>>, EngineError> {
        Ok(self.chainstate().store.read_block_parts(parts)?)
    }

    /// A part of the block as it was stored, to be read piece by piece; `None` if the block does not have it, or if it
    /// must be read as a whole.
    pub fn block_bytes(&self, info: &HeaderInfo, start: u32, size: u32) -> Result<Option<StoredBytes>, EngineError> {
        let Some(block) = info.node.block else { return Ok(None) };
        Ok(self.chainstate().store.block_bytes(BlockPart { block, start, size })?)
    }

    /// The block, parsed; `None` if it is missing or its bytes do not match its hash.
    pub fn block(&self, info: &HeaderInfo) -> Result<Option<Block>, EngineError> {
        let Some(position) = info.node.block else { return Ok(None) };
        let parsed = read_block(self.chainstate(), position)?.ok();
        Ok(parsed.filter(|block| block.hash() == info.node.hash))
    }

    /// The coins that a block spent, in the order of its inputs; `None` if its undo data is missing. The genesis block
    /// spends none.
    pub fn spent_coins(&self, info: &HeaderInfo, block: &Block) -> Result<Option<Vec<Coin>>, EngineError> {
        if info.node.parent.is_none() {
            return Ok(Some(Vec::new()));
        }
        match info.node.undo {
            Some(position) => Ok(Some(self.chainstate().store.read_spent(position, block)?)),
            None => Ok(None),
        }
    }

    /// What a block spent, by its transactions, without reading the block; `None` if its undo data is missing. The
    /// genesis block spends nothing.
    pub fn undo(&self, info: &HeaderInfo) -> Result<Option<BlockUndo>, EngineError> {
        match (info.node.parent, info.node.undo) {
            (None, _) => Ok(Some(BlockUndo::default())),
            (Some(_), Some(position)) => {
                Ok(Some(self.chainstate().store.read_undo(position, &info.node.header.prev_block)?))
            }
            (Some(_), None) => Ok(None),
        }
    }

    /// The same for single transactions; `None` if the undo data is missing, or larger than `size_max` bytes.
    pub fn undo_parts(&self, info: &HeaderInfo, size_max: usize) -> Result<Option<UndoParts>, EngineError> {
        let Some(undo) = info.node.undo.filter(|undo| undo.size as usize <= size_max) else { return Ok(None) };
        Ok(Some(self.chainstate().store.read_undo_parts(undo, &info.node.header.prev_block)?))
    }

    /// The number of transactions of a block; `None` if the block is missing. Reads a few bytes and caches the result.
    pub fn transaction_count(&self, id: HeaderId) -> Result<Option<u32>, EngineError> {
        transaction_count(self.chainstate(), id)
    }

    /// The number of transactions of the active chain up to a height; `None` above the tip.
    pub fn chain_transactions(&self, height: Height) -> Option<u64> {
        let tree = self.chainstate().tree();
        let totals = tree.active(height).and_then(|id| tree.totals_at(id));
        totals.map(|totals| totals.transactions)
    }

    /// The tips of all branches, the highest first: Core's `getchaintips`.
    pub fn chain_tips(&self) -> Vec<ChainTip> {
        let tree = self.chainstate().tree();
        let mut has_child = HashSet::new();
        let mut off = Vec::new();
        for id in tree.ids().filter(|id| !tree.is_active(*id)) {
            has_child.extend(tree.parent(id));
            off.push(id);
        }
        let mut tips: Vec<HeaderId> = off.into_iter().filter(|id| !has_child.contains(id)).collect();
        tips.push(tree.tip());
        tips.sort_by_key(|id| (std::cmp::Reverse(tree.height(*id)), id.index()));
        tips.into_iter()
            .map(|id| {
                let node = tree.node(id);
                let fork = tree.height(tree.fork(id, tree.tip()));
                ChainTip {
                    height: node.height,
                    hash: node.hash,
                    branch_length: node.height.0 - fork.0,
                    status: status(&tree, id, &node),
                }
            })
            .collect()
    }

    /// Bytes of block and undo files.
    pub fn size_on_disk(&self) -> Result<u64, EngineError> {
        Ok(self.chainstate().store.size_on_disk()?)
    }
}

fn info(tree: &HeaderTree, id: HeaderId) -> HeaderInfo {
    let node = tree.node(id);
    let tip = tree.tip();
    let is_active = tree.is_active(id);
    let next = if is_active { tree.active(Height(node.height.0 + 1)) } else { None };
    HeaderInfo {
        id,
        node,
        median_time: tree.branch(id).median_time_past(node.height).unwrap_or_else(|| i64::from(node.header.time)),
        is_active,
        next: next.map(|next| *tree.hash(next)),
        tip: Tip { height: tree.height(tip), hash: *tree.hash(tip) },
    }
}

pub(super) fn status(tree: &HeaderTree, id: HeaderId, node: &Node) -> ChainTipStatus {
    if tree.is_active(id) {
        ChainTipStatus::Active
    } else if node.is_invalid {
        ChainTipStatus::Invalid
    } else if node.sequence.is_none() {
        ChainTipStatus::HeadersOnly
    } else if node.undo.is_some() {
        // It was connected before.
        ChainTipStatus::ValidFork
    } else {
        ChainTipStatus::ValidHeaders
    }
}

/// Header, and a CompactSize of the largest size.
const START_SIZE: usize = 80 + 9;

fn transaction_count(chainstate: &ChainstateManager, id: HeaderId) -> Result<Option<u32>, EngineError> {
    let (counts, position) = {
        let tree = chainstate.tree();
        (tree.counts(id), tree.block(id))
    };
    if let Some(counts) = counts {
        return Ok(Some(counts.transactions));
    }
    if let Some(count) = lock(&chainstate.transaction_counts).get(&id) {
        return Ok(Some(*count));
    }
    let Some(position) = position else { return Ok(None) };
    let start = chainstate.store.read_block_start(position, START_SIZE)?;
    let mut reader = Reader::new(&start);
    let count = reader.take(80).and_then(|_| reader.compact_size());
    let Some(count) = count.ok().and_then(|count| u32::try_from(count).ok()) else { return Ok(None) };
    lock(&chainstate.transaction_counts).insert(id, count);
    Ok(Some(count))
}
