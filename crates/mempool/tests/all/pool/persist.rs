//! Files: the pool that is read is the one that was written, and the transactions of any file are accepted as one after
//! another.

use super::maker::random_batch;
use super::world::Alone;
use lydian_disk::SimDisk;
use lydian_mempool::files::{Dump, DumpedTx, Key};
use lydian_mempool::limits::BATCH_MAX;
use lydian_mempool::policy::Settings;
use lydian_mempool::{ImportError, ImportOptions, Imported, Report, dump, load};
use lydian_primitives::{Transaction, Txid};
use lydian_stdx::SplitMix64;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

const PATH: &str = "mempool.dat";

/// A program without a clock that stops after some questions.
#[derive(Default)]
struct Program {
    lines: RefCell<Vec<String>>,
    questions: Cell<u64>,
    stops_after: Option<u64>,
}

impl Report for Program {
    fn log(&self, line: String) {
        self.lines.borrow_mut().push(line);
    }

    fn steady_micros(&self) -> u64 {
        0
    }

    fn is_stopping(&self) -> bool {
        self.questions.set(self.questions.get() + 1);
        self.stops_after.is_some_and(|count| self.questions.get() >= count)
    }
}

fn import(world: &Alone, disk: &SimDisk, options: ImportOptions) -> Imported {
    load(&world.pool, disk, Path::new(PATH), options, &Program::default()).unwrap()
}

/// Everything that a file keeps, and the order.
fn content(world: &Alone) -> (Vec<String>, BTreeMap<Txid, i64>, BTreeSet<Txid>) {
    let snapshot = world.pool.snapshot();
    let member = |member: &&lydian_mempool::pool::Member| {
        let entry = member.entry();
        format!("{} {} {} {}", entry.txid(), entry.time(), entry.fee().0, member.modified_fee())
    };
    let members = snapshot.in_mining_order().iter().map(member).collect();
    (members, snapshot.deltas().sorted(), snapshot.unbroadcast().sorted().into_keys().collect())
}

#[test]
fn what_is_written_is_read() {
    let worlds = [(); 3].map(|()| Alone::new(Settings::default()));
    let txs = random_batch(SplitMix64::new(5), &worlds[0].coins(), 400);
    let _ = worlds[0].pool.submit(worlds[0].funding(), false);
    for tx in &txs {
        let _ = worlds[0].pool.submit(Arc::clone(tx), false);
    }
    let count = worlds[0].pool.snapshot().len();
    assert!(count > 20, "{count} transactions");
    for (index, tx) in txs.iter().enumerate().step_by(7) {
        // Also of transactions that are not in the pool.
        worlds[0].pool.prioritise(&tx.view().txid(), i64::try_from(index).unwrap() * 100 + 1);
        worlds[0].pool.add_unbroadcast(tx.view().txid());
    }
    let (disk, program) = (SimDisk::new(1), Program::default());
    let size = dump(&worlds[0].pool, &disk, Path::new(PATH), Some(Key([1, 2, 3, 4, 5, 6, 7, 8])), &program).unwrap();
    let lines = program.lines.into_inner();
    assert_eq!(lines[0], format!("Writing {count} mempool transactions to file..."));
    assert_eq!(lines[2], format!("Dumped mempool: 0.000s to copy, 0.000s to dump, {size} bytes dumped to file"));
    let imported = import(&worlds[1], &disk, ImportOptions::default());
    let unbroadcast = worlds[0].pool.snapshot().unbroadcast().len() as u64;
    assert_eq!(imported, Imported { accepted: count as u64, unbroadcast, ..Imported::default() });
    assert_eq!(content(&worlds[1]), content(&worlds[0]));
    // Again: the deltas are added, the transactions are there.
    let again = import(&worlds[1], &disk, ImportOptions { apply_unbroadcast_set: false, ..ImportOptions::default() });
    assert_eq!(again, Imported { already_there: count as u64, ..Imported::default() });
    let doubled = worlds[0].pool.snapshot().deltas().sorted().iter().map(|(txid, delta)| (*txid, delta * 2)).collect();
    assert_eq!(content(&worlds[1]).1, doubled);
    let plain = ImportOptions { use_current_time: true, apply_fee_delta_priority: false, apply_unbroadcast_set: false };
    let imported = import(&worlds[2], &disk, plain);
    assert_eq!(imported.accepted + imported.failed, count as u64);
    assert_eq!((content(&worlds[2]).1.len(), content(&worlds[2]).2.len()), (0, 0));
}

