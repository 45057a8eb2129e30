//! The cases of Core's `policyestimator_tests.cpp`, and files: whole, cut at every byte, and with wrong numbers.

use crate::limits::{BUCKETS_MAX, BUCKETS_MIN, CONFIRMS_MAX, FILE_SIZE_MAX};
use crate::{
    CodecError, Corrupt, Estimator, Event, FEE_ESTIMATES_FILE, FeeEstimates, Horizon, Loaded, Mode, TxInfo, load, save,
};
use lydian_disk::{Disk, Fault, SimDisk};
use lydian_primitives::{Txid, write_compact_size};
use std::path::Path;

const FILE: &str = "/data/fee_estimates.dat";

fn txid(number: u64) -> Txid {
    let mut bytes = [7; 32];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    Txid(bytes)
}

/// The world of Core's test: 10 feerates, from the lowest to ten times that. A transaction has 188 virtual bytes.
#[derive(Default)]
struct World {
    estimator: Estimator,
    height: u32,
    made: u64,
    waiting: [Vec<TxInfo>; 10],
}

const BASE_FEE: i64 = 2_000;
const DELTA: i64 = 100;
const BASE_RATE: i64 = BASE_FEE * 1_000 / 188;

impl World {
    /// Four transactions of each feerate enter.
    fn enter(&mut self) {
        for (fee, waiting) in (1..).zip(&mut self.waiting) {
            for _ in 0..4 {
                self.made += 1;
                let feerate = BASE_FEE * fee * 1_000 / 188;
                let tx = TxInfo { txid: txid(self.made), feerate, height: self.height };
                self.estimator.apply(&Event::Added { tx, counts: true });
                waiting.push(tx);
            }
        }
    }

    /// A block with all that wait of these many highest feerates.
    fn block(&mut self, feerates: usize) {
        self.height += 1;
        let txs = self.waiting.iter_mut().rev().take(feerates).flat_map(std::mem::take).collect();
        self.estimator.apply(&Event::Block { height: self.height, txs });
    }

    /// 200 blocks, where higher feerates are included more often.
    fn first_200() -> World {
        let mut world = World::default();
        while world.height < 200 {
            world.enter();
            world.block(world.height as usize % 10 + 1);
        }
        world
    }

    /// Core's `estimateFee`, which returns 0 for no answer.
    fn fee(&self, target: u32) -> i64 {
        if target <= 1 {
            return 0;
        }
        self.estimator.raw(target, 0.95, Horizon::Medium).unwrap().0.unwrap_or(0)
    }
}

fn is_near(fee: i64, other: i64) -> bool {
    (fee - other).abs() < DELTA
}

/// Core's `BlockPolicyEstimates`, part by part.
#[test]
fn estimates_are_those_of_cores_test() {
    let mut world = World::default();
    while world.height < 200 {
        world.enter();
        world.block(world.height as usize % 10 + 1);
        if world.height == 3 {
            // Three buckets together have enough data points.
            assert!(world.fee(1) == 0 && is_near(world.fee(2), 9 * BASE_RATE));
        }
    }
    let original: Vec<i64> = (0..=48).map(|target| world.fee(target)).collect();
    for (target, factor) in (1..10).zip((2_i64..=10).rev()) {
        assert!(target <= 2 || original[target] <= original[target - 1], "{original:?}");
        assert!(target % 2 == 1 || is_near(original[target], factor * BASE_RATE), "{target}: {original:?}");
    }
    // 50 blocks without transactions change little.
    while world.height < 250 {
        world.block(0);
    }
    assert!((2..10).all(|target| is_near(world.fee(target), original[target as usize])));
    // In 15 blocks many transactions enter, and none is mined: estimates rise.
    let is_higher = |world: &World, target: u32| {
        let fee = world.fee(target);
        fee == 0 || fee > original[target as usize] - DELTA
    };
    while world.height < 265 {
        world.enter();
        world.block(0);
    }
    assert!((1..10).all(|target| is_higher(&world, target)));
    // All those are mined: estimates are still not below the original ones.
    world.block(10);
    assert!(world.fee(1) == 0 && (2..10).all(|target| is_higher(&world, target)));
    // In 400 blocks everything is mined at once: estimates are below the original ones.
    while world.height < 666 {
        world.enter();
        world.block(10);
    }
    assert_eq!(world.fee(1), 0);
    for target in 2..9 {
        assert!(world.fee(target) < original[target as usize] - DELTA, "{target}");
    }
}

