//! Compact blocks (BIP-0152): a block as its header, short ids, and the transactions that the sender expects to be
//! missing.
//!
//! Input: messages, a parsed block, available transactions. Output: messages, and the bytes of the reconstructed block.
//! Invariants: anything a peer sends is either refused or becomes a block that the caller accepts or rejects by
//! checking its roots; a block is reconstructed once (the value is consumed); ids are those of version 2 (wtxids).
//! Cost: one SipHash and one binary search per available transaction. Not here: which transactions are available, and
//! which peer to ask.

use crate::codec::list;
use crate::error::DecodeError;
use crate::limits::COMPACT_TX_COUNT_MAX;
use lydian_hash::{SipHasher, sha256};
use lydian_primitives::{Block, BlockHash, HEADER_SIZE, Header, Reader, Wtxid, transaction, write_compact_size};
use std::fmt;

/// `cmpctblock`: Core's `CBlockHeaderAndShortTxIDs`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompactBlock {
    pub header: Header,
    /// Chosen by the sender; part of the key of the short ids.
    pub nonce: u64,
    /// Short ids of 48 bits each, of the transactions that are not prefilled, in block order.
    pub short_ids: Vec<u64>,
    pub prefilled: Vec<PrefilledTransaction>,
}

/// A transaction included in the compact block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrefilledTransaction {
    /// Number of transactions between the previous prefilled one (or the start of the block) and this one.
    pub skipped: u16,
    pub tx: Vec<u8>,
}

/// Size of a short id in bytes.
const SHORT_ID_SIZE: usize = 6;
/// Size of the smallest transaction in bytes: version, two empty lists, lock time.
const TX_SIZE_MIN: usize = 10;

impl CompactBlock {
    /// Builds the message for a block: the coinbase is prefilled, all other transactions are short ids.
    pub fn new(block: &Block, nonce: u64) -> CompactBlock {
        let mut compact = CompactBlock { header: *block.header(), nonce, short_ids: Vec::new(), prefilled: Vec::new() };
        let hasher = compact.hasher();
        let mut txs = block.txs();
        compact.prefilled =
            txs.next().map(|tx| PrefilledTransaction { skipped: 0, tx: tx.bytes().to_vec() }).into_iter().collect();
        compact.short_ids = txs.map(|tx| short_id(&hasher, &tx.wtxid())).collect();
        compact
    }

    /// The number of transactions in the block it represents.
    pub fn tx_count(&self) -> usize {
        self.short_ids.len() + self.prefilled.len()
    }

    /// The short id of a transaction in this block.
    pub fn short_id(&self, wtxid: &Wtxid) -> u64 {
        short_id(&self.hasher(), wtxid)
    }

    fn hasher(&self) -> SipHasher {
        let mut preimage = [0; 88];
        preimage[..80].copy_from_slice(&self.header.to_bytes());
        preimage[80..].copy_from_slice(&self.nonce.to_le_bytes());
        let key = sha256(&preimage);
        let half = |from: usize| key[from..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        SipHasher::new(half(0), half(8))
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<CompactBlock, DecodeError> {
        let header = Header::read(reader)?;
        let nonce = u64::from_le_bytes(reader.array()?);
        let count = reader.compact_size()?;
        let short_ids = list(reader, count, SHORT_ID_SIZE, |reader| {
            let [a, b, c, d, e, f] = reader.array()?;
            Ok(u64::from_le_bytes([a, b, c, d, e, f, 0, 0]))
        })?;
        let count = reader.compact_size()?;
        let prefilled = list(reader, count, 1 + TX_SIZE_MIN, |reader| {
            let skipped = u16::try_from(reader.compact_size()?).map_err(|_| DecodeError::IndexOverflow)?;
            Ok(PrefilledTransaction { skipped, tx: read_tx(reader)? })
        })?;
        let block = CompactBlock { header, nonce, short_ids, prefilled };
        if block.tx_count() > COMPACT_TX_COUNT_MAX {
            return Err(DecodeError::IndexOverflow);
        }
        Ok(block)
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.header.to_bytes());
        out.extend_from_slice(&self.nonce.to_le_bytes());
        write_compact_size(out, self.short_ids.len());
        for id in &self.short_ids {
            out.extend_from_slice(&id.to_le_bytes()[..SHORT_ID_SIZE]);
        }
        write_compact_size(out, self.prefilled.len());
        for prefilled in &self.prefilled {
            write_compact_size(out, usize::from(prefilled.skipped));
            out.extend_from_slice(&prefilled.tx);
        }
    }
}

fn short_id(hasher: &SipHasher, wtxid: &Wtxid) -> u64 {
    hasher.hash_32(&wtxid.0) & 0xffff_ffff_ffff
}

fn read_tx(reader: &mut Reader<'_>) -> Result<Vec<u8>, DecodeError> {
    let mut end = reader.clone();
    transaction::skip(&mut end)?;
    Ok(reader.take(end.offset() - reader.offset())?.to_vec())
}

/// `getblocktxn`: Core's `BlockTransactionsRequest`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockTransactionsRequest {
    pub block_hash: BlockHash,
    /// Positions in the block, ascending.
    pub indexes: Vec<u16>,
}

