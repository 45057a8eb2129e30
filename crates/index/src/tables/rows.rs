//! The rows of a block that is not sealed: what its transactions are, what they pay to scripts, and what they spend.
//!
//! Input: a block with the coins that it spent. Output: its rows, which any worker makes; their bytes in a log, and the
//! rows again. A spend has the height and the hash of the transaction that it spends from: the number of that one is
//! looked up when the block is sealed or asked for ([`super::scripts`]). Memory: 16 bytes for a transaction, 32 more
//! for its txid, 24 for an output, 32 for an input.

use super::commit::Profile;
use super::numbers::{Salt, key_of};
use super::places::{BlockRow, read_varint, write_varint};
use super::positions;
use super::segment::TxRow;
use lydian_consensus::deployment::is_bip30_unspendable;
use lydian_engine::BlockWithSpent;
use lydian_hash::sha256;
use lydian_primitives::{Block, BlockHash, Reader, Txid};
use lydian_script::is_unspendable;

/// The SHA-256 of a script, as Electrum's protocol names scripts; not reversed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ScriptHash(pub [u8; 32]);

impl ScriptHash {
    pub fn of(script: &[u8]) -> ScriptHash {
        ScriptHash(sha256(script))
    }
}

/// The rows of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BlockRows {
    pub(super) block: BlockRow,
    pub(super) transactions: Vec<TxRow>,
    /// Empty if the index has no table of txids.
    pub(super) txids: Vec<Txid>,
    /// `None` if the index has no tables of scripts.
    pub(super) scripts: Option<ScriptRows>,
}

/// What a block pays to scripts and spends of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ScriptRows {
    /// The table from its transactions to their positions.
    pub(super) positions: Vec<u8>,
    /// Sorted by key, then in the order of the block.
    pub(super) creates: Vec<CreateRow>,
    /// Sorted by key, then in the order of the block.
    pub(super) spends: Vec<SpendRow>,
}

/// An output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CreateRow {
    pub(super) key: u64,
    /// The position of its transaction in the block.
    pub(super) position: u32,
    pub(super) vout: u32,
    /// In satoshis; [`OVERWRITTEN`] if another coin replaced it.
    pub(super) value: u64,
}

/// The value of the outputs of two coinbases of 2010 that were repeated (BIP-0030).
pub(super) const OVERWRITTEN: u64 = u64::MAX;

/// An input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SpendRow {
    /// The key of the script of the output that it spends.
    pub(super) key: u64,
    /// The position of its transaction in the block.
    pub(super) position: u32,
    /// The output that it spends: the hash of the transaction, the height of its block, and the output index.
    pub(super) hash: u64,
    pub(super) height: u32,
    pub(super) vout: u32,
}

impl BlockRows {
    /// `None` if two transactions of the block have the same hash, which one index in millions meets.
    pub(super) fn of(block: &BlockWithSpent<'_>, salt: Salt, profile: Profile) -> Option<BlockRows> {
        let hashes: Vec<u64> = block.block.txs().map(|tx| salt.hash(&tx.txid())).collect();
        let sizes = block.block.txs().map(|tx| count(tx.bytes().len()));
        let transactions = hashes.iter().zip(sizes).map(|(hash, size)| TxRow::new(key_of(*hash), size)).collect();
        let row = block_row(block.block);
        let txids = if profile.has_txids { block.block.txs().map(|tx| tx.txid()).collect() } else { Vec::new() };
        let scripts = if profile.has_scripts { Some(ScriptRows::of(block, salt, &hashes)?) } else { None };
        Some(BlockRows { block: row, transactions, txids, scripts })
    }

    pub(super) fn bytes(&self) -> usize {
        let scripts = self.scripts.as_ref().map_or(0, |scripts| {
            scripts.positions.len() + size_of_val(&scripts.creates[..]) + size_of_val(&scripts.spends[..])
        });
        size_of::<BlockRows>() + size_of_val(&self.transactions[..]) + size_of_val(&self.txids[..]) + scripts
    }
}

fn block_row(block: &Block) -> BlockRow {
    BlockRow { hash: block.hash(), transactions: count(block.tx_count()), outputs: count(block.output_count()) }
}

impl ScriptRows {
    fn of(block: &BlockWithSpent<'_>, salt: Salt, hashes: &[u64]) -> Option<ScriptRows> {
        let key = |script: &[u8]| salt.script_key(&ScriptHash::of(script));
        let is_overwritten = is_bip30_unspendable(block.height, &block.block.hash());
        let (mut creates, mut spends) = (Vec::new(), Vec::new());
        let mut spent = block.spent.iter();
        for (position, tx) in (0..).zip(block.block.txs()) {
            // The output of the genesis block is not a coin.
            let outputs = (0..).zip(tx.outputs()).filter(|_| block.height.0 > 0);
            for (vout, output) in outputs.filter(|(_, output)| !is_unspendable(output.script_pubkey)) {
                let value = if is_overwritten { OVERWRITTEN } else { u64::try_from(output.value.0).unwrap_or(0) };
                creates.push(CreateRow { key: key(output.script_pubkey), position, vout, value });
            }
            if !tx.is_coinbase() {
                for (input, coin) in tx.inputs().zip(&mut spent) {
                    let (hash, vout) = (salt.hash(&input.prevout.txid), input.prevout.vout);
                    let key = key(&coin.script_pubkey);
                    spends.push(SpendRow { key, position, hash, height: coin.height.0, vout });
                }
            }
        }
        creates.sort_unstable();
        spends.sort_unstable();
        Some(ScriptRows { positions: positions::encode(hashes)?, creates, spends })
    }
}

