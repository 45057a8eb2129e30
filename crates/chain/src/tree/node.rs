//! The packed form of one header, and [`Node`], the same for callers. Data only.

use super::HeaderId;
use crate::position::{BlockPosition, UndoPosition};
use lydian_consensus::U256;
use lydian_primitives::{Block, BlockHash, Header, Height};

/// The number of transactions and outputs of a block. Never zero for a block that was connected: it has a coinbase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockCounts {
    pub transactions: u32,
    pub outputs: u32,
}

impl BlockCounts {
    pub fn of(block: &Block) -> BlockCounts {
        // A block has at most 32 MB.
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        BlockCounts { transactions: count(block.tx_count()), outputs: count(block.output_count()) }
    }

    fn is_known(self) -> bool {
        self.transactions > 0
    }
}

/// The number of transactions and outputs of a chain, from the genesis block on: Core's `m_chain_tx_count`, and the
/// same for outputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChainTotals {
    pub transactions: u64,
    pub outputs: u64,
}

impl ChainTotals {
    /// The totals with one more block.
    #[must_use]
    pub fn with(self, block: BlockCounts) -> ChainTotals {
        ChainTotals {
            transactions: self.transactions + u64::from(block.transactions),
            outputs: self.outputs + u64::from(block.outputs),
        }
    }

    /// The totals without the last block.
    #[must_use]
    pub fn without(self, block: BlockCounts) -> ChainTotals {
        ChainTotals {
            transactions: self.transactions - u64::from(block.transactions),
            outputs: self.outputs - u64::from(block.outputs),
        }
    }
}

/// A header and what is known about its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    pub hash: BlockHash,
    pub header: Header,
    pub height: Height,
    /// `None` for the genesis block.
    pub parent: Option<HeaderId>,
    /// Work of the chain up to and including this block.
    pub chain_work: U256,
    /// The position of the block; `None` if it has not arrived or was pruned.
    pub block: Option<BlockPosition>,
    /// The position of its undo data.
    pub undo: Option<UndoPosition>,
    /// `None` if the block was never connected.
    pub counts: Option<BlockCounts>,
    /// Breaks a rule or has an ancestor that does.
    pub is_invalid: bool,
    /// Its scripts have been verified.
    pub is_verified: bool,
    /// Order in which the block and all its ancestors became complete; between chains of equal work the lower number
    /// wins. `None` while a body is missing.
    pub sequence: Option<u64>,
}

/// No node, no file, no sequence number.
pub(super) const NONE: u32 = u32::MAX;

pub(super) const INVALID: u8 = 1;
pub(super) const VERIFIED: u8 = 2;

/// A node in memory. The hash of the previous block is stored only in the parent.
#[derive(Clone, Debug)]
pub(super) struct Packed {
    pub(super) hash: BlockHash,
    pub(super) chain_work: U256,
    merkle_root: [u8; 32],
    version: i32,
    pub(super) time: u32,
    pub(super) bits: u32,
    nonce: u32,
    pub(super) height: u32,
    pub(super) parent: u32,
    /// An ancestor further down: Core's `pskip`.
    pub(super) skip: u32,
    pub(super) first_child: u32,
    pub(super) next_sibling: u32,
    pub(super) sequence: u32,
    block_offset: u64,
    block_file: u32,
    block_size: u32,
    undo_file: u32,
    undo_offset: u32,
    undo_size: u32,
    /// Zeros while unknown.
    counts: BlockCounts,
    pub(super) flags: u8,
}

/// Size of a node in bytes; with the table of hashes and the active chain 185 to 191 per header.
pub(super) const PACKED_SIZE: usize = 176;
const _: () = assert!(size_of::<Packed>() == PACKED_SIZE);

impl Packed {
    pub(super) fn new(hash: BlockHash, header: &Header, height: u32, chain_work: U256) -> Packed {
        Packed {
            hash,
            chain_work,
            merkle_root: header.merkle_root,
            version: header.version,
            time: header.time,
            bits: header.bits,
            nonce: header.nonce,
            height,
            parent: NONE,
            skip: NONE,
            first_child: NONE,
            next_sibling: NONE,
            sequence: NONE,
            block_offset: 0,
            block_file: NONE,
            block_size: 0,
            undo_file: NONE,
            undo_offset: 0,
            undo_size: 0,
            counts: BlockCounts::default(),
            flags: 0,
        }
    }

    pub(super) fn header(&self, prev_block: BlockHash) -> Header {
        Header {
            version: self.version,
            prev_block,
            merkle_root: self.merkle_root,
            time: self.time,
            bits: self.bits,
            nonce: self.nonce,
        }
    }

    pub(super) fn has_block(&self) -> bool {
        self.block_file != NONE
    }

    pub(super) fn is_invalid(&self) -> bool {
        self.flags & INVALID != 0
    }

    pub(super) fn is_linked(&self) -> bool {
        self.sequence != NONE
    }

    pub(super) fn block(&self) -> Option<BlockPosition> {
        let BlockPosition { file, offset, size } =
            BlockPosition { file: self.block_file, offset: self.block_offset, size: self.block_size };
        self.has_block().then_some(BlockPosition { file, offset, size })
    }

    pub(super) fn set_block(&mut self, position: Option<BlockPosition>) {
        let none = BlockPosition { file: NONE, offset: 0, size: 0 };
        let BlockPosition { file, offset, size } = position.unwrap_or(none);
        (self.block_file, self.block_offset, self.block_size) = (file, offset, size);
    }

    pub(super) fn undo(&self) -> Option<UndoPosition> {
        let position = UndoPosition { file: self.undo_file, offset: u64::from(self.undo_offset), size: self.undo_size };
        (self.undo_file != NONE).then_some(position)
    }

    pub(super) fn counts(&self) -> Option<BlockCounts> {
        Some(self.counts).filter(|counts| counts.is_known())
    }

    pub(super) fn set_counts(&mut self, counts: BlockCounts) {
        self.counts = counts;
    }

    /// Undo files are always smaller than 4 GiB.
    pub(super) fn set_undo(&mut self, position: Option<UndoPosition>) {
        let none = UndoPosition { file: NONE, offset: 0, size: 0 };
        let UndoPosition { file, offset, size } = position.unwrap_or(none);
        (self.undo_file, self.undo_size) = (file, size);
        self.undo_offset = match u32::try_from(offset) {
            Ok(offset) => offset,
            Err(_) => unreachable!("an undo file has less than 4 GiB, and positions that were read are checked"),
        };
    }
}
