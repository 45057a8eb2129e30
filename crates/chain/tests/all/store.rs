//! The block store on the simulated disk: appended data is read back, before and after a restart.

use crate::common::blocks::{Maker, layout, params, spent_of};
use crate::common::record;
use lydian_chain::limits::{PATH_SIZE_MAX, UNDO_SIZE_MAX};
use lydian_chain::{
    BlockFile, BlockFiles, BlockPart, BlockPosition, BlockStore, ChainError, HeaderId, HeaderTree, IndexEntry, Layout,
    Obfuscation, Opened, StoreRemark, UndoFault, UndoPosition, encode_undo, wipe_for_reindex,
};
use lydian_disk::{Disk, Fault, SimDisk, read_whole};
use lydian_primitives::{Block, Height};
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};

fn open(disk: &SimDisk) -> Opened {
    rebuilt(BlockStore::open(Arc::new(disk.clone()), &layout(), &params()).unwrap()).unwrap()
}

/// Reads the block files if a reindex is in progress, and leaves it in progress.
fn rebuilt(opened: Opened) -> Result<Opened, ChainError> {
    rebuilt_with(opened, false, &mut |_, _| {})
}

fn rebuilt_with(opened: Opened, may_prune: bool, progress: &mut dyn FnMut(&Path, usize)) -> Result<Opened, ChainError> {
    let Opened { store, tree, mut remarks, is_reindexing } = opened;
    assert_eq!(store.is_reindexing(), is_reindexing);
    assert!(!is_reindexing || tree.len() == 1, "no block file was read");
    let tree = RwLock::new(tree);
    let found = store.reindex(&tree, &params(), may_prune, &|| false, progress)?;
    assert!(!found.is_cancelled);
    remarks.extend(found.remarks);
    Ok(Opened { store, tree: tree.into_inner().unwrap(), remarks, is_reindexing })
}

/// A torn second record of a sync. It need not be durable.
fn is_tear(remark: &StoreRemark) -> bool {
    matches!(remark, StoreRemark::TornIndex { size: 1..=29, .. })
}

/// Stores a block like the engine does.
fn take(store: &BlockStore, tree: &mut HeaderTree, block: &Block) -> HeaderId {
    let count = tree.len();
    let id = tree.accept_header(block.header(), i64::MAX / 2, &params()).unwrap();
    if tree.len() > count {
        store.record(&[IndexEntry::Header { id, header: *block.header() }]);
    }
    let position = store.append_block(block.as_bytes()).unwrap();
    tree.set_block(id, position);
    store.record(&[IndexEntry::Block { id, position }]);
    id
}

#[test]
fn blocks_and_undo_return_after_a_restart() {
    let disk = SimDisk::new(1);
    let Opened { store, mut tree, remarks, is_reindexing } = open(&disk);
    assert!(remarks.is_empty() && !is_reindexing);
    let blocks = Maker::new().chain(10, 2);
    let mut ids = Vec::new();
    for block in &blocks {
        let id = take(&store, &mut tree, block);
        tree.push_active(id);
        let spent = spent_of(block);
        let undo = encode_undo(block, &spent);
        let position = store.append_undo(tree.node(id).block.unwrap(), &block.header().prev_block, &undo).unwrap();
        tree.set_undo(id, position);
        tree.set_verified(id);
        store.record(&[IndexEntry::Undo { id, position }, IndexEntry::Verified { id }]);
        assert_eq!(store.read_spent(position, block).unwrap(), spent);
        ids.push(id);
    }
    tree.invalidate(ids[9]);
    store.record(&[IndexEntry::Invalid { id: ids[9] }]);
    store.sync().unwrap();
    drop(store);
    assert_eq!(open(&disk.kill()).remarks, []);
    let Opened { store, tree: again, remarks, .. } = open(&disk.power_loss(3));
    assert!(remarks.iter().all(is_tear), "{remarks:?}");
    assert_eq!(again.len(), tree.len());
    for (id, block) in ids.iter().zip(&blocks) {
        let node = again.node(*id);
        assert_eq!(node, tree.node(*id));
        assert_eq!(store.read_block(node.block.unwrap()).unwrap().as_bytes(), block.as_bytes());
        assert_eq!(store.read_spent(node.undo.unwrap(), block).unwrap().len(), block.input_count() - 1);
    }
    assert_eq!(again.best_candidate(), Some(ids[8]));
    assert!(disk.list(&layout().blocks).unwrap().len() >= 3);
}

/// A synced store with a chain of `length` connected blocks, three per file.
fn long_store(disk: &SimDisk, length: usize) -> (BlockStore, HeaderTree, Vec<Block>) {
    let Opened { store, mut tree, .. } = open(disk);
    store.set_block_file_size_max(3 * 200);
    let blocks = Maker::new().chain(length, 0);
    for block in &blocks {
        let id = take(&store, &mut tree, block);
        tree.push_active(id);
        let undo = encode_undo(block, &[]);
        let position = store.append_undo(tree.node(id).block.unwrap(), &block.header().prev_block, &undo).unwrap();
        tree.set_undo(id, position);
        store.record(&[IndexEntry::Undo { id, position }]);
    }
    store.sync().unwrap();
    (store, tree, blocks)
}