#[test]
fn without_data_there_is_no_estimate() {
    let estimator = Estimator::default();
    for mode in [Mode::Economical, Mode::Conservative] {
        for target in [0, 1, 2, 1_008, 1_009, u32::MAX] {
            assert_eq!(estimator.smart(target, mode).feerate, None, "{target}");
        }
    }
    assert_eq!(estimator.smart(6, Mode::Economical).target, 0);
    assert_eq!(Horizon::ALL.map(|horizon| estimator.highest_target(horizon)), [12, 48, 1_008]);
    assert!(estimator.raw(0, 0.5, Horizon::Short).is_none() && estimator.raw(13, 0.5, Horizon::Short).is_none());
}

#[test]
fn what_does_not_count_is_not_tracked() {
    let mut estimator = Estimator::default();
    let tx = |number, height| TxInfo { txid: txid(number), feerate: 5_000, height };
    estimator.apply(&Event::Added { tx: tx(1, 0), counts: false });
    estimator.apply(&Event::Added { tx: tx(2, 1), counts: true });
    assert_eq!(estimator.tracked(), 0, "a transaction with parents, and one above the last block");
    estimator.apply(&Event::Added { tx: tx(3, 0), counts: true });
    estimator.apply(&Event::Added { tx: tx(3, 0), counts: true });
    assert_eq!(estimator.tracked(), 1);
    estimator.apply(&Event::Block { height: 1, txs: vec![tx(1, 0), tx(2, 1), tx(3, 0)] });
    assert_eq!(estimator.tracked(), 0);
    let before = estimator.encode();
    // A block of another chain at the same height.
    estimator.apply(&Event::Block { height: 1, txs: vec![tx(3, 0)] });
    assert_eq!(estimator.encode(), before);
}

#[test]
fn a_transaction_that_leaves_after_a_period_counts_as_failed() {
    let mut estimator = Estimator::default();
    let tx = TxInfo { txid: txid(1), feerate: 5_000, height: 0 };
    estimator.apply(&Event::Block { height: 1, txs: Vec::new() });
    estimator.apply(&Event::Added { tx: TxInfo { height: 1, ..tx }, counts: true });
    for height in 2..=3 {
        estimator.apply(&Event::Block { height, txs: Vec::new() });
    }
    let failed =
        |estimator: &Estimator, target, horizon| estimator.raw(target, 0.5, horizon).unwrap().1.fail.left_mempool;
    assert_eq!(failed(&estimator, 2, Horizon::Short), 0.0);
    estimator.flush_unconfirmed();
    let of = |target, horizon| failed(&estimator, target, horizon);
    assert_eq!((of(2, Horizon::Short), of(3, Horizon::Short)), (1.0, 0.0), "two periods of one block");
    assert_eq!((of(2, Horizon::Medium), of(3, Horizon::Medium)), (1.0, 0.0), "one period of two blocks");
    assert_eq!(of(24, Horizon::Long), 0.0, "less than a period");
    assert_eq!(estimator.tracked(), 0);
}

#[test]
fn a_file_has_everything_but_the_unconfirmed() {
    let mut world = World::first_200();
    world.estimator.flush_unconfirmed();
    let disk = SimDisk::new(0);
    disk.create_dir(Path::new("/data")).unwrap();
    let (fresh, loaded) = load(&disk, Path::new(FILE), 0, false);
    assert_eq!((loaded, fresh.encode()), (Loaded::Missing, Estimator::default().encode()));
    save(&disk, Path::new(FILE), &world.estimator).unwrap();
    let (again, loaded) = load(&disk, Path::new(FILE), 0, false);
    assert_eq!((loaded, again.encode().len()), (Loaded::Read, world.estimator.encode().len()));
    for target in 1..=48 {
        assert_eq!(
            again.raw(target, 0.95, Horizon::Medium).unwrap().0,
            world.estimator.raw(target, 0.95, Horizon::Medium).unwrap().0,
            "{target}"
        );
    }
    assert!((1..=1_008).any(|target| again.smart(target, Mode::Economical).feerate.is_some()));
}

