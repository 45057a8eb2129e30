//! Positions of blocks and their undo data. Data only.

/// The position of a block: the number of its file in the store, the offset of its first byte, and its size.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BlockPosition {
    pub file: u32,
    pub offset: u64,
    pub size: u32,
}

/// Bytes of a block, from `start` on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockPart {
    pub block: BlockPosition,
    pub start: u32,
    pub size: u32,
}

/// The position of undo data: the number of its `rev?????.dat`, the offset of its first byte, and its size without the
/// checksum.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct UndoPosition {
    pub file: u32,
    pub offset: u64,
    pub size: u32,
}
