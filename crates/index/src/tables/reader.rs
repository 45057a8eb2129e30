//! [`TxIndexReader`]: what servers ask the tables, from any thread.
//!
//! Input: a txid, numbers, a script. Output: places and numbers of transactions, txids, and outputs of scripts. What
//! the blocks in memory have is collected under the lock; segments are read without it.
//!
//! Invariants: an answer is that of one moment. Numbers that were read before mean the same as long as
//! [`TxIndexReader::epoch`] is the same.

use super::commit::Profile;
use super::export::Export;
use super::moment::Moment;
use super::numbers::Salt;
use super::places::{self, Place};
use super::remote::{Identity, RemoteTables};
use super::rows::ScriptHash;
use super::scripts::{ScriptOutput, Unsealed};
use super::segment::{Rows, Segment, numbers_of};
use super::state::Shared;
use super::txids;
use crate::error::IndexError;
use lydian_engine::Tip;
use lydian_primitives::{Height, Txid};
use lydian_stdx::{Current, lock};
use std::collections::HashSet;
use std::sync::Arc;

/// Answers queries, from any thread.
#[derive(Clone, Debug)]
pub struct TxIndexReader(pub(super) Held);

/// The tables that a reader asks.
#[derive(Clone, Debug)]
pub(super) enum Held {
    /// Those of an index of this node.
    Live(Arc<Shared>),
    /// A copy in a store, as it is now.
    Current(Current<RemoteTables>),
    /// A copy in a store at one moment.
    Fixed(Arc<RemoteTables>),
}

impl Held {
    /// A copy as it is now, so that all of an answer is from one moment.
    fn pinned(&self) -> Held {
        match self {
            Held::Current(current) => Held::Fixed(current.get()),
            other => other.clone(),
        }
    }

    /// Collects something of the moment. Reads no page.
    fn look<T>(&self, look: impl FnOnce(&Moment<'_>) -> T) -> T {
        match self {
            Held::Live(shared) => look(&lock(&shared.state).moment()),
            Held::Current(current) => look(&current.get().moment()),
            Held::Fixed(tables) => look(&tables.moment()),
        }
    }

    fn salt(&self) -> Salt {
        self.identity().salt
    }

    fn profile(&self) -> Profile {
        self.identity().profile
    }

    fn identity(&self) -> Identity {
        match self {
            Held::Live(shared) => Identity { genesis: shared.genesis, salt: shared.salt, profile: shared.profile() },
            Held::Current(current) => current.get().identity(),
            Held::Fixed(tables) => tables.identity(),
        }
    }
}

/// The outputs of a script, as the index has them at one moment.
#[derive(Clone, Debug, Default)]
pub struct ScriptOutputs {
    /// In the order of the chain.
    pub outputs: Vec<ScriptOutput>,
    /// The block up to which the index has the chain.
    pub tip: Option<Tip>,
    /// See [`TxIndexReader::epoch`].
    pub epoch: u64,
}

/// The scripts that some blocks pay to or spend from.
#[derive(Clone, Debug)]
pub struct TouchedScripts {
    salt: Salt,
    keys: HashSet<u64>,
}

impl TouchedScripts {
    /// Whether the script is one of them. It may be none of them if this is true, with a probability of 2^-64 each.
    pub fn has(&self, script: &ScriptHash) -> bool {
        self.keys.contains(&self.salt.script_key(script))
    }
}

/// A transaction: its txid, and the height of its block.
pub type TxidAt = (Txid, Height);

/// Numbers that are looked up under one lock.
const NUMBERS_AT_ONCE: usize = 1_024;

impl TxIndexReader {
    /// A reader of a copy in a store, as it is at each moment.
    pub fn following(tables: &Current<RemoteTables>) -> TxIndexReader {
        TxIndexReader(Held::Current(tables.clone()))
    }

    /// A reader of a copy in a store at one moment.
    pub fn fixed(tables: Arc<RemoteTables>) -> TxIndexReader {
        TxIndexReader(Held::Fixed(tables))
    }

    /// What the index has now, to be copied to a store. `None` for a reader of a copy.
    pub fn export(&self) -> Option<Export> {
        let Held::Live(shared) = &self.0 else { return None };
        let state = lock(&shared.state);
        Some(Export::new(self.identity(), &state.moment(), state.sealed))
    }

    /// Which index it is.
    pub fn identity(&self) -> Identity {
        self.0.identity()
    }

    /// The block up to which the index has the chain.
    pub fn tip(&self) -> Option<Tip> {
        self.0.look(|moment| moment.tip)
    }