fn decode(bytes: &[u8]) -> Result<(), CodecError> {
    Estimator::decode(bytes).map(|_| ())
}

#[test]
fn a_file_that_is_cut_anywhere_is_refused_and_more_bytes_are_ignored() {
    for (bytes, step) in [(Numbers::default().bytes(), 1), (World::first_200().estimator.encode(), 1_009)] {
        for end in (0..bytes.len()).step_by(step) {
            let error = decode(&bytes[..end]).unwrap_err();
            assert_eq!(error.to_string(), "AutoFile::read: end of file: iostream error", "{end}");
        }
        assert_eq!(decode(&bytes), Ok(()));
        assert_eq!(decode(&[bytes, vec![9]].concat()), Ok(()));
    }
}

#[test]
fn other_versions_are_named_and_their_files_are_kept() {
    let bytes = World::first_200().estimator.encode();
    let with = |version: i32| [&version.to_le_bytes()[..], &bytes[4..]].concat();
    assert_eq!(decode(&with(309_899)), Err(CodecError::OldVersion(309_899)));
    assert_eq!(decode(&with(-1)), Err(CodecError::OldVersion(-1)));
    assert_eq!(decode(&with(309_901)).unwrap_err().to_string(), "File version (309901) too high to be read.");
    let path = Path::new(FILE);
    let (_, lines) = is_kept(&with(309_901));
    assert!(lines[0].ends_with("(non-fatal): File version (309901) too high to be read."), "{lines:?}");
    let (_, lines) = is_kept(&with(309_899));
    assert_eq!(lines[0], "Incompatible old fee estimation data (non-fatal). Version: 309899");
    let (disk, lines) = is_kept(&bytes[..bytes.len() - 1]);
    assert_eq!(lines[2], format!("Kept the contents of {FILE} as {FILE}.bak."));
    // One that is read is not copied.
    disk.write_whole(path, &bytes).unwrap();
    assert_eq!(load(&disk, path, 0, false).1, Loaded::Read);
    assert_eq!(backup(&disk), bytes[..bytes.len() - 1]);
}

fn backup(disk: &SimDisk) -> Vec<u8> {
    lydian_disk::read_whole(disk, &Path::new(FILE).with_file_name("fee_estimates.dat.bak"), 1 << 20).unwrap()
}

/// Loads a file that cannot be decoded, and replaces it. Returns the disk and what was logged.
fn is_kept(bytes: &[u8]) -> (SimDisk, Vec<String>) {
    let (disk, path) = (SimDisk::new(0), Path::new(FILE));
    disk.create_dir(Path::new("/data")).unwrap();
    disk.write_whole(path, bytes).unwrap();
    let (_, loaded) = load(&disk, path, 0, false);
    let (is_warning, lines) = loaded.log_lines(path);
    assert!(is_warning && loaded.may_replace());
    save(&disk, path, &Estimator::default()).unwrap();
    assert_eq!(backup(&disk), bytes);
    (disk, lines)
}

/// A file that could not be opened was once taken for a missing one, and replaced at the end.
#[test]
fn a_file_that_cannot_be_opened_or_kept_is_not_replaced() {
    let (disk, path) = (SimDisk::new(0), Path::new(FILE));
    disk.create_dir(path).unwrap();
    let (_, loaded) = load(&disk, path, 0, false);
    let (is_warning, lines) = loaded.log_lines(path);
    assert!(matches!(loaded, Loaded::Unopened(_)) && !loaded.may_replace() && is_warning, "{loaded:?}");
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].starts_with(&format!("Cannot open fee estimates: {FILE}: ")), "{lines:?}");
    assert_eq!(lines[1], format!("Leaving {FILE} as it is: the estimates of this node are not saved."));
    // Every operation fails once: what is on the disk is read, kept or left alone.
    for operation in 0..8 {
        let disk = SimDisk::new(0);
        disk.create_dir(Path::new("/data")).unwrap();
        disk.write_whole(path, b"damaged").unwrap();
        disk.fail_at(disk.operation_count() + operation, Fault::Io);
        let (_, loaded) = load(&disk, path, 0, false);
        let is_there = lydian_disk::read_whole(&disk, path, 1 << 20).unwrap() == b"damaged";
        assert!(is_there && (!loaded.may_replace() || backup(&disk) == b"damaged"), "{operation}: {loaded:?}");
        assert_eq!(loaded.log_lines(path).1.len(), if loaded.may_replace() { 3 } else { 4 }, "{loaded:?}");
    }
}

