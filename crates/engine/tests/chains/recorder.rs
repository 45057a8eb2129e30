//! Followers for the tests: each keeps the whole chain and its coins only from the calls it gets, and refuses
//! inconsistent ones. One has a preparer, one records tips below the last block, one has no files, and one is slow and
//! fails.
//! Input: blocks connected and disconnected. Output: a state to compare; a file of its own, written as a whole.

use crate::expected::State;
use lydian_consensus::{Coin, utxo_hash};
use lydian_disk::{Disk, DiskErrorKind, limits::WHOLE_FILE_SIZE_MAX, read_whole};
use lydian_engine::{BlockWithSpent, ChainTotals, ConnectedBlock, Follower, FollowerError, Left, Prepare, Rows, Tip};
use lydian_primitives::{Amount, BlockHash, Height, OutPoint, Reader, Txid};
use lydian_script::is_unspendable;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// What a recorder does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// Rows are made by a preparer.
    Prepared,
    /// A checkpoint records the tip that was the last one this number of calls before.
    Late { calls: usize },
    /// Every so many disconnected blocks, it goes back to what its file has.
    Falling { every: usize },
    /// Nothing on disk: it begins at the tip.
    NoFiles,
    /// Each call takes a while, and one of them fails: that of a block, or the first checkpoint from there on.
    Failing { at_call: usize, in_checkpoint: bool },
}

/// The chain so far, with the genesis block first, and its coins.
#[derive(Clone, Debug, Default)]
struct Seen {
    /// Without files, only what it was given.
    chain: Vec<BlockHash>,
    coins: BTreeMap<OutPoint, Coin>,
    totals: ChainTotals,
    /// Blocks connected and disconnected since it was opened.
    calls: usize,
    /// How often it had to begin anew.
    cleared: usize,
    has_failed: bool,
}

/// The state of a recorder, for the test.
#[derive(Clone, Debug)]
pub struct Shared {
    pub manner: Manner,
    seen: Arc<Mutex<Seen>>,
}

impl Shared {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap()
    }

    /// The state; without coins if the follower has no files.
    pub fn state(&self) -> State {
        let seen = self.seen();
        let height = Height(u32::try_from(seen.chain.len() - 1).unwrap());
        let hash = seen.chain[seen.chain.len() - 1];
        State { height, hash, hash_serialized_3: utxo_hash::hash_serialized_3(seen.coins.iter()) }
    }

    /// The last block it was given; `None` if there was none, or it left the first one that it was given.
    pub fn last(&self) -> Option<BlockHash> {
        self.seen().chain.last().copied()
    }

    /// Whether it was given this block, and has not left it.
    pub fn has(&self, height: Height, hash: BlockHash) -> bool {
        self.seen().chain.get(height.0 as usize) == Some(&hash)
    }

    pub fn cleared(&self) -> usize {
        self.seen().cleared
    }
}

/// The follower.
#[derive(Debug)]
pub struct Recorder {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    durable: Option<Tip>,
    /// The states after the last calls, for [`Manner::Late`]. Those above a disconnected block are dropped.
    history: Vec<Seen>,
    shared: Shared,
}

impl Recorder {
    /// Opens with the state of its file, or before the genesis block.
    pub fn open(disk: Arc<dyn Disk>, path: PathBuf, manner: Manner) -> Result<Recorder, FollowerError> {
        let seen = match read_whole(disk.as_ref(), &path, WHOLE_FILE_SIZE_MAX) {
            Ok(bytes) => decode(&bytes),
            Err(error) if error.kind == DiskErrorKind::NotFound => Seen::default(),
            Err(error) => return Err(error.into()),
        };
        let durable = tip_of(&seen);
        let shared = Shared { manner, seen: Arc::new(Mutex::new(seen)) };
        Ok(Recorder { disk, path, durable, history: Vec::new(), shared })
    }

    pub fn shared(&self) -> Shared {
        self.shared.clone()
    }

    fn write(&mut self, seen: &Seen) -> Result<(), FollowerError> {
        self.disk.write_whole(&self.path, &encode(seen))?;
        self.durable = tip_of(seen);
        Ok(())
    }

    fn fail(&self) -> Result<(), FollowerError> {
        self.shared.seen().has_failed = true;
        Err(FollowerError::new(format!("{}: it was to fail here", self.path.display())))
    }

    /// What follows a call.
    fn called(&mut self) -> Result<(), FollowerError> {
        let seen = self.shared.seen().clone();
        match self.shared.manner {
            Manner::Late { calls } => {
                self.history.push(seen);
                if self.history.len() > calls + 1 {
                    self.history.remove(0);
                }
            }
            Manner::Failing { at_call, in_checkpoint } => {
                std::thread::sleep(Duration::from_millis(1));
                assert!(!seen.has_failed, "a follower is called after it failed");
                if seen.calls == at_call && !in_checkpoint {
                    return self.fail();
                }
            }
            Manner::Prepared | Manner::Falling { .. } | Manner::NoFiles => {}
        }
        Ok(())
    }
}

