//! The results of the first pass for intact and damaged files.

use crate::common::{MAIN, MemoryDisk, TEST, block, chain, record, scan, sentences};
use lydian_chain::limits::{DETECT_SIZE_MAX, OPEN_FILES_MAX, RECORD_SIZE_MAX, RECORD_SIZE_MIN, REMARKS_MAX};
use lydian_chain::{BlockFile, BlockFiles, Obfuscation, ReadError, find_block_files};
use lydian_primitives::{BlockHash, Height};
use std::path::Path;

/// The records of a chain of three blocks, and its genesis hash.
fn three() -> (BlockHash, Vec<Vec<u8>>) {
    let blocks = chain(1, 3);
    (blocks[0].0, blocks.iter().map(|(_, bytes)| record(MAIN, bytes)).collect())
}

/// Scans the concatenated parts as one file and compares the number of blocks and the remarks.
fn check(parts: &[&[u8]], genesis: BlockHash, blocks: usize, expected: &[&str]) {
    let (index, ordered) = scan(&[&parts.concat()], genesis);
    let missing = ordered.missing_parents.iter().map(ToString::to_string);
    assert_eq!(sentences(&index).into_iter().chain(missing).collect::<Vec<_>>(), expected);
    assert_eq!(ordered.blocks.len(), blocks);
}

#[test]
fn whole_files_say_nothing() {
    let (genesis, r) = three();
    check(&[&r[0], &r[1], &r[2]], genesis, 3, &[]);
    // Core allocates files in chunks, so zeros at the end are normal.
    check(&[&r[0], &r[1], &r[2], &[0; 1000]], genesis, 3, &[]);
    check(&[&[0; 16]], genesis, 0, &[]);
}

#[test]
fn foreign_bytes_are_skipped_and_named() {
    let (genesis, r) = three();
    let foreign = "a:89: 5 bytes that belong to no block were skipped (they begin with 0102030405)";
    check(&[&r[0], &[1, 2, 3, 4, 5], &r[1], &r[2]], genesis, 3, &[foreign]);
    check(&[&r[0], &[0; 7], &r[1], &r[2]], genesis, 3, &["a:89: 7 zero bytes between two blocks were skipped"]);
    let tail = "a:267: 3 bytes that belong to no block were skipped (they begin with 010203)";
    check(&[&r[0], &r[1], &r[2], &[1, 2, 3]], genesis, 3, &[tail]);
    // The start of a magic directly before a complete magic.
    let begin = "a:89: 3 bytes that belong to no block were skipped (they begin with f9beb4)";
    check(&[&r[0], &MAIN[..3], &r[1], &r[2]], genesis, 3, &[begin]);
    // A gap longer than the size that is read at once, with the next record across the boundary.
    for size in 262_130..262_150 {
        let (index, ordered) = scan(&[&[&r[0][..], &vec![9; size], &r[1], &r[2]].concat()], genesis);
        assert_eq!((ordered.blocks.len(), index.remarks.len()), (3, 1), "gap of {size}");
    }
}

/// limit: RECORD_SIZE_MIN at
/// limit: RECORD_SIZE_MIN above
/// limit: RECORD_SIZE_MAX at
/// limit: RECORD_SIZE_MAX above
#[test]
fn lengths_no_block_has_are_no_records() {
    let with_length = |length: u32| {
        let (hash, mut bytes) = block(BlockHash::ZERO, 5);
        bytes.resize(length as usize, 0);
        (hash, [&MAIN[..], &length.to_le_bytes(), &bytes].concat())
    };
    for length in [RECORD_SIZE_MIN, RECORD_SIZE_MIN + 1, RECORD_SIZE_MAX] {
        let (genesis, file) = with_length(length);
        check(&[&file], genesis, 1, &[]);
    }
    let (genesis, r) = three();
    for (length, size) in [(RECORD_SIZE_MIN - 1, 16), (RECORD_SIZE_MAX + 1, 16), (u32::MAX, 16)] {
        let file = [&r[0][..], &MAIN, &length.to_le_bytes(), &[9; 8], &r[1], &r[2]].concat();
        let bad = format!(
            "a:89: {size} bytes were skipped: a block of {length} bytes is announced there, and blocks have 80 to 4000000"
        );
        check(&[&file], genesis, 3, &[&bad]);
    }
}

#[test]
fn a_torn_last_record_is_named() {
    let (genesis, r) = three();
    for kept in [8, 50, 88] {
        let missing = 89 - kept;
        let torn = format!(
            "a:178: the last block is cut off: 81 bytes are announced, and the file ends {missing} bytes too early"
        );
        check(&[&r[0], &r[1], &r[2][..kept]], genesis, 2, &[&torn]);
    }
    let stub = "a:178: 5 bytes that belong to no block were skipped (they begin with f9beb4d951)";
    check(&[&r[0], &r[1], &r[2][..5]], genesis, 2, &[stub]);
}

