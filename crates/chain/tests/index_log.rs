//! The index log when it is cut, damaged, of another network or from the future; and the examples of `docs/formats/index.md`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::blocks::{Maker, layout, params, spent_of};
use lydian_chain::limits::FILE_NUMBER_MAX;
use lydian_chain::{
    BlockStore, ChainError, INDEX_VERSION, IndexEntry, Opened, StoreRemark, encode_undo, wipe_for_reindex,
};
use lydian_consensus::{Chain, Params};
use lydian_disk::record::{RECORD_HEAD_SIZE, Records, encode_record};
use lydian_disk::{Disk, SimDisk, read_whole};
use lydian_primitives::{Block, hex, to_hex};
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn log() -> PathBuf {
    layout().index.join("index.log")
}

fn open(disk: &SimDisk) -> Result<Opened, ChainError> {
    BlockStore::open(Arc::new(disk.clone()), &layout(), &params())
}

/// A store of some blocks, synced twice; the second time with one more. Gives the log, and how much of it the first sync covers.
fn make(blocks: &[Block]) -> (SimDisk, Vec<u8>) {
    let disk = SimDisk::new(7);
    let Opened { store, mut tree, .. } = open(&disk).unwrap();
    for (index, block) in blocks.iter().enumerate() {
        let id = tree.accept_header(block.header(), i64::MAX / 2, &params()).unwrap();
        let position = store.append_block(block.as_bytes()).unwrap();
        tree.set_block(id, position);
        let undo = encode_undo(block, &spent_of(block));
        let undo = store.append_undo(position, &block.header().prev_block, &undo).unwrap();
        store.record(&[
            IndexEntry::Header { id, header: *block.header() },
            IndexEntry::Block { id, position },
            IndexEntry::Undo { id, position: undo },
            IndexEntry::Verified { id },
        ]);
        if index + 2 >= blocks.len() {
            store.sync().unwrap();
        }
    }
    drop(store);
    let bytes = read_whole(&disk, &log(), u64::MAX).unwrap();
    (disk, bytes)
}

fn with_log(disk: &SimDisk, bytes: &[u8]) -> SimDisk {
    let disk = disk.kill();
    disk.write_whole(&log(), bytes).unwrap();
    disk
}

/// Where the records of a log begin, and where the last ends.
fn offsets(log: &[u8]) -> Vec<usize> {
    let mut records = Records::read(log, 0);
    let mut offsets = vec![0];
    while let Some(record) = records.next() {
        record.unwrap();
        offsets.push(usize::try_from(records.offset()).unwrap());
    }
    offsets
}

/// Cut at every byte: what is left of the log is taken, and every block whose bytes are there is found again.
/// checklist: 87
#[test]
fn a_log_cut_anywhere_is_taken_up() {
    let blocks = Maker::new().chain(6, 1);
    let (disk, log) = make(&blocks);
    let head_size = offsets(&log)[1];
    for size in 0..log.len() {
        let disk = with_log(&disk, &log[..size]);
        let opened = open(&disk);
        if size < head_size {
            assert!(matches!(opened, Err(ChainError::IndexDamaged { offset: 0, .. })), "{size}");
            continue;
        }
        let Opened { tree, store, remarks, .. } = opened.unwrap();
        let is_whole = offsets(&log).contains(&size);
        assert_eq!(remarks.iter().any(|remark| matches!(remark, StoreRemark::TornIndex { .. })), !is_whole, "{size}");
        for block in &blocks {
            let node = tree.node(tree.find(&block.hash()).unwrap());
            assert_eq!(store.read_block(node.block.unwrap()).unwrap().as_bytes(), block.as_bytes());
        }
        assert_eq!(tree.height(tree.best_candidate().unwrap()).0, 6);
        drop(store);
        // And the next time there is nothing to say.
        assert_eq!(open(&disk).unwrap().remarks, [], "{size}");
    }
}