#[test]
fn parts_of_blocks_in_several_files() {
    let disk = SimDisk::new(1);
    let (store, tree, blocks) = long_store(&disk, 10);
    let position = |at: usize| tree.node(tree.active(Height(u32::try_from(at).unwrap())).unwrap()).block.unwrap();
    let (mut parts, mut expected) = (Vec::new(), Vec::new());
    // The order is that of the caller; heights begin with the genesis block, which has no bytes here.
    for at in [1, 2, 3, 9, 8, 1, 1] {
        let (block, bytes) = (position(at), blocks[at - 1].as_bytes());
        for (start, size) in [(0, 80), (81, 7), (block.size - 1, 1), (block.size, 0)] {
            parts.push(BlockPart { block, start, size });
            expected.push(Some(bytes[start as usize..(start + size) as usize].to_vec()));
        }
        for (start, size) in [(block.size, 1), (0, block.size + 1), (u32::MAX, 2)] {
            parts.push(BlockPart { block, start, size });
            expected.push(None);
        }
    }
    assert_eq!(store.read_block_parts(&parts).unwrap(), expected);
    let missing = BlockPart { block: position(4), start: u32::MAX, size: 1 };
    assert_eq!(store.read_block_parts(&[missing; 2]).unwrap(), [None, None]);
    assert!(store.read_block_parts(&[]).unwrap().is_empty());
    let block = BlockPosition { offset: 1 << 40, ..position(5) };
    assert!(store.read_block_parts(&[parts[0], BlockPart { block, start: 0, size: 1 }]).is_err());
}

#[test]
fn a_block_is_read_piece_by_piece() {
    let disk = SimDisk::new(1);
    let (store, tree, blocks) = long_store(&disk, 4);
    let block = tree.node(tree.active(Height(4)).unwrap()).block.unwrap();
    let whole = blocks[3].as_bytes();
    for (start, size) in [(0, block.size), (5, block.size - 9), (block.size - 1, 1)] {
        let bytes = store.block_bytes(BlockPart { block, start, size }).unwrap().unwrap();
        assert_eq!(bytes.size(), size);
        let expected = &whole[start as usize..(start + size) as usize];
        for length in [1, 3, 8, 80, size] {
            let (mut cached, mut read) = (Vec::new(), Vec::new());
            for at in (0..size).step_by(length as usize) {
                let mut piece = vec![0; length.min(size - at) as usize];
                assert!(bytes.read_cached(at, &mut piece));
                cached.extend_from_slice(&piece);
                bytes.read(at, &mut piece).unwrap();
                read.extend_from_slice(&piece);
            }
            assert_eq!((&cached[..], &read[..]), (expected, expected), "{start} {size} {length}");
        }
        // Nothing behind the part, even if the file goes on.
        for (at, length) in [(size, 1), (0, size as usize + 1), (u32::MAX, 1)] {
            let mut piece = vec![0; length];
            assert!(bytes.read(at, &mut piece).is_err() && !bytes.read_cached(at, &mut piece));
        }
    }
    for (start, size) in [(block.size, 1), (0, block.size + 1), (u32::MAX, 2)] {
        assert!(store.block_bytes(BlockPart { block, start, size }).unwrap().is_none());
    }
    let block = BlockPosition { offset: 1 << 40, ..block };
    let bytes = store.block_bytes(BlockPart { block, start: 0, size: 1 }).unwrap().unwrap();
    assert!(bytes.read(0, &mut [0]).is_err() && !bytes.read_cached(0, &mut [0]));
}

fn own_files(disk: &SimDisk) -> usize {
    disk.list(&layout().blocks).unwrap().iter().filter(|(path, _)| path.to_string_lossy().ends_with(".dat")).count() - 1
}

/// None of the last 288 blocks below the durable tip is removed, whatever is requested, and removed files stay removed
/// after a restart.
/// checklist: 89
/// limit: BLOCKS_TO_KEEP_MIN at
/// limit: BLOCKS_TO_KEEP_MIN above
#[test]
fn pruning_stays_below_the_durable_tip() {
    let disk = SimDisk::new(5);
    let (store, mut tree, blocks) = long_store(&disk, 300);
    let held = |tree: &HeaderTree, height: u32| {
        let node = tree.node(tree.active(Height(height)).unwrap());
        assert_eq!(node.block.is_some(), node.undo.is_some(), "both files of a number go together");
        node.block.is_some()
    };
    let per_file =
        u32::try_from(tree.ids().skip(1).filter(|id| tree.node(*id).block.unwrap().file == 0).count()).unwrap();
    assert!(per_file > 1);
    let all = Height(u32::MAX);
    // The last block of the first file is 288 below the tip and is still kept; with one more block the file is removed.
    for durable in [0, 287, 288, 288 + per_file] {
        assert_eq!(store.prune(&mut tree, all, 0, Height(durable)).unwrap().files, 0, "{durable}");
    }
    let files = own_files(&disk);
    let pruned = store.prune(&mut tree, all, 0, Height(288 + per_file + 1)).unwrap();
    assert_eq!((pruned.files, pruned.blocks), (1, per_file as usize));
    assert!(pruned.bytes > 0 && pruned.bytes_left > 0);
    assert_eq!(own_files(&disk), files - 2);
    assert!(!held(&tree, per_file) && held(&tree, per_file + 1));
    // The durable tip counts, not the tip: with the tip's own height more would be removed.
    assert!(store.prune(&mut tree, Height(per_file + 2), 0, Height(300)).unwrap().files == 0, "kept as asked");
    assert!(store.prune(&mut tree, all, pruned.bytes_left, Height(300)).unwrap().files == 0, "enough is free");
    assert!(store.prune(&mut tree, all, 0, Height(300)).unwrap().files > 0);
    assert!((12..=300).all(|height| held(&tree, height)) && !held(&tree, 9));
    assert_eq!(tree.best_candidate(), None, "a pruned chain is still the best");
    drop(store);

    let Opened { mut tree, remarks, store, .. } = open(&disk.power_loss(9));
    assert!(remarks.iter().all(is_tear), "{remarks:?}");
    let tip = tree.find(&blocks[299].hash()).unwrap();
    tree.activate(tip);
    assert_eq!(tree.best_candidate(), None);
    assert!((12..=300).all(|height| held(&tree, height)) && !held(&tree, 9));
    let pruned = tree.node(tree.active(Height(1)).unwrap());
    assert_eq!(pruned.block, None);
    // The number of a removed file is not reused.
    let position = store.append_block(blocks[0].as_bytes()).unwrap();
    assert!(position.file > 90, "{position:?}");
}

