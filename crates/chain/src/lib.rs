//! The known headers and the stored blocks. [`HeaderTree`]: all headers, the best chain, the active chain.
//! [`BlockStore`]: blocks and undo data in files with Core's framing, and the log with their positions. [`BlockFiles`]:
//! block files of any program.
//!
//! Input: headers, block bytes, undo data, paths. Output: ancestors and paths; blocks, positions, spent coins; a
//! sentence for everything in a block file that is not a block.
//!
//! Block files are read in two passes (`docs/formats/blk.md`): [`BlockFiles::scan`] reads only the headers and keeps
//! about 100 bytes per block; [`BlockIndex::order`] puts parents before children, whatever their order in the files;
//! [`BlockFiles::read`] then reads one block at a time. [`parse_prevouts`] reads the spent outputs of one block
//! (`docs/formats/prevouts.md`).
//!
//! Invariants: accepts any bytes; foreign files are only read ([`Owner`] determines the owner of a directory); synced
//! data survives any crash; only header rules are checked. Reads no clock.

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
    Mark, MarkFound, OWNER_FILE, OWNER_FILES, OWNER_FORMAT, OWNER_VERSION, Owner, OwnerError, VERSION_FILE,
    blocks_owner, coins_owner, data_owner, mark, read_mark,
};
pub use position::{BlockPart, BlockPosition, UndoPosition};
pub use prevouts::{Prevout, parse_prevouts, write_prevouts};
pub use read::{BlockFiles, ReadBlock};
pub use scan::{Record, Remark, RemarkKind};
pub use store::{
    BLOCKS_FILES, BlockStore, ChainError, INDEX_FILES, INDEX_FORMAT, INDEX_VERSION, IndexEntry, Layout, Opened, Pruned,
    Reindexed, StoreRemark, StoredBytes, UndoFault, wipe_for_reindex,
};
pub use tree::{BlockCounts, Branch, ChainTotals, HeaderId, HeaderTree, Node, RefusedAt, TreeInconsistency};
pub use undo::{BlockUndo, UndoParts, decode_undo, encode_undo};