#[test]
fn blocks_of_another_chain_are_recognised() {
    let (genesis, r) = three();
    let other = record(TEST, &block(BlockHash::ZERO, 9).1);
    let sentence = "89 bytes were skipped that hold blocks of another chain: test, whose magic is 0b110907";
    check(&[&other], genesis, 0, &[&format!("a:0: {sentence}")]);
    check(&[&r[0], &other, &r[1], &r[2]], genesis, 3, &[&format!("a:89: {sentence}")]);
}

#[test]
fn order_is_by_height_whatever_the_files_say() {
    let blocks = chain(1, 5);
    let records: Vec<_> = blocks.iter().map(|(_, bytes)| record(MAIN, bytes)).collect();
    let (side, side_bytes) = block(blocks[1].0, 77);
    let (a, b) = (
        [&records[4][..], &records[2], &record(MAIN, &side_bytes)].concat(),
        [&records[3][..], &records[0], &records[1]].concat(),
    );
    let (index, ordered) = scan(&[&a, &b], blocks[0].0);
    assert_eq!(sentences(&index), Vec::<String>::new());
    let order: Vec<_> = ordered.blocks.iter().map(|placed| (placed.height.0, placed.record.hash)).collect();
    let expected = [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4)].map(|(height, at)| (height, blocks[at].0));
    assert_eq!(order[..3], expected[..3]);
    assert_eq!(order[3], (2, side), "equal heights in file order");
    assert_eq!(order[4..], expected[3..]);

    // The genesis block itself may be missing.
    let (_, ordered) = scan(&[&[&records[2][..], &records[1]].concat()], blocks[0].0);
    assert_eq!(ordered.blocks.iter().map(|placed| placed.height).collect::<Vec<_>>(), [Height(1), Height(2)]);
}

#[test]
fn duplicates_and_missing_parents_are_named_with_file_and_offset() {
    let blocks = chain(1, 5);
    let r: Vec<_> = blocks.iter().map(|(_, bytes)| record(MAIN, bytes)).collect();
    let twice = format!("a:186: block {} is a duplicate of the one at a:97", blocks[1].0);
    check(&[&r[0], &r[1], &r[1], &r[2]], blocks[0].0, 4, &[&twice]);
    let missing = format!(
        "a:97: block {} names parent {}, which is in none of the files; it and the 2 blocks that follow from it were not verified",
        blocks[2].0, blocks[1].0
    );
    check(&[&r[0], &r[2], &r[3], &r[4]], blocks[0].0, 1, &[&missing]);
    let alone = format!(
        "a:8: block {} names parent {}, which is in none of the files; it was not verified",
        blocks[3].0, blocks[2].0
    );
    check(&[&r[3]], blocks[0].0, 0, &[&alone]);
}

/// limit: REMARKS_MAX at
/// limit: REMARKS_MAX above
#[test]
fn remarks_are_limited_and_counted() {
    let blocks = chain(1, REMARKS_MAX + 2);
    for (count, left_out) in [(REMARKS_MAX, 0), (REMARKS_MAX + 1, 1)] {
        let mut file = Vec::new();
        for (_, bytes) in &blocks[..=count] {
            file.extend_from_slice(&record(MAIN, bytes));
            file.push(1);
        }
        file.pop();
        let (index, _) = scan(&[&file], blocks[0].0);
        assert_eq!((index.remarks.len(), index.remarks_left_out), (REMARKS_MAX, left_out));
    }
}

/// limit: OPEN_FILES_MAX at
/// limit: OPEN_FILES_MAX above
#[test]
fn blocks_are_read_from_more_files_than_are_open_at_once() {
    for count in [OPEN_FILES_MAX, OPEN_FILES_MAX + 1] {
        let blocks = chain(1, count);
        let names: Vec<_> = (0..count).map(|i| format!("blk0000{i}.dat")).collect();
        let files: Vec<_> =
            names.iter().map(String::as_str).zip(blocks.iter().map(|(_, bytes)| record(MAIN, bytes))).collect();
        let disk = MemoryDisk(files.iter().map(|(name, bytes)| (Path::new("d").join(name), bytes.clone())).collect());
        let mut files = BlockFiles::new(&disk, find_block_files(&disk, Path::new("d")).unwrap());
        let index = files.scan(MAIN, &mut |_, _| {}).unwrap();
        for round in 0..2 {
            for (record, (hash, bytes)) in index.records.iter().zip(&blocks) {
                assert_eq!(files.read_raw(record).unwrap().as_bytes(), bytes, "round {round}");
                assert_eq!(record.hash, *hash);
            }
        }
        assert_eq!(index.records.len(), count);
    }
}