/// Power loss at any moment of pruning: either a file and its positions are present, or neither.
/// checklist: 86, 89
#[test]
fn a_crash_while_pruning() {
    let whole = SimDisk::new(5);
    drop(long_store(&whole, 300));
    let base = whole.kill();
    let prune = |disk: &SimDisk| -> Result<(), ChainError> {
        let Opened { store, mut tree, .. } = BlockStore::open(Arc::new(disk.clone()), &layout(), &params())?;
        let tip = tree.best_candidate().unwrap();
        tree.activate(tip);
        store.prune(&mut tree, Height(u32::MAX), 0, Height(300)).map(|_| ())
    };
    let disk = base.kill();
    prune(&disk).unwrap();
    for operation in 0..disk.operation_count() {
        for fault in [Fault::CrashBefore, Fault::CrashInside, Fault::CrashAfter] {
            let disk = base.kill();
            disk.fail_at(operation, fault);
            let _ = prune(&disk);
            for survivor in [disk.kill(), disk.power_loss(operation), disk.power_loss(operation + 1000)] {
                let Opened { store, tree, remarks, .. } = open(&survivor);
                let is_tear = |remark: &StoreRemark| matches!(remark, StoreRemark::TornIndex { .. });
                assert!(remarks.iter().all(is_tear), "{remarks:?}");
                assert_eq!(tree.len(), 301);
                for id in tree.ids().skip(1) {
                    let node = tree.node(id);
                    assert_eq!(node.block.is_some(), node.undo.is_some());
                    assert!(node.block.is_some() || node.height < Height(12));
                    if let (Some(block), Some(undo)) = (node.block, node.undo) {
                        let block = store.read_block(block).unwrap().parse().unwrap();
                        assert_eq!(block.hash(), node.hash);
                        store.read_spent(undo, &block).unwrap();
                    }
                }
            }
        }
    }
}

/// Foreign files are read in place, remembered, and never written to or removed; only our undo data for them is.
#[test]
fn adopted_files() {
    let disk = SimDisk::new(5);
    let blocks = Maker::new().chain(300, 0);
    let bytes: Vec<_> = blocks.iter().flat_map(|block| record(params().magic, block.as_bytes())).collect();
    disk.create_dir(Path::new("other")).unwrap();
    disk.write_whole(Path::new("other/x.blk"), &bytes).unwrap();
    let file = BlockFile { path: "other/x.blk".into(), key: Obfuscation::NONE };
    let Opened { store, mut tree, .. } = open(&disk);
    let numbers = store.adopt(std::slice::from_ref(&file), true).unwrap();
    assert_eq!(store.adopt(std::slice::from_ref(&file), true).unwrap(), numbers, "known");
    assert_eq!(store.file(numbers[0]), Some(file.clone()));
    let index = BlockFiles::new(&disk, vec![file.clone()]).scan(params().magic, &mut |_, _| {}).unwrap();
    for found in &index.records {
        let id = tree.accept_header(&found.header, i64::MAX / 2, &params()).unwrap();
        let position = BlockPosition { file: numbers[0], offset: found.offset, size: found.size };
        tree.set_block(id, position);
        let undo = store.append_undo(position, &found.header.prev_block, &[0]).unwrap();
        tree.set_undo(id, undo);
        store.record(&[
            IndexEntry::Header { id, header: found.header },
            IndexEntry::Block { id, position },
            IndexEntry::Undo { id, position: undo },
        ]);
        tree.push_active(id);
    }
    // Our own blocks go to a file with another number.
    let own = store.append_block(Maker::new().block(blocks[0].hash(), 3).as_bytes()).unwrap();
    assert_ne!(own.file, numbers[0]);
    store.sync().unwrap();
    let pruned = store.prune(&mut tree, Height(u32::MAX), 0, Height(300 + 288 + 1)).unwrap();
    assert_eq!((pruned.files, pruned.blocks), (1, 0), "our undo data went, no block of theirs");
    assert_eq!(read_whole(&disk, Path::new("other/x.blk"), u64::MAX).unwrap(), bytes);
    drop(store);
    let Opened { store, tree, .. } = open(&disk.power_loss(1));
    assert_eq!(store.file(numbers[0]), Some(file));
    for block in &blocks {
        let node = tree.node(tree.find(&block.hash()).unwrap());
        assert_eq!(node.undo, None);
        store.prefetch(node.block.unwrap());
        assert_eq!(store.read_block(node.block.unwrap()).unwrap().as_bytes(), block.as_bytes());
    }
}

