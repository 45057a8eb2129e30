//! The block store on a disk that loses power, fills up and fails, at every operation: synced data is present,
//! everything indexed is complete, and work can continue.

use crate::common::blocks::{Maker, layout, params, spent_of};
use lydian_chain::{
    BlockFile, BlockFiles, BlockStore, ChainError, HeaderTree, IndexEntry, Obfuscation, Opened, encode_undo,
    find_block_files,
};
use lydian_disk::{Disk, DiskErrorKind, Fault, SimDisk};
use lydian_primitives::{Block, BlockHash, Height};
use std::collections::HashSet;
use std::sync::Arc;

/// Small, so that a new file is started often.
const FILE_SIZE_MAX: u64 = 2_000;

/// The blocks covered by the last sync that returned.
#[derive(Default, Clone)]
struct Durable(HashSet<BlockHash>);

/// The workload: stores every missing block and missing undo data, and flushes and syncs regularly.
fn work(disk: &SimDisk, blocks: &[Block], durable: &mut Durable) -> Result<HeaderTree, ChainError> {
    let Opened { store, mut tree, .. } = BlockStore::open(Arc::new(disk.clone()), &layout(), &params())?;
    store.set_block_file_size_max(FILE_SIZE_MAX);
    let mut done = Vec::new();
    for (step, block) in blocks.iter().enumerate() {
        let count = tree.len();
        let id = tree.accept_header(block.header(), i64::MAX / 2, &params()).unwrap();
        if tree.len() > count {
            store.record(&[IndexEntry::Header { id, header: *block.header() }]);
        }
        if tree.node(id).block.is_none() {
            let position = store.append_block(block.as_bytes())?;
            tree.set_block(id, position);
            store.record(&[IndexEntry::Block { id, position }]);
        }
        if tree.node(id).undo.is_none() {
            let undo = encode_undo(block, &spent_of(block));
            let position = store.append_undo(tree.node(id).block.unwrap(), &block.header().prev_block, &undo)?;
            tree.set_undo(id, position);
            tree.set_verified(id);
            store.record(&[IndexEntry::Undo { id, position }, IndexEntry::Verified { id }]);
        }
        done.push(block.hash());
        if step % 2 == 1 {
            store.flush()?;
        }
        if step % 5 == 4 {
            store.sync()?;
            durable.0.extend(done.iter());
        }
    }
    store.sync()?;
    durable.0.extend(done.iter());
    Ok(tree)
}

/// Opens the store after a crash and compares it with what must be present.
fn check(disk: &SimDisk, blocks: &[Block], durable: &Durable) {
    let Opened { store, tree, .. } = BlockStore::open(Arc::new(disk.clone()), &layout(), &params()).unwrap();
    for block in blocks {
        let Some(id) = tree.find(&block.hash()) else {
            assert!(!durable.0.contains(&block.hash()), "a synced header is gone");
            continue;
        };
        let node = tree.node(id);
        assert_eq!(node.header, *block.header());
        if let Some(position) = node.block {
            assert_eq!(store.read_block(position).unwrap().as_bytes(), block.as_bytes());
        }
        if let Some(position) = node.undo {
            assert_eq!(store.read_spent(position, block).unwrap(), spent_of(block));
        }
        if durable.0.contains(&block.hash()) {
            assert!(node.block.is_some() && node.undo.is_some() && node.is_verified, "something synced is gone");
        }
    }
    // Every height leads to a block, down to the genesis block.
    let best = tree.best_header();
    for height in 0..=tree.height(best).0 {
        let id = tree.ancestor(best, Height(height)).unwrap();
        assert_eq!(tree.height(id), Height(height));
        assert_eq!(tree.find(tree.hash(id)), Some(id));
    }
}

/// After an undisturbed run everything is present, also for a reader of the block files alone.
fn check_complete(disk: &SimDisk, blocks: &[Block], tree: &HeaderTree) {
    let all = Durable(blocks.iter().map(Block::hash).collect());
    check(disk, blocks, &all);
    let opened = BlockStore::open(Arc::new(disk.kill()), &layout(), &params()).unwrap();
    let best = |tree: &HeaderTree| *tree.hash(tree.best_candidate().unwrap());
    assert_eq!(best(&opened.tree), best(tree));
    let files: Vec<BlockFile> = find_block_files(disk, &layout().blocks).unwrap();
    assert!(files.iter().all(|file| file.key != Obfuscation::NONE));
    let index = BlockFiles::new(disk, files).scan(params().magic, &mut |_, _| {}).unwrap();
    let found: HashSet<_> = index.records.iter().map(|record| record.hash).collect();
    assert!(all.0.is_subset(&found), "another reader of the files finds every block");
}

fn in_order() -> Vec<Block> {
    let mut maker = Maker::new();
    let mut blocks = maker.chain(12, 3);
    let fork = maker.chain_on(blocks[6].hash(), 3, 2);
    blocks.splice(9..9, fork);
    blocks
}

