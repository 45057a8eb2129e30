//! The index against the blocks themselves, and its files against those of an index that is built at once.

use super::*;
use lydian_chain::ChainTotals;
use lydian_consensus::Coin;
use lydian_disk::SimDisk;
use lydian_engine::{ConnectedBlock, Follower, Left};
use lydian_primitives::build::{MutBlock, MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, Block, BlockHash, Header, Height, OutPoint, RawBlock, Txid};
use lydian_stdx::SplitMix64;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

mod inspect;
mod races;

const DIR: &str = "tables";

const COMPACT: Profile = Profile { has_scripts: true, has_txids: false };
const TRANSACTIONS: Profile = Profile { has_scripts: false, has_txids: false };
const FULL: Profile = Profile { has_scripts: true, has_txids: true };

fn open(disk: &SimDisk) -> (TxIndex, TxIndexReader) {
    open_as(disk, FULL)
}

fn open_as(disk: &SimDisk, profile: Profile) -> (TxIndex, TxIndexReader) {
    TxIndex::open(Arc::new(disk.clone()), Path::new(DIR), BlockHash([1; 32]), profile, || [5, 6]).unwrap()
}

/// A transaction with inputs; a coinbase has none of these, but a number.
fn tx(number: u64, spends: &[OutPoint], outputs: Vec<MutOutput>) -> MutTx {
    let input = |prevout: OutPoint| MutInput {
        prevout,
        script_sig: number.to_le_bytes().to_vec(),
        sequence: 0,
        witness: Vec::new(),
    };
    let mut inputs: Vec<MutInput> = spends.iter().copied().map(input).collect();
    if inputs.is_empty() {
        inputs.push(input(OutPoint { txid: Txid([0; 32]), vout: u32::MAX }));
    }
    MutTx { version: 2, inputs, outputs, lock_time: 0 }
}

fn output(value: i64, script: &[u8]) -> MutOutput {
    MutOutput { value: Amount(value), script_pubkey: script.to_vec() }
}

/// The coinbase that is repeated, as those of 2010.
fn repeated() -> MutTx {
    tx(7, &[], vec![output(50, b"repeated")])
}

/// A block of the test's chain.
#[derive(Clone)]
struct Step {
    block: Block,
    height: u32,
    spent: Vec<Coin>,
}

/// A chain of blocks of which only the transactions matter, with those that left it.
struct Chain {
    random: SplitMix64,
    active: Vec<Step>,
    all: HashMap<BlockHash, Step>,
    /// Outputs that can be spent.
    coins: Vec<(OutPoint, Coin)>,
}

impl Chain {
    fn new(seed: u64) -> Chain {
        Chain { random: SplitMix64::new(seed), active: Vec::new(), all: HashMap::new(), coins: Vec::new() }
    }

    fn script(&mut self) -> Vec<u8> {
        match self.random.below(8) {
            // Some scripts have long lists.
            0 | 1 => vec![0x51],
            2 => vec![0x52, u8::try_from(self.random.below(9)).unwrap()],
            3 => [&[0x6a, 4][..], &self.random.next_u64().to_le_bytes()].concat(),
            _ => self.random.next_u64().to_le_bytes().to_vec(),
        }
    }

    fn next_tx(&mut self, inputs: usize, height: u32, spent: &mut Vec<Coin>) -> MutTx {
        let mut spends = Vec::new();
        for _ in 0..inputs.min(self.coins.len()) {
            // Mostly young coins.
            let back = self.random.below(self.coins.len()).min(self.random.below(self.coins.len()));
            let (outpoint, coin) = self.coins.remove(self.coins.len() - 1 - back);
            spends.push(outpoint);
            spent.push(coin);
        }
        let outputs = 1 + self.random.below(3);
        let outputs: Vec<MutOutput> = (0..outputs)
            .map(|_| {
                let script = self.script();
                output(i64::try_from(self.random.below(1 << 40)).unwrap(), &script)
            })
            .collect();
        let tx = tx(self.random.next_u64(), &spends, outputs);
        let txid = tx.txid();
        for (vout, output) in (0..).zip(&tx.outputs).filter(|(_, output)| output.script_pubkey[0] != 0x6a) {
            let (value, script_pubkey) = (output.value, output.script_pubkey.clone().into());
            let coin = Coin { value, script_pubkey, height: Height(height), is_coinbase: inputs == 0 };
            self.coins.push((OutPoint { txid, vout }, coin));
        }
        tx
    }