/// A node syncs when its blocks are loaded and again when it ends; often nothing was recorded in between.
#[test]
fn a_sync_without_new_entries_does_nothing() {
    let disk = SimDisk::new(5);
    let Opened { store, .. } = open(&disk);
    let operations = || {
        let before = disk.operation_count();
        store.sync().unwrap();
        disk.operation_count() - before
    };
    for name in ["a", "b"] {
        store.adopt(&[BlockFile { path: name.into(), key: Obfuscation::NONE }], true).unwrap();
        assert!(operations() > 0);
        assert_eq!(operations(), 0);
        let reopened = open(&disk.power_loss(1)).store;
        assert!((0..9).any(|file| reopened.file(file).is_some_and(|file| file.path == Path::new(name))), "{name}");
    }
}

/// limit: PATH_SIZE_MAX at
/// limit: PATH_SIZE_MAX above
#[test]
fn long_paths() {
    let disk = SimDisk::new(5);
    let Opened { store, .. } = open(&disk);
    let file = |size: usize| BlockFile { path: "x".repeat(size).into(), key: Obfuscation::NONE };
    assert!(matches!(store.adopt(&[file(PATH_SIZE_MAX + 1)], true), Err(ChainError::PathTooLong { .. })));
    let numbers = store.adopt(&[file(PATH_SIZE_MAX)], true).unwrap();
    store.sync().unwrap();
    assert_eq!(open(&disk.kill()).store.file(numbers[0]), Some(file(PATH_SIZE_MAX)));
}

/// A reindex keeps every block, is reported as in progress until it is finished, and is resumed wherever it stopped.
/// checklist: 91
#[test]
fn a_reindex_that_is_interrupted_is_taken_up() {
    let disk = SimDisk::new(5);
    let blocks = {
        let (store, tree, blocks) = long_store(&disk, 20);
        assert!(!store.is_reindexing());
        drop((store, tree));
        blocks
    };
    let block_files = |disk: &SimDisk| -> Vec<(PathBuf, Vec<u8>)> {
        let files = disk.list(&layout().blocks).unwrap().into_iter().map(|(path, _)| path);
        let files = files.filter(|path| path.to_string_lossy().contains("blk0"));
        files.map(|path| (path.clone(), read_whole(disk, &path, u64::MAX).unwrap())).collect()
    };
    let before = block_files(&disk);
    let base = disk.kill();
    // The complete reindex: wipe, rebuild, finish.
    let reindex = |disk: &SimDisk, is_wiped: bool| -> Result<(), ChainError> {
        if !is_wiped {
            wipe_for_reindex(disk, &layout())?;
        }
        let mut seen = Vec::new();
        let opened = BlockStore::open(Arc::new(disk.clone()), &layout(), &params())?;
        let opened = rebuilt_with(opened, false, &mut |path, count| seen.push((path.to_owned(), count)))?;
        if opened.is_reindexing {
            assert_eq!(seen.len(), before.len(), "progress is called for each file");
            assert!(opened.tree.ids().all(|id| opened.tree.node(id).undo.is_none()));
            opened.store.finish_reindex()?;
        }
        Ok(())
    };
    let disk = base.kill();
    reindex(&disk, false).unwrap();
    let operations = disk.operation_count();
    assert!(operations > 15);
    for operation in 0..operations {
        for fault in [Fault::CrashBefore, Fault::CrashInside, Fault::CrashAfter] {
            let disk = base.kill();
            disk.fail_at(operation, fault);
            let is_done = reindex(&disk, false).is_ok();
            for survivor in [disk.kill(), disk.power_loss(1), disk.power_loss(2)] {
                assert_eq!(block_files(&survivor), before, "block files are never touched");
                let Opened { store, tree, is_reindexing, .. } = open(&survivor);
                // Not started, in progress, or finished: in each case every block is known.
                let has_undo = tree.ids().skip(1).all(|id| tree.node(id).undo.is_some());
                assert!(is_reindexing || has_undo || is_done || operation + 2 >= operations, "{operation} {fault:?}");
                assert!(!(is_reindexing && has_undo), "{operation}: undo data that is not there");
                assert!(
                    blocks.iter().all(|block| tree.find(&block.hash()).is_some_and(|id| tree.node(id).block.is_some()))
                );
                drop(store);
                reindex(&survivor, true).unwrap();
                let Opened { tree, is_reindexing, .. } = open(&survivor);
                assert!(!is_reindexing && tree.len() == 21);
                assert_eq!(block_files(&survivor), before);
            }
        }
    }
}

