//! The commit record of the tables: the block of the last checkpoint, which tables there are, and up to which heights
//! blocks are sealed, and in segments.
//!
//! Input: what a checkpoint saves. Output: one checksummed record, replaced as a whole; or an error that names the
//! file. Accepts any bytes.

use super::numbers::Salt;
use super::segment::GROUP_BLOCKS;
use super::{TXINDEX_NAME, TXOSPENDERINDEX_NAME};
use crate::error::IndexError;
use crate::head::Head;
use lydian_disk::Disk;
use lydian_disk::format::{DELETE_INDEX, Format, NumberPlace};
use lydian_engine::Tip;
use lydian_primitives::{BlockHash, Height, ParseError, Reader};
use std::path::Path;

const TEXT: &[u8; 16] = b"lydian tables\0\0\0";

/// The format of the commit record, and with it of all tables.
pub const TABLES_FORMAT: Format =
    Format { number: 3, oldest: 3, place: NumberPlace::Record(TEXT), otherwise: DELETE_INDEX };

const HEAD: Head = Head {
    text: TEXT,
    format: TABLES_FORMAT,
    other_file: "not a file of the tables",
    other_chain: "the tables of another chain",
};

/// Which tables an index has, beside those of transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The events of scripts, and the positions of transactions in their blocks.
    pub has_scripts: bool,
    /// The txids in the order of their numbers.
    pub has_txids: bool,
}

/// The bits of a profile in the record.
const SCRIPTS_BIT: u8 = 1;
const TXIDS_BIT: u8 = 2;

impl Profile {
    /// The name in `getindexinfo` of an index with these tables.
    pub(super) fn name(self) -> &'static str {
        if self.has_scripts { TXOSPENDERINDEX_NAME } else { TXINDEX_NAME }
    }

    /// Whether an index with these tables answers everything that one with `other` does.
    pub(super) fn covers(self, other: Profile) -> bool {
        (self.has_scripts || !other.has_scripts) && (self.has_txids || !other.has_txids)
    }

    /// As records have it.
    pub fn bits(self) -> u8 {
        (if self.has_scripts { SCRIPTS_BIT } else { 0 }) | (if self.has_txids { TXIDS_BIT } else { 0 })
    }

    /// `None` if no profile has these bits.
    pub fn of_bits(bits: u8) -> Option<Profile> {
        let profile = Profile { has_scripts: bits & SCRIPTS_BIT != 0, has_txids: bits & TXIDS_BIT != 0 };
        (profile.bits() == bits).then_some(profile)
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Commit {
    pub(super) salt: Salt,
    /// `None` before the genesis block.
    pub(super) tip: Option<Tip>,
    /// The blocks below this height are sealed: no log has them.
    pub(super) sealed: u32,
    /// The blocks below this height are in segments. Those that are not sealed are in logs too.
    pub(super) written: u32,
    pub(super) profile: Profile,
}

pub(super) fn encode(commit: &Commit, genesis: &BlockHash) -> Vec<u8> {
    let mut payload = Vec::new();
    payload.extend_from_slice(&commit.salt.to_bytes());
    payload.extend_from_slice(&commit.sealed.to_le_bytes());
    payload.extend_from_slice(&commit.written.to_le_bytes());
    payload.push(commit.profile.bits());
    if let Some(tip) = &commit.tip {
        payload.extend_from_slice(&tip.height.0.to_le_bytes());
        payload.extend_from_slice(&tip.hash.0);
    }
    HEAD.encode(genesis, &payload)
}

/// The content of the file; `None` if it does not exist.
pub(super) fn read(disk: &dyn Disk, path: &Path, genesis: &BlockHash) -> Result<Option<Commit>, IndexError> {
    let Some(content) = HEAD.read(disk, path, genesis)? else { return Ok(None) };
    let damaged = |what| IndexError::damaged(path, 0, what);
    let mut reader = Reader::new(&content);
    let cut = |_: ParseError| damaged("it ends too early");
    let salt = Salt::from_bytes(reader.array().map_err(cut)?);
    let (sealed, written) = (reader.u32().map_err(cut)?, reader.u32().map_err(cut)?);
    let [bits] = reader.array().map_err(cut)?;
    let profile = Profile::of_bits(bits).ok_or_else(|| damaged("an unknown set of tables"))?;
    let tip = match reader.remaining() {
        0 => None,
        _ => {
            let height = Height(reader.u32().map_err(cut)?);
            Some(Tip { height, hash: BlockHash(reader.array().map_err(cut)?) })
        }
    };
    let blocks = tip.map_or(0, |tip| tip.height.0.saturating_add(1));
    let are_groups = sealed.is_multiple_of(GROUP_BLOCKS) && written.is_multiple_of(GROUP_BLOCKS);
    if !are_groups || sealed > written || written > blocks {
        return Err(damaged("blocks are sealed above its tip"));
    }
    Ok(Some(Commit { salt, tip, sealed, written, profile }))
}