    fn grow(&mut self, count: usize) {
        for _ in 0..count {
            let height = u32::try_from(self.active.len()).unwrap();
            let mut spent = Vec::new();
            // The output of the genesis block is not a coin; that of a repeated coinbase is not spent here.
            let coinbase = match height {
                0 => tx(0, &[], vec![output(5, b"genesis")]),
                _ if height % 97 == 50 => repeated(),
                _ => self.next_tx(0, height, &mut spent),
            };
            let mut txs = vec![coinbase];
            let more = match height {
                0 => 0,
                _ if height % 700 == 9 => 260,
                _ => self.random.below(4),
            };
            txs.extend((0..more).map(|index| self.next_tx(1 + index % 2, height, &mut spent)));
            let prev_block = self.active.last().map_or(BlockHash::ZERO, |step| step.block.hash());
            let nonce = u32::try_from(self.random.below(1 << 30)).unwrap();
            let header = Header { version: 1, prev_block, merkle_root: [0; 32], time: 0, bits: 0, nonce };
            let block = RawBlock::new(MutBlock { header, txs }.encode()).parse().unwrap();
            let step = Step { block, height, spent };
            self.all.insert(step.block.hash(), step.clone());
            self.active.push(step);
        }
    }

    /// The last blocks leave the chain.
    fn cut(&mut self, left: usize) {
        self.active.truncate(left);
        let spent: HashSet<OutPoint> = self.inputs().collect();
        let mut coins = Vec::new();
        for Step { block, height, .. } in &self.active {
            for tx in block.txs().filter(|tx| *height > 0 && tx.txid() != repeated().txid()) {
                for (vout, output) in (0..).zip(tx.outputs()) {
                    let outpoint = OutPoint { txid: tx.txid(), vout };
                    if output.script_pubkey[0] != 0x6a && !spent.contains(&outpoint) {
                        coins.push((outpoint, Coin::new(output, Height(*height), tx.is_coinbase())));
                    }
                }
            }
        }
        self.coins = coins;
    }

    fn inputs(&self) -> impl Iterator<Item = OutPoint> {
        let txs = self.active.iter().flat_map(|step| step.block.txs());
        txs.filter(|tx| !tx.is_coinbase()).flat_map(|tx| tx.inputs()).map(|input| input.prevout)
    }

    /// Brings an index to the chain, as the engine does.
    fn feed(&self, index: &mut TxIndex, reader: &TxIndexReader) {
        while let Some(tip) = reader.tip()
            && self.active.get(tip.height.0 as usize).is_none_or(|step| step.block.hash() != tip.hash)
        {
            let step = &self.all[&tip.hash];
            if index.disconnect(&connected(step)).unwrap() == Left::ToDurableTip {
                assert_eq!(index.durable_tip(), reader.tip());
                assert!(reader.tip().is_none_or(|below| below.height < tip.height));
            }
        }
        let next = reader.tip().map_or(0, |tip| tip.height.0 + 1);
        for step in self.active.iter().skip(next as usize) {
            index.connect(&connected(step), None).unwrap();
        }
    }

    /// Looks up every `step`th transaction and script.
    fn compare(&self, reader: &TxIndexReader, step: usize) {
        self.compare_places(reader, step);
        if reader.profile().has_scripts {
            self.compare_outputs(reader, step);
        }
    }