/// Every operation of the workload and every kind of crash in it, followed by a kill or a power loss.
/// checklist: 86, 87
#[test]
fn a_crash_at_every_operation() {
    let blocks = in_order();
    let whole = SimDisk::new(0);
    work(&whole, &blocks, &mut Durable::default()).unwrap();
    let operations = whole.operation_count();
    assert!(operations > 60, "{operations}");
    assert!(find_block_files(&whole, &layout().blocks).unwrap().len() > 3, "several files are used");
    for operation in 0..operations {
        for fault in [Fault::CrashBefore, Fault::CrashInside, Fault::CrashAfter] {
            let disk = SimDisk::new(operation);
            disk.fail_at(operation, fault);
            let mut durable = Durable::default();
            let result = work(&disk, &blocks, &mut durable);
            assert!(result.is_err() || operation + 1 == operations, "{operation} {fault:?}");
            for survivor in [disk.kill(), disk.power_loss(1), disk.power_loss(2), disk.power_loss(3)] {
                check(&survivor, &blocks, &durable);
                let tree = work(&survivor, &blocks, &mut Durable::default()).unwrap();
                check_complete(&survivor, &blocks, &tree);
            }
        }
    }
}

/// Repeated crashes, also during recovery.
/// checklist: 86
#[test]
fn crashes_in_a_row() {
    let blocks = in_order();
    for seed in 0..600u64 {
        let mut disk = SimDisk::new(seed);
        let mut durable = Durable::default();
        for round in 0..6 {
            let mix = (seed * 6 + round).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
            let fault = [Fault::CrashBefore, Fault::CrashInside, Fault::CrashAfter][(mix % 3) as usize];
            disk.fail_at(mix / 3 % 70, fault);
            if work(&disk, &blocks, &mut durable).is_ok() {
                break;
            }
            disk = if mix & 1 << 20 == 0 { disk.kill() } else { disk.power_loss(mix) };
            check(&disk.kill(), &blocks, &durable);
        }
        let disk = disk.kill();
        check(&disk, &blocks, &durable);
        let tree = work(&disk, &blocks, &mut durable).unwrap();
        check_complete(&disk, &blocks, &tree);
    }
}

/// A full or broken disk: the operation fails, no more data is accepted, and after reopening everything is as before.
/// checklist: 93
#[test]
fn errors_at_every_operation() {
    let blocks = in_order();
    let whole = SimDisk::new(0);
    work(&whole, &blocks, &mut Durable::default()).unwrap();
    for operation in 0..whole.operation_count() {
        for (fault, kind) in [(Fault::NoSpace, DiskErrorKind::NoSpace), (Fault::Io, DiskErrorKind::Io)] {
            let disk = SimDisk::new(operation);
            disk.fail_at(operation, fault);
            let mut durable = Durable::default();
            match work(&disk, &blocks, &mut durable).unwrap_err() {
                ChainError::Disk(error) => assert_eq!(error.kind, kind),
                other => panic!("{other}"),
            }
            let disk = disk.kill();
            check(&disk, &blocks, &durable);
            let tree = work(&disk, &blocks, &mut Durable::default()).unwrap();
            check_complete(&disk, &blocks, &tree);
        }
    }
}

/// After a failed write nothing is accepted until the store is reopened; existing data can still be read.
/// checklist: 93
#[test]
fn a_failed_store_takes_no_more() {
    let disk = SimDisk::new(0);
    let blocks = in_order();
    let Opened { store, mut tree, .. } = BlockStore::open(Arc::new(disk.clone()), &layout(), &params()).unwrap();
    let id = tree.accept_header(blocks[0].header(), i64::MAX / 2, &params()).unwrap();
    let position = store.append_block(blocks[0].as_bytes()).unwrap();
    disk.fail_at(disk.operation_count(), Fault::NoSpace);
    assert!(matches!(store.append_block(blocks[1].as_bytes()), Err(ChainError::Disk(_))));
    let poisoned = |result: Result<(), ChainError>| {
        let text = result.unwrap_err().to_string();
        assert!(text.starts_with("the block store is unusable after an error: d/blocks/blk00000.dat"), "{text}");
    };
    poisoned(store.append_block(blocks[1].as_bytes()).map(|_| ()));
    poisoned(store.append_undo(position, &blocks[0].header().prev_block, &[0]).map(|_| ()));
    poisoned(store.adopt(&[], true).map(|_| ()));
    poisoned(store.flush());
    poisoned(store.sync());
    store.record(&[IndexEntry::Header { id, header: *blocks[0].header() }]);
    assert_eq!(store.read_block(position).unwrap().as_bytes(), blocks[0].as_bytes());
    assert!(disk.kind(&layout().blocks.join("blk00000.dat")).is_ok());
}
