use super::limits::FILE_TRANSACTION_SIZE_MAX;
use super::*;
use lydian_disk::{Disk, DiskErrorKind, Fault, SimDisk, read_whole};
use lydian_primitives::{Transaction, Txid};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const PATH: &str = "/data/mempool.dat";

/// A transaction, parsed.
fn transaction(tag: u8, script: usize, with_witness: bool) -> Transaction {
    let mut bytes = vec![2, 0, 0, 0];
    if with_witness {
        bytes.extend([0, 1]);
    }
    bytes.push(1);
    bytes.extend([tag; 36]);
    bytes.extend([0, 0xff, 0xff, 0xff, 0xff, 1]);
    bytes.extend(1u64.to_le_bytes());
    match script {
        0..0xfd => bytes.push(u8::try_from(script).unwrap()),
        0xfd..0x1_0000 => {
            bytes.push(0xfd);
            bytes.extend(u16::try_from(script).unwrap().to_le_bytes());
        }
        _ => {
            bytes.push(0xfe);
            bytes.extend(u32::try_from(script).unwrap().to_le_bytes());
        }
    }
    bytes.resize(bytes.len() + script, 0x51);
    if with_witness {
        bytes.extend([1, 2, tag, tag]);
    }
    bytes.extend([0; 4]);
    Transaction::parse(bytes).unwrap()
}

/// The content of a file, for comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Content {
    transactions: Vec<(Vec<u8>, i64, i64)>,
    deltas: BTreeMap<[u8; 32], i64>,
    unbroadcast: BTreeSet<[u8; 32]>,
}

impl Content {
    fn encode(&self, key: Option<Key>) -> Vec<u8> {
        let parsed: Vec<Transaction> =
            self.transactions.iter().map(|(bytes, ..)| Transaction::parse(bytes.clone()).unwrap()).collect();
        let dumped = parsed.iter().zip(&self.transactions);
        let transactions =
            dumped.map(|(one, (_, time, fee_delta))| DumpedTx { tx: one.view(), time: *time, fee_delta: *fee_delta });
        let dump = Dump {
            transactions: transactions.collect(),
            deltas: self.deltas.iter().map(|(txid, delta)| (Txid(*txid), *delta)).collect(),
            unbroadcast: self.unbroadcast.iter().map(|txid| Txid(*txid)).collect(),
        };
        dump.encode(key)
    }
}

fn disk_with(bytes: &[u8]) -> SimDisk {
    let disk = SimDisk::new(1);
    disk.create_dir(Path::new("/data")).unwrap();
    disk.write_whole(Path::new(PATH), bytes).unwrap();
    disk
}

/// All records, and how the file ends.
fn read(bytes: &[u8]) -> (Content, Result<(), LoadError>) {
    let disk = disk_with(bytes);
    let mut content = Content::default();
    let mut go = || {
        let mut loader = Loader::open(&disk, Path::new(PATH))?;
        while let Some(record) = loader.next_record()? {
            match record {
                Record::Transaction { transaction, time, fee_delta } => {
                    content.transactions.push((transaction.as_bytes().to_vec(), time, fee_delta));
                }
                Record::Delta { txid, delta } => drop(content.deltas.insert(txid.0, delta)),
                Record::Unbroadcast(txid) => drop(content.unbroadcast.insert(txid.0)),
            }
        }
        assert!(loader.next_record()?.is_none(), "the end stays the end");
        Ok(())
    };
    let end = go();
    (content, end)
}

fn example() -> Content {
    let of = |tag, script, with_witness| transaction(tag, script, with_witness).as_bytes().to_vec();
    Content {
        transactions: vec![
            (of(1, 5, false), 1_700_000_000, 0),
            (of(2, 300, true), -1, i64::MIN),
            (of(3, 0, true), i64::MAX, 7),
        ],
        deltas: BTreeMap::from([([9; 32], -5), ([8; 32], i64::MAX)]),
        unbroadcast: BTreeSet::from([[7; 32]]),
    }
}

fn error(bytes: &[u8]) -> String {
    read(bytes).1.unwrap_err().to_string()
}

#[test]
fn what_is_written_is_read() {
    for key in [None, Some(Key::default()), Some(Key(*b"\x01\x80key\xff12"))] {
        let bytes = example().encode(key);
        assert_eq!(read(&bytes), (example(), Ok(())));
        let more = [&bytes[..], b"more"].concat();
        assert_eq!(read(&more), (example(), Ok(())), "as in Core, bytes behind the last record are ignored");
    }
    assert_eq!(read(&Content::default().encode(Some(Key([1; 8])))), (Content::default(), Ok(())));
}