    fn compare_places(&self, reader: &TxIndexReader, step: usize) {
        let (mut newest, mut number) = (HashMap::new(), 0);
        for (height, Step { block, .. }) in self.active.iter().enumerate() {
            for tx in block.txs() {
                newest.insert(tx.txid(), (number, (height, tx.offset() as usize, tx.bytes().len())));
                number += 1;
            }
        }
        for (txid, (number, expected)) in newest.iter().filter(|(_, (_, (height, _, _)))| height % step == 0) {
            let candidates = reader.candidates(txid).unwrap();
            let is_it = |(_, place): &&(u32, Place)| {
                let block = &self.active[place.height.0 as usize].block;
                block.txs().any(|tx| tx.offset() == place.offset && tx.txid() == *txid)
            };
            let (found, place) = candidates.iter().find(is_it).unwrap();
            assert_eq!(found, number);
            assert_eq!((place.height.0 as usize, place.offset as usize, place.size as usize), *expected);
            assert_eq!(reader.place(*number).unwrap(), Some(*place));
            if let Some(found) = reader.txids(&[*number, u32::MAX]).unwrap() {
                assert_eq!(found, [Some((*txid, place.height)), None]);
            }
            assert_eq!(reader.height_of(*number), Some(place.height));
            let position = self.active[place.height.0 as usize].block.txs().position(|tx| tx.offset() == place.offset);
            assert_eq!(reader.position_of(*number).map(|position| position as usize), position);
            // Keys of 40 bits, in a chain of thousands.
            assert!(*txid == repeated().txid() || candidates.len() == 1);
        }
        if let Some(found) = reader.txids(&(0..number).collect::<Vec<u32>>()).unwrap() {
            let txids = self.active.iter().flat_map(|step| step.block.txs().map(|tx| tx.txid()));
            assert!(found.iter().map(|found| found.map(|(txid, _)| txid)).eq(txids.map(Some)));
        }
        assert!(reader.candidates(&Txid([9; 32])).unwrap().is_empty());
        assert_eq!((reader.place(number).unwrap(), reader.height_of(number)), (None, None));
        assert_eq!(reader.position_of(number), None);
    }

    /// The outputs of every script, from the blocks alone.
    fn outputs(&self) -> HashMap<Vec<u8>, Vec<ScriptOutput>> {
        let (mut all, mut places, mut number) = (HashMap::<Vec<u8>, Vec<ScriptOutput>>::new(), HashMap::new(), 0);
        for Step { block, height, .. } in &self.active {
            for tx in block.txs() {
                for input in tx.inputs().filter(|_| !tx.is_coinbase()) {
                    let (script, at): &(Vec<u8>, usize) = &places[&input.prevout];
                    all.get_mut(script).unwrap()[*at].fate = OutputFate::Spent(number);
                }
                for (vout, output) in (0..).zip(tx.outputs()).filter(|_| *height > 0) {
                    if output.script_pubkey[0] != 0x6a {
                        let outputs = all.entry(output.script_pubkey.to_vec()).or_default();
                        let place = (output.script_pubkey.to_vec(), outputs.len());
                        places.insert(OutPoint { txid: tx.txid(), vout }, place);
                        let fate = OutputFate::Unspent(u64::try_from(output.value.0).unwrap());
                        outputs.push(ScriptOutput { number, vout, fate });
                    }
                }
                number += 1;
            }
        }
        all
    }

    fn compare_outputs(&self, reader: &TxIndexReader, step: usize) {
        let mut scripts: Vec<_> = self.outputs().into_iter().collect();
        scripts.sort_unstable_by_key(|(_, outputs)| std::cmp::Reverse(outputs.len()));
        let (long, short) = scripts.split_at(scripts.len().min(12));
        for (script, expected) in long.iter().chain(short.iter().step_by(step)) {
            let ScriptOutputs { outputs: found, tip, .. } = reader.outputs(&ScriptHash::of(script)).unwrap();
            assert_eq!((found.len(), &found), (expected.len(), expected));
            assert_eq!(tip.map(|tip| tip.hash), self.active.last().map(|step| step.block.hash()));
            for every in [1, 7, 400] {
                let some: Vec<ScriptOutput> = expected.iter().rev().step_by(every).rev().copied().collect();
                let mut wanted: Vec<(u32, u32)> = some.iter().map(|output| (output.number, output.vout)).collect();
                // Outputs that do not exist, or pay to other scripts.
                wanted.extend([(0, 0), (1, 5), (number_of(expected, 2) + 1, 9), (u32::MAX, 0)]);
                wanted.sort_unstable();
                wanted.dedup();
                assert_eq!(reader.some_outputs(&ScriptHash::of(script), &wanted).unwrap().outputs, some);
            }
        }
        for script in [&b"genesis"[..], b"none", &[0x6a, 4]] {
            assert_eq!(reader.outputs(&ScriptHash::of(script)).unwrap().outputs, []);
        }
    }

    /// The files of an index that is built at once.
    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let disk = SimDisk::new(1);
        let (mut index, reader) = open(&disk);
        self.feed(&mut index, &reader);
        settle(&mut index, &reader);
        disk.files()
    }
}

