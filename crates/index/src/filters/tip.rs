//! The tip file of the block filters: the block of the last checkpoint.
//!
//! Input: a tip. Output: one checksummed record, replaced as a whole; or an error that names the file. Accepts any
//! bytes.

use crate::error::IndexError;
use lydian_disk::record::{Records, encode_record};
use lydian_disk::{Disk, DiskErrorKind, read_whole};
use lydian_engine::Tip;
use lydian_primitives::{BlockHash, Height, ParseError, Reader};
use std::path::Path;

/// The format that is written, and the highest one that is read.
const VERSION: u32 = 1;

const TEXT: &[u8; 16] = b"lydian filters\0\0";

/// Larger than any file of this format.
const FILE_SIZE_MAX: u64 = 1 << 12;

pub(super) fn encode(tip: Tip, genesis: &BlockHash) -> Vec<u8> {
    let mut payload = TEXT.to_vec();
    payload.extend_from_slice(&VERSION.to_le_bytes());
    payload.extend_from_slice(&genesis.0);
    payload.extend_from_slice(&tip.height.0.to_le_bytes());
    payload.extend_from_slice(&tip.hash.0);
    let mut bytes = Vec::new();
    encode_record(&payload, 0, &mut bytes);
    bytes
}

/// The content of the file; `None` if it does not exist.
pub(super) fn read(disk: &dyn Disk, path: &Path, genesis: &BlockHash) -> Result<Option<Tip>, IndexError> {
    let bytes = match read_whole(disk, path, FILE_SIZE_MAX) {
        Ok(bytes) => bytes,
        Err(error) if error.kind == DiskErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let damaged = |what| IndexError::damaged(path, 0, what);
    let Some(Ok(payload)) = Records::read(&bytes, 0).next() else {
        return Err(damaged("its checksum does not match"));
    };
    let mut reader = Reader::new(payload);
    let cut = |_: ParseError| damaged("it ends too early");
    if reader.take(TEXT.len()).map_err(cut)? != TEXT {
        return Err(IndexError::OtherFile { path: path.to_owned(), what: "not a file of the block filters" });
    }
    let found = reader.u32().map_err(cut)?;
    if found > VERSION {
        return Err(IndexError::NewerFormat { path: path.to_owned(), found, known: VERSION });
    }
    if reader.array().map_err(cut)? != genesis.0 {
        return Err(IndexError::OtherFile { path: path.to_owned(), what: "the block filters of another chain" });
    }
    let height = Height(reader.u32().map_err(cut)?);
    let hash = BlockHash(reader.array().map_err(cut)?);
    if height.0 == u32::MAX {
        return Err(damaged("a height that no block has"));
    }
    Ok(Some(Tip { height, hash }))
}