/// The outputs that pay to a script.
pub(super) fn creates_of(rows: &[CreateRow], key: u64) -> &[CreateRow] {
    part(rows, |row| row.key, key)
}

/// The inputs that spend outputs of a script.
pub(super) fn spends_of(rows: &[SpendRow], key: u64) -> &[SpendRow] {
    part(rows, |row| row.key, key)
}

/// The rows of a key, of rows that are sorted by it.
fn part<T>(rows: &[T], key_of: impl Fn(&T) -> u64, key: u64) -> &[T] {
    let from = rows.partition_point(|row| key_of(row) < key);
    let rows = rows.get(from..).unwrap_or_default();
    let end = rows.iter().take_while(|row| key_of(row) == key).count();
    rows.get(..end).unwrap_or_default()
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// Hash, outputs and transactions of a block; key and size of each transaction; then the txids, and rows of scripts.
pub(super) fn encode(block: &BlockRow, txs: &[TxRow], txids: &[Txid], scripts: Option<&ScriptRows>) -> Vec<u8> {
    let mut payload = block.hash.0.to_vec();
    write_varint(block.outputs, &mut payload);
    write_varint(block.transactions, &mut payload);
    for tx in txs {
        payload.extend_from_slice(tx.key().to_le_bytes().get(..5).unwrap_or_default());
        write_varint(tx.size(), &mut payload);
    }
    txids.iter().for_each(|txid| payload.extend_from_slice(&txid.0));
    if let Some(scripts) = scripts {
        write_varint(count(scripts.positions.len()), &mut payload);
        payload.extend_from_slice(&scripts.positions);
        write_varint(count(scripts.creates.len()), &mut payload);
        for row in &scripts.creates {
            payload.extend_from_slice(&row.key.to_le_bytes());
            write_varint(row.position, &mut payload);
            write_varint(row.vout, &mut payload);
            payload.extend_from_slice(&row.value.to_le_bytes());
        }
        write_varint(count(scripts.spends.len()), &mut payload);
        for row in &scripts.spends {
            payload.extend_from_slice(&row.key.to_le_bytes());
            write_varint(row.position, &mut payload);
            payload.extend_from_slice(&row.hash.to_le_bytes());
            write_varint(row.height, &mut payload);
            write_varint(row.vout, &mut payload);
        }
    }
    payload
}

/// The rows again; `profile` as when they were written.
pub(super) fn decode(payload: &[u8], profile: Profile) -> Option<BlockRows> {
    let hash = BlockHash(Reader::new(payload).array().ok()?);
    let mut rest = payload.get(32..)?;
    let (outputs, transactions) = (read_varint(&mut rest)?, read_varint(&mut rest)?);
    let block = BlockRow { hash, transactions, outputs };
    let mut txs = Vec::new();
    for _ in 0..transactions {
        let (key, after) = rest.split_first_chunk::<5>()?;
        let key = key.iter().rev().fold(0, |key, byte| key << 8 | u64::from(*byte));
        rest = after;
        txs.push(TxRow::new(key, read_varint(&mut rest).filter(|size| *size < 1 << 24)?));
    }
    let mut txids = Vec::new();
    for _ in 0..if profile.has_txids { transactions } else { 0 } {
        let (txid, after) = rest.split_first_chunk()?;
        txids.push(Txid(*txid));
        rest = after;
    }
    let scripts = if profile.has_scripts { Some(decode_scripts(&mut rest)?) } else { None };
    rest.is_empty().then_some(BlockRows { block, transactions: txs, txids, scripts })
}

fn decode_scripts(rest: &mut &[u8]) -> Option<ScriptRows> {
    let size = read_varint(rest)? as usize;
    let (positions, after) = rest.split_at_checked(size)?;
    *rest = after;
    let mut creates = Vec::new();
    for _ in 0..read_varint(rest)? {
        let (key, position) = (read_u64(rest)?, read_varint(rest)?);
        creates.push(CreateRow { key, position, vout: read_varint(rest)?, value: read_u64(rest)? });
    }
    let mut spends = Vec::new();
    for _ in 0..read_varint(rest)? {
        let (key, position, hash) = (read_u64(rest)?, read_varint(rest)?, read_u64(rest)?);
        spends.push(SpendRow { key, position, hash, height: read_varint(rest)?, vout: read_varint(rest)? });
    }
    let is_sorted = creates.is_sorted() && spends.is_sorted();
    is_sorted.then(|| ScriptRows { positions: positions.to_vec(), creates, spends })
}

fn read_u64(rest: &mut &[u8]) -> Option<u64> {
    let (number, after) = rest.split_first_chunk::<8>()?;
    *rest = after;
    Some(u64::from_le_bytes(*number))
}