/// limit: DETECT_SIZE_MAX at
/// limit: DETECT_SIZE_MAX above
#[test]
fn the_chain_is_recognised_by_its_magic() {
    let (_, r) = three();
    let detect = |bytes: &[u8]| {
        let disk = MemoryDisk::with(&[("a", bytes)]);
        let file = BlockFile { path: "a".into(), key: Obfuscation::NONE };
        BlockFiles::new(&disk, vec![file]).detect_magic(0)
    };
    assert_eq!(detect(&r[0]), Ok(MAIN));
    assert_eq!(detect(&record(TEST, &block(BlockHash::ZERO, 9).1)), Ok(TEST));
    let size = usize::try_from(DETECT_SIZE_MAX).unwrap();
    assert_eq!(detect(&[&vec![0; size - 8], &r[0][..]].concat()), Ok(MAIN));
    let error = detect(&[&vec![0; size - 7], &r[0][..]].concat()).unwrap_err();
    assert!(matches!(error, ReadError::NoMagic { .. }), "{error}");
    assert_eq!(detect(b"").unwrap_err().to_string(), "a: the file is empty");
    assert_eq!(
        detect(b"Dear Sir or Madam").unwrap_err().to_string(),
        "a:0: the file begins with 4465617220536972 and no block of a known chain follows in its first 17 bytes"
    );
}

#[test]
fn directories_are_read_in_the_order_of_core_with_its_key() {
    let (genesis, r) = three();
    let key = Obfuscation::new([0xd1, 0x0e, 0x33, 0x47, 0x55, 0x60, 0x7f, 0x88]);
    let hide = |bytes: &[u8]| {
        let mut bytes = bytes.to_vec();
        key.apply(0, &mut bytes);
        bytes
    };
    let xor = [0xd1, 0x0e, 0x33, 0x47, 0x55, 0x60, 0x7f, 0x88];
    // Regression test: Core allocates files in chunks and applies its key only to what it writes, not to what it
    // allocates. Zeros on disk at the end of a real file were reported as 16 MiB of foreign bytes.
    let first = [hide(&[&r[0][..], &r[1]].concat()), vec![0; 300_000]].concat();
    let second = hide(&[&r[2][..], &[0; 30]].concat());
    let disk = MemoryDisk::with(&[
        ("d/blk100000.dat", &second),
        ("d/blk99999.dat", &first),
        ("d/rev99999.dat", b"undo"),
        ("d/xor.dat", &xor),
        ("bad/blk00000.dat", &first),
        ("bad/xor.dat", &xor[..7]),
        ("none/notes.txt", b"x"),
        ("outside/run.blk", &r[0]),
        ("outside/xor.dat", &xor),
    ]);
    let found = find_block_files(&disk, Path::new("d")).unwrap();
    assert_eq!(
        found.iter().map(|file| file.path.to_str().unwrap()).collect::<Vec<_>>(),
        ["d/blk99999.dat", "d/blk100000.dat"]
    );
    let mut files = BlockFiles::new(&disk, found);
    assert_eq!(files.detect_magic(1), Ok(MAIN));
    let mut index = files.scan(MAIN, &mut |_, _| {}).unwrap();
    assert_eq!(sentences(&index), Vec::<String>::new());
    let ordered = index.order(genesis);
    assert_eq!(ordered.blocks.len(), 3);
    for placed in &ordered.blocks {
        assert_eq!(files.read(&placed.record).unwrap().block.hash(), placed.record.hash);
    }
    let error = |path: &str| find_block_files(&disk, Path::new(path)).unwrap_err().to_string();
    assert_eq!(error("bad"), "bad/xor.dat: the key has 7 bytes, not 8");
    assert_eq!(error("none"), "none: no block files found (blk*.dat, *.blk, *.blk.zst)");
    assert_eq!(error("missing"), "missing: there is no such file or directory");
    // Core's key applies only to Core's own files.
    assert_eq!(find_block_files(&disk, Path::new("outside")).unwrap()[0].key, Obfuscation::NONE);
}

#[test]
fn damaged_records_are_named_when_they_are_read() {
    let (hash, mut bytes) = block(BlockHash::ZERO, 3);
    bytes.extend_from_slice(&[1, 2, 3]);
    let disk = MemoryDisk::with(&[("a", &record(MAIN, &bytes))]);
    let file = || vec![BlockFile { path: "a".into(), key: Obfuscation::NONE }];
    let mut files = BlockFiles::new(&disk, file());
    let index = files.scan(MAIN, &mut |_, _| {}).unwrap();
    let read = files.read(&index.records[0]).unwrap();
    assert_eq!(read.block.hash(), hash);
    let sentence = format!("a:89: 3 bytes after the last transaction of block {hash} were skipped");
    assert_eq!(read.remark.unwrap().to_string(), sentence);

    bytes[80] = 1;
    let disk = MemoryDisk::with(&[("a", &record(MAIN, &bytes))]);
    let mut files = BlockFiles::new(&disk, file());
    let error = files.read(&index.records[0]).unwrap_err().to_string();
    assert!(error.starts_with(&format!("a:8: block {hash} does not parse: ")), "{error}");

    bytes[0] ^= 1;
    let disk = MemoryDisk::with(&[("a", &record(MAIN, &bytes))]);
    let error = BlockFiles::new(&disk, file()).read(&index.records[0]).unwrap_err().to_string();
    assert_eq!(error, format!("a:8: the file has changed since it was scanned: block {hash} was here"));
}
