//! Where blocks and their undo data lie. Data only.

/// Where a block lies: the number of its file in the store, the offset of its first byte, its size.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BlockPosition {
    pub file: u32,
    pub offset: u64,
    pub size: u32,
}

/// Where undo data lies: the number of its `rev?????.dat`, the offset of its first byte, its size without the checksum.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct UndoPosition {
    pub file: u32,
    pub offset: u64,
    pub size: u32,
}