/// Blocks that arrive before the block files are read go to a new file, and the other copy of one is remembered. If
/// none arrives, the last file is continued.
#[test]
fn blocks_that_arrive_during_a_reindex_go_to_a_new_file() {
    let base = SimDisk::new(5);
    let (store, tree, blocks) = long_store(&base, 20);
    let position = |tree: &HeaderTree, block: &Block| tree.node(tree.find(&block.hash()).unwrap()).block.unwrap();
    let (first, last) = (position(&tree, &blocks[0]), position(&tree, &blocks[19]));
    drop(store);
    wipe_for_reindex(&base, &layout()).unwrap();
    let next = Maker::new().chain(21, 0).pop().unwrap();
    assert_eq!(next.header().prev_block, blocks[19].hash());
    for arrives in [false, true] {
        let disk = base.kill();
        let Opened { store, mut tree, .. } = BlockStore::open(Arc::new(disk.clone()), &layout(), &params()).unwrap();
        if arrives {
            let id = take(&store, &mut tree, &blocks[0]);
            assert!(tree.node(id).block.unwrap().file > last.file);
        }
        let tree = RwLock::new(tree);
        let stopped =
            store.reindex(&tree, &params(), false, &|| true, &mut |path, _| panic!("{}", path.display())).unwrap();
        assert!(stopped.is_cancelled && store.is_reindexing());
        let found = store.reindex(&tree, &params(), false, &|| false, &mut |_, _| {}).unwrap();
        let others: Vec<BlockPosition> = found.other_places.iter().map(|(_, position)| *position).collect();
        assert_eq!((found.blocks, others), if arrives { (19, vec![first]) } else { (20, vec![]) });
        store.finish_reindex().unwrap();
        assert!(!store.is_reindexing());
        let mut tree = tree.into_inner().unwrap();
        let id = take(&store, &mut tree, &next);
        assert_eq!(tree.node(id).block.unwrap().file > last.file, arrives);
        store.sync().unwrap();
        drop(store);
        let opened = open(&disk.power_loss(1));
        assert!(!opened.is_reindexing && opened.remarks.iter().all(is_tear), "{:?}", opened.remarks);
        assert!(tree.ids().all(|id| opened.tree.node(id).block == tree.node(id).block));
        assert_eq!(opened.tree.len(), 22);
    }
}

/// Regression test: the blocks that a pruned node has left do not connect, and a reindex took the key to be wrong. Core
/// removes their files and downloads all blocks again (`CleanupBlockRevFiles`).
#[test]
fn a_reindex_of_a_pruned_store_begins_at_the_genesis_block() {
    let disk = SimDisk::new(5);
    let (store, mut tree, blocks) = long_store(&disk, 300);
    let durable = Height(300);
    assert!(store.prune(&mut tree, durable, 0, durable).unwrap().files > 0);
    let kept = tree.ids().filter(|id| tree.node(*id).block.is_some()).count();
    drop(store);
    wipe_for_reindex(&disk, &layout()).unwrap();
    let reindex = |disk: &SimDisk, may_prune: bool| {
        let opened = BlockStore::open(Arc::new(disk.clone()), &layout(), &params());
        opened.and_then(|opened| rebuilt_with(opened, may_prune, &mut |_, _| {}))
    };
    let damaged = disk.kill();
    let key = layout().blocks.join("xor.dat");
    damaged.flip(&key, 3, 4).unwrap();
    for may_prune in [false, true] {
        assert_eq!(reindex(&damaged, may_prune).unwrap_err(), ChainError::KeyDiffers { path: key.clone() });
    }
    // Without -prune the user may have a copy of the first files.
    let files = own_files(&disk);
    let missing = ChainError::FirstBlocksMissing { path: layout().blocks };
    assert_eq!(reindex(&disk, false).unwrap_err(), missing);
    assert!(own_files(&disk) == files && files > 90, "{files}");
    // Wherever the removal is interrupted, the next start goes on with it.
    let whole = disk.kill();
    drop(reindex(&whole, true).unwrap());
    let operations = whole.operation_count();
    for operation in 0..operations {
        let stopped = disk.kill();
        stopped.fail_at(operation, Fault::CrashInside);
        let is_done = reindex(&stopped, true).is_ok();
        for survivor in [stopped.kill(), stopped.power_loss(1)] {
            let opened = reindex(&survivor, true).unwrap();
            assert!(is_done || opened.is_reindexing, "{operation}");
            opened.store.finish_reindex().unwrap();
            drop(opened);
            let opened = open(&survivor.power_loss(1));
            assert_eq!((opened.tree.len(), opened.is_reindexing), (1, false), "{operation}");
        }
    }
    let Opened { store, mut tree, remarks, .. } = reindex(&disk, true).unwrap();
    assert_eq!((tree.len(), own_files(&disk)), (1, 0));
    assert!(remarks.contains(&StoreRemark::MissingParents { count: kept }), "{remarks:?}");
    assert!(remarks.contains(&StoreRemark::UselessFiles { count: files }), "{remarks:?}");
    store.finish_reindex().unwrap();
    store.set_block_file_size_max(3 * 200);
    for block in &blocks {
        take(&store, &mut tree, block);
    }
    store.sync().unwrap();
    drop(store);
    let Opened { tree, is_reindexing, .. } = open(&disk.kill());
    assert!(!is_reindexing && tree.len() == 301);
    assert!(tree.ids().skip(1).all(|id| tree.node(id).block.is_some()));
}

