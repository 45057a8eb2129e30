//! The process that is killed: it makes the chain and feeds the index with it until then.
//!
//! Input: a directory and sizes. Output: the index, the events of watched scripts, and the blocks since the last
//! checkpoint, which a node has in its block files. The rows of the last blocks are never in segments.

use crate::Options;
use crate::chain::{Made, Mix, Spent};
use crate::machine::CountingDisk;
use lydian_engine::{BlockWithSpent, ChainTotals, ConnectedBlock, Follower, Tip};
use lydian_index::{Profile, TxIndex, TxIndexReader};
use lydian_primitives::{Block, BlockHash, Height, RawBlock};
use rustix::time::ClockId;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::Instant;

/// Blocks between two checkpoints.
const CHECKPOINT_BLOCKS: u32 = 300;
/// Blocks that wait for the index.
const WAITING_BLOCKS: usize = 8;
/// Behind the height that is asked for, these blocks are kept as a node keeps its block files.
const KEPT_BLOCKS: u32 = 2 * CHECKPOINT_BLOCKS;

/// The directory of a run.
#[derive(Clone, Debug)]
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn index(&self) -> PathBuf {
        self.0.join("tables")
    }

    pub(crate) fn events(&self) -> PathBuf {
        self.0.join("events")
    }

    fn blocks(&self) -> PathBuf {
        self.0.join("blocks")
    }
}

pub(crate) fn open(folder: &Folder, profile: Profile, disk: &CountingDisk) -> (TxIndex, TxIndexReader) {
    TxIndex::open(Arc::new(disk.clone()), &folder.index(), BlockHash([0; 32]), profile, || [1, 2]).unwrap()
}

fn append(path: &Path) -> File {
    OpenOptions::new().append(true).create(true).open(path).unwrap()
}

/// Says when the index has the number of blocks that is asked for, and goes on.
pub(crate) fn build(folder: &Folder, options: &Options) {
    std::fs::create_dir_all(&folder.0).unwrap();
    let (mut index, _reader) = open(folder, options.profile, &CountingDisk::default());
    let (start, chain_cpu, mut inputs) = (Instant::now(), Arc::new(AtomicU64::new(0)), 0);
    let (sender, blocks) = sync_channel(WAITING_BLOCKS);
    let (sizes, watched, cpu) = (options.sizes(), options.watched(), Arc::clone(&chain_cpu));
    std::thread::spawn(move || {
        let mut mix = Mix::new(sizes, watched);
        while sender.send(mix.block()).is_ok() {
            let time = rustix::time::clock_gettime(ClockId::ThreadCPUTime);
            let time = time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs();
            cpu.store(time, Ordering::Relaxed);
        }
    });
    let (mut events, mut kept) = (append(&folder.events()), append(&folder.blocks()));
    for made in blocks {
        let (height, mut bytes) = (made.height, Vec::new());
        made.events.iter().for_each(|event| event.encode(&mut bytes));
        events.write_all(&bytes).unwrap();
        if height + KEPT_BLOCKS >= options.blocks {
            kept.write_all(&encode(&made)).unwrap();
        }
        inputs += made.spent.len();
        connect(&mut index, &made.block, height, &made.spent);
        if height.is_multiple_of(CHECKPOINT_BLOCKS) {
            index.checkpoint(Tip { height: Height(height), hash: made.block.hash() }).unwrap();
            kept.set_len(0).unwrap();
        }
        if height + 1 == options.blocks {
            let cpu = crate::machine::cpu().as_nanos() - u128::from(chain_cpu.load(Ordering::Relaxed));
            println!("built {inputs} {} {}", start.elapsed().as_millis(), cpu / 1_000_000);
        }
    }
}

/// Adds a block.
fn connect(index: &mut TxIndex, block: &Block, height: u32, spent: &[Spent]) {
    let coins: Vec<_> = spent.iter().map(Spent::coin).collect();
    let with_spent = BlockWithSpent { height: Height(height), block, spent: &coins };
    let rows = index.preparer().map(|preparer| preparer.prepare(&with_spent));
    let below = ChainTotals { transactions: 0, outputs: 0 };
    index.connect(&ConnectedBlock { height: Height(height), block, spent: &coins, below }, rows).unwrap();
}

fn encode(made: &Made) -> Vec<u8> {
    let (block, mut bytes) = (made.block.as_bytes(), Vec::new());
    for number in [made.height as usize, block.len(), made.spent.len()] {
        bytes.extend_from_slice(&u32::try_from(number).unwrap().to_le_bytes());
    }
    bytes.extend_from_slice(block);
    for spent in &made.spent {
        for number in [spent.script, spent.height, spent.value] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
    }
    bytes
}

/// A block and its height; `None` at the end, which may be cut.
fn decode(bytes: &mut &[u8]) -> Option<(u32, Block, Vec<Spent>)> {
    let number = |bytes: &[u8], at: usize| Some(u32::from_le_bytes(bytes.get(4 * at..4 * at + 4)?.try_into().unwrap()));
    let (height, size, count) = (number(bytes, 0)?, number(bytes, 1)? as usize, number(bytes, 2)? as usize);
    let (block, rest) = bytes[12..].split_at_checked(size)?;
    let (spent, rest) = rest.split_at_checked(count * 12)?;
    let spent_of =
        |row: &[u8]| Some(Spent { script: number(row, 0)?, height: number(row, 1)?, value: number(row, 2)? });
    *bytes = rest;
    Some((height, RawBlock::new(block).parse().unwrap(), spent.chunks(12).filter_map(spent_of).collect()))
}

/// Adds the blocks that were lost. Returns their number.
pub(crate) fn catch_up(folder: &Folder, index: &mut TxIndex) -> u32 {
    let bytes = std::fs::read(folder.blocks()).unwrap();
    let (mut rest, mut added) = (&bytes[..], 0);
    while let Some((height, block, spent)) = decode(&mut rest) {
        if index.durable_tip().is_none_or(|tip| height > tip.height.0) {
            connect(index, &block, height, &spent);
            added += 1;
        }
    }
    added
}
