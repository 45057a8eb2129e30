//! The index log when it is truncated, damaged, of another network or of a later version; and the examples of
//! `docs/formats/index.md`.

use crate::common::blocks::{Maker, layout, params, spent_of};
use lydian_chain::limits::FILE_NUMBER_MAX;
use lydian_chain::{
    BlockCounts, BlockStore, ChainError, INDEX_FORMAT, INDEX_VERSION, IndexEntry, Opened, StoreRemark, encode_undo,
    wipe_for_reindex,
};
use lydian_consensus::{Chain, Params};
use lydian_disk::record::{RECORD_HEAD_SIZE, Records, encode_record};
use lydian_disk::{Disk, SimDisk, read_whole};
use lydian_primitives::{Block, hex, to_hex};
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};

fn log() -> PathBuf {
    layout().index.join("index.log")
}

fn open(disk: &SimDisk) -> Result<Opened, ChainError> {
    BlockStore::open(Arc::new(disk.clone()), &layout(), &params())
}

/// A store with some blocks that is synced twice, the second time with one more block. Returns the log.
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
            IndexEntry::Counts { id, counts: BlockCounts::of(block) },
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

/// The offsets of a log's records, and the end of the last one.
fn offsets(log: &[u8]) -> Vec<usize> {
    let mut records = Records::read(log, 0);
    let mut offsets = vec![0];
    while let Some(record) = records.next() {
        record.unwrap();
        offsets.push(usize::try_from(records.offset()).unwrap());
    }
    offsets
}

/// Truncated at every byte: the remaining log is used, and every block that is still in its file is found again.
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
        // The next opening has nothing to report.
        assert_eq!(open(&disk).unwrap().remarks, [], "{size}");
    }
}

/// A flipped bit in the durable part is reported as damage; in the last record it is harmless.
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
    assert!(text.ends_with("the block index is damaged here; -reindex rebuilds it"), "{text}");
}

fn head(version: u32, params: &Params) -> Vec<u8> {
    [&b"lydian index"[..], &version.to_le_bytes(), &params.magic, &params.genesis_hash.0].concat()
}

/// A log with these payloads.
fn log_of(payloads: &[Vec<u8>]) -> Vec<u8> {
    let mut log = Vec::new();
    for (sequence, payload) in (0..).zip(payloads) {
        encode_record(payload, sequence, &mut log);
    }
    log
}

/// Reported as an error before anything is changed.
/// checklist: 95
#[test]
fn a_later_version_is_refused() {
    let disk = SimDisk::new(1);
    open(&disk).unwrap();
    let disk = with_log(&disk, &log_of(&[head(INDEX_VERSION + 1, &params()), vec![0xff; 9]]));
    let before = disk.operation_count();
    let newer = INDEX_FORMAT.newer("d/blocks/index/index.log", INDEX_VERSION + 1).unwrap();
    assert_eq!(open(&disk).unwrap_err().to_string(), newer.to_string());
    // Only the directories were created and synced.
    assert_eq!(read_whole(&disk, &log(), 1000).unwrap().len(), 12 + 52 + 12 + 9);
    assert!(disk.operation_count() - before < 10);
}

#[test]
fn another_network_is_refused() {
    let disk = SimDisk::new(1);
    open(&disk).unwrap();
    let main = Params::new(Chain::Main);
    let error = BlockStore::open(Arc::new(disk.kill()), &layout(), &main).unwrap_err();
    assert_eq!(error.to_string(), "d/blocks/index/index.log: belongs to another network: regtest, not main");
    // Without a log the block files reveal the network.
    let (disk, _) = make(&Maker::new().chain(2, 0));
    wipe_for_reindex(&disk, &layout()).unwrap();
    let Opened { store, tree, .. } = BlockStore::open(Arc::new(disk), &layout(), &main).unwrap();
    let error = store.reindex(&RwLock::new(tree), &main, false, &|| false, &mut |_, _| {}).unwrap_err();
    assert_eq!(error.to_string(), "d/blocks/blk00000.dat: belongs to another network: regtest, not main");
}

/// Records with a correct checksum but invalid content: an error that names the record, never a panic.
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
        // Durable, so that it is not treated as remains of a crash.
        let size = payloads.iter().map(|payload| RECORD_HEAD_SIZE + payload.len()).sum::<usize>();
        let sequence = payloads.len() as u64;
        let synced = [&[11][..], &(size as u64).to_le_bytes(), &sequence.to_le_bytes()].concat();
        let disk = with_log(&disk, &log_of(&[payloads, &[synced]].concat()));
        match (open(&disk), expected) {
            (Ok(_), None) => {}
            (Err(error), Some(expected)) => assert_eq!(
                error.to_string(),
                format!("d/blocks/index/index.log:{offset}: the block index {expected}; -reindex rebuilds it")
            ),
            (result, expected) => panic!("{expected:?}: {result:?}"),
        }
    };
    let head = || head(1, &params());
    check(&[head(), header(1)], None);
    // The same without a record that marks it as durable: the error names the end of the durable part.
    let disk = SimDisk::new(1);
    open(&disk).unwrap();
    let text = open(&with_log(&disk, &log_of(&[head(), header(2)]))).unwrap_err().to_string();
    assert!(text.starts_with("d/blocks/index/index.log:64: the block index has a header out of order"), "{text}");
    check(&[b"lydian index".to_vec()], Some("does not start with its head"));
    check(&[vec![7; 52]], Some("does not start with its head"));
    check(&[head(), vec![99]], Some("has an entry of an unknown kind"));
    check(&[head(), header(1)[..80].to_vec()], Some("has a truncated entry"));
    check(&[head(), header(2)], Some("has a header out of order"));
    check(&[head(), header(1), header(2)], Some("has a header out of order"));
    for (tag, rest) in [(2, 16), (3, 16), (4, 0), (5, 0), (6, 0), (7, 0), (8, 0), (12, 8)] {
        check(&[head(), about(tag, 1, rest)], Some("names an unknown block"));
        check(&[head(), header(1), about(tag, 1, rest)], None);
    }
    check(&[head(), about(5, 0, 0)], Some("marks the genesis block as invalid"));
    check(&[head(), about(9, 0, 9)], Some("has a truncated entry"));
    check(&[head(), about(9, 0, 11)], Some("has an invalid path"));
    let pruned = |file: u32| [&[10][..], &file.to_le_bytes()].concat();
    check(&[head(), pruned(FILE_NUMBER_MAX)], None);
    check(&[head(), pruned(FILE_NUMBER_MAX + 1)], Some("has an impossible file number"));
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

/// The store writes exactly what the page prints, and reads it back as the page says.
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
    assert_eq!(node.counts, Some(BlockCounts::of(&block)));
}

/// A log of version 1 becomes one of the current version when it is opened, and keeps its entries.
#[test]
fn an_older_log_gets_the_new_version() {
    let block = Maker::new().block(params().genesis_hash, 0);
    let (disk, new) = make(std::slice::from_ref(&block));
    let mut old = Vec::new();
    encode_record(&head(1, &params()), 0, &mut old);
    let head_size = old.len();
    old.extend_from_slice(&new[head_size..]);
    let disk = with_log(&disk, &old);
    for _ in 0..2 {
        let Opened { tree, remarks, .. } = open(&disk).unwrap();
        assert_eq!((tree.len(), remarks.len()), (2, 0));
        assert_eq!(read_whole(&disk, &log(), u64::MAX).unwrap()[..head_size], new[..head_size]);
    }
}

/// A log larger than the size that is read at once, with a record that is also larger.
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