/// Without the index log the store does not open, as in Core, until a reindex is requested. Then blocks that precede
/// their parents in the files are found however often the scan is interrupted.
/// checklist: 91
#[test]
fn a_lost_log_is_rebuilt_from_files_in_any_order() {
    let disk = SimDisk::new(5);
    let Opened { store, .. } = open(&disk);
    let mut blocks = Maker::new().chain(40, 0);
    blocks.reverse();
    blocks.swap(3, 30);
    store.set_block_file_size_max(1_000);
    for block in &blocks {
        store.append_block(block.as_bytes()).unwrap();
    }
    store.sync().unwrap();
    drop(store);
    disk.remove_file(&layout().index.join("index.log")).unwrap();
    disk.sync_dir(&layout().index).unwrap();
    let error = BlockStore::open(Arc::new(disk.clone()), &layout(), &params()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Error initializing block database: the block index d/blocks/index/index.log is missing.\nPlease restart with -reindex to recover."
    );
    wipe_for_reindex(&disk, &layout()).unwrap();
    for operation in 0..40 {
        let disk = disk.kill();
        disk.fail_at(operation, Fault::CrashInside);
        let opened = BlockStore::open(Arc::new(disk.clone()), &layout(), &params());
        let _ = opened.and_then(rebuilt).map(|opened| opened.store.sync());
        let Opened { tree, is_reindexing, .. } = open(&disk.power_loss(operation));
        assert!(is_reindexing);
        assert_eq!(tree.len(), 41);
        assert_eq!(tree.height(tree.best_candidate().unwrap()), Height(40));
    }
}

/// Regression test: with `-blocksdir` on Bitcoin Core's directory, the node deleted Core's undo files, wrote its own in
/// their place, appended to Core's last block file, and exited with 0.
#[test]
fn a_directory_of_another_program_is_left_alone() {
    let of_core = SimDisk::new(5);
    of_core.create_dir(&layout().index).unwrap();
    let file = |name: &str| layout().blocks.join(name);
    for (path, bytes) in [
        (file("blk00000.dat"), record(params().magic, Maker::new().chain(1, 0)[0].as_bytes())),
        (file("rev00000.dat"), vec![7; 99]),
        (file("index/CURRENT"), b"MANIFEST-000002\n".to_vec()),
    ] {
        of_core.write_whole(&path, &bytes).unwrap();
    }
    let without_index = of_core.kill();
    without_index.remove_file(&file("index/CURRENT")).unwrap();
    let with_our_log = of_core.kill();
    with_our_log.write_whole(&file("index/index.log"), b"an old fault of ours").unwrap();
    for (disk, expected) in [
        (of_core, "was not written by Lydian (it holds d/blocks/index/CURRENT) and is left as it is"),
        (without_index, "was not written by Lydian (it holds d/blocks/blk00000.dat) and is left as it is"),
        (with_our_log, "holds files of Bitcoin Core (d/blocks/index/CURRENT) and of Lydian (d/blocks/index/index.log)"),
    ] {
        let (before, count) = (disk.files(), disk.operation_count());
        for error in [
            BlockStore::open(Arc::new(disk.clone()), &layout(), &params()).unwrap_err(),
            wipe_for_reindex(&disk, &layout()).unwrap_err(),
        ] {
            assert!(error.to_string().contains(expected), "{error}");
        }
        assert_eq!((disk.files(), disk.operation_count()), (before, count));
    }
}

/// Regression test: a block file from elsewhere in our directory, of which no block could be read with our key, was
/// removed at the next start.
#[test]
fn a_block_file_put_beside_ours_stays() {
    let disk = SimDisk::new(5);
    drop(long_store(&disk, 4));
    for name in ["blk00077.dat", "rev00077.dat"] {
        disk.write_whole(&layout().blocks.join(name), &record(params().magic, &[9; 300])).unwrap();
    }
    let before = disk.files();
    for _ in 0..2 {
        let Opened { store, remarks, .. } = open(&disk);
        let foreign = remarks.iter().filter(|remark| matches!(remark, StoreRemark::NotOurs { .. })).count();
        assert_eq!(foreign, 2, "{remarks:?}");
        let position = store.append_block(Maker::new().block(params().genesis_hash, 0).as_bytes()).unwrap();
        assert_ne!(position.file, 77);
    }
    let after = disk.files();
    for name in ["blk00077.dat", "rev00077.dat"] {
        let path = layout().blocks.join(name);
        assert_eq!(before[&path], after[&path]);
    }
}