/// A flipped bit in what was safe on the disk is damage and said to be; in the last record it costs nothing.
/// checklist: 94
#[test]
fn a_flipped_bit_is_found() {
    let blocks = Maker::new().chain(6, 1);
    let (disk, log) = make(&blocks);
    let offsets = offsets(&log);
    let last = offsets[offsets.len() - 2];
    for at in 0..log.len() {
        for bit in [0, 3, 7] {
            let disk = disk.kill();
            disk.flip(&self::log(), at as u64, 1 << bit).unwrap();
            match open(&disk) {
                Err(ChainError::IndexDamaged { offset, path }) => {
                    assert!(at < last, "{at}");
                    let record = offsets.iter().rev().find(|offset| **offset <= at).unwrap();
                    assert_eq!((offset, path), (*record as u64, self::log()));
                }
                Err(other) => panic!("{at}: {other}"),
                Ok(Opened { tree, .. }) => {
                    assert!(at >= last, "{at}: damage went unnoticed");
                    assert_eq!(tree.len(), 7);
                    assert!(tree.ids().skip(1).all(|id| tree.node(id).undo.is_some() && tree.node(id).is_verified));
                }
            }
        }
    }
    let disk = disk.kill();
    disk.flip(&self::log(), 100, 1).unwrap();
    let text = open(&disk).unwrap_err().to_string();
    assert!(text.ends_with("the block index is damaged here; -reindex builds it anew"), "{text}");
}

fn head(version: u32, params: &Params) -> Vec<u8> {
    [&b"lydian index"[..], &version.to_le_bytes(), &params.magic, &params.genesis_hash.0].concat()
}

/// A log of these payloads.
fn log_of(payloads: &[Vec<u8>]) -> Vec<u8> {
    let mut log = Vec::new();
    for (sequence, payload) in (0..).zip(payloads) {
        encode_record(payload, sequence, &mut log);
    }
    log
}

/// Said and refused before anything is touched.
/// checklist: 95
#[test]
fn a_later_version_is_refused() {
    let disk = SimDisk::new(1);
    open(&disk).unwrap();
    let disk = with_log(&disk, &log_of(&[head(INDEX_VERSION + 1, &params()), vec![0xff; 9]]));
    let before = disk.operation_count();
    assert_eq!(
        open(&disk).unwrap_err().to_string(),
        "d/blocks/index/index.log: this data directory was written by a later version (format 2; this one knows up to 1)"
    );
    // Looking at the directories is all that was done.
    assert_eq!(read_whole(&disk, &log(), 1000).unwrap().len(), 12 + 52 + 12 + 9);
    assert!(disk.operation_count() - before < 10);
}

#[test]
fn another_network_is_refused() {
    let disk = SimDisk::new(1);
    open(&disk).unwrap();
    let main = Params::new(Chain::Main);
    let error = BlockStore::open(Arc::new(disk.kill()), &layout(), &main).unwrap_err();
    assert_eq!(error.to_string(), "d/blocks/index/index.log: this is of another network: regtest, not main");
    // Without a log the block files tell.
    let (disk, _) = make(&Maker::new().chain(2, 0));
    wipe_for_reindex(&disk, &layout()).unwrap();
    let error = BlockStore::open(Arc::new(disk), &layout(), &main).unwrap_err();
    assert_eq!(error.to_string(), "d/blocks/blk00000.dat: this is of another network: regtest, not main");
}

