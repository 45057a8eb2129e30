//! The index against the blocks themselves, and its files against those of an index that is built at once.

use super::*;
use lydian_chain::ChainTotals;
use lydian_disk::SimDisk;
use lydian_engine::{ConnectedBlock, Follower};
use lydian_primitives::build::{MutBlock, MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, Block, BlockHash, Header, Height, OutPoint, RawBlock, Txid};
use lydian_stdx::SplitMix64;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const DIR: &str = "tables";

fn open(disk: &SimDisk) -> (TxIndex, TxIndexReader) {
    TxIndex::open(Arc::new(disk.clone()), Path::new(DIR), BlockHash([1; 32]), || [5, 6]).unwrap()
}

fn tx(number: u64, outputs: usize) -> MutTx {
    let prevout = OutPoint { txid: Txid([3; 32]), vout: 0 };
    let input = MutInput { prevout, script_sig: number.to_le_bytes().to_vec(), sequence: 0, witness: Vec::new() };
    let output = MutOutput { value: Amount(1), script_pubkey: vec![0x51; outputs] };
    MutTx { version: 2, inputs: vec![input], outputs: vec![output; outputs], lock_time: 0 }
}

/// A chain of blocks that nothing but their transactions matters of, with those that left it.
struct Chain {
    random: SplitMix64,
    active: Vec<Block>,
    all: HashMap<BlockHash, (Block, u32)>,
}

impl Chain {
    fn new(seed: u64) -> Chain {
        Chain { random: SplitMix64::new(seed), active: Vec::new(), all: HashMap::new() }
    }

    fn grow(&mut self, count: usize) {
        for _ in 0..count {
            let height = self.active.len();
            let mut txs = vec![tx(self.random.next_u64(), 1)];
            // As the repeated coinbases of 2010.
            if height % 97 == 50 {
                txs = vec![tx(7, 1)];
            }
            let more = if height % 700 == 9 { 260 } else { self.random.below(4) };
            txs.extend((0..more).map(|index| tx(self.random.next_u64(), 1 + index % 3)));
            let prev_block = self.active.last().map_or(BlockHash::ZERO, Block::hash);
            let nonce = u32::try_from(self.random.below(1 << 30)).unwrap();
            let header = Header { version: 1, prev_block, merkle_root: [0; 32], time: 0, bits: 0, nonce };
            let block = RawBlock::new(MutBlock { header, txs }.encode()).parse().unwrap();
            self.all.insert(block.hash(), (block.clone(), u32::try_from(height).unwrap()));
            self.active.push(block);
        }
    }

    /// Brings an index to the chain, as the engine does.
    fn feed(&self, index: &mut TxIndex, reader: &TxIndexReader) {
        while let Some(tip) = reader.tip()
            && self.active.get(tip.height.0 as usize).is_none_or(|block| block.hash() != tip.hash)
        {
            let (block, height) = &self.all[&tip.hash];
            index.disconnect(&connected(block, *height)).unwrap();
        }
        let next = reader.tip().map_or(0, |tip| tip.height.0 + 1);
        for (height, block) in (0..).zip(&self.active).skip(next as usize) {
            index.connect(&connected(block, height), None).unwrap();
        }
    }

    /// Looks up every `step`th transaction.
    fn compare(&self, reader: &TxIndexReader, step: usize) {
        let mut newest = HashMap::new();
        for (height, block) in self.active.iter().enumerate() {
            newest.extend(block.txs().map(|tx| (tx.txid(), (height, tx.offset() as usize, tx.bytes().len()))));
        }
        let own = |(_, (height, _, _)): &(&Txid, &(usize, usize, usize))| height % step == 0;
        for (txid, (height, offset, size)) in newest.iter().filter(own) {
            let candidates = reader.candidates(txid).unwrap();
            let is_it = |place: &&Place| {
                let block = &self.active[place.height.0 as usize];
                block.txs().any(|tx| tx.offset() == place.offset && tx.txid() == *txid)
            };
            let place = candidates.iter().find(is_it).unwrap();
            let found = (place.height.0 as usize, place.offset as usize, place.size as usize);
            assert_eq!(found, (*height, *offset, *size));
            // Keys of 40 bits, in a chain of thousands.
            assert!(*txid == tx(7, 1).txid() || candidates.len() == 1);
        }
        assert!(reader.candidates(&Txid([9; 32])).unwrap().is_empty());
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

fn connected(block: &Block, height: u32) -> ConnectedBlock<'_> {
    ConnectedBlock { height: Height(height), block, spent: &[], below: ChainTotals::default() }
}

/// Seals what can be sealed, and records it.
fn settle(index: &mut TxIndex, reader: &TxIndexReader) {
    index.wait_until_sealed();
    index.checkpoint(reader.tip().unwrap()).unwrap();
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
    assert!(size < 1_000, "{size} bytes for five blocks");
    chain.grow(4_400);
    chain.feed(&mut index, &reader);
    chain.compare(&reader, 7);
    settle(&mut index, &reader);
    chain.compare(&reader, 5);
    let names: Vec<String> = disk.files().keys().map(|path| path.display().to_string()).collect();
    assert!(names.iter().any(|name| name.ends_with("0000000-0002048.numbers")), "{names:?}");
    assert!(names.iter().any(|name| name.ends_with("0003072.log")), "{names:?}");
    // After a restart.
    drop(index);
    let (index, reader) = open(&disk.kill());
    assert_eq!(index.durable_tip(), reader.tip());
    assert_eq!(reader.tip().unwrap().hash, chain.active.last().unwrap().hash());
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
                    chain.active.truncate(left);
                    chain.feed(&mut index, &reader);
                }
                1 | 2 => {
                    let left = chain.active.len().saturating_sub(1 + random.below(40)).max(1);
                    chain.active.truncate(left);
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
        let highest = chain.all.values().map(|(_, height)| *height as usize).max().unwrap();
        chain.grow(highest + 500 - chain.active.len());
        chain.feed(&mut index, &reader);
        settle(&mut index, &reader);
        chain.compare(&reader, 11);
        assert_eq!(disk.files(), chain.files(), "seed {seed}");
    }
}

/// A crash at every operation of a checkpoint, of a seal, and of a cut.
#[test]
fn a_crash_at_any_operation_loses_nothing_that_was_recorded() {
    let mut chain = Chain::new(3);
    chain.grow(UNSEALED_BLOCKS as usize + 8 * 256 - 1);
    let base = SimDisk::new(1);
    let (mut index, reader) = open(&base);
    chain.feed(&mut index, &reader);
    settle(&mut index, &reader);
    drop(index);
    let recorded = reader.tip().unwrap();
    // One more block completes eight segments.
    chain.grow(1);
    let mut operation = 1;
    loop {
        let disk = base.kill();
        let (mut index, reader) = open(&disk);
        disk.fail_at(disk.operation_count() + operation, lydian_disk::Fault::CrashInside);
        let last = chain.active.last().unwrap();
        index.connect(&connected(last, recorded.height.0 + 1), None).unwrap();
        index.wait_until_sealed();
        let ended = index.checkpoint(reader.tip().unwrap());
        drop(index);
        let is_over = !disk.is_crashed();
        assert_eq!(is_over, ended.is_ok());
        let disk = disk.power_loss(operation);
        let (mut index, reader) = open(&disk);
        assert!(reader.tip().unwrap().height >= recorded.height);
        chain.feed(&mut index, &reader);
        settle(&mut index, &reader);
        assert_eq!(disk.files(), chain.files(), "operation {operation}");
        if is_over {
            break;
        }
        operation += 1;
    }
    assert!(operation > 20, "{operation} operations");
}