/// Regression test: block and undo files stayed open, so files that were renamed or deleted while the node was running
/// were still read without an error, and blocks were appended to files without a name and were lost at the next start.
/// Core opens files for each read and each write.
#[test]
fn files_that_lose_their_names_are_noticed() {
    let disk = SimDisk::new(5);
    let (store, tree, blocks) = long_store(&disk, 4);
    let node = |height: usize| tree.node(tree.active(Height(u32::try_from(height).unwrap())).unwrap());
    let read = |height: usize| store.read_block(node(height).block.unwrap());
    let read_undo = |height: usize| store.read_spent(node(height).undo.unwrap(), &blocks[height - 1]);
    let last = node(4).block.unwrap().file;
    let (block_file, undo_file) =
        (layout().blocks.join(format!("blk{last:05}.dat")), layout().blocks.join(format!("rev{last:05}.dat")));
    assert!(read(4).is_ok() && read_undo(4).is_ok() && read(1).is_ok());
    let whole = read_whole(&disk, &block_file, 1 << 20).unwrap();
    disk.remove_file(&block_file).unwrap();
    disk.remove_file(&undo_file).unwrap();
    assert!(matches!(read(4), Err(ChainError::Disk(_))));
    assert!(matches!(read_undo(4), Err(ChainError::UndoMissing { .. })));
    assert!(read(1).is_ok() && read_undo(1).is_ok(), "the other files are read on");

    // New data goes to files that have names.
    let block = Maker::new().block(blocks[3].hash(), 1);
    let position = store.append_block(block.as_bytes()).unwrap();
    assert!(position.file > last);
    let undo = encode_undo(&block, &spent_of(&block));
    let old = node(4).block.unwrap();
    let undo_position = store.append_undo(old, &block.header().prev_block, &undo).unwrap();
    assert!(undo_position.file > last);
    store.sync().unwrap();
    drop(store);
    let survivor = disk.power_loss(1);
    for disk in [disk, survivor] {
        drop(open(&disk).store);
        assert!(disk.files().keys().all(|path| *path != block_file && *path != undo_file));
        disk.write_whole(&block_file, &whole).unwrap();
        assert!(open(&disk).store.read_block(old).is_ok(), "a file that is put back is read again");
    }
}

/// Regression test: with another `xor.dat` no block was found at its indexed position; `-reindex`, which the error
/// suggested, then built an empty chain, and the next block truncated the last block file to nothing.
#[test]
fn a_key_that_is_lost_or_damaged_costs_no_block() {
    let disk = SimDisk::new(5);
    drop(long_store(&disk, 9));
    let key = layout().blocks.join("xor.dat");
    let fails =
        |disk: &SimDisk| BlockStore::open(Arc::new(disk.clone()), &layout(), &params()).and_then(rebuilt).unwrap_err();
    let lost = disk.kill();
    lost.remove_file(&key).unwrap();
    assert_eq!(fails(&lost), ChainError::KeyMissing { path: key.clone() });
    wipe_for_reindex(&lost, &layout()).unwrap();
    assert_eq!(fails(&lost), ChainError::KeyMissing { path: key.clone() }, "a reindex does not go on without it");
    lost.write_whole(&key, &layout().new_key).unwrap();
    assert_eq!(open(&lost).tree.len(), 10);
    for at in 0..8 {
        let damaged = disk.kill();
        damaged.flip(&key, at, 4).unwrap();
        assert_eq!(fails(&damaged), ChainError::KeyDiffers { path: key.clone() });
        wipe_for_reindex(&damaged, &layout()).unwrap();
        assert_eq!(fails(&damaged), ChainError::KeyDiffers { path: key.clone() }, "{at}: nor does a reindex");
        damaged.flip(&key, at, 4).unwrap();
        assert_eq!(open(&damaged).tree.len(), 10, "every block is where it was");
    }
    // The files of a directory that never had a key.
    let bare = SimDisk::new(5);
    let plain = Layout { new_key: [0; 8], ..layout() };
    let Opened { store, mut tree, .. } = BlockStore::open(Arc::new(bare.clone()), &plain, &params()).unwrap();
    take(&store, &mut tree, &Maker::new().block(params().genesis_hash, 0));
    store.sync().unwrap();
    drop(store);
    bare.remove_file(&key).unwrap();
    assert_eq!(open(&bare).tree.len(), 2);
}

/// If the index log is removed while the store is open, the next sync fails; a reindex restores everything.
#[test]
fn an_index_log_that_is_removed_meanwhile_is_an_error() {
    let disk = SimDisk::new(5);
    let (store, mut tree, blocks) = long_store(&disk, 4);
    disk.remove_file(&layout().index.join("index.log")).unwrap();
    let next = Maker::new().chain(5, 0).pop().unwrap();
    assert_eq!(next.header().prev_block, blocks[3].hash());
    take(&store, &mut tree, &next);
    let error = store.sync().unwrap_err();
    assert_eq!(error.to_string(), "d/blocks/index/index.log: there is no such file or directory");
    drop(store);
    wipe_for_reindex(&disk, &layout()).unwrap();
    assert_eq!(open(&disk).tree.len(), 6);
}