fn tip_of(seen: &Seen) -> Option<Tip> {
    let height = Height(u32::try_from(seen.chain.len()).unwrap().checked_sub(1)?);
    Some(Tip { height, hash: seen.chain[seen.chain.len() - 1] })
}

/// Rows that show that they were made of the block they come with.
#[derive(Debug, PartialEq)]
struct BlockRows {
    hash: BlockHash,
    spent: usize,
}

#[derive(Debug)]
struct Preparer;

impl Prepare for Preparer {
    fn prepare(&self, block: &BlockWithSpent<'_>) -> Rows {
        Rows::new(BlockRows { hash: block.block.hash(), spent: block.spent.len() }, 500)
    }
}

impl Follower for Recorder {
    fn name(&self) -> &str {
        "recorder"
    }

    fn has_files(&self) -> bool {
        self.shared.manner != Manner::NoFiles
    }

    fn durable_tip(&self) -> Option<Tip> {
        self.durable
    }

    fn preparer(&self) -> Option<Arc<dyn Prepare>> {
        (self.shared.manner == Manner::Prepared).then(|| Arc::new(Preparer) as Arc<dyn Prepare>)
    }

    fn connect(&mut self, block: &ConnectedBlock<'_>, rows: Option<Rows>) -> Result<(), FollowerError> {
        match rows {
            Some(rows) => {
                let expected = BlockRows { hash: block.block.hash(), spent: block.spent.len() };
                assert_eq!(rows.take::<BlockRows>(), expected, "the rows of another block");
            }
            None => assert_ne!(self.shared.manner, Manner::Prepared, "a block without its rows"),
        }
        let has_all = self.has_files();
        self.shared.seen().connect(block, has_all).map_err(|what| wrong(block, what))?;
        self.called()
    }

    fn disconnect(&mut self, block: &ConnectedBlock<'_>) -> Result<Left, FollowerError> {
        let has_all = self.has_files();
        self.shared.seen().disconnect(block, has_all).map_err(|what| wrong(block, what))?;
        let parent = self.shared.seen().chain.len();
        self.history.retain(|seen| seen.chain.len() < parent);
        self.called()?;
        let calls = self.shared.seen().calls;
        if let Manner::Falling { every } = self.shared.manner
            && calls.is_multiple_of(every)
        {
            let saved = Recorder::open(Arc::clone(&self.disk), self.path.clone(), self.shared.manner)?;
            let saved = saved.shared.seen().clone();
            let mut seen = self.shared.seen();
            // The file may have blocks that left the chain.
            if saved.chain.len() <= seen.chain.len() {
                *seen = Seen { calls, cleared: seen.cleared, ..saved };
                return Ok(Left::ToDurableTip);
            }
        }
        Ok(Left::Block)
    }

    fn checkpoint(&mut self, tip: Tip) -> Result<(), FollowerError> {
        let seen = self.shared.seen().clone();
        if self.has_files() && tip_of(&seen) != Some(tip) {
            return Err(FollowerError::new(format!("a checkpoint at {tip:?}, where {:?} is the last", tip_of(&seen))));
        }
        match self.shared.manner {
            Manner::NoFiles => Ok(()),
            Manner::Late { .. } => {
                let seen = self.history.first().cloned().unwrap_or(seen);
                self.write(&seen)
            }
            Manner::Failing { at_call, in_checkpoint } => {
                assert!(!seen.has_failed, "a follower is called after it failed");
                if in_checkpoint && seen.calls >= at_call { self.fail() } else { self.write(&seen) }
            }
            Manner::Prepared | Manner::Falling { .. } => self.write(&seen),
        }
    }

    fn clear(&mut self) -> Result<(), FollowerError> {
        let empty = Seen { cleared: self.shared.cleared() + 1, ..Seen::default() };
        self.history.clear();
        self.write(&empty)?;
        *self.shared.seen() = empty;
        Ok(())
    }
}

fn wrong(block: &ConnectedBlock<'_>, what: &str) -> FollowerError {
    panic!("block {} at height {}: {what}", block.block.hash(), block.height.0)
}

