//! The tip file of the block filters: the block of the last checkpoint.
//!
//! Input: a tip. Output: one checksummed record, replaced as a whole; or an error that names the file. Accepts any
//! bytes.

use crate::error::IndexError;
use crate::head::Head;
use lydian_disk::Disk;
use lydian_disk::format::{DELETE_INDEX, Format, NumberPlace};
use lydian_engine::Tip;
use lydian_primitives::{BlockHash, Height, ParseError, Reader};
use std::path::Path;

const TEXT: &[u8; 16] = b"lydian filters\0\0";

/// The format of the tip file, and with it of the logs.
pub const FILTERS_FORMAT: Format =
    Format { number: 1, oldest: 1, place: NumberPlace::Record(TEXT), otherwise: DELETE_INDEX };

const HEAD: Head = Head {
    text: TEXT,
    format: FILTERS_FORMAT,
    other_file: "not a file of the block filters",
    other_chain: "the block filters of another chain",
};

pub(super) fn encode(tip: Tip, genesis: &BlockHash) -> Vec<u8> {
    HEAD.encode(genesis, &[&tip.height.0.to_le_bytes()[..], &tip.hash.0].concat())
}

/// The content of the file; `None` if it does not exist.
pub(super) fn read(disk: &dyn Disk, path: &Path, genesis: &BlockHash) -> Result<Option<Tip>, IndexError> {
    let Some(content) = HEAD.read(disk, path, genesis)? else { return Ok(None) };
    let damaged = |what| IndexError::damaged(path, 0, what);
    let mut reader = Reader::new(&content);
    let cut = |_: ParseError| damaged("it ends too early");
    let height = Height(reader.u32().map_err(cut)?);
    let hash = BlockHash(reader.array().map_err(cut)?);
    if height.0 == u32::MAX {
        return Err(damaged("a height that no block has"));
    }
    Ok(Some(Tip { height, hash }))
}