    /// Bytes in memory for the blocks that are in no segment, without what allocations add. A sum over at most
    /// [`crate::limits::WAITING_BLOCKS_MAX`] and a few hundred blocks.
    pub fn memory_bytes(&self) -> u64 {
        let groups: Vec<_> = self.0.look(|moment| moment.rows().map(|(_, rows)| Arc::clone(rows)).collect());
        groups.iter().map(|rows| rows.memory_bytes() as u64).sum()
    }

    /// The places where a transaction of this txid may be, the last one of the chain first: the caller compares the
    /// txid of what it reads there.
    pub fn candidates(&self, txid: &Txid) -> Result<Vec<(u32, Place)>, IndexError> {
        let held = self.0.pinned();
        let key = held.salt().key(txid);
        let (segments, mut found) = held.look(|moment| (Arc::clone(moment.segments), moment.find_in_memory(key)));
        for number in numbers_of(&segments, key)? {
            let Some(block) = held.look(|moment| moment.heights.block_at(number)) else { continue };
            let Some(segment) = segment_of(&segments, block.height().0) else { continue };
            found.extend(segment.place(&block, number)?.map(|place| (number, place)));
        }
        found.sort_unstable_by_key(|(number, _)| std::cmp::Reverse(*number));
        Ok(found.into_iter().filter_map(|(number, place)| Some((u32::try_from(number).ok()?, place))).collect())
    }

    /// The name of the follower.
    pub fn name(&self) -> &'static str {
        self.0.profile().name()
    }

    /// The tables that the index has.
    pub fn profile(&self) -> Profile {
        self.0.profile()
    }

    /// The outputs that pay to a script, each with its value or its spender. Scripts are known by a salted hash of 64
    /// bits: another script that has the same one is possible, if improbable, so a caller compares the script of what
    /// it reads.
    pub fn outputs(&self, script: &ScriptHash) -> Result<ScriptOutputs, IndexError> {
        self.outputs_of(script, None)
    }

    /// The same, but only of these outputs, sorted by number and output index. Of a script with many outputs, only the
    /// pages that may have them are read.
    pub fn some_outputs(&self, script: &ScriptHash, outputs: &[(u32, u32)]) -> Result<ScriptOutputs, IndexError> {
        self.outputs_of(script, Some(outputs))
    }

    fn outputs_of(&self, script: &ScriptHash, wanted: Option<&[(u32, u32)]>) -> Result<ScriptOutputs, IndexError> {
        let key = self.0.salt().script_key(script);
        let (segments, unsealed, tip, epoch) = self.0.look(|moment| {
            let groups: Vec<&Rows> = moment.rows().map(|(_, rows)| rows.as_ref()).collect();
            let unsealed = Unsealed::find(key, moment.written(), &groups, moment.heights);
            (Arc::clone(moment.segments), unsealed, moment.tip, moment.epoch)
        });
        Ok(ScriptOutputs { outputs: unsealed?.join(key, &segments, wanted)?, tip, epoch })
    }

    /// A number that changes whenever blocks leave the index. If it is the same before and after, numbers of
    /// transactions have meant the same meanwhile.
    pub fn epoch(&self) -> u64 {
        self.0.look(|moment| moment.epoch)
    }

    /// The scripts that the blocks from a height on pay to or spend from; `None` if some of them are no longer in
    /// memory.
    pub fn touched(&self, from: Height) -> Option<TouchedScripts> {
        let groups: Vec<(u32, Arc<Rows>)> = self.0.look(|moment| {
            let groups = moment.groups.iter().filter(|group| group.from + group.blocks() > from.0);
            let groups = groups.map(|group| (group.from, Arc::clone(&group.rows))).collect();
            (from.0 >= moment.written()).then_some(groups)
        })?;
        let mut keys = HashSet::new();
        for (first, rows) in &groups {
            for part in rows.parts().filter(|part| first + part.blocks.1 > from.0) {
                // The blocks of the part that are below.
                let below = from.0.saturating_sub(first + part.blocks.0) as usize;
                let counts = rows.blocks.iter().skip(part.blocks.0 as usize).take(below);
                let least: u32 = counts.map(|block| block.transactions).sum();
                keys.extend(part.creates.iter().filter(|row| row.position >= least).map(|row| row.key));
                keys.extend(part.spends.iter().filter(|row| row.position >= least).map(|row| row.key));
            }
        }
        Some(TouchedScripts { salt: self.0.salt(), keys })
    }

    /// The height of the block of a transaction.
    pub fn height_of(&self, number: u32) -> Option<Height> {
        self.0.look(|moment| moment.heights.block_of(u64::from(number)).map(Height))
    }

    /// The position of a transaction in its block.
    pub fn position_of(&self, number: u32) -> Option<u32> {
        let number = u64::from(number);
        let first = self.0.look(|moment| Some(moment.heights.first(moment.heights.block_of(number)?)));
        u32::try_from(number - first?).ok()
    }

