//! The first two stages of a block: [`RawBlock`] (unparsed bytes) and [`Block`] (parsed and hashed).
//!
//! Input: one owned buffer. Output: header, transaction views, txids, wtxids, merkle root, position of the witness
//! commitment and the witness merkle root. Invariants: a block's tables were filled from the buffer stored beside them,
//! and all its ids were computed from that buffer. Cost: one pass to parse, about two hashes of every byte. No
//! consensus rule is checked.

use crate::header::Header;
use crate::ids::BlockHash;
use crate::reader::{ParseError, Reader};
use crate::table::{TRANSACTION_SIZE_MIN, Tables};
use crate::transaction::{Tx, check_buffer_size, fill_ids};
use lydian_hash::merkle_root;

/// The first bytes of an output script that is a witness commitment: OP_RETURN, a push of 36 bytes, and the tag
/// (BIP-0141).
pub const WITNESS_COMMITMENT_HEADER: [u8; 6] = [0x6a, 0x24, 0xaa, 0x21, 0xa9, 0xed];

/// The minimum size in bytes of an output script that is a witness commitment: Core's `MINIMUM_WITNESS_COMMITMENT`.
pub const WITNESS_COMMITMENT_SIZE_MIN: usize = 38;

/// A block as read from a file or received from a peer, not yet parsed.
#[derive(Clone, Debug)]
pub struct RawBlock(Box<[u8]>);

impl RawBlock {
    pub fn new(bytes: impl Into<Box<[u8]>>) -> RawBlock {
        RawBlock(bytes.into())
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Parses the block and computes every hash that depends on its bytes alone.
    pub fn parse(self) -> Result<Block, ParseError> {
        Block::from_raw(self)
    }
}

/// A parsed block. Its hashes are computed; its rules are not checked.
#[derive(Clone, Debug)]
pub struct Block {
    bytes: Box<[u8]>,
    header: Header,
    hash: BlockHash,
    tables: Tables,
    merkle_root: [u8; 32],
    is_merkle_mutated: bool,
    witness: Option<WitnessCommitment>,
}

/// The witness commitment of a block and the root it should commit to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WitnessCommitment {
    /// Index of the coinbase output with the commitment: the last one that matches.
    pub output_index: usize,
    /// The 32 bytes after the tag.
    pub commitment: [u8; 32],
    /// Merkle root of the wtxids, with zero for the coinbase.
    pub witness_merkle_root: [u8; 32],
}

impl Block {
    fn from_raw(raw: RawBlock) -> Result<Block, ParseError> {
        let (header, tables) = parse_tables(&raw.0)?;
        let mut block = Block {
            bytes: raw.0,
            hash: header.hash(),
            header,
            tables,
            merkle_root: [0; 32],
            is_merkle_mutated: false,
            witness: None,
        };
        fill_ids(&block.bytes, &mut block.tables);
        let mut txids: Vec<_> = block.tables.txs.iter().map(|tx| tx.txid.0).collect();
        (block.merkle_root, block.is_merkle_mutated) = merkle_root(&mut txids);
        block.witness = block.find_witness_commitment();
        Ok(block)
    }

    /// Core's `GetWitnessCommitmentIndex`: the last matching output of the first transaction.
    fn find_witness_commitment(&self) -> Option<WitnessCommitment> {
        let coinbase = self.txs().next()?;
        let matches = |script: &[u8]| {
            script.len() >= WITNESS_COMMITMENT_SIZE_MIN && script.starts_with(&WITNESS_COMMITMENT_HEADER)
        };
        let (output_index, output) =
            coinbase.outputs().enumerate().filter(|(_, output)| matches(output.script_pubkey)).last()?;
        let mut commitment = [0; 32];
        commitment.copy_from_slice(&output.script_pubkey[6..38]);
        let mut wtxids: Vec<_> = self.tables.txs.iter().map(|tx| tx.wtxid.0).collect();
        wtxids[0] = [0; 32];
        Some(WitnessCommitment { output_index, commitment, witness_merkle_root: merkle_root(&mut wtxids).0 })
    }

