//! Block files. Input: paths. Output: blocks in height order, one at a time, and a sentence for everything in the files that is no block.
//!
//! Two passes (`docs/formats/blk.md`): [`BlockFiles::scan`] reads the headers only and keeps about 100 bytes a block; [`BlockIndex::order`] puts
//! parents before children, whatever the order in the files; [`BlockFiles::read`] then reads one block at a time. Beside them
//! [`parse_prevouts`]: the spent outputs of one block (`docs/formats/prevouts.md`).
//! Invariants: total on any bytes; files are only read, never changed; no rule is checked here, and the memory in use does not depend on the
//! size of the blocks or on their disorder. No clock.

#![forbid(unsafe_code)]

mod error;
mod files;
mod index;
pub mod limits;
mod magic;
mod obfuscation;
mod position;
mod prevouts;
mod read;
mod scan;
mod store;
mod tree;
mod undo;

pub use error::ReadError;
pub use files::{BlockFile, find_block_files, is_block_file_name};
pub use index::{BlockIndex, MissingParent, Ordered, Placed};
pub use magic::{KnownMagic, MAGICS, magic_name};
pub use obfuscation::Obfuscation;
pub use position::{BlockPosition, UndoPosition};
pub use prevouts::{Prevout, parse_prevouts, write_prevouts};
pub use read::{BlockFiles, ReadBlock};
pub use scan::{Record, Remark, RemarkKind};
pub use store::{
    BlockStore, ChainError, INDEX_VERSION, IndexEntry, Layout, Opened, Pruned, StoreRemark, UndoFault, wipe_for_reindex,
};
pub use tree::{Branch, HeaderTree, Node, NodeId};
pub use undo::{BlockUndo, decode_undo, encode_undo};
