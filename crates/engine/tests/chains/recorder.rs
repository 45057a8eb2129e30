//! A follower that keeps the whole chain and its coins only from the calls it gets, and refuses inconsistent ones.
//! Input: blocks connected and disconnected. Output: a state to compare; a file of its own, written as a whole.

use crate::expected::State;
use lydian_consensus::{Coin, Params, utxo_hash};
use lydian_disk::{Disk, DiskErrorKind, limits::WHOLE_FILE_SIZE_MAX, read_whole};
use lydian_engine::{ConnectedBlock, Follower, FollowerError, Tip};
use lydian_primitives::{Amount, BlockHash, Height, OutPoint, Reader, Txid};
use lydian_script::is_unspendable;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

/// The chain so far, with the genesis block first, and its coins.
#[derive(Clone, Debug)]
struct Seen {
    chain: Vec<BlockHash>,
    coins: BTreeMap<OutPoint, Coin>,
    /// Blocks connected and disconnected since it was opened.
    calls: usize,
}

/// The state of a recorder, for the test.
#[derive(Clone, Debug)]
pub struct Shared(Arc<Mutex<Seen>>);

impl Shared {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap()
    }

    pub fn state(&self) -> State {
        let seen = self.seen();
        let height = Height(u32::try_from(seen.chain.len() - 1).unwrap());
        let hash = seen.chain[seen.chain.len() - 1];
        State { height, hash, hash_serialized_3: utxo_hash::hash_serialized_3(seen.coins.iter()) }
    }
}

/// The follower.
#[derive(Debug)]
pub struct Recorder {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    interval: usize,
    durable: Option<Tip>,
    seen: Shared,
}

impl Recorder {
    /// Opens with the state of its file, or at the genesis block.
    pub fn open(
        disk: Arc<dyn Disk>,
        path: PathBuf,
        interval: usize,
        params: &Params,
    ) -> Result<Recorder, FollowerError> {
        let seen = match read_whole(disk.as_ref(), &path, WHOLE_FILE_SIZE_MAX) {
            Ok(bytes) => decode(&bytes),
            Err(error) if error.kind == DiskErrorKind::NotFound => {
                Seen { chain: vec![params.genesis_hash], coins: BTreeMap::new(), calls: 0 }
            }
            Err(error) => return Err(FollowerError(error.to_string())),
        };
        let durable = durable_tip(&seen);
        Ok(Recorder { disk, path, interval, durable, seen: Shared(Arc::new(Mutex::new(seen))) })
    }

    pub fn shared(&self) -> Shared {
        self.seen.clone()
    }

    fn save(&mut self) -> Result<(), FollowerError> {
        let seen = self.seen.seen();
        let bytes = encode(&seen);
        self.disk.write_whole(&self.path, &bytes).map_err(|error| FollowerError(error.to_string()))?;
        self.durable = durable_tip(&seen);
        Ok(())
    }

    fn save_if_due(&mut self) -> Result<(), FollowerError> {
        let calls = self.seen.seen().calls;
        if self.interval > 0 && calls.is_multiple_of(self.interval) { self.save() } else { Ok(()) }
    }
}

fn durable_tip(seen: &Seen) -> Option<Tip> {
    let height = Height(u32::try_from(seen.chain.len() - 1).unwrap());
    (height > Height(0)).then(|| Tip { height, hash: seen.chain[seen.chain.len() - 1] })
}

impl Follower for Recorder {
    fn name(&self) -> &str {
        "recorder"
    }

    fn durable_tip(&self) -> Option<Tip> {
        self.durable
    }

    fn connect(&mut self, block: &ConnectedBlock<'_>) -> Result<(), FollowerError> {
        self.seen.seen().connect(block).map_err(|what| wrong(block, what))?;
        self.save_if_due()
    }

    fn disconnect(&mut self, block: &ConnectedBlock<'_>) -> Result<(), FollowerError> {
        self.seen.seen().disconnect(block).map_err(|what| wrong(block, what))?;
        self.save_if_due()
    }

    fn checkpoint(&mut self, tip: Tip) -> Result<(), FollowerError> {
        let last = durable_tip(&self.seen.seen());
        if tip.height > Height(0) && last != Some(tip) {
            return Err(FollowerError(format!("a checkpoint at {tip:?}, where {last:?} is the last block")));
        }
        self.save()
    }
}

fn wrong(block: &ConnectedBlock<'_>, what: &str) -> FollowerError {
    FollowerError(format!("block {} at height {}: {what}", block.block.hash(), block.height.0))
}

fn ensure(holds: bool, what: &'static str) -> Result<(), &'static str> {
    if holds { Ok(()) } else { Err(what) }
}

impl Seen {
    fn connect(&mut self, connected: &ConnectedBlock<'_>) -> Result<(), &'static str> {
        let block = connected.block;
        ensure(self.chain.last() == Some(&block.header().prev_block), "connected to another block")?;
        ensure(connected.height.0 as usize == self.chain.len(), "connected at another height")?;
        let mut spent = connected.spent.iter();
        for tx in block.txs() {
            for input in tx.inputs().filter(|_| !tx.is_coinbase()) {
                let coin = self.coins.remove(&input.prevout).ok_or("spends a coin that does not exist")?;
                ensure(spent.next() == Some(&coin), "comes with another spent coin")?;
            }
            for (vout, output) in (0..).zip(tx.outputs()).filter(|(_, output)| !is_unspendable(output.script_pubkey)) {
                let coin = Coin::new(output, connected.height, tx.is_coinbase());
                self.coins.insert(OutPoint { txid: tx.txid(), vout }, coin);
            }
        }
        ensure(spent.next().is_none(), "comes with too many spent coins")?;
        self.chain.push(block.hash());
        self.calls += 1;
        Ok(())
    }

    fn disconnect(&mut self, connected: &ConnectedBlock<'_>) -> Result<(), &'static str> {
        let block = connected.block;
        ensure(connected.height.0 as usize + 1 == self.chain.len(), "disconnected at another height")?;
        ensure(self.chain.pop() == Some(block.hash()), "disconnected and is not the tip")?;
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
        self.calls += 1;
        ensure(spent.next().is_none(), "comes with too many spent coins")
    }
}

fn encode(seen: &Seen) -> Vec<u8> {
    let mut out = u32::try_from(seen.chain.len()).unwrap().to_le_bytes().to_vec();
    seen.chain.iter().for_each(|hash| out.extend_from_slice(&hash.0));
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
    let mut coins = BTreeMap::new();
    while reader.remaining() > 0 {
        let outpoint = OutPoint { txid: Txid(reader.array().unwrap()), vout: reader.u32().unwrap() };
        let code = reader.u32().unwrap();
        let value = Amount(i64::from_le_bytes(reader.array().unwrap()));
        let size = reader.u32().unwrap() as usize;
        let script_pubkey = reader.take(size).unwrap().into();
        coins.insert(outpoint, Coin { value, script_pubkey, height: Height(code >> 1), is_coinbase: code & 1 == 1 });
    }
    Seen { chain, coins, calls: 0 }
}
