//! The tip file of the coin statistics: the block of the last checkpoint, with the running sums and MuHash.
//!
//! Input: what a checkpoint saves. Output: one checksummed record, replaced as a whole; or an error that names the
//! file. Accepts any bytes.

use super::block::Sums;
use crate::error::IndexError;
use crate::head::Head;
use lydian_consensus::Params;
use lydian_disk::Disk;
use lydian_disk::format::{DELETE_INDEX, Format, NumberPlace};
use lydian_engine::Tip;
use lydian_hash::MuHash3072;
use lydian_primitives::{BlockHash, Height, ParseError, Reader};
use std::path::Path;

const TEXT: &[u8; 16] = b"lydian coinstats";

/// The format of the tip file, and with it of the log.
pub const COINSTATS_FORMAT: Format =
    Format { number: 1, oldest: 1, place: NumberPlace::Record(TEXT), otherwise: DELETE_INDEX };

const HEAD: Head = Head {
    text: TEXT,
    format: COINSTATS_FORMAT,
    other_file: "not a file of the coin statistics",
    other_chain: "the statistics of another chain",
};

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
    let mut payload = Vec::new();
    payload.extend_from_slice(&saved.tip.height.0.to_le_bytes());
    payload.extend_from_slice(&saved.tip.hash.0);
    payload.extend_from_slice(&saved.records.to_le_bytes());
    write_sums(&saved.sums, &mut payload);
    payload.extend_from_slice(&saved.muhash.to_bytes());
    HEAD.encode(&params.genesis_hash, &payload)
}

/// The content of the file; `None` if it does not exist.
pub(super) fn read(disk: &dyn Disk, path: &Path, params: &Params) -> Result<Option<Saved>, IndexError> {
    let Some(content) = HEAD.read(disk, path, &params.genesis_hash)? else { return Ok(None) };
    let mut reader = Reader::new(&content);
    let cut = |_: ParseError| IndexError::damaged(path, 0, "it ends too early");
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