    pub fn header(&self) -> &Header {
        &self.header
    }

    pub fn hash(&self) -> BlockHash {
        self.hash
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The block without witnesses, as sent to peers that do not ask for them: Core's `TX_NO_WITNESS`.
    pub fn stripped(&self) -> Vec<u8> {
        let bytes = self.as_bytes();
        let mut stripped = Vec::with_capacity(self.base_size());
        let mut kept_to = 0;
        for tx in &self.tables.txs {
            if tx.has_witness {
                // Marker and flag precede the body, witnesses follow it.
                stripped.extend_from_slice(&bytes[kept_to..tx.start as usize + 4]);
                stripped.extend_from_slice(&bytes[tx.body_start as usize..tx.body_end as usize]);
                kept_to = tx.end as usize - 4;
            }
        }
        stripped.extend_from_slice(&bytes[kept_to..]);
        stripped
    }

    pub fn tx_count(&self) -> usize {
        self.tables.txs.len()
    }

    /// Panics if `index` is not below [`Block::tx_count`].
    pub fn tx(&self, index: usize) -> Tx<'_> {
        Tx::new(&self.bytes, &self.tables, index)
    }

    pub fn txs(&self) -> impl ExactSizeIterator<Item = Tx<'_>> + Clone {
        (0..self.tx_count()).map(|index| self.tx(index))
    }

    /// The number of inputs of all transactions, including the coinbase's.
    pub fn input_count(&self) -> usize {
        self.tables.inputs.len()
    }

    pub fn output_count(&self) -> usize {
        self.tables.outputs.len()
    }

    /// Merkle root of the txids.
    pub fn merkle_root(&self) -> [u8; 32] {
        self.merkle_root
    }

    /// Whether the merkle tree has two equal subtrees side by side, so that another list of transactions has the same
    /// root (CVE-2012-2459).
    pub fn is_merkle_mutated(&self) -> bool {
        self.is_merkle_mutated
    }

    /// The witness commitment, whether or not the rules at the block's height require one.
    pub fn witness_commitment(&self) -> Option<&WitnessCommitment> {
        self.witness.as_ref()
    }

    /// Serialised size in bytes, with witnesses.
    pub fn total_size(&self) -> usize {
        self.bytes.len()
    }

    /// Serialised size in bytes, without witnesses.
    pub fn base_size(&self) -> usize {
        let saved: usize = self.txs().map(|tx| tx.total_size() - tx.base_size()).sum();
        self.bytes.len() - saved
    }

    /// Weight units (BIP-0141): Core's `GetBlockWeight`.
    pub fn weight(&self) -> usize {
        3 * self.base_size() + self.total_size()
    }
}

/// Makes the pass over the bytes without hashing, for the parse benchmark and for scans. Returns the transaction count.
pub fn scan(bytes: &[u8]) -> Result<usize, ParseError> {
    parse_tables(bytes).map(|(_, tables)| tables.txs.len())
}

/// Like [`scan`], but bytes may follow the block. Returns the block's size in bytes.
pub fn scan_prefix(bytes: &[u8]) -> Result<usize, ParseError> {
    check_buffer_size(bytes)?;
    let mut reader = Reader::new(bytes);
    read_tables(&mut reader)?;
    Ok(reader.offset())
}

fn parse_tables(bytes: &[u8]) -> Result<(Header, Tables), ParseError> {
    check_buffer_size(bytes)?;
    let mut reader = Reader::new(bytes);
    let read = read_tables(&mut reader)?;
    reader.finish()?;
    Ok(read)
}

fn read_tables(reader: &mut Reader<'_>) -> Result<(Header, Tables), ParseError> {
    let header = Header::read(reader)?;
    let count = reader.compact_size()?;
    let mut tables = Tables::default();
    tables.txs.reserve(count.min(reader.remaining() / TRANSACTION_SIZE_MIN));
    for _ in 0..count {
        tables.read_transaction(reader)?;
    }
    Ok((header, tables))
}
