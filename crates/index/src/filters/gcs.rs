//! The basic filter of a block (BIP-0158): a Golomb-Rice coded set of its scripts. Pure.
//!
//! Input: a block with the coins it spent; or the bytes of a filter, its block's hash and scripts to look for. Output:
//! the filter; or whether a script may be in the block. A filter has a CompactSize `N`, and the differences of the
//! sorted 64-bit values of `N` scripts as Rice codes. A value is SipHash-2-4 of the script, keyed with the first 16
//! bytes of the block hash, reduced to `N * M`.
//!
//! Invariants: any bytes are read; the number of elements must agree with the bytes. A script that is in the block
//! always matches; another one with a probability of 1 in 784,931. Cost: a SipHash of each script, and a sort.

use crate::tables::bits::{BitReader, BitWriter};
use lydian_engine::BlockWithSpent;
use lydian_hash::{SipHasher, sha256d};
use lydian_primitives::{BlockHash, Reader, write_compact_size};
use lydian_script::opcodes::OP_RETURN;
use std::fmt;

/// The number of low bits of a Rice code: `P` of BIP-0158.
const RICE_BITS: u32 = 19;

/// The inverse of the rate of false matches: `M` of BIP-0158.
const RANGE: u64 = 784_931;

/// Why bytes are not a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterError {
    /// The number of elements cannot be read.
    Count,
    /// Fewer elements than the number says.
    TooShort,
    /// Bytes follow the last element.
    TooLong,
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FilterError::Count => "the number of elements of a block filter cannot be read",
            FilterError::TooShort => "a block filter ends too early",
            FilterError::TooLong => "bytes follow the last element of a block filter",
        })
    }
}

impl std::error::Error for FilterError {}

/// The hash function of the filter of one block.
#[derive(Clone, Copy, Debug)]
struct Values {
    hasher: SipHasher,
    /// Values are below this.
    end: u64,
}

impl Values {
    fn new(block: &BlockHash, count: u64) -> Values {
        let half = |at: usize| block.0[at..at + 8].iter().rev().fold(0, |half, byte| half << 8 | u64::from(*byte));
        Values { hasher: SipHasher::new(half(0), half(8)), end: count.saturating_mul(RANGE) }
    }

    fn of(&self, script: &[u8]) -> u64 {
        let hash = u128::from(self.hasher.write(script).finish());
        u64::try_from((hash * u128::from(self.end)) >> 64).unwrap_or(u64::MAX)
    }
}

/// The basic filter of a block: of the scripts of its outputs, without those that begin with `OP_RETURN`, and of the
/// coins that it spent. Empty scripts are left out.
pub fn basic_filter(block: &BlockWithSpent<'_>) -> Vec<u8> {
    let created = block.block.txs().flat_map(|tx| tx.outputs()).map(|output| output.script_pubkey);
    let created = created.filter(|script| script.first() != Some(&OP_RETURN));
    let spent = block.spent.iter().map(|coin| &*coin.script_pubkey);
    encode(&block.block.hash(), created.chain(spent).filter(|script| !script.is_empty()))
}

/// The filter of scripts, each of which counts once.
pub(super) fn encode<'a>(block: &BlockHash, scripts: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    // The range of the values depends on the number of different scripts: those of equal hash are neighbours.
    let hasher = Values::new(block, 0).hasher;
    let mut elements: Vec<(u64, &[u8])> = scripts.map(|script| (hasher.write(script).finish(), script)).collect();
    elements.sort_unstable();
    elements.dedup();
    let mut out = Vec::new();
    write_compact_size(&mut out, elements.len());
    let end = u128::from((elements.len() as u64).saturating_mul(RANGE));
    let mut bits = BitWriter::default();
    let mut last = 0;
    for (hash, _) in &elements {
        // In the order of the hashes, too.
        let value = u64::try_from((u128::from(*hash) * end) >> 64).unwrap_or(u64::MAX);
        bits.write_rice(value - last, RICE_BITS);
        last = value;
    }
    out.extend_from_slice(&bits.finish());
    out
}

/// Whether a filter of a block may contain one of some scripts. A filter that ends too early or has bytes behind its
/// last element is an error, unless a match is found before.
pub fn match_any<'a>(
    filter: &[u8],
    block: &BlockHash,
    scripts: impl IntoIterator<Item = &'a [u8]>,
) -> Result<bool, FilterError> {
    let mut reader = Reader::new(filter);
    let count = reader.compact_size().map_err(|_| FilterError::Count)? as u64;
    let values = Values::new(block, count);
    let mut wanted: Vec<u64> = scripts.into_iter().map(|script| values.of(script)).collect();
    wanted.sort_unstable();
    let mut wanted = wanted.into_iter().peekable();
    let rest = reader.take(reader.remaining()).map_err(|_| FilterError::Count)?;
    let mut bits = BitReader::new(rest);
    let mut value: u64 = 0;
    for _ in 0..count {
        let difference = bits.read_rice(RICE_BITS).ok_or(FilterError::TooShort)?;
        value = value.saturating_add(difference);
        while wanted.next_if(|wanted| *wanted < value).is_some() {}
        if wanted.peek() == Some(&value) {
            return Ok(true);
        }
    }
    if bits.is_at_last_byte() { Ok(false) } else { Err(FilterError::TooLong) }
}

/// The hash of a filter.
pub fn filter_hash(filter: &[u8]) -> [u8; 32] {
    sha256d(filter)
}

/// The filter header of a block: the hash of its filter's hash and of the filter header before it, which is zeros for
/// the genesis block.
pub fn filter_header(filter_hash: &[u8; 32], previous: &[u8; 32]) -> [u8; 32] {
    let mut bytes = [0; 64];
    bytes[..32].copy_from_slice(filter_hash);
    bytes[32..].copy_from_slice(previous);
    sha256d(&bytes)
}
