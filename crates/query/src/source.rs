//! What [`crate::Query`] reads: three traits, and their types. [`Calls`] is for what changes the node.
//!
//! Invariants: every method may be called from any thread; an answer is consistent in itself, and says of which tip it
//! is if it depends on the tip.

use crate::error::QueryError;
use lydian_chain::UndoParts;
use lydian_engine::Tip;
use lydian_index::{OutputFate, Place, ScriptHash, ScriptOutput, ScriptOutputs};
use lydian_primitives::{Block, BlockHash, Header, Height, OutPoint, Transaction, Tx, Txid};
use std::collections::HashSet;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

/// The active chain.
pub trait Chain: Debug + Send + Sync {
    /// The block that may be announced: every reader has it.
    fn tip(&self) -> Result<Tip, QueryError>;

    /// Headers from a height on, in their order; fewer at the tip.
    fn headers(&self, from: Height, count: usize) -> Result<Vec<Header>, QueryError>;

    /// Hashes of blocks from a height on; fewer at the tip.
    fn hashes(&self, from: Height, count: usize) -> Result<Vec<BlockHash>, QueryError>;

    /// The hash and the txids of a block; `None` above the tip.
    fn txids(&self, height: Height) -> Result<Option<(BlockHash, Vec<Txid>)>, QueryError>;

    /// A block whose header the node has, on the active chain or beside it.
    fn block_info(&self, hash: &BlockHash) -> Result<Option<BlockInfo>, QueryError>;

    /// A whole block, on the active chain or beside it; `None` if the node does not have it.
    fn block(&self, hash: &BlockHash) -> Result<Option<Block>, QueryError>;

    /// The outputs that a block spends, in the order of its inputs behind those of the coinbase; `None` if the node
    /// does not have them.
    fn spent(&self, hash: &BlockHash, block: &Block) -> Result<Option<Vec<SpentOutput>>, QueryError>;

    /// What the transactions of a block spend; `None` if the node does not have it, or if it has more than `bytes_max`
    /// bytes.
    fn undo(&self, _hash: &BlockHash, _bytes_max: usize) -> Result<Option<UndoParts>, QueryError> {
        Ok(None)
    }

    /// The transaction at a place; `None` if there is none now.
    fn transaction(&self, place: Place) -> Result<Option<Transaction>, QueryError>;

    /// The same for several places, which may be read at the same time.
    fn transactions(&self, places: &[Place]) -> Result<Vec<Option<Transaction>>, QueryError> {
        places.iter().map(|place| self.transaction(*place)).collect()
    }

    /// Whether the block of the active chain at a height was pruned.
    fn is_pruned(&self, _: Height) -> bool {
        false
    }

    /// Fails if the blocks at these heights are more than the request may still have fetched: [`crate::Allowance`].
    fn check_fetches(&self, _: Vec<Height>) -> Result<(), QueryError> {
        Ok(())
    }
}

/// A block's place in the tree of headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockInfo {
    pub hash: BlockHash,
    pub header: Header,
    pub height: u32,
    /// Seconds since 1970: Core's `GetMedianTimePast`.
    pub median_time: i64,
    /// Whether it is on the active chain.
    pub is_active: bool,
    /// The block after it on the active chain.
    pub next: Option<BlockHash>,
}

/// An output that an input spends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpentOutput {
    /// In satoshis.
    pub value: i64,
    pub script_pubkey: Box<[u8]>,
}

/// The transaction with a number in the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbered {
    pub txid: Txid,
    pub height: u32,
}

/// A block of the active chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockPlace {
    pub height: u32,
    pub hash: BlockHash,
    /// Seconds since 1970.
    pub time: u32,
}

/// A transaction of the chain with the block that contains it.
#[derive(Clone, Debug)]
pub struct Located {
    pub number: u32,
    pub block: BlockPlace,
    /// In the block; `None` if blocks have left the index meanwhile.
    pub position: Option<u32>,
    pub tx: Transaction,
}

/// What an answer takes of transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    Txids,
    Bytes,
}

/// The transactions of the chain, by number, txid and script.
pub trait ScriptIndex: Debug + Send + Sync {
    /// Fails if the index does not have the chain up to its tip.
    fn check(&self) -> Result<(), QueryError>;

    /// Waits until the index has the blocks connected so far. False if it is still being built; fails if it cannot go
    /// on.
    fn wait_until_synced(&self) -> Result<bool, QueryError>;

    fn outputs(&self, script: &ScriptHash) -> Result<ScriptOutputs, QueryError>;

    /// The values or the spenders of single outputs of a script, each named by the number of its transaction and its
    /// place in it, in an ascending order; `None` for one that the script does not have.
    fn fates(&self, script: &ScriptHash, places: &[(u32, u32)]) -> Result<Vec<Option<OutputFate>>, QueryError> {
        Ok(fates_of(&self.outputs(script)?.outputs, places))
    }

    /// Changes whenever blocks leave the index: see [`lydian_index::TxIndexReader::epoch`].
    fn epoch(&self) -> u64;

    /// The transactions with these numbers, which ascend; `None` for a number that the chain does not have now.
    fn numbered(&self, numbers: &[u32]) -> Result<Vec<Option<Numbered>>, QueryError>;

    /// The same for numbers that are part of a very long list: an index that finds them fast does not keep them, since
    /// they would take the place of all others.
    fn numbered_once(&self, numbers: &[u32]) -> Result<Vec<Option<Numbered>>, QueryError> {
        self.numbered(numbers)
    }

    /// The same transactions with their bytes and the heights of their blocks.
    fn transactions(&self, numbers: &[u32]) -> Result<Vec<Option<(u32, Transaction)>>, QueryError>;

