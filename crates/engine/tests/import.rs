//! Real blocks from unusual files, and blocks whose scripts were not run.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "each test file uses its part")]
#[path = "../../../testdata/locate.rs"]
mod locate;

use locate::{read, testdata};
use lydian_chain::{BlockFile, Obfuscation};
use lydian_consensus::{Chain, Params, PlainValidator, U256};
use lydian_disk::{Disk, SimDisk};
use lydian_engine::{
    AssumeValid, Cancel, Engine, ImportFiles, Inconsistency, LastBlocks, LastBlocksEnd, Layout, Settings, Unobserved,
    Wipe, wipe,
};
use lydian_primitives::{Block, Height, RawBlock, Reader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const NOW: i64 = 1_800_000_000;

fn params() -> Params {
    Params::new(Chain::Test)
}

/// The first blocks of testnet3, from genesis.
fn blocks(count: usize) -> Vec<Block> {
    let bytes = read(&testdata("blocks/runs/test3_000000_004000.blk.zst"));
    let mut reader = Reader::new(&bytes);
    let mut blocks = Vec::new();
    while reader.remaining() != 0 && blocks.len() <= count {
        assert_eq!(reader.array::<4>().unwrap(), params().magic);
        let size = reader.u32().unwrap() as usize;
        blocks.push(RawBlock::new(reader.take(size).unwrap()).parse().unwrap());
    }
    blocks
}

/// Height and `hash_serialized_3` of the plain validator.
fn by_the_plain_validator(blocks: &[Block]) -> (Height, [u8; 32]) {
    let mut plain = PlainValidator::new(params());
    for block in &blocks[1..] {
        plain.accept_block(block.clone(), u32::try_from(NOW).unwrap()).unwrap();
    }
    (plain.tip().0, plain.hash_serialized_3())
}

fn layout() -> Layout {
    Layout {
        blocks: PathBuf::from("/node/blocks"),
        index: "/node/blocks/index".into(),
        coins: "/node/chainstate".into(),
    }
}

fn open(disk: &SimDisk, assume_valid: Option<AssumeValid>) -> Engine {
    let settings = Settings { assume_valid, ..Settings::new(2) };
    Engine::open(Arc::new(disk.clone()), &layout(), params(), settings, Vec::new()).unwrap().engine
}

fn answer(engine: &Engine) -> (Height, [u8; 32]) {
    let hashes = engine.utxo_hashes().unwrap();
    (hashes.tip.height, hashes.hash_serialized_3)
}

fn write(disk: &SimDisk, name: &str, records: &[Vec<u8>]) -> BlockFile {
    let path = Path::new("/files").join(name);
    disk.create_dir(Path::new("/files")).unwrap();
    disk.write_whole(&path, &records.concat()).unwrap();
    BlockFile { path, key: Obfuscation::NONE }
}

fn record(block: &Block, trailing: &[u8]) -> Vec<u8> {
    let size = u32::try_from(block.as_bytes().len() + trailing.len()).unwrap();
    [&params().magic[..], &size.to_le_bytes(), block.as_bytes(), trailing].concat()
}

/// Core ignores bytes after the last transaction inside a record, accepts records in any order, and skips garbage.
#[test]
fn odd_files_give_the_same_chain() {
    let blocks = blocks(700);
    let expected = by_the_plain_validator(&blocks);
    for is_copied in [false, true] {
        let disk = SimDisk::new(1);
        let mut records: Vec<Vec<u8>> = blocks
            .iter()
            .enumerate()
            .map(|(height, block)| record(block, if height % 5 == 3 { &[0; 7] } else { &[] }))
            .collect();
        // Blocks in runs of ten, each run in reverse order, with garbage in between.
        records.chunks_mut(10).for_each(<[_]>::reverse);
        records.insert(33, b"nothing of a block".to_vec());
        let (first, second) = records.split_at(300);
        let files = vec![write(&disk, "blk00000.dat", second), write(&disk, "blk00001.dat", first)];
        let engine = open(&disk, None);
        let import = engine.import(ImportFiles { files, is_copied }, NOW, &mut |_, _| {}).unwrap();
        assert_eq!((import.blocks, import.new_blocks, import.orphans), (701, 700, 0));
        assert_eq!(import.remarks.len(), 1, "{:?}", import.remarks);
        let advance = engine.advance(&Cancel::new(), &Unobserved).unwrap();
        assert_eq!((advance.connected, advance.unreadable.len()), (700, 0), "{advance:?}");
        assert_eq!(answer(&engine), expected);
        assert_eq!(engine.check_last_blocks(20, 4).unwrap(), 20);
        engine.checkpoint(&Unobserved).unwrap();
        drop(engine);
        assert_eq!(answer(&open(&disk, None)), expected, "after a restart");
    }
}

/// A block with damaged stored bytes counts as missing; it is not invalid, and the chain stops below it.
/// checklist: 91, 94
#[test]
fn a_damaged_stored_block_is_no_invalid_block() {
    let blocks = blocks(60);
    let disk = SimDisk::new(1);
    let records: Vec<Vec<u8>> = blocks.iter().map(|block| record(block, &[])).collect();
    let offset: usize = records[..40].iter().map(Vec::len).sum::<usize>() + 8 + 80 + 20;
    let file = write(&disk, "blk00000.dat", &records);
    disk.flip(&file.path, u64::try_from(offset).unwrap(), 1).unwrap();
    let engine = open(&disk, None);
    engine.import(ImportFiles { files: vec![file], is_copied: false }, NOW, &mut |_, _| {}).unwrap();
    let advance = engine.advance(&Cancel::new(), &Unobserved).unwrap();
    assert_eq!((advance.invalid.len(), advance.unreadable.len()), (0, 1));
    assert_eq!(advance.unreadable[0].0, blocks[40].hash());
    assert_eq!(engine.tip().height, Height(39));
    // The right bytes arrive from elsewhere, and the chain continues.
    assert!(engine.accept_block(blocks[40].clone(), NOW, &Unobserved).unwrap().is_ok());
    assert_eq!(answer(&engine), by_the_plain_validator(&blocks));
}

/// Regression: an import could not be stopped; a stop waited until the last file was read. It stops before the next
/// file and reports that, and the next import finds the rest.
#[test]
fn an_import_stops_between_two_files() {
    let blocks = blocks(60);
    let expected = by_the_plain_validator(&blocks);
    let disk = SimDisk::new(1);
    let records: Vec<Vec<u8>> = blocks.iter().map(|block| record(block, &[])).collect();
    let (first, second) = records.split_at(30);
    let files = vec![write(&disk, "blk00000.dat", first), write(&disk, "blk00001.dat", second)];
    let engine = open(&disk, None);
    let cancel = Cancel::new();
    let mut seen = 0;
    let import = engine
        .import_until(ImportFiles { files: files.clone(), is_copied: false }, NOW, &cancel, &mut |_, _| {
            seen += 1;
            if seen == 2 {
                cancel.cancel();
            }
        })
        .unwrap();
    assert!(import.is_cancelled && seen == 2 && import.new_blocks == 0, "{import:?}");
    let import = engine.import(ImportFiles { files, is_copied: false }, NOW, &mut |_, _| {}).unwrap();
    assert!(!import.is_cancelled && import.new_blocks == 60, "{import:?}");
    engine.advance(&Cancel::new(), &Unobserved).unwrap();
    assert_eq!(answer(&engine), expected);
}

/// Regression: opening the engine read the headers of all block files, so that a node that reindexes answered nothing
/// meanwhile. A stop leaves the reindex in progress, and the next start begins it again, whatever was stored or
/// validated in between; that does not touch the files that are to be read.
/// checklist: 91
#[test]
fn a_reindex_reads_the_files_after_the_start() {
    let blocks = blocks(300);
    let expected = by_the_plain_validator(&blocks);
    let start = |disk: &SimDisk| {
        let settings = Settings { block_file_size_max: 10_000, ..Settings::new(2) };
        let is_read = &mut |file: &Path, _| panic!("{} was read", file.display());
        Engine::open_with(Arc::new(disk.clone()), &layout(), params(), settings, Vec::new(), is_read).unwrap().engine
    };
    let disk = SimDisk::new(1);
    let engine = start(&disk);
    assert!(!engine.is_reindexing());
    for block in &blocks[1..] {
        assert!(engine.accept_block(block.clone(), NOW, &Unobserved).unwrap().is_ok());
    }
    engine.checkpoint(&Unobserved).unwrap();
    drop(engine);
    let mut before = disk.files();
    before.retain(|path, _| path.to_string_lossy().contains("/blk"));
    assert!(before.len() > 4, "{}", before.len());

    wipe(&disk, &layout(), Wipe::Index).unwrap();
    let engine = start(&disk);
    assert!(engine.is_reindexing());
    assert_eq!((engine.tip().height, engine.best_header_height()), (Height(0), Height(0)));
    assert!(!engine.tip_info().is_pruned(), "the genesis block can be read");
    assert!(engine.accept_block(blocks[1].clone(), NOW, &Unobserved).unwrap().is_ok());
    let (cancel, mut seen) = (Cancel::new(), 0);
    let stopped = engine.reindex_until(&cancel, &mut |_, _| {
        seen += 1;
        if seen == 3 {
            cancel.cancel();
        }
    });
    assert!(stopped.unwrap().is_cancelled && seen == 3 && engine.is_reindexing());
    engine.advance(&Cancel::new(), &Unobserved).unwrap();
    let part = engine.tip().height;
    assert!(part > Height(1) && part < Height(300), "{part:?}");
    engine.checkpoint(&Unobserved).unwrap();
    drop(engine);

    for disk in [disk.kill(), disk.power_loss(1)] {
        let engine = start(&disk);
        assert!(engine.is_reindexing());
        assert_eq!((engine.tip().height, engine.best_header_height()), (Height(0), Height(0)));
        let mut seen = Vec::new();
        let reindex = engine.reindex_until(&Cancel::new(), &mut |file, found| seen.push((file.to_owned(), found)));
        let reindex = reindex.unwrap();
        assert_eq!((reindex.blocks, reindex.is_cancelled, engine.is_reindexing()), (301, false, false));
        assert_eq!(seen.len(), before.len() + 1, "the file of the block that came meanwhile");
        assert!(seen.is_sorted() && engine.best_header_height() == Height(300));
        engine.advance(&Cancel::new(), &Unobserved).unwrap();
        assert_eq!(answer(&engine), expected);
        engine.checkpoint(&Unobserved).unwrap();
        drop(engine);
        let files = disk.files();
        assert!(before.iter().all(|(path, bytes)| files[path] == *bytes), "block files are never touched");
        // The second copy of the first block is cut off as remains of a crash.
        let engine = open(&disk, None);
        assert!(!engine.is_reindexing());
        assert_eq!(answer(&engine), expected, "after a restart");
    }
}

/// Scripts skipped as assumed valid are run when the assumption is dropped; those that succeeded are not run twice.
#[test]
fn assumed_is_not_verified() {
    let blocks = blocks(4_000);
    let disk = SimDisk::new(1);
    let records: Vec<Vec<u8>> = blocks.iter().map(|block| record(block, &[])).collect();
    let file = write(&disk, "blk00000.dat", &records);
    let assumed = AssumeValid { block: blocks[1_000].hash(), minimum_chain_work: U256::from_u64(0) };
    let engine = open(&disk, Some(assumed));
    engine.import(ImportFiles { files: vec![file], is_copied: false }, NOW, &mut |_, _| {}).unwrap();
    engine.advance(&Cancel::new(), &Unobserved).unwrap();
    assert_eq!((engine.tip().height, engine.progress().blocks_trusted), (Height(4_000), 1_000));
    let expected = answer(&engine);
    engine.checkpoint(&Unobserved).unwrap();
    drop(engine);
    wipe(&disk, &layout(), Wipe::Coins).unwrap();
    let engine = open(&disk, None);
    assert_eq!(engine.tip().height, Height(0));
    engine.advance(&Cancel::new(), &Unobserved).unwrap();
    assert_eq!(engine.progress().blocks_trusted, 3_000, "those that were verified, and no other");
    assert_eq!(answer(&engine), expected);
}

/// The check of the last blocks finds coins that are not those of the chain.
#[test]
fn wrong_coins_are_found() {
    let blocks = blocks(200);
    let disk = SimDisk::new(1);
    let engine = open(&disk, None);
    for block in &blocks[1..] {
        assert!(engine.accept_block(block.clone(), NOW, &Unobserved).unwrap().is_ok());
    }
    let key = engine.coins().key(lydian_primitives::OutPoint { txid: blocks[198].tx(0).txid(), vout: 0 });
    let partition = lydian_coins::Coins::partition(&key);
    engine.coins().apply(partition, std::iter::once(key), std::iter::empty()).unwrap();
    assert_eq!(engine.check_last_blocks(2, 3).unwrap(), 2, "not so deep");
    let error = engine.check_last_blocks(6, 3).unwrap_err();
    assert!(matches!(&error, Inconsistency::Coins { height, .. } if *height == Height(198)), "{error}");
    assert_eq!(engine.check_last_blocks(6, 2).unwrap(), 6, "the coins are looked at from level 3 on");
}

/// The check of the last blocks keeps its coins within `-dbcache`, and a stop ends it, as Core's `VerifyDB` reports.
#[test]
fn a_look_at_the_last_blocks_ends_early() {
    let blocks = blocks(200);
    let disk = SimDisk::new(1);
    let settings = Settings { cache_bytes: 10_000, ..Settings::new(2) };
    let opened = Engine::open(Arc::new(disk.clone()), &layout(), params(), settings, Vec::new());
    let engine = opened.unwrap().engine;
    for block in &blocks[1..] {
        assert!(engine.accept_block(block.clone(), NOW, &Unobserved).unwrap().is_ok());
    }
    let look = |blocks, level, is_interrupted: &dyn Fn() -> bool| {
        let LastBlocks { blocks, end } = engine.verify_last_blocks(blocks, level, is_interrupted, &Unobserved).unwrap();
        (blocks, end)
    };
    for level in 0..=4 {
        assert_eq!(look(10, level, &|| false), (10, LastBlocksEnd::Done), "{level}");
        let end = if level >= 3 { LastBlocksEnd::CoinsSkipped } else { LastBlocksEnd::Done };
        assert_eq!(look(200, level, &|| false), (200, end), "{level}");
    }
    assert_eq!(look(200, 1, &|| true), (0, LastBlocksEnd::Interrupted));
}

/// Regression: undo files were deleted and the coins rebuilt; the index still had the position of the undo data, none
/// was written, and the next start could not read it.
/// checklist: 94
#[test]
fn missing_undo_data_is_written_again() {
    let blocks = blocks(300);
    let disk = SimDisk::new(1);
    let engine = open(&disk, None);
    for block in &blocks[1..] {
        assert!(engine.accept_block(block.clone(), NOW, &Unobserved).unwrap().is_ok());
    }
    engine.checkpoint(&Unobserved).unwrap();
    let expected = answer(&engine);
    drop(engine);
    disk.remove_file(Path::new("/node/blocks/rev00000.dat")).unwrap();
    wipe(&disk, &layout(), Wipe::Coins).unwrap();
    let engine = open(&disk, None);
    engine.advance(&Cancel::new(), &Unobserved).unwrap();
    engine.checkpoint(&Unobserved).unwrap();
    drop(engine);
    let engine = open(&disk, None);
    assert_eq!(engine.check_last_blocks(300, 4).unwrap(), 300, "undo data of every block can be read");
    assert_eq!(answer(&engine), expected);
}

/// Regression: a twin with the same header and other transactions came before the honest block in a file, took its
/// place and was unusable; the chain stopped below it, whereas Core continues with the second.
/// checklist: 13
#[test]
fn a_twin_before_the_honest_block_does_no_harm() {
    let blocks = blocks(80);
    let mut records: Vec<Vec<u8>> = blocks.iter().map(|block| record(block, &[])).collect();
    let mut twin = records[50].clone();
    let at = twin.len() - 60;
    twin[at] ^= 1;
    records.insert(50, twin.clone());
    records.insert(50, twin);
    let disk = SimDisk::new(1);
    let file = write(&disk, "blk00000.dat", &records);
    let engine = open(&disk, None);
    engine.import(ImportFiles { files: vec![file], is_copied: false }, NOW, &mut |_, _| {}).unwrap();
    let advance = engine.advance(&Cancel::new(), &Unobserved).unwrap();
    assert_eq!((advance.invalid.len(), advance.unreadable.len()), (0, 2));
    assert_eq!(answer(&engine), by_the_plain_validator(&blocks));
    engine.checkpoint(&Unobserved).unwrap();
    drop(engine);
    assert_eq!(answer(&open(&disk, None)), by_the_plain_validator(&blocks), "after a restart");
    // The same in a file of our own, which a reindex reads.
    let disk = SimDisk::new(1);
    drop(open(&disk, None));
    disk.write_whole(&layout().blocks.join("blk00000.dat"), &records.concat()).unwrap();
    wipe(&disk, &layout(), Wipe::Index).unwrap();
    let engine = open(&disk, None);
    let advance = engine.advance(&Cancel::new(), &Unobserved).unwrap();
    assert_eq!((advance.invalid.len(), advance.unreadable.len()), (0, 2));
    assert_eq!(answer(&engine), by_the_plain_validator(&blocks));
}