/// limit: FILE_SIZE_MAX at
/// limit: FILE_SIZE_MAX above
#[test]
fn the_rest_of_a_large_file_is_not_read() {
    let (disk, path) = (SimDisk::new(0), Path::new(FILE));
    disk.create_dir(Path::new("/data")).unwrap();
    // A vector that ends with the largest file that is read.
    let head = [&309_900_i32.to_le_bytes()[..], &[9, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0], &[0xfe]].concat();
    let size = usize::try_from(FILE_SIZE_MAX).unwrap();
    let count = (size - head.len() - 4) / 8;
    for (more, expected) in [
        (0, CodecError::Corrupt(Corrupt::Buckets)),
        (1, CodecError::Parse(lydian_primitives::ParseErrorKind::UnexpectedEnd { missing: 8 })),
    ] {
        let count = u32::try_from(count + more).unwrap();
        let mut bytes = [&head[..], &count.to_le_bytes()].concat();
        bytes.resize(size + 8, 0);
        disk.write_whole(path, &bytes).unwrap();
        let Loaded::Undecodable { error, kept } = load(&disk, path, 0, false).1 else { panic!("{more}") };
        assert_eq!(std::mem::discriminant(&error), std::mem::discriminant(&expected), "{more}");
        assert!(kept.is_err(), "{more}: it is larger than what is read");
    }
}

/// A file with these numbers.
#[derive(Clone)]
struct Numbers {
    range: (u32, u32, u32),
    buckets: usize,
    decay: f64,
    scale: u32,
    feerates: usize,
    counts: usize,
    confirmed: (usize, usize),
    failed: (usize, usize),
}

impl Default for Numbers {
    fn default() -> Numbers {
        let range = (1, 1, 1);
        Numbers { range, buckets: 3, decay: 0.5, scale: 2, feerates: 3, counts: 3, confirmed: (4, 3), failed: (4, 3) }
    }
}

impl Numbers {
    fn bytes(&self) -> Vec<u8> {
        let mut out = 309_900_i32.to_le_bytes().to_vec();
        let (first, last, best) = self.range;
        [best, first, last].iter().for_each(|height| out.extend(height.to_le_bytes()));
        let vector = |out: &mut Vec<u8>, count: usize| {
            write_compact_size(out, count);
            (0..count).for_each(|number| out.extend((number as f64).to_le_bytes()));
        };
        vector(&mut out, self.buckets);
        for _ in 0..3 {
            out.extend(self.decay.to_le_bytes());
            out.extend(self.scale.to_le_bytes());
            vector(&mut out, self.feerates);
            vector(&mut out, self.counts);
            for (rows, row) in [self.confirmed, self.failed] {
                write_compact_size(&mut out, rows);
                (0..rows).for_each(|_| vector(&mut out, row));
            }
        }
        out
    }

    fn result(&self) -> Option<Corrupt> {
        match decode(&self.bytes()) {
            Ok(()) => None,
            Err(CodecError::Corrupt(corrupt)) => Some(corrupt),
            Err(other) => panic!("{other}"),
        }
    }

    /// With this number of buckets in every vector.
    fn with_buckets(count: usize) -> Numbers {
        let (one, rows) = (Numbers::default(), (4, count));
        Numbers { buckets: count, feerates: count, counts: count, confirmed: rows, failed: rows, ..one }
    }

    fn with_periods(periods: usize, scale: u32) -> Numbers {
        Numbers { confirmed: (periods, 3), failed: (periods, 3), scale, ..Numbers::default() }
    }
}

