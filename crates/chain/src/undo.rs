//! Undo data of a block: the coins that its inputs spent. Input: a block and its spent coins, or bytes. Output: bytes,
//! or the coins, byte for byte Core's `CBlockUndo` (undo.h). Accepts any bytes; allocates no more than the given bytes
//! justify.

use lydian_consensus::Coin;
use lydian_consensus::codec::{read_coin, read_varint, read_varint_u32, write_coin};
use lydian_primitives::{Block, ParseError, Reader, write_compact_size};

/// Minimum size of a coin in bytes: code, value, and the script's code.
const COIN_SIZE_MIN: usize = 3;

/// The coins that a block spent, in the order of its inputs, and the number of coins that each transaction except the
/// coinbase spent.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BlockUndo {
    pub coins: Vec<Coin>,
    pub input_counts: Vec<u32>,
}

impl BlockUndo {
    /// Whether there is one coin for every input of the block.
    pub fn fits(&self, block: &Block) -> bool {
        let counts = block.txs().skip(1).map(|tx| tx.input_count());
        counts.eq(self.input_counts.iter().map(|count| *count as usize))
    }
}

/// Encodes the undo data of a block. `spent` must have one coin for every input of every transaction except the
/// coinbase.
///
/// # Panics
///
/// If `spent` has another number of coins.
pub fn encode_undo(block: &Block, spent: &[Coin]) -> Vec<u8> {
    // A coin with a common script takes about 28 bytes.
    let mut out = Vec::with_capacity(8 + 2 * block.tx_count() + 32 * spent.len());
    write_compact_size(&mut out, block.tx_count().saturating_sub(1));
    let mut rest = spent;
    for tx in block.txs().skip(1) {
        write_compact_size(&mut out, tx.input_count());
        let Some((coins, behind)) = rest.split_at_checked(tx.input_count()) else {
            unreachable!("a coin for each input of a block that was connected")
        };
        coins.iter().for_each(|coin| write_coin(coin.as_ref(), &mut out));
        rest = behind;
    }
    assert!(rest.is_empty(), "{} coins more than the block has inputs", rest.len());
    out
}

/// Decodes undo data. Trailing bytes are an error.
pub fn decode_undo(bytes: &[u8]) -> Result<BlockUndo, ParseError> {
    let mut reader = Reader::new(bytes);
    let mut undo = BlockUndo::default();
    let tx_count = reader.compact_size()?;
    undo.input_counts.reserve(tx_count.min(reader.remaining()));
    for _ in 0..tx_count {
        let count = reader.compact_size()?;
        undo.coins.reserve(count.min(reader.remaining() / COIN_SIZE_MIN));
        for _ in 0..count {
            undo.coins.push(read_coin(&mut reader)?);
        }
        // A CompactSize is at most 0x0200_0000.
        undo.input_counts.push(u32::try_from(count).unwrap_or(u32::MAX));
    }
    reader.finish()?;
    Ok(undo)
}

/// Core's `nSpecialScripts`: smaller codes stand for a template with 20 or 32 bytes, others for the size of the script.
const SPECIAL_SCRIPTS: u32 = 6;

/// Reads over a coin without decoding it, so that a key that is no point of the curve is accepted.
fn skip_coin(reader: &mut Reader<'_>) -> Result<(), ParseError> {
    if read_varint_u32(reader)? >> 1 > 0 {
        read_varint_u32(reader)?;
    }
    read_varint(reader)?;
    let size = match read_varint_u32(reader)? {
        0 | 1 => 20,
        2..SPECIAL_SCRIPTS => 32,
        code => usize::try_from(code - SPECIAL_SCRIPTS).unwrap_or(usize::MAX),
    };
    reader.take(size).map(drop)
}

/// Undo data from which the coins of single transactions are read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UndoParts {
    bytes: Box<[u8]>,
    /// Where the coins of each transaction but the coinbase begin.
    starts: Box<[u32]>,
}

impl UndoParts {
    /// Finds the transactions; their coins are not decoded. Trailing bytes are an error.
    pub fn parse(bytes: Vec<u8>) -> Result<UndoParts, ParseError> {
        let mut reader = Reader::new(&bytes);
        let tx_count = reader.compact_size()?;
        let mut starts = Vec::with_capacity(tx_count.min(reader.remaining()));
        for _ in 0..tx_count {
            // A block has at most 4,000,000 bytes.
            starts.push(u32::try_from(reader.offset()).unwrap_or(u32::MAX));
            for _ in 0..reader.compact_size()? {
                skip_coin(&mut reader)?;
            }
        }
        reader.finish()?;
        Ok(UndoParts { starts: starts.into(), bytes: bytes.into() })
    }

    /// The coins that a transaction spent, by its position in the block: `None` for the coinbase, and beyond the last
    /// transaction.
    pub fn coins_of(&self, position: u32) -> Result<Option<Vec<Coin>>, ParseError> {
        let start = (position as usize).checked_sub(1).and_then(|at| self.starts.get(at));
        let Some(bytes) = start.and_then(|start| self.bytes.get(*start as usize..)) else { return Ok(None) };
        let mut reader = Reader::new(bytes);
        let count = reader.compact_size()?;
        let mut coins = Vec::with_capacity(count.min(reader.remaining() / COIN_SIZE_MIN));
        for _ in 0..count {
            coins.push(read_coin(&mut reader)?);
        }
        Ok(Some(coins))
    }

    /// The bytes that were parsed.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many transactions spend something: all of a block but the coinbase.
    pub fn transactions(&self) -> usize {
        self.starts.len()
    }

    /// In memory.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.len() + size_of_val(&*self.starts)
    }
}