fn ensure(holds: bool, what: &'static str) -> Result<(), &'static str> {
    if holds { Ok(()) } else { Err(what) }
}

fn totals_with(totals: ChainTotals, block: &ConnectedBlock<'_>) -> ChainTotals {
    ChainTotals {
        transactions: totals.transactions + block.block.tx_count() as u64,
        outputs: totals.outputs + block.block.output_count() as u64,
    }
}

impl Seen {
    /// `has_all`: from the genesis block on.
    fn connect(&mut self, connected: &ConnectedBlock<'_>, has_all: bool) -> Result<(), &'static str> {
        let block = connected.block;
        let last = self.chain.last();
        ensure(last.is_none_or(|last| *last == block.header().prev_block), "connected to another block")?;
        if has_all {
            ensure(connected.height.0 as usize == self.chain.len(), "connected at another height")?;
            ensure(connected.below == self.totals, "comes with other totals")?;
            self.change_coins(connected)?;
        }
        self.totals = totals_with(connected.below, connected);
        self.chain.push(block.hash());
        self.calls += 1;
        Ok(())
    }

    fn change_coins(&mut self, connected: &ConnectedBlock<'_>) -> Result<(), &'static str> {
        let mut spent = connected.spent.iter();
        for tx in connected.block.txs() {
            for input in tx.inputs().filter(|_| !tx.is_coinbase()) {
                let coin = self.coins.remove(&input.prevout).ok_or("spends a coin that does not exist")?;
                ensure(spent.next() == Some(&coin), "comes with another spent coin")?;
            }
            // The output of the genesis block is not a coin.
            let outputs = tx.outputs().filter(|_| connected.height.0 > 0);
            for (vout, output) in (0..).zip(outputs).filter(|(_, output)| !is_unspendable(output.script_pubkey)) {
                let coin = Coin::new(output, connected.height, tx.is_coinbase());
                self.coins.insert(OutPoint { txid: tx.txid(), vout }, coin);
            }
        }
        ensure(spent.next().is_none(), "comes with too many spent coins")
    }

    fn disconnect(&mut self, connected: &ConnectedBlock<'_>, has_all: bool) -> Result<(), &'static str> {
        let block = connected.block;
        ensure(connected.height.0 > 0, "the genesis block is disconnected")?;
        self.calls += 1;
        if !has_all {
            let last = self.chain.pop();
            ensure(last.is_none_or(|last| last == block.hash()), "disconnected and is not the tip")?;
            self.totals = connected.below;
            return Ok(());
        }
        ensure(connected.height.0 as usize + 1 == self.chain.len(), "disconnected at another height")?;
        ensure(self.chain.pop() == Some(block.hash()), "disconnected and is not the tip")?;
        ensure(totals_with(connected.below, connected) == self.totals, "disconnected with other totals")?;
        self.totals = connected.below;
        let mut spent = connected.spent.iter().rev();
        for index in (0..block.tx_count()).rev() {
            let tx = block.tx(index);
            for (vout, output) in (0..).zip(tx.outputs()).filter(|(_, output)| !is_unspendable(output.script_pubkey)) {
                let coin = Coin::new(output, connected.height, tx.is_coinbase());
                let removed = self.coins.remove(&OutPoint { txid: tx.txid(), vout });
                ensure(removed == Some(coin), "has an output that does not exist")?;
            }
            for input in (0..tx.input_count()).rev().filter(|_| !tx.is_coinbase()) {
                let coin = spent.next().ok_or("comes with too few spent coins")?;
                let there = self.coins.insert(tx.input(input).prevout, coin.clone());
                ensure(there.is_none(), "restores a coin that exists")?;
            }
        }
        ensure(spent.next().is_none(), "comes with too many spent coins")
    }
}

fn encode(seen: &Seen) -> Vec<u8> {
    let mut out = u32::try_from(seen.chain.len()).unwrap().to_le_bytes().to_vec();
    seen.chain.iter().for_each(|hash| out.extend_from_slice(&hash.0));
    out.extend_from_slice(&seen.totals.transactions.to_le_bytes());
    out.extend_from_slice(&seen.totals.outputs.to_le_bytes());
    for (outpoint, coin) in &seen.coins {
        out.extend_from_slice(&outpoint.to_bytes());
        out.extend_from_slice(&(coin.height.0 << 1 | u32::from(coin.is_coinbase)).to_le_bytes());
        out.extend_from_slice(&coin.value.0.to_le_bytes());
        out.extend_from_slice(&u32::try_from(coin.script_pubkey.len()).unwrap().to_le_bytes());
        out.extend_from_slice(&coin.script_pubkey);
    }
    out
}

fn decode(bytes: &[u8]) -> Seen {
    let mut reader = Reader::new(bytes);
    let count = reader.u32().unwrap();
    let chain = (0..count).map(|_| BlockHash(reader.array().unwrap())).collect();
    let mut number = || u64::from_le_bytes(reader.array().unwrap());
    let totals = ChainTotals { transactions: number(), outputs: number() };
    let mut coins = BTreeMap::new();
    while reader.remaining() > 0 {
        let outpoint = OutPoint { txid: Txid(reader.array().unwrap()), vout: reader.u32().unwrap() };
        let code = reader.u32().unwrap();
        let value = Amount(i64::from_le_bytes(reader.array().unwrap()));
        let size = reader.u32().unwrap() as usize;
        let script_pubkey = reader.take(size).unwrap().into();
        coins.insert(outpoint, Coin { value, script_pubkey, height: Height(code >> 1), is_coinbase: code & 1 == 1 });
    }
    Seen { chain, coins, totals, ..Seen::default() }
}
