//! [`NodeIndex`]: the tables of this node, or a copy of such tables in a store.
//!
//! Cost: a lookup asks a page of each segment; a number takes a page of txids, or, with a compact index, the bytes
//! of its transaction, from which the txid is computed, unless it was asked for lately ([`TxidCache`]).

use crate::allowance::Allowance;
use crate::error::QueryError;
use crate::source::{Chain, Located, Numbered, ScriptIndex, Taken, fates_of};
use crate::transactions::read;
use crate::txids::TxidCache;
use lydian_engine::{Engine, FollowerInfo, Standing};
use lydian_index::{OutputFate, Place, ScriptHash, ScriptOutputs, TxIndexReader};
use lydian_primitives::{Height, Transaction, Txid};
use std::fmt::Debug;
use std::sync::{Arc, Weak};

/// Transactions, and their bytes if those are more, that are read at the same time.
const READS_AT_ONCE: usize = 128;
const READ_BYTES_AT_ONCE: usize = 4 << 20;

/// What brings tables to the chain.
pub trait Feeder: Debug + Send + Sync {
    /// Why the tables cannot go on, if they cannot. `name`: what errors call them.
    fn failure(&self, name: &str) -> Option<String>;

    /// Waits until the tables have the blocks connected so far. False if they are still being built.
    fn wait_until_synced(&self) -> bool;

    /// Waits until the tables have the block at a height, as long as they are about to.
    fn wait_for(&self, height: Height);
}

/// The engine of this node.
#[derive(Debug)]
struct EngineFeeder {
    /// Weak, since what has this may outlive the engine.
    engine: Weak<Engine>,
    /// The name of the tables as a follower.
    follower: &'static str,
}

impl EngineFeeder {
    fn info(&self) -> Option<FollowerInfo> {
        self.engine.upgrade()?.follower(self.follower)
    }
}

impl Feeder for EngineFeeder {
    fn failure(&self, name: &str) -> Option<String> {
        self.info()?.failure(name)
    }

    fn wait_until_synced(&self) -> bool {
        let Some(engine) = self.engine.upgrade() else { return false };
        engine.wait_for_follower(self.follower, engine.settled_tip().height);
        self.info().is_some_and(|follower| follower.standing == Standing::InStep)
    }

    fn wait_for(&self, height: Height) {
        if let Some(engine) = self.engine.upgrade() {
            engine.wait_for_follower(self.follower, height);
        }
    }
}

/// The index of this node, with the chain whose transactions it names.
#[derive(Clone, Debug)]
pub struct NodeIndex {
    reader: TxIndexReader,
    /// The name in errors: that of the option, if several share the tables.
    name: &'static str,
    chain: Arc<dyn Chain>,
    feeder: Arc<dyn Feeder>,
    txids: Arc<TxidCache>,
}

impl NodeIndex {
    /// Without tables of scripts, it finds transactions only.
    pub fn new(reader: TxIndexReader, chain: Arc<dyn Chain>, engine: &Arc<Engine>) -> NodeIndex {
        let feeder = EngineFeeder { engine: Arc::downgrade(engine), follower: reader.name() };
        NodeIndex::fed_by(reader, chain, Arc::new(feeder))
    }

    /// Tables that something else than the engine of this node brings to the chain.
    pub fn fed_by(reader: TxIndexReader, chain: Arc<dyn Chain>, feeder: Arc<dyn Feeder>) -> NodeIndex {
        let name = reader.name();
        NodeIndex { reader, name, chain, feeder, txids: Arc::new(TxidCache::new()) }
    }

    /// The same index, which errors call by another name.
    pub fn named(self, name: &'static str) -> NodeIndex {
        NodeIndex { name, ..self }
    }

    /// The same index with another view of the same chain.
    pub fn on(&self, chain: Arc<dyn Chain>) -> NodeIndex {
        NodeIndex { chain, ..self.clone() }
    }
}

impl NodeIndex {
    /// `None` if there is no table of txids.
    fn in_table(&self, numbers: &[u32]) -> Result<Option<Vec<Option<Numbered>>>, QueryError> {
        let numbered = |(txid, height): (Txid, Height)| Numbered { txid, height: height.0 };
        let txids = self.reader.txids(numbers)?;
        Ok(txids.map(|txids| txids.into_iter().map(|found| found.map(numbered)).collect()))
    }