/// The file has invalid, conflicting and cheap transactions, with deltas that make some of them dear, in a pool that is
/// full soon.
#[test]
fn a_file_is_imported_as_one_after_another() {
    for (seed, count) in [(1, 30), (2, 4 * BATCH_MAX)] {
        let settings = Settings { mempool_bytes_max: 5_000_000, ..Settings::default() };
        let worlds = [Alone::new(settings.clone()), Alone::new(settings)];
        let funding = [worlds[0].funding()];
        let txs = random_batch(SplitMix64::new(seed), &worlds[0].coins(), count);
        let mut random = SplitMix64::new(seed);
        let delta = |_: &Arc<Transaction>| match random.below(4) {
            0 => i64::try_from(random.below(100_000)).unwrap() - 50_000,
            _ => 0,
        };
        let all: Vec<Arc<Transaction>> = funding.iter().chain(&txs).cloned().collect();
        let deltas: Vec<i64> = all.iter().map(delta).collect();
        let dumped = |(tx, fee_delta): (&'_ Arc<Transaction>, &i64)| (Arc::clone(tx), *fee_delta);
        let kept: Vec<(Arc<Transaction>, i64)> = all.iter().zip(&deltas).map(dumped).collect();
        let transactions =
            kept.iter().map(|(tx, fee_delta)| DumpedTx { tx: tx.view(), time: 7, fee_delta: *fee_delta });
        let file = Dump { transactions: transactions.collect(), deltas: BTreeMap::new(), unbroadcast: BTreeSet::new() };
        let disk = SimDisk::new(1);
        file.save(&disk, Path::new(PATH), None).unwrap();
        let options = ImportOptions { use_current_time: true, ..ImportOptions::default() };
        let imported = import(&worlds[0], &disk, options);
        let mut accepted = 0;
        for (tx, delta) in &kept {
            worlds[1].pool.prioritise(&tx.view().txid(), *delta);
            accepted += u64::from(worlds[1].pool.submit(Arc::clone(tx), false).is_ok());
        }
        assert_eq!(imported.accepted, accepted, "seed {seed}");
        assert_eq!(imported.accepted + imported.failed + imported.already_there, all.len() as u64);
        assert!(accepted > 0 && imported.failed > 0, "{imported}");
        assert_eq!(content(&worlds[0]), content(&worlds[1]), "seed {seed}");
        // With the times of the file, all of them expired long ago.
        let expired = import(&worlds[1], &disk, ImportOptions::default());
        assert_eq!(expired, Imported { expired: all.len() as u64, ..Imported::default() });
    }
}

#[test]
fn an_import_ends_with_the_node_or_the_file() {
    let world = Alone::new(Settings::default());
    let txs = random_batch(SplitMix64::new(9), &world.coins(), 20);
    let dumped = |tx: &'static Arc<Transaction>| DumpedTx { tx: tx.view(), time: i64::MAX, fee_delta: 0 };
    let txs: &'static [Arc<Transaction>] = Box::leak(txs.into_boxed_slice());
    let file = || Dump {
        transactions: txs.iter().map(dumped).collect(),
        deltas: BTreeMap::from([(Txid([1; 32]), 5)]),
        unbroadcast: BTreeSet::new(),
    };
    let disk = SimDisk::new(1);
    file().save(&disk, Path::new(PATH), None).unwrap();
    let ask = |program: &Program| load(&world.pool, &disk, Path::new(PATH), ImportOptions::default(), program);
    let stopping = Program { stops_after: Some(3), ..Program::default() };
    assert!(matches!(ask(&stopping), Err(ImportError::Stopped)));
    assert_eq!(stopping.questions.get(), 3);
    // The deltas are not applied if the file ends within them.
    let bytes = file().encode(None);
    lydian_disk::Disk::write_whole(&disk, Path::new(PATH), &bytes[..bytes.len() - 3]).unwrap();
    let program = Program::default();
    assert!(matches!(ask(&program), Err(ImportError::File(_))));
    let last = program.lines.into_inner().pop().unwrap();
    assert!(last.starts_with("Failed to deserialize mempool data on file: "), "{last}");
    assert!(world.pool.snapshot().deltas().is_empty() && !world.pool.snapshot().is_empty());
    // They are applied if it ends after them.
    let whole = Dump { unbroadcast: BTreeSet::from([Txid([2; 32])]), ..file() }.encode(None);
    for cut in [3, 33] {
        world.pool.prioritise(&Txid([1; 32]), -world.pool.snapshot().deltas().get(&Txid([1; 32])).unwrap_or(0));
        lydian_disk::Disk::write_whole(&disk, Path::new(PATH), &whole[..whole.len() - cut]).unwrap();
        assert!(matches!(ask(&Program::default()), Err(ImportError::File(_))));
        assert_eq!(
            world.pool.snapshot().deltas().sorted(),
            BTreeMap::from([(Txid([1; 32]), 5)]),
            "{cut} bytes are missing"
        );
    }
    let missing = Program::default();
    let none = load(&world.pool, &disk, Path::new("none"), ImportOptions::default(), &missing);
    assert!(matches!(none, Err(ImportError::File(_))));
    assert_eq!(missing.lines.into_inner(), ["Failed to open mempool file. Continuing anyway."]);
    file().save(&disk, Path::new(PATH), None).unwrap();
    world.pool.end();
    assert!(matches!(ask(&Program::default()), Err(ImportError::Mempool(_))));
}