impl BlockTransactionsRequest {
    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<BlockTransactionsRequest, DecodeError> {
        let block_hash = BlockHash(reader.array()?);
        let count = reader.compact_size()?;
        let mut next = 0usize;
        let indexes = list(reader, count, 1, |reader| {
            let index = u16::try_from(next + reader.compact_size()?).map_err(|_| DecodeError::IndexOverflow)?;
            next = usize::from(index) + 1;
            Ok(index)
        })?;
        Ok(BlockTransactionsRequest { block_hash, indexes })
    }

    /// Writes indexes that do not ascend as if each directly followed the one before. The caller ensures that they
    /// ascend.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.block_hash.0);
        write_compact_size(out, self.indexes.len());
        let mut next = 0;
        for index in &self.indexes {
            write_compact_size(out, usize::from(*index).saturating_sub(next));
            next = usize::from(*index) + 1;
        }
    }
}

/// `blocktxn`: Core's `BlockTransactions`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockTransactions {
    pub block_hash: BlockHash,
    pub txs: Vec<Vec<u8>>,
}

impl BlockTransactions {
    /// Answers a request. `None` if it asks for a transaction that the block does not have, for which Core disconnects.
    pub fn new(block: &Block, request: &BlockTransactionsRequest) -> Option<BlockTransactions> {
        let tx = |index: &u16| {
            let index = usize::from(*index);
            (index < block.tx_count()).then(|| block.tx(index).bytes().to_vec())
        };
        let txs = request.indexes.iter().map(tx).collect::<Option<_>>()?;
        Some(BlockTransactions { block_hash: request.block_hash, txs })
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<BlockTransactions, DecodeError> {
        let block_hash = BlockHash(reader.array()?);
        let count = reader.compact_size()?;
        Ok(BlockTransactions { block_hash, txs: list(reader, count, TX_SIZE_MIN, read_tx)? })
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.block_hash.0);
        write_compact_size(out, self.txs.len());
        for tx in &self.txs {
            out.extend_from_slice(tx);
        }
    }
}

/// Why a compact block cannot be used; Core's `ReadStatus`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactError {
    /// The message cannot describe any block: Core punishes the peer.
    Invalid,
    /// Two ids are equal, or the reconstructed block is not the announced one; no peer is at fault. The full block must
    /// be fetched.
    Failed,
}

impl fmt::Display for CompactError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CompactError::Invalid => "invalid compact block",
            CompactError::Failed => "short ids collide, the whole block is needed",
        })
    }
}

impl std::error::Error for CompactError {}

/// The low bits of short ids: nearly all transactions of a large mempool are dismissed without a search. The 5,000 ids
/// of a full block are a 26th of the bits.
struct IdFilter(Vec<u64>);

impl IdFilter {
    const WORDS: usize = 1 << 11;

    fn new(places: &[(u64, u16)]) -> IdFilter {
        let mut words = vec![0; IdFilter::WORDS];
        for (id, _) in places {
            let (word, bit) = IdFilter::place(*id);
            words[word] |= bit;
        }
        IdFilter(words)
    }

    fn may_have(&self, id: u64) -> bool {
        let (word, bit) = IdFilter::place(id);
        self.0[word] & bit != 0
    }

    fn place(id: u64) -> (usize, u64) {
        (usize::try_from(id / 64).unwrap_or(0) % IdFilter::WORDS, 1 << (id % 64))
    }
}

/// A block with some of its transactions: Core's `PartiallyDownloadedBlock`.
#[derive(Clone, Debug)]
pub struct PartialBlock {
    header: Header,
    txs: Vec<Option<Vec<u8>>>,
}

impl PartialBlock {
    /// Places the prefilled transactions and the available ones. Copies the bytes of `at_hand` only if an id matches.
    pub fn new<T: AsRef<[u8]>>(
        compact: &CompactBlock,
        at_hand: impl IntoIterator<Item = (Wtxid, T)>,
    ) -> Result<PartialBlock, CompactError> {
        let hasher = compact.hasher();
        PartialBlock::with_ids(compact, at_hand, |wtxid| short_id(&hasher, wtxid))
    }

