//! The chain as it is known and stored. [`HeaderTree`]: all headers, the best chain, the active one. [`BlockStore`]: blocks and undo data in files of
//! Core's framing, and the log that says where they are. [`BlockFiles`]: files of blocks that anybody wrote.
//!
//! Input: headers, bytes of blocks, undo data, paths. Output: ancestors and paths; blocks, positions, coins spent; a sentence for everything in
//! a file that is no block. Block files are read in two passes (`docs/formats/blk.md`): [`BlockFiles::scan`] reads the headers only and keeps about
//! 100 bytes a block; [`BlockIndex::order`] puts parents before children, whatever the order in the files; [`BlockFiles::read`] then reads one
//! block at a time. Beside them [`parse_prevouts`]: the spent outputs of one block (`docs/formats/prevouts.md`).
//! Invariants: total on any bytes; files of others are only read ([`Owner`] decides whose a directory is); what was
//! synced survives any crash; no rule is checked here but those of headers. No clock.

#![forbid(unsafe_code)]

mod accept;
mod error;
mod files;
mod index;
pub mod limits;
mod magic;
mod obfuscation;
mod owner;
mod position;
mod prevouts;
mod read;
mod scan;
mod store;
mod tree;
mod undo;

pub use accept::accept_headers;
pub use error::ReadError;
pub use files::{BlockFile, find_block_files, is_block_file_name};
pub use index::{BlockIndex, MissingParent, Ordered, Placed};
pub use magic::{KnownMagic, MAGICS, magic_name};
pub use obfuscation::Obfuscation;
pub use owner::{
    Mark, MarkFound, OWNER_FILE, OWNER_FILES, OWNER_VERSION, Owner, OwnerError, VERSION_FILE, blocks_owner,
    coins_owner, data_owner, mark, read_mark,
};
pub use position::{BlockPosition, UndoPosition};
pub use prevouts::{Prevout, parse_prevouts, write_prevouts};
pub use read::{BlockFiles, ReadBlock};
pub use scan::{Record, Remark, RemarkKind};
pub use store::{
    BLOCKS_FILES, BlockStore, ChainError, INDEX_FILES, INDEX_VERSION, IndexEntry, Layout, Opened, Pruned, StoreRemark,
    UndoFault, wipe_for_reindex,
};
pub use tree::{Branch, HeaderTree, Node, NodeId, RefusedAt, TreeInconsistency};
pub use undo::{BlockUndo, decode_undo, encode_undo};