/// The number in the middle of a list, or nearby.
fn number_of(outputs: &[ScriptOutput], part: usize) -> u32 {
    outputs.get(outputs.len() / part).or(outputs.last()).map_or(0, |output| output.number)
}

fn connected(step: &Step) -> ConnectedBlock<'_> {
    ConnectedBlock {
        height: Height(step.height),
        block: &step.block,
        spent: &step.spent,
        below: ChainTotals::default(),
    }
}

/// Seals what can be sealed, and records it.
fn settle(index: &mut TxIndex, reader: &TxIndexReader) {
    index.settle().unwrap();
    assert_eq!(index.durable_tip(), reader.tip());
}

#[test]
fn every_transaction_is_found_sealed_or_not() {
    let mut chain = Chain::new(1);
    let disk = SimDisk::new(1);
    let (mut index, reader) = open(&disk);
    chain.grow(5);
    chain.feed(&mut index, &reader);
    chain.compare(&reader, 1);
    settle(&mut index, &reader);
    let size: usize = disk.files().values().map(Vec::len).sum();
    assert!(size < 3_000, "{size} bytes for five blocks");
    // At least the hash of each block and the row of its coinbase.
    let small = reader.memory_bytes();
    assert!((200..10_000).contains(&small), "{small} bytes of memory for five blocks");
    chain.grow(4_400);
    chain.feed(&mut index, &reader);
    chain.compare(&reader, 7);
    settle(&mut index, &reader);
    chain.compare(&reader, 5);
    // Of the 4,406 blocks, those behind the last full group of 256.
    let left = reader.memory_bytes() / small;
    assert!((5..60).contains(&left), "{left} times the memory of five blocks");
    let names: Vec<String> = disk.files().keys().map(|path| path.display().to_string()).collect();
    assert!(names.iter().any(|name| name.ends_with("0000000-0002048.numbers")), "{names:?}");
    assert!(names.iter().any(|name| name.ends_with("0003072.log")), "{names:?}");
    // After a restart.
    drop(index);
    let (index, reader) = open(&disk.kill());
    assert_eq!(index.durable_tip(), reader.tip());
    assert_eq!(reader.tip().unwrap().hash, chain.active.last().unwrap().block.hash());
    chain.compare(&reader, 5);
    assert_eq!(disk.files(), chain.files());
}

/// Blocks, reorganisations of any depth, checkpoints, kills and losses of power in any order: every transaction is
/// found, and in the end the files are those of an index that was built at once.
#[test]
fn the_files_follow_from_the_chain_alone() {
    for seed in 0..4 {
        let (mut chain, mut random) = (Chain::new(seed), SplitMix64::new(seed));
        let mut disk = SimDisk::new(seed);
        let (mut index, mut reader) = open(&disk);
        chain.grow(1_000);
        for step in 0..24 {
            match random.below(8) {
                0 => {
                    // Deeper than what is not sealed.
                    let left = chain.active.len().saturating_sub(1 + random.below(2_000)).max(1);
                    chain.cut(left);
                    chain.feed(&mut index, &reader);
                }
                1 | 2 => {
                    let left = chain.active.len().saturating_sub(1 + random.below(40)).max(1);
                    chain.cut(left);
                    chain.grow(1);
                    chain.feed(&mut index, &reader);
                }
                3 | 4 => {
                    let is_power = random.below(2) == 0;
                    let after = if is_power { disk.power_loss(random.next_u64()) } else { disk.kill() };
                    drop(index);
                    disk = after;
                    (index, reader) = open(&disk);
                    chain.feed(&mut index, &reader);
                }
                5 if reader.tip().is_some() => index.checkpoint(reader.tip().unwrap()).unwrap(),
                _ => {
                    chain.grow(random.below(900));
                    chain.feed(&mut index, &reader);
                }
            }
            if step % 6 == 0 {
                chain.compare(&reader, 50);
            }
        }
        let highest = chain.all.values().map(|step| step.height as usize).max().unwrap();
        chain.grow(highest + 500 - chain.active.len());
        chain.feed(&mut index, &reader);
        settle(&mut index, &reader);
        chain.compare(&reader, 11);
        assert_eq!(disk.files(), chain.files(), "seed {seed}");
    }
}