    fn with_ids<T: AsRef<[u8]>>(
        compact: &CompactBlock,
        at_hand: impl IntoIterator<Item = (Wtxid, T)>,
        id: impl Fn(&Wtxid) -> u64,
    ) -> Result<PartialBlock, CompactError> {
        let mut txs = place_prefilled(compact)?;
        let free = (0u16..=u16::MAX).zip(&txs).filter(|(_, tx)| tx.is_none()).map(|(index, _)| index);
        let mut places: Vec<(u64, u16)> = compact.short_ids.iter().copied().zip(free).collect();
        places.sort_unstable();
        if places.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Err(CompactError::Failed);
        }
        let filter = IdFilter::new(&places);
        let mut found: Vec<Option<Wtxid>> = vec![None; places.len()];
        let mut filled = 0;
        for (wtxid, bytes) in at_hand {
            if filled == places.len() {
                break;
            }
            let id = id(&wtxid);
            if !filter.may_have(id) {
                continue;
            }
            let Ok(at) = places.binary_search_by_key(&id, |place| place.0) else { continue };
            let tx = &mut txs[usize::from(places[at].1)];
            match found[at] {
                None => {
                    *tx = Some(bytes.as_ref().to_vec());
                    found[at] = Some(wtxid);
                    filled += 1;
                }
                // Two different transactions match, so it is unclear which one is meant: it will be requested.
                Some(other) if other != wtxid && tx.is_some() => {
                    *tx = None;
                    filled -= 1;
                }
                Some(_) => {}
            }
        }
        Ok(PartialBlock { header: compact.header, txs })
    }

    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Memory used, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let txs: usize = self.txs.iter().flatten().map(Vec::capacity).sum();
        size_of::<PartialBlock>() + self.txs.capacity() * size_of::<Option<Vec<u8>>>() + txs
    }

    /// Positions that are still empty, ascending.
    pub fn missing(&self) -> Vec<u16> {
        (0u16..=u16::MAX).zip(&self.txs).filter(|(_, tx)| tx.is_none()).map(|(index, _)| index).collect()
    }

    /// The request for the missing transactions.
    pub fn request(&self) -> BlockTransactionsRequest {
        BlockTransactionsRequest { block_hash: self.header.hash(), indexes: self.missing() }
    }

    /// Returns the size of the block with these transactions in the empty places. Copies nothing.
    pub fn block_size(&self, missing: &[Vec<u8>]) -> Result<usize, CompactError> {
        if self.txs.iter().filter(|tx| tx.is_none()).count() != missing.len() {
            return Err(CompactError::Invalid);
        }
        let txs: usize = self.txs.iter().flatten().chain(missing).map(Vec::len).sum();
        let mut count = Vec::new();
        write_compact_size(&mut count, self.txs.len());
        Ok(HEADER_SIZE + count.len() + txs)
    }

    /// Returns the bytes of the block, with the missing transactions in their places. The caller must check that the
    /// header's merkle root and the witness commitment match the transactions: if not, short ids collided
    /// ([`CompactError::Failed`]).
    pub fn fill(self, missing: &[Vec<u8>]) -> Result<Vec<u8>, CompactError> {
        let mut out = Vec::with_capacity(self.block_size(missing)?);
        out.extend_from_slice(&self.header.to_bytes());
        write_compact_size(&mut out, self.txs.len());
        let mut missing = missing.iter();
        for tx in &self.txs {
            let tx = tx.as_ref().or_else(|| missing.next()).ok_or(CompactError::Invalid)?;
            out.extend_from_slice(tx);
        }
        if missing.next().is_some() { Err(CompactError::Invalid) } else { Ok(out) }
    }
}

fn place_prefilled(compact: &CompactBlock) -> Result<Vec<Option<Vec<u8>>>, CompactError> {
    let count = compact.tx_count();
    // Core treats a header with zero bits as null.
    if compact.header.bits == 0 || count == 0 || count > COMPACT_TX_COUNT_MAX {
        return Err(CompactError::Invalid);
    }
    let mut txs = vec![None; count];
    let mut next = 0;
    for (placed, prefilled) in compact.prefilled.iter().enumerate() {
        let index = next + usize::from(prefilled.skipped);
        // Beyond the available ids and the placed transactions: a gap that nothing fills.
        if index > compact.short_ids.len() + placed || is_null(&prefilled.tx) {
            return Err(CompactError::Invalid);
        }
        txs[index] = Some(prefilled.tx.clone());
        next = index + 1;
    }
    Ok(txs)
}

/// Neither inputs nor outputs: Core's `CTransaction::IsNull`.
fn is_null(tx: &[u8]) -> bool {
    tx.len() == TX_SIZE_MIN
}

#[cfg(test)]
mod tests;