    /// The same with their blocks.
    fn located(&self, numbers: &[u32]) -> Result<Vec<Option<Located>>, QueryError>;

    /// Fails if an answer takes the txids, or the bytes, of these transactions, and needs more blocks than the request
    /// may still have fetched. The numbers ascend.
    fn check_fetches(&self, _: Taken, _: &[u32]) -> Result<(), QueryError> {
        Ok(())
    }

    /// The same for the bytes of transactions by txid.
    fn check_fetches_of(&self, _: &[Txid]) -> Result<(), QueryError> {
        Ok(())
    }

    /// The height of a transaction's block.
    fn height_of(&self, number: u32) -> Option<u32>;

    /// The position of a transaction in its block.
    fn position_of(&self, number: u32) -> Option<u32>;

    /// A transaction of the chain.
    fn locate(&self, txid: &Txid) -> Result<Option<Located>, QueryError>;

    /// Waits until the index has the block at a height, as long as it is about to.
    fn wait_for(&self, height: Height);

    /// Those of the scripts that the blocks from a height on touch; all if that is not known.
    fn touched(&self, from: Height, scripts: &[ScriptHash]) -> Vec<ScriptHash>;
}

/// The fate of each of these outputs, if it is among those of a script.
pub(crate) fn fates_of(outputs: &[ScriptOutput], places: &[(u32, u32)]) -> Vec<Option<OutputFate>> {
    let one = |place: &(u32, u32)| {
        let at = outputs.binary_search_by_key(place, |output| (output.number, output.vout)).ok()?;
        outputs.get(at).map(|output| output.fate)
    };
    places.iter().map(one).collect()
}

/// What a transaction of the mempool does with a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolRow {
    Pays { vout: u32, value: i64 },
    Spends { prevout: OutPoint, value: i64 },
}

/// A transaction of the mempool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeeRow {
    pub txid: Txid,
    /// In satoshis.
    pub fee: i64,
    pub vsize: i64,
}

/// What the mempool has of a script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolScript {
    /// The block that the mempool builds on.
    pub tip: Option<Tip>,
    /// Each transaction with its fee in satoshis, whether one of its inputs is unconfirmed, and what it does.
    pub transactions: Vec<(FeeRow, bool, Vec<PoolRow>)>,
}

/// Fees of the mempool, in satoshis per 1,000 virtual bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolFees {
    /// What a transaction must pay now.
    pub min: i64,
    /// What the node relays at least.
    pub relay: i64,
    pub incremental: i64,
}

/// The sums over the mempool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolTotals {
    pub count: usize,
    /// In virtual bytes.
    pub vsize: i64,
    /// In satoshis.
    pub fee: i64,
}

/// What changed, so that other answers may be due: scripts, and transactions with the outputs that they make and spend.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    pub scripts: HashSet<ScriptHash>,
    pub txids: HashSet<Txid>,
    pub outpoints: HashSet<OutPoint>,
}

impl Touched {
    /// Adds a transaction, without its scripts.
    pub fn add(&mut self, tx: Tx<'_>) {
        let txid = tx.txid();
        self.txids.insert(txid);
        let made = (0..u32::try_from(tx.output_count()).unwrap_or(0)).map(|vout| OutPoint { txid, vout });
        self.outpoints.extend(made.chain(tx.inputs().map(|input| input.prevout)));
    }

    pub fn extend(&mut self, other: Touched) {
        self.scripts.extend(other.scripts);
        self.txids.extend(other.txids);
        self.outpoints.extend(other.outpoints);
    }

    pub fn len(&self) -> usize {
        self.scripts.len() + self.txids.len() + self.outpoints.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What the mempool touched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PoolTouched {
    All,
    These(Touched),
}

/// The mempool by script.
pub trait Pool: Debug + Send + Sync {
    fn of_script(&self, script: &ScriptHash) -> Result<PoolScript, QueryError>;

    /// The transactions of the mempool that spend these outputs, with whether one of their inputs is unconfirmed.
    fn spenders(&self, outpoints: &[OutPoint]) -> Vec<Option<(Txid, bool)>>;

    /// A transaction, and whether one of its inputs is unconfirmed.
    fn transaction(&self, txid: &Txid) -> Option<(Arc<Transaction>, bool)>;

    fn fees(&self) -> PoolFees;

    /// The feerate for confirmation within this many blocks, at least the minimum of the mempool, in satoshis per 1,000
    /// virtual bytes; `None` if the node has no estimate. A target out of range counts as the nearest one. With
    /// `is_conservative`, longer horizons count too.
    fn estimate(&self, target: u32, is_conservative: bool) -> Option<i64>;

    fn totals(&self) -> PoolTotals;

    /// The txids of the mempool, in the order in which Bitcoin Core lists them.
    fn txids(&self) -> Vec<Txid>;

    /// Fee in satoshis and size in virtual bytes of every chunk, the one that is mined first at the front.
    fn chunks(&self) -> Vec<(i64, i64)>;

    /// The last transactions that came, the newest first.
    fn recent(&self, count: usize) -> Vec<FeeRow>;

    /// What was touched since the last call. For one caller.
    fn take_touched(&self) -> Result<PoolTouched, QueryError>;

    /// Waits until the mempool changes, or the time is over.
    fn wait(&self, timeout: Duration);

    /// Waits a moment until the mempool builds on a block.
    fn wait_for(&self, tip: &BlockHash);
}

/// Why a call failed: code and message of Bitcoin Core's RPC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallError {
    pub code: i32,
    pub message: String,
}

/// Bitcoin Core's RPC methods, in this process: what changes the node, and what has Core's form.
pub trait Calls: Debug + Send + Sync {
    /// `params` is a JSON array; the answer is JSON.
    fn call(&self, method: &str, params: &str) -> Result<String, CallError>;
}
