//! The commit record of the tables: the block of the last checkpoint, and up to which height blocks are sealed.
//!
//! Input: what a checkpoint saves. Output: one checksummed record, replaced as a whole; or an error that names the
//! file. Accepts any bytes.

use super::numbers::Salt;
use super::segment::GROUP_BLOCKS;
use crate::error::IndexError;
use lydian_disk::record::{Records, encode_record};
use lydian_disk::{Disk, DiskErrorKind, read_whole};
use lydian_engine::Tip;
use lydian_primitives::{BlockHash, Height, ParseError, Reader};
use std::path::Path;

const VERSION: u32 = 1;
const TEXT: &[u8; 16] = b"lydian tables\0\0\0";

/// Larger than any file of this format.
const FILE_SIZE_MAX: u64 = 1 << 12;

#[derive(Clone, Copy, Debug)]
pub(super) struct Commit {
    pub(super) salt: Salt,
    /// `None` before the genesis block.
    pub(super) tip: Option<Tip>,
    /// The blocks below this height are in segments.
    pub(super) sealed: u32,
}

pub(super) fn encode(commit: &Commit, genesis: &BlockHash) -> Vec<u8> {
    let mut payload = TEXT.to_vec();
    payload.extend_from_slice(&VERSION.to_le_bytes());
    payload.extend_from_slice(&genesis.0);
    payload.extend_from_slice(&commit.salt.0.to_le_bytes());
    payload.extend_from_slice(&commit.salt.1.to_le_bytes());
    payload.extend_from_slice(&commit.sealed.to_le_bytes());
    if let Some(tip) = &commit.tip {
        payload.extend_from_slice(&tip.height.0.to_le_bytes());
        payload.extend_from_slice(&tip.hash.0);
    }
    let mut bytes = Vec::new();
    encode_record(&payload, 0, &mut bytes);
    bytes
}

/// The content of the file; `None` if it does not exist.
pub(super) fn read(disk: &dyn Disk, path: &Path, genesis: &BlockHash) -> Result<Option<Commit>, IndexError> {
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
        return Err(IndexError::OtherFile { path: path.to_owned(), what: "not a file of the tables" });
    }
    let found = reader.u32().map_err(cut)?;
    if found > VERSION {
        return Err(IndexError::NewerFormat { path: path.to_owned(), found, known: VERSION });
    }
    if reader.array().map_err(cut)? != genesis.0 {
        return Err(IndexError::OtherFile { path: path.to_owned(), what: "the tables of another chain" });
    }
    let salt = Salt(u64::from_le_bytes(reader.array().map_err(cut)?), u64::from_le_bytes(reader.array().map_err(cut)?));
    let sealed = reader.u32().map_err(cut)?;
    let tip = match reader.remaining() {
        0 => None,
        _ => {
            let height = Height(reader.u32().map_err(cut)?);
            Some(Tip { height, hash: BlockHash(reader.array().map_err(cut)?) })
        }
    };
    let blocks = tip.map_or(0, |tip| tip.height.0.saturating_add(1));
    if !sealed.is_multiple_of(GROUP_BLOCKS) || sealed > blocks {
        return Err(damaged("blocks are sealed above its tip"));
    }
    Ok(Some(Commit { salt, tip, sealed }))
}