    /// From the table of txids if there is one, otherwise from the bytes of the transactions. If it fails, `found` has
    /// those before.
    fn look_up(&self, numbers: &[u32], found: &mut Vec<Option<Numbered>>) -> Result<(), QueryError> {
        if let Some(all) = self.in_table(numbers)? {
            *found = all;
            return Ok(());
        }
        for numbers in numbers.chunks(READS_AT_ONCE) {
            let places = self.reader.places(numbers)?;
            let numbered =
                |place: &Place, tx: &Transaction| Numbered { txid: tx.view().txid(), height: place.height.0 };
            if places.iter().flatten().next().is_some_and(|place| self.chain.is_pruned(place.height)) {
                // Each may take a block from a peer.
                for place in places {
                    let tx = place.map(|place| self.chain.transaction(place)).transpose()?.flatten();
                    found.push(place.zip(tx).map(|(place, tx)| numbered(&place, &tx)));
                }
                continue;
            }
            found.extend(
                self.read_some(&places)?.iter().map(|found| found.as_ref().map(|(place, tx)| numbered(place, tx))),
            );
        }
        Ok(())
    }

    /// The transactions at places; those of a few megabytes are read at the same time.
    fn read_some(&self, places: &[Option<Place>]) -> Result<Vec<Option<(Place, Transaction)>>, QueryError> {
        let known: Vec<Place> = places.iter().flatten().copied().collect();
        let (mut read, mut rest) = (Vec::with_capacity(known.len()), &known[..]);
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = |place: &&Place| {
                bytes += place.size as usize;
                bytes <= READ_BYTES_AT_ONCE
            };
            let (some, others) = rest.split_at(rest.iter().take_while(fits).count().max(1));
            read.extend(self.chain.transactions(some)?);
            rest = others;
        }
        let mut read = read.into_iter();
        Ok(places.iter().map(|place| place.and_then(|place| Some((place, read.next()??)))).collect())
    }
}

impl ScriptIndex for NodeIndex {
    fn check(&self) -> Result<(), QueryError> {
        // A block is settled once the index has it, unless the index is being built, or failed.
        let (settled, own) = (self.chain.tip()?, self.reader.tip());
        if own == Some(settled) {
            return Ok(());
        }
        // It may be above the tip and on another chain then.
        if let Some(failure) = self.feeder.failure(self.name) {
            return Err(QueryError::Failed(failure));
        }
        let (height, of) = (own.map_or(0, |tip| tip.height.0), settled.height.0);
        if height >= of { Ok(()) } else { Err(QueryError::IndexBehind { height, of }) }
    }

    fn wait_until_synced(&self) -> Result<bool, QueryError> {
        let is_synced = self.feeder.wait_until_synced();
        match self.feeder.failure(self.name) {
            Some(failure) => Err(QueryError::Failed(failure)),
            None => Ok(is_synced),
        }
    }

    fn outputs(&self, script: &ScriptHash) -> Result<ScriptOutputs, QueryError> {
        Ok(self.reader.outputs(script)?)
    }

    fn fates(&self, script: &ScriptHash, places: &[(u32, u32)]) -> Result<Vec<Option<OutputFate>>, QueryError> {
        Ok(fates_of(&self.reader.some_outputs(script, places)?.outputs, places))
    }

    fn epoch(&self) -> u64 {
        self.reader.epoch()
    }

    fn numbered(&self, numbers: &[u32]) -> Result<Vec<Option<Numbered>>, QueryError> {
        let epoch = self.reader.epoch();
        let mut all: Vec<Option<Numbered>> = numbers.iter().map(|number| self.txids.get(epoch, *number)).collect();
        let unknown: Vec<u32> =
            numbers.iter().zip(&all).filter_map(|(number, known)| known.is_none().then_some(*number)).collect();
        if unknown.is_empty() {
            return Ok(all);
        }
        // What was found before a failure is kept: a history over many pruned blocks goes on there when it is asked for
        // again.
        let mut found = Vec::new();
        let result = self.look_up(&unknown, &mut found);
        let mut found = found.into_iter();
        let is_same = self.reader.epoch() == epoch;
        for (number, known) in numbers.iter().zip(&mut all).filter(|(_, known)| known.is_none()) {
            *known = found.next().flatten();
            if let Some(found) = known.filter(|_| is_same) {
                self.txids.put(epoch, *number, found);
            }
        }
        result?;
        Ok(all)
    }

