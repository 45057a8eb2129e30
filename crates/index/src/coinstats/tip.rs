//! The tip file of the coin statistics: the block of the last checkpoint, with the running sums and MuHash.
//!
//! Input: what a checkpoint saves. Output: one checksummed record, replaced as a whole; or an error that names the
//! file. Accepts any bytes.

use super::block::Sums;
use crate::error::IndexError;
use lydian_consensus::Params;
use lydian_disk::record::{Records, encode_record};
use lydian_disk::{Disk, DiskErrorKind, read_whole};
use lydian_engine::Tip;
use lydian_hash::MuHash3072;
use lydian_primitives::{BlockHash, Height, ParseError, Reader};
use std::path::Path;

/// The format that is written, and the highest one that is read.
pub(super) const VERSION: u32 = 1;

const TEXT: &[u8; 16] = b"lydian coinstats";

/// Larger than any file of this format.
const FILE_SIZE_MAX: u64 = 1 << 12;

/// What a checkpoint saves.
#[derive(Clone, Debug)]
pub(super) struct Saved {
    pub(super) tip: Tip,
    /// The number of valid records of the log.
    pub(super) records: u32,
    pub(super) sums: Sums,
    pub(super) muhash: MuHash3072,
}

pub(super) fn encode(saved: &Saved, params: &Params) -> Vec<u8> {
    let mut payload = TEXT.to_vec();
    payload.extend_from_slice(&VERSION.to_le_bytes());
    payload.extend_from_slice(&params.genesis_hash.0);
    payload.extend_from_slice(&saved.tip.height.0.to_le_bytes());
    payload.extend_from_slice(&saved.tip.hash.0);
    payload.extend_from_slice(&saved.records.to_le_bytes());
    write_sums(&saved.sums, &mut payload);
    payload.extend_from_slice(&saved.muhash.to_bytes());
    let mut bytes = Vec::new();
    encode_record(&payload, 0, &mut bytes);
    bytes
}

/// The content of the file; `None` if it does not exist.
pub(super) fn read(disk: &dyn Disk, path: &Path, params: &Params) -> Result<Option<Saved>, IndexError> {
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
        return Err(IndexError::OtherFile { path: path.to_owned(), what: "not a file of the coin statistics" });
    }
    let found = reader.u32().map_err(cut)?;
    if found > VERSION {
        return Err(IndexError::NewerFormat { path: path.to_owned(), found, known: VERSION });
    }
    let genesis: [u8; 32] = reader.array().map_err(cut)?;
    if genesis != params.genesis_hash.0 {
        return Err(IndexError::OtherFile { path: path.to_owned(), what: "the statistics of another chain" });
    }
    let height = Height(reader.u32().map_err(cut)?);
    let hash = BlockHash(reader.array().map_err(cut)?);
    let records = reader.u32().map_err(cut)?;
    let sums = read_sums(&mut reader).map_err(cut)?;
    let muhash = MuHash3072::from_bytes(&reader.array().map_err(cut)?);
    Ok(Some(Saved { tip: Tip { height, hash }, records, sums, muhash }))
}

pub(super) fn write_sums(sums: &Sums, out: &mut Vec<u8>) {
    out.extend_from_slice(&sums.coins.to_le_bytes());
    out.extend_from_slice(&sums.bogosize.to_le_bytes());
    sums.amounts().iter().for_each(|amount| out.extend_from_slice(&amount.to_le_bytes()));
}

pub(super) fn read_sums(reader: &mut Reader<'_>) -> Result<Sums, ParseError> {
    let mut sums = Sums {
        coins: i64::from_le_bytes(reader.array()?),
        bogosize: i64::from_le_bytes(reader.array()?),
        ..Sums::default()
    };
    for amount in sums.amounts_mut() {
        *amount = i128::from_le_bytes(reader.array()?);
    }
    Ok(sums)
}