/// A chain whose last block completes eight segments, an index without that block, and the index's height.
fn before_a_merge() -> (Chain, SimDisk, Height) {
    let mut chain = Chain::new(3);
    chain.grow(UNSEALED_BLOCKS as usize + 8 * 256 - 1);
    let base = SimDisk::new(1);
    let (mut index, reader) = open(&base);
    chain.feed(&mut index, &reader);
    settle(&mut index, &reader);
    drop(index);
    chain.grow(1);
    let recorded = reader.tip().unwrap().height;
    (chain, base, recorded)
}

/// A crash at every operation of a checkpoint, of a seal, and of a cut.
#[test]
fn a_crash_at_any_operation_loses_nothing_that_was_recorded() {
    let (chain, base, recorded) = before_a_merge();
    let expected = chain.files();
    let mut operation = 1;
    loop {
        let disk = base.kill();
        let (mut index, _reader) = open(&disk);
        disk.fail_at(disk.operation_count() + operation, lydian_disk::Fault::CrashInside);
        let last = chain.active.last().unwrap();
        index.connect(&connected(last), None).unwrap();
        let ended = index.settle();
        drop(index);
        let is_over = !disk.is_crashed();
        assert_eq!(is_over, ended.is_ok());
        let disk = disk.power_loss(operation);
        let (mut index, reader) = open(&disk);
        assert!(reader.tip().unwrap().height >= recorded);
        chain.feed(&mut index, &reader);
        settle(&mut index, &reader);
        assert!(disk.files() == expected, "operation {operation}");
        if is_over {
            break;
        }
        operation += 1;
    }
    assert!(operation > 20, "{operation} operations");
}

/// The disk is full at any operation of a checkpoint, of a seal and of a merge, or from a certain size on: the engine
/// gets an error with the name of the file. With space again, nothing that was recorded is lost.
#[test]
fn a_full_disk_at_any_operation_loses_nothing_that_was_recorded() {
    let (chain, base, recorded) = before_a_merge();
    let expected = chain.files();
    // Returns false if there was enough space.
    let try_with = |limit: &dyn Fn(&SimDisk), label: &str| {
        let disk = base.kill();
        let (mut index, _reader) = open(&disk);
        limit(&disk);
        let last = chain.active.last().unwrap();
        index.connect(&connected(last), None).unwrap();
        let ended = index.settle();
        drop(index);
        if let Err(error) = &ended {
            let is_named = error.reason.starts_with(&format!("{DIR}/")) && error.reason.contains("no space");
            assert!(error.is_disk_full && is_named, "{label}: {error:?}");
        }
        disk.set_capacity(u64::MAX);
        let disk = disk.kill();
        let (mut index, reader) = open(&disk);
        assert!(reader.tip().unwrap().height >= recorded, "{label}");
        chain.feed(&mut index, &reader);
        settle(&mut index, &reader);
        assert!(disk.files() == expected, "{label}");
        ended.is_err()
    };
    let mut operation = 0;
    let full_at = |operation: u64| {
        move |disk: &SimDisk| disk.fail_at(disk.operation_count() + operation, lydian_disk::Fault::NoSpace)
    };
    while try_with(&full_at(operation), &format!("operation {operation}")) {
        operation += 1;
    }
    assert!(operation > 20, "{operation} operations");
    let used = |disk: &SimDisk| disk.files().values().map(|bytes| bytes.len() as u64).sum::<u64>();
    let mut refused = 0;
    for room in [0, 1, 100, 5_000, 50_000, 200_000, 10_000_000] {
        let limit = |disk: &SimDisk| disk.set_capacity(used(disk) + room);
        refused += u32::from(try_with(&limit, &format!("room for {room} bytes")));
    }
    assert!((3..7).contains(&refused), "{refused}");
}

/// Tables that are not asked for any more stay; those that are missing are built, with all others.
#[test]
fn a_profile_is_kept_or_built_anew() {
    let mut chain = Chain::new(4);
    chain.grow(2_000);
    let disk = SimDisk::new(1);
    for (asked, found, is_kept) in [
        (TRANSACTIONS, TRANSACTIONS, false),
        (COMPACT, COMPACT, false),
        (TRANSACTIONS, COMPACT, true),
        (FULL, FULL, false),
        (COMPACT, FULL, true),
        (Profile { has_scripts: false, has_txids: true }, FULL, true),
    ] {
        let (mut index, reader) = open_as(&disk, asked);
        assert_eq!((reader.profile(), reader.tip().is_some()), (found, is_kept), "{asked:?}");
        chain.grow(5);
        chain.feed(&mut index, &reader);
        settle(&mut index, &reader);
        chain.compare(&reader, 9);
        let has = |end| disk.files().keys().any(|path| path.extension().is_some_and(|found| found == end));
        assert_eq!((has("events"), has("txids")), (found.has_scripts, found.has_txids));
    }
    assert_eq!(disk.files(), chain.files());
}