/// Damaged, truncated or missing undo data is an error that names file and offset.
/// checklist: 94
#[test]
fn damaged_undo_data_is_named() {
    let disk = SimDisk::new(5);
    let Opened { store, mut tree, .. } = open(&disk);
    let block = Maker::new().block(params().genesis_hash, 3);
    let id = take(&store, &mut tree, &block);
    let prev_hash = block.header().prev_block;
    let undo = encode_undo(&block, &spent_of(&block));
    let block_position = tree.node(id).block.unwrap();
    let other = store.append_undo(block_position, &prev_hash, &undo).unwrap();
    let position = store.append_undo(block_position, &prev_hash, &undo).unwrap();
    let small = store.append_undo(block_position, &prev_hash, &[0]).unwrap();
    let bad = store.append_undo(block_position, &prev_hash, &[1, 1, 200, 0]).unwrap();
    store.record(&[IndexEntry::Undo { id, position }]);
    store.sync().unwrap();
    let path = layout().blocks.join("rev00000.dat");
    let fault = |store: &BlockStore, position: UndoPosition| match store.read_spent(position, &block) {
        Err(ChainError::UndoDamaged { path: named, offset, fault }) => {
            assert_eq!((named, offset), (path.clone(), position.offset));
            fault
        }
        result => panic!("{result:?}"),
    };
    assert_eq!(fault(&store, small), UndoFault::OtherBlock);
    assert!(matches!(fault(&store, bad), UndoFault::Parse(_)));
    assert!(store.read_undo(position, &block.hash()).is_err(), "of another parent");
    for shifted in [other.offset + 1, position.offset - 1, 0, 7] {
        assert_eq!(fault(&store, UndoPosition { offset: shifted, ..position }), UndoFault::Frame);
    }
    assert_eq!(fault(&store, UndoPosition { size: position.size - 1, ..position }), UndoFault::Frame);
    let text = store.read_undo(position, &block.hash()).unwrap_err().to_string();
    let offset = position.offset;
    assert_eq!(text, format!("d/blocks/rev00000.dat:{offset}: the undo data is damaged: wrong checksum"));
    for at in position.offset - 8..position.offset + u64::from(position.size) + 32 {
        let disk = disk.kill();
        disk.flip(&path, at, 0x10).unwrap();
        let store = open(&disk).store;
        let found = fault(&store, position);
        assert_eq!(found == UndoFault::Frame, at < position.offset);
        assert!(store.read_spent(other, &block).is_ok());
    }
    let beyond = UndoPosition { offset: 1 << 20, ..position };
    let error = store.read_undo(beyond, &prev_hash).unwrap_err().to_string();
    assert!(error.starts_with("d/blocks/rev00000.dat:") && error.ends_with("bytes too early"), "{error}");
    let missing = UndoPosition { file: 77, ..position };
    assert_eq!(
        store.read_undo(missing, &prev_hash).unwrap_err().to_string(),
        format!("d/blocks/rev00077.dat:{offset}: the undo data is missing: no such file")
    );
}

/// limit: UNDO_SIZE_MAX at
/// limit: UNDO_SIZE_MAX above
#[test]
fn undo_data_of_an_impossible_size() {
    let disk = SimDisk::new(5);
    let Opened { store, .. } = open(&disk);
    let block = BlockPosition { file: 0, offset: 8, size: 1 };
    let position = store.append_undo(block, &params().genesis_hash, &[0]).unwrap();
    let read = |size| store.read_undo(UndoPosition { size, ..position }, &params().genesis_hash);
    assert!(matches!(read(UNDO_SIZE_MAX), Err(ChainError::Disk(_))), "looked for");
    assert!(matches!(read(UNDO_SIZE_MAX + 1), Err(ChainError::UndoDamaged { fault: UndoFault::Frame, .. })));
}

/// Truncated or removed files of our own are reported; their blocks stay known, and reading one is an error.
/// checklist: 91
#[test]
fn missing_bytes_are_reported() {
    let disk = SimDisk::new(5);
    let (store, tree, _) = long_store(&disk, 9);
    drop(store);
    let position = tree.node(tree.active(Height(1)).unwrap()).block.unwrap();
    disk.truncate_file(&layout().blocks.join("blk00000.dat"), 20).unwrap();
    disk.remove_file(&layout().blocks.join("blk00001.dat")).unwrap();
    let Opened { store, tree, remarks, .. } = open(&disk.kill());
    let texts: Vec<_> = remarks.iter().map(ToString::to_string).collect();
    assert_eq!(texts.len(), 2, "{texts:?}");
    assert!(texts[0].starts_with("d/blocks/blk00001.dat: the file has 0 bytes, but the index has blocks up to byte"));
    assert!(texts[1].starts_with("d/blocks/blk00000.dat: the file has 20 bytes"), "{texts:?}");
    assert_eq!(tree.len(), 10);
    assert!(matches!(store.read_block(position), Err(ChainError::Disk(_))));
    assert!(store.read_block(BlockPosition { file: 1, ..position }).is_err());
    let unknown = store.read_block(BlockPosition { file: 99, ..position }).unwrap_err();
    assert_eq!(unknown.to_string(), "the block index names the unknown file 99");
}

/// Appends, reads and syncs from several threads at once.
#[test]
fn threads_may_do_everything_at_once() {
    let disk = SimDisk::new(5);
    let Opened { store, .. } = open(&disk);
    store.set_block_file_size_max(3_000);
    let blocks = Maker::new().chain(60, 2);
    std::thread::scope(|scope| {
        for part in blocks.chunks(15) {
            let store = &store;
            scope.spawn(move || {
                let mut positions = Vec::new();
                for block in part {
                    let position = store.append_block(block.as_bytes()).unwrap();
                    let undo = encode_undo(block, &spent_of(block));
                    let undo = store.append_undo(position, &block.header().prev_block, &undo).unwrap();
                    positions.push((block, position, undo));
                    for (block, position, undo) in &positions {
                        store.prefetch(*position);
                        assert_eq!(store.read_block(*position).unwrap().as_bytes(), block.as_bytes());
                        assert_eq!(store.read_spent(*undo, block).unwrap(), spent_of(block));
                    }
                    store.sync().unwrap();
                }
            });
        }
    });
}