    /// Where a transaction is.
    pub fn place(&self, number: u32) -> Result<Option<Place>, IndexError> {
        Ok(self.places(&[number])?.pop().flatten())
    }

    /// Where transactions are, by numbers in an ascending order; `None` for a number that the chain does not have.
    pub fn places(&self, numbers: &[u32]) -> Result<Vec<Option<Place>>, IndexError> {
        let mut all = Vec::with_capacity(numbers.len());
        for numbers in numbers.chunks(NUMBERS_AT_ONCE) {
            let (segments, found) = self.0.look(|moment| {
                let one = |number: &u32| {
                    let number = u64::from(*number);
                    let block = moment.heights.block_at(number)?;
                    Some((
                        block.height(),
                        match moment.group_of(number) {
                            Some(group) => Known::Here(group.place(moment.heights, number)),
                            None => Known::InSegment((number, block)),
                        },
                    ))
                };
                let found: Vec<Option<(Height, Known<_, _>)>> = numbers.iter().map(one).collect();
                (Arc::clone(moment.segments), found)
            });
            in_segments(&segments, &found, &mut all, |segment, some| {
                places::find_places(segment.sizes.as_ref(), some)
            })?;
        }
        Ok(all)
    }

    /// The txids of transactions and the heights of their blocks, by numbers in an ascending order; `None` for a number
    /// that the chain does not have. `None` as a whole if the index has no table of txids.
    pub fn txids(&self, numbers: &[u32]) -> Result<Option<Vec<Option<TxidAt>>>, IndexError> {
        if !self.0.profile().has_txids {
            return Ok(None);
        }
        let mut all = Vec::with_capacity(numbers.len());
        for numbers in numbers.chunks(NUMBERS_AT_ONCE) {
            self.some_txids(numbers, &mut all)?;
        }
        Ok(Some(all))
    }

    fn some_txids(&self, numbers: &[u32], all: &mut Vec<Option<TxidAt>>) -> Result<(), IndexError> {
        let (segments, found) = self.0.look(|moment| {
            let one = |number: &u32| {
                let number = u64::from(*number);
                let height = moment.heights.block_of(number)?;
                let known = |txid: Option<Txid>| txid.map(|txid| (txid, Height(height)));
                Some((
                    Height(height),
                    match moment.group_of(number) {
                        Some(group) => Known::Here(known(group.txid(moment.heights, number))),
                        None => Known::InSegment((number, Height(height))),
                    },
                ))
            };
            let found: Vec<Option<(Height, Known<_, _>)>> = numbers.iter().map(one).collect();
            (Arc::clone(moment.segments), found)
        });
        in_segments(&segments, &found, all, |segment, some| {
            let Some(table) = segment.txids.as_deref() else { return Ok(vec![None; some.len()]) };
            let numbers: Vec<u64> = some.iter().map(|(number, _)| *number).collect();
            let txids = txids::find(table, &numbers)?.into_iter().zip(some);
            Ok(txids.map(|(txid, (_, height))| Some((txid?, *height))).collect())
        })
    }
}

/// What is asked of a transaction: the answer, or what a segment needs to give it.
#[derive(Clone, Copy, Debug)]
enum Known<A, Q> {
    Here(Option<A>),
    InSegment(Q),
}

/// Completes the answers about transactions, which ascend, each with its height: those of a segment together.
fn in_segments<A: Copy, Q: Copy>(
    segments: &[Segment],
    found: &[Option<(Height, Known<A, Q>)>],
    all: &mut Vec<Option<A>>,
    ask: impl Fn(&Segment, &[Q]) -> Result<Vec<Option<A>>, IndexError>,
) -> Result<(), IndexError> {
    let mut rest = found;
    while let Some(first) = rest.first() {
        let Some((height, Known::InSegment(_))) = first else {
            all.push(first.as_ref().and_then(|(_, known)| match known {
                Known::Here(answer) => *answer,
                Known::InSegment(_) => None,
            }));
            rest = rest.get(1..).unwrap_or_default();
            continue;
        };
        let segment = segment_of(segments, height.0);
        let of_segment = rest.iter().map_while(|one| match one {
            Some((other, Known::InSegment(question))) => {
                let is_same = segment.is_some_and(|segment| segment.heights.contains(&other.0));
                (is_same || other == height).then_some(*question)
            }
            _ => None,
        });
        let questions: Vec<Q> = of_segment.collect();
        match segment {
            Some(segment) => all.extend(ask(segment, &questions)?),
            None => all.extend(questions.iter().map(|_| None)),
        }
        rest = rest.get(questions.len()..).unwrap_or_default();
    }
    Ok(())
}

fn segment_of(segments: &[Segment], height: u32) -> Option<&Segment> {
    let at = segments.partition_point(|segment| segment.heights.end <= height);
    segments.get(at).filter(|segment| segment.heights.contains(&height))
}