#[test]
fn numbers_that_do_not_fit_are_refused_in_cores_words() {
    let one = Numbers::default;
    assert_eq!(one().result(), None);
    let cases = [
        (Numbers { range: (2, 1, 3), ..one() }, Corrupt::History),
        (Numbers { range: (1, 4, 3), ..one() }, Corrupt::History),
        (Numbers { decay: 0.0, ..one() }, Corrupt::Decay),
        (Numbers { decay: 1.0, ..one() }, Corrupt::Decay),
        (Numbers { scale: 0, ..one() }, Corrupt::Scale),
        (Numbers { feerates: 2, ..one() }, Corrupt::FeerateBuckets),
        (Numbers { counts: 4, ..one() }, Corrupt::CountBuckets),
        (Numbers { confirmed: (0, 3), ..one() }, Corrupt::Confirms),
        (Numbers { confirmed: (4, 2), ..one() }, Corrupt::ConfirmedBuckets),
        (Numbers { failed: (3, 3), ..one() }, Corrupt::FailedPeriods),
        (Numbers { failed: (4, 2), ..one() }, Corrupt::FailedBuckets),
    ];
    for (numbers, expected) in cases {
        assert_eq!(numbers.result(), Some(expected));
        assert!(CodecError::from(expected).to_string().starts_with("Corrupt estimates file. "));
    }
}

/// limit: BUCKETS_MIN at
/// limit: BUCKETS_MIN below
/// limit: BUCKETS_MAX at
/// limit: BUCKETS_MAX above
#[test]
fn a_file_has_a_number_of_buckets_within_bounds() {
    for (count, expected) in [
        (BUCKETS_MIN, None),
        (BUCKETS_MIN - 1, Some(Corrupt::Buckets)),
        (BUCKETS_MAX, None),
        (BUCKETS_MAX + 1, Some(Corrupt::Buckets)),
    ] {
        assert_eq!(Numbers::with_buckets(count).result(), expected, "{count}");
    }
}

/// limit: CONFIRMS_MAX at
/// limit: CONFIRMS_MAX above
#[test]
fn a_file_tracks_a_week_at_most() {
    let most = u32::try_from(CONFIRMS_MAX).unwrap();
    for (periods, scale, expected) in [
        (1_008, 1, None),
        (1_009, 1, Some(Corrupt::Confirms)),
        (1, most, None),
        (1, most + 1, Some(Corrupt::Confirms)),
        (2, u32::MAX, Some(Corrupt::Confirms)),
    ] {
        assert_eq!(Numbers::with_periods(periods, scale).result(), expected, "{periods} of {scale}");
    }
}

/// Files that Core accepts, with horizons and buckets of any size: every question has an answer.
#[test]
fn estimates_of_strange_files_do_not_fail() {
    for (periods, scale) in [(1, 1), (1, 1_008), (1_008, 1), (3, 7)] {
        for decay in [0.5, f64::NAN, f64::MIN_POSITIVE] {
            let numbers = Numbers { decay, range: (1, 4_000, u32::MAX - 3), ..Numbers::with_periods(periods, scale) };
            let mut estimator = Estimator::decode(&numbers.bytes()).unwrap();
            let tx = TxInfo { txid: txid(1), feerate: i64::MAX, height: u32::MAX - 3 };
            estimator.apply(&Event::Added { tx, counts: true });
            estimator.apply(&Event::Block { height: u32::MAX - 1, txs: vec![tx] });
            for target in 0..=1_010 {
                estimator.smart(target, Mode::Economical);
                estimator.smart(target, Mode::Conservative);
                for horizon in Horizon::ALL {
                    estimator.raw(target, 0.0, horizon);
                }
            }
            assert!(decode(&estimator.encode()).is_ok());
        }
    }
}

#[test]
fn a_node_names_its_file_as_core_does() {
    assert_eq!(FEE_ESTIMATES_FILE, "fee_estimates.dat");
    let estimates = FeeEstimates::new(World::first_200().estimator);
    assert_eq!(estimates.highest_target(Horizon::Long), 1_008);
    let (is_warning, lines) = Loaded::TooOld { hours: 61 }.log_lines(Path::new("/x"));
    assert!(is_warning && lines[0].starts_with("Fee estimation file /x too old (age=61 > 60 hours)"), "{lines:?}");
}