/// Records that are whole by their checksum and make no sense: an error that names the record, never a panic.
#[test]
fn contradictions_are_refused() {
    let block = Maker::new().block(params().genesis_hash, 0);
    let header = |id: u32| [&[1][..], &id.to_le_bytes(), &block.header().to_bytes()].concat();
    let about = |tag: u8, id: u32, rest: usize| [&[tag][..], &id.to_le_bytes(), &vec![0; rest]].concat();
    let undo_at = |offset: u64| {
        let position = [&0u32.to_le_bytes()[..], &offset.to_le_bytes(), &5u32.to_le_bytes()].concat();
        [&[3][..], &1u32.to_le_bytes(), &position].concat()
    };
    let check = |payloads: &[Vec<u8>], expected: Option<&str>| {
        let disk = SimDisk::new(1);
        open(&disk).unwrap();
        let offset =
            payloads[..payloads.len() - 1].iter().map(|payload| RECORD_HEAD_SIZE + payload.len()).sum::<usize>();
        // Safe on the disk, so that it is not taken for what a crash left.
        let size = payloads.iter().map(|payload| RECORD_HEAD_SIZE + payload.len()).sum::<usize>();
        let sequence = payloads.len() as u64;
        let synced = [&[11][..], &(size as u64).to_le_bytes(), &sequence.to_le_bytes()].concat();
        let disk = with_log(&disk, &log_of(&[payloads, &[synced]].concat()));
        match (open(&disk), expected) {
            (Ok(_), None) => {}
            (Err(error), Some(expected)) => assert_eq!(
                error.to_string(),
                format!("d/blocks/index/index.log:{offset}: the block index {expected}; -reindex builds it anew")
            ),
            (result, expected) => panic!("{expected:?}: {result:?}"),
        }
    };
    let head = || head(1, &params());
    check(&[head(), header(1)], None);
    // The same where nothing says that it was safe: the error names where the safe part ends.
    let disk = SimDisk::new(1);
    open(&disk).unwrap();
    let text = open(&with_log(&disk, &log_of(&[head(), header(2)]))).unwrap_err().to_string();
    assert!(text.starts_with("d/blocks/index/index.log:64: the block index has a header out of its order"), "{text}");
    check(&[b"lydian index".to_vec()], Some("does not begin as one"));
    check(&[vec![7; 52]], Some("does not begin as one"));
    check(&[head(), vec![99]], Some("has an entry of an unknown kind"));
    check(&[head(), header(1)[..80].to_vec()], Some("has an entry that is cut off"));
    check(&[head(), header(2)], Some("has a header out of its order"));
    check(&[head(), header(1), header(2)], Some("has a header out of its order"));
    for (tag, rest) in [(2, 16), (3, 16), (4, 0), (5, 0), (6, 0), (7, 0), (8, 0)] {
        check(&[head(), about(tag, 1, rest)], Some("names a block that it does not have"));
        check(&[head(), header(1), about(tag, 1, rest)], None);
    }
    check(&[head(), about(5, 0, 0)], Some("calls the genesis block invalid"));
    check(&[head(), about(9, 0, 9)], Some("has an entry that is cut off"));
    check(&[head(), about(9, 0, 11)], Some("has a path that is none"));
    let pruned = |file: u32| [&[10][..], &file.to_le_bytes()].concat();
    check(&[head(), pruned(FILE_NUMBER_MAX)], None);
    check(&[head(), pruned(FILE_NUMBER_MAX + 1)], Some("has an impossible number of a file"));
    check(&[head(), header(1), undo_at((1 << 30) - 1)], None);
    check(&[head(), header(1), undo_at(1 << 30)], Some("has undo data at an impossible offset"));
}

fn examples() -> (Vec<u8>, Block) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats/index.md");
    let page = read_whole(&lydian_disk::RealDisk, &page, 1 << 20).unwrap();
    let page = String::from_utf8(page).unwrap();
    let block = |name: &str| {
        let (_, rest) = page.split_once(&format!("```hex {name}\n")).unwrap();
        hex(&rest.split_once("```").unwrap().0.split_whitespace().collect::<String>()).unwrap()
    };
    (["head", "entries", "synced"].map(block).concat(), Maker::new().block(params().genesis_hash, 1))
}

/// What the page prints is what is written, and reads back as the page says.
#[test]
fn the_examples_of_the_page() {
    let (page, block) = examples();
    let (disk, log) = make(std::slice::from_ref(&block));
    assert_eq!(to_hex(&log), to_hex(&page));
    let Opened { tree, remarks, .. } = open(&with_log(&disk, &page)).unwrap();
    assert_eq!(remarks, []);
    let node = tree.node(tree.find(&block.hash()).unwrap());
    let (position, undo) = (node.block.unwrap(), node.undo.unwrap());
    assert_eq!((position.file, position.offset, position.size), (0, 8, 227));
    assert_eq!((undo.file, undo.offset), (0, 8));
    assert!(node.is_verified && !node.is_invalid);
}

/// A log that is larger than what is read at once, with a record that is.
#[test]
fn long_logs_are_read_piece_by_piece() {
    let disk = SimDisk::new(1);
    open(&disk).unwrap();
    let block = Maker::new().block(params().genesis_hash, 0);
    let header = [&[1][..], &1u32.to_le_bytes(), &block.header().to_bytes()].concat();
    let verified = [&[4][..], &1u32.to_le_bytes()].concat();
    let mut payloads = vec![head(1, &params()), header];
    payloads.push(verified.repeat(2_000_000));
    payloads.extend((0..300).map(|_| verified.repeat(10_000)));
    let bytes = log_of(&payloads);
    let whole = with_log(&disk, &bytes);
    assert!(open(&whole).unwrap().tree.node(open(&whole).unwrap().tree.find(&block.hash()).unwrap()).is_verified);

    let torn = with_log(&disk, &bytes[..bytes.len() - 1]);
    let remarks = open(&torn).unwrap().remarks;
    assert!(matches!(remarks[..], [StoreRemark::TornIndex { .. }]), "{remarks:?}");
}