    fn numbered_once(&self, numbers: &[u32]) -> Result<Vec<Option<Numbered>>, QueryError> {
        match self.in_table(numbers)? {
            Some(found) => Ok(found),
            None => self.numbered(numbers),
        }
    }

    fn transactions(&self, numbers: &[u32]) -> Result<Vec<Option<(u32, Transaction)>>, QueryError> {
        let found = self.read_some(&self.reader.places(numbers)?)?;
        Ok(found.into_iter().map(|found| found.map(|(place, tx)| (place.height.0, tx))).collect())
    }

    fn located(&self, numbers: &[u32]) -> Result<Vec<Option<Located>>, QueryError> {
        let one = |number: &u32| -> Result<Option<Located>, QueryError> {
            let Some(place) = self.reader.place(*number)? else { return Ok(None) };
            let found = read(self.chain.as_ref(), place)?;
            let position = self.reader.position_of(*number);
            Ok(found.map(|(tx, block)| Located { number: *number, block, position, tx }))
        };
        numbers.iter().map(one).collect()
    }

    fn check_fetches(&self, taken: Taken, numbers: &[u32]) -> Result<(), QueryError> {
        let Some(allowance) = Allowance::current().filter(|allowance| numbers.len() > allowance.left()) else {
            return Ok(());
        };
        let takes_txids = taken == Taken::Txids;
        // The oldest blocks are pruned first: if one is there, so are all later ones, or nearly all.
        let first = numbers.first().and_then(|number| self.reader.height_of(*number));
        let needs_none = takes_txids && self.reader.profile().has_txids;
        if needs_none || !first.is_some_and(|height| self.chain.is_pruned(height)) {
            return Ok(());
        }
        let epoch = self.reader.epoch();
        let is_unknown = |number: &&u32| !takes_txids || self.txids.get(epoch, **number).is_none();
        let unknown: Vec<u32> = numbers.iter().filter(is_unknown).copied().collect();
        if unknown.len() <= allowance.left() {
            return Ok(());
        }
        self.chain.check_fetches(unknown.iter().filter_map(|number| self.reader.height_of(*number)).collect())
    }

    fn check_fetches_of(&self, txids: &[Txid]) -> Result<(), QueryError> {
        if Allowance::current().is_none_or(|allowance| txids.len() <= allowance.left()) {
            return Ok(());
        }
        let mut heights = Vec::with_capacity(txids.len());
        for txid in txids {
            // The last one is asked first, and is nearly always the one.
            heights.extend(self.reader.candidates(txid)?.first().map(|(_, place)| place.height));
        }
        self.chain.check_fetches(heights)
    }

    fn height_of(&self, number: u32) -> Option<u32> {
        self.reader.height_of(number).map(|height| height.0)
    }

    fn position_of(&self, number: u32) -> Option<u32> {
        self.reader.position_of(number)
    }

    fn locate(&self, txid: &Txid) -> Result<Option<Located>, QueryError> {
        // The index has short keys: what has another txid is not it.
        for (number, place) in self.reader.candidates(txid)? {
            let found = read(self.chain.as_ref(), place)?.filter(|(tx, _)| tx.view().txid() == *txid);
            if let Some((tx, block)) = found {
                return Ok(Some(Located { number, block, position: self.reader.position_of(number), tx }));
            }
        }
        Ok(None)
    }

    fn wait_for(&self, height: Height) {
        self.feeder.wait_for(height);
    }

    fn touched(&self, from: Height, scripts: &[ScriptHash]) -> Vec<ScriptHash> {
        match self.reader.touched(from) {
            Some(touched) => scripts.iter().filter(|script| touched.has(script)).copied().collect(),
            None => scripts.to_vec(),
        }
    }
}