/// A chain cut within what is not sealed: exactly what was added is removed, also of blocks that are in segments
/// already. A crash at any operation on the way loses nothing.
#[test]
fn rows_in_segments_come_back_from_the_log() {
    let mut chain = Chain::new(6);
    let base = SimDisk::new(1);
    let (mut index, reader) = open(&base);
    chain.grow(1_500);
    chain.feed(&mut index, &reader);
    settle(&mut index, &reader);
    let has = |disk: &SimDisk, name: &str| disk.files().contains_key(&Path::new(DIR).join(name));
    assert!(has(&base, "0001024-0001280.events") && has(&base, "0001024.log") && has(&base, "0001280.log"));
    assert!(has(&base, "0000000-0000256.events") && !has(&base, "0000000.log"), "sealed");
    let recorded = reader.tip().unwrap().height.0;
    drop(index);
    chain.cut(recorded as usize + 1 - UNSEALED_BLOCKS as usize);
    chain.grow(1_100);
    let expected = chain.files();
    let mut operation = 1;
    loop {
        let disk = base.kill();
        let (mut index, reader) = open(&disk);
        disk.fail_at(disk.operation_count() + operation, lydian_disk::Fault::CrashInside);
        let mut ended = Ok(());
        while ended.is_ok() && reader.tip().unwrap().height.0 as usize >= chain.active.len() - 1_100 {
            let step = &chain.all[&reader.tip().unwrap().hash];
            ended = index.disconnect(&connected(step)).map(|left| assert_eq!(left, Left::Block));
        }
        if ended.is_ok() {
            chain.feed(&mut index, &reader);
            ended = index.settle();
        }
        drop(index);
        let is_over = !disk.is_crashed();
        assert_eq!(is_over, ended.is_ok());
        let disk = disk.power_loss(operation);
        let (mut index, reader) = open(&disk);
        assert!(reader.tip().is_some());
        chain.feed(&mut index, &reader);
        settle(&mut index, &reader);
        assert!(disk.files() == expected, "operation {operation}");
        if is_over {
            chain.compare(&reader, 9);
            break;
        }
        operation += 1;
    }
    assert!(operation > 20, "{operation} operations");
}

/// A chain cut below what is not sealed: the segments that it reaches are gone, and come back from the blocks.
#[test]
fn a_deep_reorganisation_drops_segments() {
    let mut chain = Chain::new(5);
    let disk = SimDisk::new(1);
    let (mut index, reader) = open(&disk);
    chain.grow(4_500);
    chain.feed(&mut index, &reader);
    settle(&mut index, &reader);
    // Sealed are 3,328 blocks: one segment of 2,048, and five of 256.
    for (left, stands) in [(3_329, 3_329), (3_328, 3_328), (3_327, 3_072), (2_100, 2_048), (2_048, 2_048), (2_047, 0)] {
        let copy = disk.kill();
        let (mut index, reader) = open(&copy);
        let whole = chain.active.clone();
        chain.cut(left);
        let mut lowest = u32::MAX;
        while let Some(tip) = reader.tip()
            && chain.active.get(tip.height.0 as usize).is_none_or(|step| step.block.hash() != tip.hash)
        {
            index.disconnect(&connected(&chain.all[&tip.hash])).unwrap();
            lowest = lowest.min(reader.tip().map_or(0, |tip| tip.height.0 + 1));
        }
        assert_eq!(lowest, stands, "{left}");
        chain.feed(&mut index, &reader);
        chain.compare(&reader, 40);
        // After a kill, too.
        drop(index);
        let (mut index, reader) = open(&copy.kill());
        chain.feed(&mut index, &reader);
        chain.compare(&reader, 40);
        chain.active = whole;
        chain.cut(4_500);
    }
}