/// The head is not obfuscated; what follows is, from its offset in the file on.
#[test]
fn the_head_of_both_versions() {
    let key = Key([1, 2, 3, 4, 5, 6, 7, 8]);
    let bytes = Content::default().encode(Some(key));
    assert_eq!(bytes[..17], *b"\x02\0\0\0\0\0\0\0\x08\x01\x02\x03\x04\x05\x06\x07\x08");
    // The 18th byte of the file meets the second byte of the key.
    assert_eq!(bytes[17..], [2, 3, 4, 5, 6, 7, 8, 1, 2, 3]);
    assert_eq!(Content::default().encode(None), *b"\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
}

#[test]
fn the_delta_of_a_transaction_in_the_mempool_is_stored_once() {
    let one = transaction(1, 5, false);
    let mut content = example();
    content.deltas.insert(one.view().txid().0, 11);
    assert_eq!(read(&content.encode(None)).0, example());
}

/// A file that ends anywhere yields the records before, and an error that names the end.
#[test]
fn a_file_cut_at_any_byte_is_an_error() {
    for key in [None, Some(Key([3, 1, 4, 1, 5, 9, 2, 6]))] {
        let bytes = example().encode(key);
        for size in 0..bytes.len() {
            let (content, end) = read(&bytes[..size]);
            assert_eq!(end.unwrap_err().to_string(), format!("{PATH} ends at byte {size}, inside a record"));
            assert!(example().transactions.starts_with(&content.transactions));
        }
    }
}

#[test]
fn heads_of_other_programs_and_versions() {
    let mut bytes = example().encode(None);
    for version in [0u64, 3, u64::MAX] {
        bytes[..8].copy_from_slice(&version.to_le_bytes());
        let expected = format!("{PATH} has version {version} at byte 0; this program reads versions 1 and 2");
        assert_eq!(error(&bytes), expected);
    }
    let mut bytes = example().encode(Some(Key([7; 8])));
    for length in [0, 7, 9, 0xfc] {
        bytes[8] = length;
        let expected = format!("{PATH}: the key at byte 8 has {length} bytes; it must have 8");
        assert_eq!(error(&bytes), expected);
    }
}

/// Counts that no file has: reading ends with the bytes, and nothing is allocated for what is missing.
#[test]
fn absurd_counts_end_with_the_file() {
    let mut bytes = example().encode(None);
    let size = bytes.len();
    bytes[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
    let (content, end) = read(&bytes);
    assert!(end.is_err());
    assert!(content.transactions.len() <= 4, "{}", content.transactions.len());
    let loader = Loader::open(&disk_with(&bytes), Path::new(PATH)).unwrap();
    assert_eq!(loader.transaction_count(), u64::MAX);
    let head = |count: &[u8]| [&Content::default().encode(None)[..16], count].concat();
    assert_eq!(error(&head(b"\xfe\xff\xff\xff\x01")), format!("{PATH} ends at byte 21, inside a record"));
    assert_eq!(
        error(&head(b"\xff\0\0\0\0\0\0\0\x80")),
        format!("{PATH}: a CompactSize of 9223372036854775808 is too large at byte 16")
    );
    assert_eq!(error(&head(b"\xfd\x01\x00")), format!("{PATH}: a CompactSize is not in its shortest form at byte 16"));
    // A transaction with 2^25 inputs, of which none is there.
    let mut inputs = Content::default().encode(None);
    inputs[8] = 1;
    inputs.truncate(16);
    inputs.extend(b"\x02\0\0\0\xfe\0\0\0\x02");
    assert_eq!(error(&inputs), format!("{PATH} ends at byte {}, inside a record", inputs.len()));
    assert!(size > 100);
}

/// limit: FILE_TRANSACTION_SIZE_MAX at
/// limit: FILE_TRANSACTION_SIZE_MAX above
#[test]
fn transactions_up_to_the_size_of_a_block() {
    let overhead = transaction(1, 70_000, false).as_bytes().len() - 70_000;
    for (over, is_read) in [(0, true), (1, false)] {
        let one = transaction(1, FILE_TRANSACTION_SIZE_MAX - overhead + over, false);
        let content = Content { transactions: vec![(one.as_bytes().to_vec(), 1, 2)], ..example() };
        let bytes = content.encode(Some(Key([9; 8])));
        if is_read {
            assert_eq!(read(&bytes), (content, Ok(())));
        } else {
            let expected =
                format!("{PATH}: the transaction at byte 25 has more than {FILE_TRANSACTION_SIZE_MAX} bytes");
            assert_eq!(error(&bytes), expected);
        }
    }
}

/// However large the file, the reader holds a bounded part of it.
#[test]
fn memory_is_bounded() {
    let one = transaction(1, 50_000, true);
    let content = Content { transactions: vec![(one.as_bytes().to_vec(), 1, 2); 200], ..Content::default() };
    let disk = disk_with(&content.encode(None));
    let mut loader = Loader::open(&disk, Path::new(PATH)).unwrap();
    while loader.next_record().unwrap().is_some() {
        assert!(loader.buffered() <= 256 << 10, "{}", loader.buffered());
    }
}

/// The disk fails or loses power at every operation of a save: the old file stays, or the new one is there.
#[test]
fn a_failed_save_keeps_the_old_file() {
    let path = Path::new(PATH);
    let (old, new) = (Content::default().encode(None), example().encode(Some(Key([5; 8]))));
    let save = |disk: &SimDisk| {
        let one = example();
        let parsed: Vec<Transaction> =
            one.transactions.iter().map(|(bytes, ..)| Transaction::parse(bytes.clone()).unwrap()).collect();
        let transactions = parsed.iter().zip(&one.transactions);
        let transactions = transactions.map(|(tx, (_, time, fee_delta))| DumpedTx {
            tx: tx.view(),
            time: *time,
            fee_delta: *fee_delta,
        });
        let dump = Dump {
            transactions: transactions.collect(),
            deltas: one.deltas.iter().map(|(txid, delta)| (Txid(*txid), *delta)).collect(),
            unbroadcast: one.unbroadcast.iter().map(|txid| Txid(*txid)).collect(),
        };
        dump.save(disk, path, Some(Key([5; 8])))
    };
    let whole = disk_with(&old);
    let begin = whole.operation_count();
    assert_eq!(save(&whole), Ok(new.len() as u64));
    let operations = whole.operation_count() - begin;
    assert!(operations >= 1);
    let (mut kept, mut replaced) = (0, 0);
    for fault in [Fault::CrashBefore, Fault::CrashInside, Fault::CrashAfter, Fault::NoSpace, Fault::Io] {
        for operation in 0..operations {
            let disk = disk_with(&old);
            disk.fail_at(disk.operation_count() + operation, fault);
            let result = save(&disk);
            for seed in 0..4 {
                let after = if disk.is_crashed() { disk.power_loss(seed) } else { disk.clone() };
                let found = read_whole(&after, path, 1 << 20).unwrap();
                assert!(found == old || found == new, "{fault:?} at {operation}");
                assert!(result.is_err() || found == new);
                match found == old {
                    true => kept += 1,
                    false => replaced += 1,
                }
            }
        }
    }
    assert!(kept > 0 && replaced > 0, "{kept} {replaced}");
}

#[test]
fn a_failing_read_is_an_error() {
    let disk = disk_with(&example().encode(None));
    disk.fail_read_at(disk.read_count());
    let error = Loader::open(&disk, Path::new(PATH)).unwrap_err();
    assert!(matches!(&error.problem, LoadProblem::Disk(error) if error.kind == DiskErrorKind::Io), "{error}");
    let error = Loader::open(&SimDisk::new(0), Path::new(PATH)).unwrap_err();
    assert!(matches!(&error.problem, LoadProblem::Disk(error) if error.kind == DiskErrorKind::NotFound), "{error}");
}

fn contents() -> impl Strategy<Value = Content> {
    let transaction = (any::<u8>(), 0..100_000usize, any::<bool>(), any::<i64>(), any::<i64>()).prop_map(
        |(tag, script, witness, time, delta)| (transaction(tag, script, witness).as_bytes().to_vec(), time, delta),
    );
    let deltas = prop::collection::btree_map(any::<[u8; 32]>(), any::<i64>(), 0..300);
    let unbroadcast = prop::collection::btree_set(any::<[u8; 32]>(), 0..300);
    (prop::collection::vec(transaction, 0..8), deltas, unbroadcast)
        .prop_map(|(transactions, deltas, unbroadcast)| Content { transactions, deltas, unbroadcast })
}

proptest! {
    #[test]
    fn any_content_survives_a_round_trip(content in contents(), key in any::<Option<[u8; 8]>>()) {
        prop_assert_eq!(read(&content.encode(key.map(Key))), (content, Ok(())));
    }

    /// Any bytes: records, or an error of one sentence.
    #[test]
    fn any_bytes_end_in_records_or_an_error(mut bytes in prop::collection::vec(any::<u8>(), 0..400), version in 0..4u8) {
        if bytes.len() > 9 {
            bytes[..8].copy_from_slice(&u64::from(version).to_le_bytes());
            bytes[8] = if version == 2 { 8 } else { bytes[8] % 4 };
        }
        if let (_, Err(error)) = read(&bytes) {
            prop_assert!(!error.to_string().contains('\n') && error.to_string().starts_with(PATH));
            prop_assert!(error.offset <= bytes.len() as u64);
        }
    }
}
