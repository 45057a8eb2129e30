//! The driver against three nodes of Cassandra, that are killed, paused and wiped.
//!
//! One cluster serves all steps: its start takes most of a minute. Each step leaves the cluster whole.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a test fails by panicking, has a clock, and says what it measured"
)]

use super::session::CLOCK_DIFFERENCE_MAX;
use super::{CassandraStore, create};
use crate::Settings;
use lydian_lab::store::{Cluster, Consistency, Join, Recipe, install};
use lydian_oracle::Scratch;
use lydian_primitives::BlockHash;
use lydian_shared_index::{
    BlockHeight, BlockKey, Bucket, CommitRead, DeltaHeight, DeltaKey, Key, PageKey, Partition, Replicas, Store,
    StoreError, StoredCommit, Swap, Table,
};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const KEYSPACE: &str = "lydian_test";
/// For whatever the cluster has to do, on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(300);
/// How long a node is paused.
const PAUSE: Duration = Duration::from_secs(30);
/// How long requests go on after a node was killed.
const KILLED: Duration = Duration::from_secs(20);

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap()
}

fn an_hour_ahead() -> Duration {
    now() + Duration::from_secs(3_600)
}

struct Bench {
    cluster: Cluster,
    settings: Settings,
    _scratch: Scratch,
}

impl Bench {
    fn new() -> Bench {
        install(&mut |text| println!("{text}")).unwrap();
        let scratch = Scratch::new("index-cassandra");
        let folder = &scratch.path().join("cluster");
        let recipe = Recipe { folder, nodes: 3, heap_mib: 512, timeout: PATIENCE, interrupted: &INTERRUPTED };
        let start = Instant::now();
        let cluster = Cluster::start(&recipe).unwrap().unwrap();
        println!("three nodes after {:.1} s", start.elapsed().as_secs_f64());
        let address = format!("cassandra://{}/{KEYSPACE}", cluster.hosts()).parse().unwrap();
        Bench { cluster, settings: Settings { address, now }, _scratch: scratch }
    }

    fn open(&self) -> CassandraStore {
        CassandraStore::open(&self.settings).unwrap()
    }

    fn at(&self, keyspace: &str) -> Settings {
        let address = format!("cassandra://{}/{keyspace}", self.cluster.hosts()).parse().unwrap();
        Settings { address, now }
    }

    fn run_cql(&self, statement: &str) {
        self.cluster.nodes()[0].query(statement, Consistency::One).unwrap();
    }

    /// Until the nodes answer and every replica takes part again.
    fn wait(&self, store: &CassandraStore) {
        assert!(self.cluster.wait(PATIENCE, &INTERRUPTED).unwrap());
        let start = Instant::now();
        while let Err(error) = store.repair(&[page(0, 0)]) {
            assert!(start.elapsed() < PATIENCE, "{error}");
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

fn page(page: u32, part: u32) -> Key {
    Key::Page(PageKey { bucket: Bucket { generation: 1, table: Table::Events, page }, part })
}

fn delta(height: u32, byte: u8) -> Key {
    Key::Delta(DeltaKey { at: DeltaHeight { series: 7, height }, hash: BlockHash([byte; 32]) })
}

fn block(height: u32, byte: u8, part: u32) -> Key {
    Key::Block(BlockKey { at: BlockHeight { series: 8, height }, hash: BlockHash([byte; 32]), part })
}

/// A value of a page that names its key.
fn value(key: &Key, size: usize) -> Vec<u8> {
    let text = key.to_string();
    text.bytes().cycle().take(size.max(text.len())).collect()
}

fn commit(sequence: u64, text: &str) -> StoredCommit {
    StoredCommit { sequence, value: text.as_bytes().to_vec() }
}

#[test]
#[ignore = "starts three nodes of Cassandra for some minutes: make test-store"]
fn a_cluster_keeps_what_the_trait_promises() {
    let mut bench = Bench::new();
    keyspaces_are_refused(&bench);
    let store = bench.open();
    values_are_kept_and_removed(&store);
    of_two_writers_one_wins(&bench, &store);
    a_time_out_may_have_succeeded(&bench, &store);
    a_late_swap_is_void(&store);
    a_killed_node_fails_no_request(&mut bench, &store);
    a_paused_node_fails_no_request(&bench, &store);
    a_wiped_node_is_repaired_by_reading(&mut bench, &store);
    without_a_quorum_the_store_says_so_in_time(&mut bench, &store);
}

fn refusal(settings: &Settings) -> String {
    match CassandraStore::open(settings) {
        Err(StoreError::Refused { reason }) => reason,
        other => panic!("{other:?}"),
    }
}

fn keyspaces_are_refused(bench: &Bench) {
    assert!(refusal(&bench.settings).contains("the keyspace does not exist"));
    let single = create(&bench.settings, 1).unwrap_err().to_string();
    assert!(single.contains("replication is 1"), "{single}");
    let many = create(&bench.settings, 4).unwrap_err().to_string();
    assert!(many.contains("3 nodes, too few for 4 copies"), "{many}");
    create(&bench.settings, 3).unwrap();
    create(&bench.settings, 3).unwrap();
    let ahead = refusal(&Settings { now: an_hour_ahead, ..bench.settings.clone() });
    assert!(ahead.contains("3599 seconds off") || ahead.contains("3600 seconds off"), "{ahead}");
    assert!(CLOCK_DIFFERENCE_MAX < Duration::from_secs(3_599));

    let one = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
    bench.run_cql(&format!("CREATE KEYSPACE single WITH replication = {one}"));
    assert!(refusal(&bench.at("single")).contains("replication is 1"));
    let three = "{'class': 'SimpleStrategy', 'replication_factor': 3}";
    bench.run_cql(&format!("CREATE KEYSPACE other WITH replication = {three}"));
    assert!(refusal(&bench.at("other")).contains("no table `pages`"));
    create(&bench.at("later"), 3).unwrap();
    // A keyspace of a release without blocks: it is used, and gets the table by being created again.
    bench.run_cql("DROP TABLE later.blocks");
    let part = sized((block(1, 1, 0), 92));
    let without = CassandraStore::open(&bench.at("later")).unwrap();
    without.write(&[sized((page(1, 0), 10))]).unwrap();
    let refused = without.write(std::slice::from_ref(&part)).unwrap_err().to_string();
    assert!(refused.contains("no table `blocks`: `lydian index load` adds it"), "{refused}");
    create(&bench.at("later"), 3).unwrap();
    CassandraStore::open(&bench.at("later")).unwrap().write(&[part]).unwrap();
    bench.run_cql("UPDATE later.layout SET version = 2 WHERE id = 0");
    assert!(refusal(&bench.at("later")).contains("version 2, expected 1"));

    let nobody = Settings { address: "cassandra://127.0.0.1:1/a".parse().unwrap(), now };
    let error = CassandraStore::open(&nobody).unwrap_err();
    assert!(error.may_pass(), "{error}");
}

fn values_are_kept_and_removed(store: &CassandraStore) {
    let keyspace = store.keyspace().unwrap();
    assert_eq!(keyspace.replication, 3);
    assert!(keyspace.name.ends_with("/lydian_test"), "{keyspace:?}");
    // The sizes of a page, of a part, and of the delta of a block that is as full as it can be.
    let mut values: Vec<(Key, Vec<u8>)> = (0..200).map(|number| (page(number, 0), 4_096)).map(sized).collect();
    values.extend([(page(3, 1), 65_536), (page(3, 2), 10), (delta(9, 1), 4_000_000), (delta(9, 2), 1)].map(sized));
    // The parts of two blocks at one height, and of one at another.
    let parts = (0..100).map(|part| (block(9, 1, part), 16_384));
    values.extend(parts.chain([(block(9, 2, 0), 92), (block(10, 1, 0), 92)]).map(sized));
    store.write(&values).unwrap();
    store.write(&values[..10]).unwrap();
    let keys: Vec<Key> = values.iter().map(|(key, _)| *key).collect();
    for (found, (key, expected)) in store.read(&keys, Replicas::Quorum).unwrap().iter().zip(&values) {
        assert_eq!(found.as_ref().map(|value| value == expected), Some(true), "{key}");
    }
    let missing = [page(1_000, 0), page(0, 0), delta(9, 3), page(3, 3), block(9, 1, 100), block(9, 3, 0)];
    let found = store.read(&missing, Replicas::Quorum).unwrap();
    assert_eq!(found.iter().map(Option::is_some).collect::<Vec<_>>(), [false, true, false, false, false, false]);
    assert_eq!(store.read(&[], Replicas::One).unwrap(), Vec::<Option<Vec<u8>>>::new());

    let Key::Page(fat) = page(3, 0) else { unreachable!() };
    store.remove(&[Partition::Bucket(fat.bucket), delta(9, 0).partition(), block(9, 0, 0).partition()]).unwrap();
    let removed = [page(3, 0), page(3, 1), page(3, 2), delta(9, 1), delta(9, 2), block(9, 1, 7), block(9, 2, 0)];
    assert!(store.read(&removed, Replicas::Quorum).unwrap().iter().all(Option::is_none));
    assert!(store.read(&[block(10, 1, 0)], Replicas::Quorum).unwrap()[0].is_some());
    assert!(store.read(&[page(4, 0)], Replicas::Quorum).unwrap()[0].is_some());

    let above = Key::Page(PageKey { bucket: Bucket { generation: 1 << 63, ..fat.bucket }, part: 0 });
    assert!(matches!(store.read(&[above], Replicas::One), Err(StoreError::Refused { .. })));
}

fn sized((key, size): (Key, usize)) -> (Key, Vec<u8>) {
    (key, value(&key, size))
}

fn of_two_writers_one_wins(bench: &Bench, store: &CassandraStore) {
    assert_eq!(store.commit(CommitRead::Serial).unwrap(), None);
    assert_eq!(store.swap(Some(1), &commit(2, "too early")).unwrap(), Swap::Lost(None));
    assert_eq!(store.swap(None, &commit(1, "first")).unwrap(), Swap::Applied);
    assert_eq!(store.swap(None, &commit(1, "again")).unwrap(), Swap::Lost(Some(commit(1, "first"))));
    let second = bench.open();
    let names = ["a", "b"];
    for sequence in 1..20 {
        let swap = |(store, name): (&CassandraStore, &str)| {
            let new = commit(sequence + 1, name);
            loop {
                match store.swap(Some(sequence), &new).unwrap() {
                    // Neither knows; the row does.
                    Swap::Unknown => {
                        if let Some(row) =
                            store.commit(CommitRead::Serial).unwrap().filter(|row| row.sequence > sequence)
                        {
                            return row == new;
                        }
                    }
                    swap => return swap == Swap::Applied,
                }
            }
        };
        let won = std::thread::scope(|scope| {
            let both = [(store, names[0]), (&second, names[1])].map(|one| scope.spawn(move || swap(one)));
            both.map(|thread| thread.join().unwrap())
        });
        let row = store.commit(CommitRead::Quorum).unwrap().unwrap();
        let winner = names.iter().zip(won).find_map(|(name, won)| won.then_some(*name));
        assert_eq!(won.iter().filter(|won| **won).count(), 1, "{sequence}: {won:?}");
        assert_eq!(Some(commit(sequence + 1, winner.unwrap())), Some(row));
    }
}

/// A writer that does not wait for the answer: of its swaps some are applied, and the row says which. The time that it
/// waits is longer after a swap that was void and shorter after one that was answered, so that it comes to the one in
/// between, however fast the machine is.
fn a_time_out_may_have_succeeded(bench: &Bench, store: &CassandraStore) {
    let (mut void, mut applied, mut answered) = (0, 0, 0);
    let mut hasty = bench.open();
    let (start, mut wait) = (Instant::now(), Duration::from_millis(4));
    while applied < 3 {
        assert!(start.elapsed() < PATIENCE, "{applied} swaps applied, {void} void, {answered} answered; wait {wait:?}");
        hasty.commits.swap_max = PATIENCE;
        let before = hasty.commit(CommitRead::Serial).unwrap().unwrap();
        hasty.commits.swap_max = wait;
        let new = commit(before.sequence + 1, &format!("within {wait:?}"));
        match hasty.swap(Some(before.sequence), &new).unwrap() {
            Swap::Applied => {
                assert_eq!(store.commit(CommitRead::Serial).unwrap(), Some(new));
                answered += 1;
                wait = wait * 7 / 8;
            }
            Swap::Lost(row) => panic!("{row:?}"),
            Swap::Unknown => {
                let after = store.commit(CommitRead::Serial).unwrap().unwrap();
                assert!(after == new || after == before, "{after:?}");
                if after == new {
                    applied += 1;
                } else {
                    void += 1;
                    wait = wait * 9 / 8 + Duration::from_micros(1);
                }
                // What was read stays so.
                assert_eq!(store.commit(CommitRead::Serial).unwrap(), Some(after));
            }
        }
    }
    println!("of the swaps that timed out, {applied} were applied and {void} void; {answered} were answered");
}

/// As when a paused node finds a swap in its socket: the statement itself, after a read that settles it.
fn a_late_swap_is_void(store: &CassandraStore) {
    let before = store.commit(CommitRead::Serial).unwrap().unwrap();
    let expected = i64::try_from(before.sequence).unwrap();
    let commits = store.commits.clone();
    let late = commits.swap_statement(expected, commits.fence(), expected + 1, b"late").unwrap();
    assert_eq!(store.commit(CommitRead::Serial).unwrap().as_ref(), Some(&before));
    let commits = store.commits.clone();
    let is_applied = store.driver.block(async move { Ok(commits.compare_and_set(late).await) }).unwrap().unwrap();
    assert!(!is_applied, "a swap from before the read was applied after it");
    assert_eq!(store.commit(CommitRead::Quorum).unwrap().as_ref(), Some(&before));
    // A swap that starts now is not late, in this process or another.
    assert_eq!(store.swap(Some(before.sequence), &commit(before.sequence + 1, "next")).unwrap(), Swap::Applied);
}

/// What a writer and a reader do, until the time is over; returns the longest call.
fn work(store: &CassandraStore, from: u32, time: Duration) -> Duration {
    let (start, mut longest, mut unknown) = (Instant::now(), Duration::ZERO, 0);
    let mut number = from;
    let mut timed = |work: &mut dyn FnMut()| {
        let start = Instant::now();
        work();
        longest = longest.max(start.elapsed());
    };
    while start.elapsed() < time {
        let values: Vec<(Key, Vec<u8>)> = (0..20).map(|more| sized((page(number + more, 0), 4_096))).collect();
        let keys: Vec<Key> = values.iter().map(|(key, _)| *key).collect();
        timed(&mut || store.write(&values).unwrap());
        timed(&mut || {
            // One replica may not have it yet; a quorum has.
            for ((one, key), (_, value)) in store.read(&keys, Replicas::One).unwrap().iter().zip(&keys).zip(&values) {
                assert!(one.as_ref().is_none_or(|one| one == value), "{key}");
            }
        });
        timed(&mut || {
            let found = store.read(&keys, Replicas::Quorum).unwrap();
            assert!(found.iter().zip(&values).all(|(found, (_, value))| found.as_ref() == Some(value)));
        });
        let row = store.commit(CommitRead::Quorum).unwrap().unwrap();
        let new = commit(row.sequence + 1, &format!("after page {number}"));
        timed(&mut || match store.swap(Some(row.sequence), &new).unwrap() {
            Swap::Applied => assert_eq!(store.commit(CommitRead::Quorum).unwrap(), Some(new.clone())),
            Swap::Unknown => {
                unknown += 1;
                let found = store.commit(CommitRead::Serial).unwrap().unwrap();
                assert!(found == new || found == row, "{found:?}");
            }
            Swap::Lost(found) => panic!("{found:?} instead of {row:?}"),
        });
        number += 20;
    }
    let pages = number - from;
    println!("{pages} pages, {unknown} swaps with an unknown end, longest call {longest:?}");
    assert!(pages > 0);
    longest
}

fn a_killed_node_fails_no_request(bench: &mut Bench, store: &CassandraStore) {
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| work(store, 10_000, KILLED));
        std::thread::sleep(KILLED / 10);
        bench.cluster.node_mut(1).unwrap().kill().unwrap();
        worker.join().unwrap();
    });
    // A front end that starts now asks the others.
    work(&bench.open(), 50_000, Duration::from_millis(1));
    bench.cluster.start_node(1, Join::Plainly).unwrap();
    bench.wait(store);
    println!("killed node: back");
}

fn a_paused_node_fails_no_request(bench: &Bench, store: &CassandraStore) {
    let node = &bench.cluster.nodes()[2];
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| work(store, 100_000, PAUSE));
        std::thread::sleep(PAUSE / 10);
        node.pause().unwrap();
        worker.join().unwrap();
    });
    node.resume().unwrap();
    bench.wait(store);
    println!("paused node: back");
}

/// The pages that the third node itself has.
fn pages_of_third(bench: &Bench, keys: &[Key]) -> usize {
    let has = |key: &&Key| {
        let Key::Page(PageKey { bucket, part }) = key else { return false };
        let (table, page) = (bucket.table as u8, bucket.page);
        let statement = format!(
            "SELECT value FROM {KEYSPACE}.pages WHERE generation = {} AND table_number = {table} AND page = {page} AND \
             part = {part}",
            bucket.generation
        );
        // The node is a replica of every key and asks itself first.
        !bench.cluster.nodes()[2].query(&statement, Consistency::One).unwrap().is_empty()
    };
    keys.iter().filter(has).count()
}

fn a_wiped_node_is_repaired_by_reading(bench: &mut Bench, store: &CassandraStore) {
    let values: Vec<(Key, Vec<u8>)> = (0..100).map(|number| sized((page(200_000 + number, 0), 4_096))).collect();
    let keys: Vec<Key> = values.iter().map(|(key, _)| *key).collect();
    store.write(&values).unwrap();
    store.repair(&keys).unwrap();
    assert_eq!(pages_of_third(bench, &keys), 100);
    bench.cluster.node_mut(2).unwrap().stop().unwrap();
    bench.cluster.nodes()[2].wipe_keyspace(KEYSPACE).unwrap();
    bench.cluster.start_node(2, Join::Plainly).unwrap();
    bench.wait(store);
    assert_eq!(pages_of_third(bench, &keys), 0);
    let found = store.read(&keys, Replicas::Quorum).unwrap();
    assert!(found.iter().zip(&values).all(|(found, (_, value))| found.as_ref() == Some(value)));
    assert_eq!(store.repair(&keys).unwrap(), 0);
    assert_eq!(pages_of_third(bench, &keys), 100);
    println!("wiped node: repaired");
}

fn without_a_quorum_the_store_says_so_in_time(bench: &mut Bench, store: &CassandraStore) {
    for number in [1, 2] {
        bench.cluster.node_mut(number).unwrap().kill().unwrap();
    }
    let row = commit(1_000_000, "never");
    let start = Instant::now();
    let errors = [
        store.write(&[sized((page(300_000, 0), 10))]).unwrap_err(),
        store.read(&[page(0, 0)], Replicas::Quorum).unwrap_err(),
        store.commit(CommitRead::Quorum).unwrap_err(),
    ];
    println!("without a quorum: {errors:?} after {:?}", start.elapsed());
    assert!(errors.iter().all(StoreError::may_pass), "{errors:?}");
    match store.swap(Some(999_999), &row) {
        Ok(Swap::Unknown) => {}
        Err(error) if error.may_pass() => {}
        other => panic!("{other:?}"),
    }
    assert!(store.read(&[page(0, 0)], Replicas::One).unwrap()[0].is_some(), "one replica is left");
    for number in [1, 2] {
        bench.cluster.start_node(number, Join::Plainly).unwrap();
    }
    bench.wait(store);
    assert_ne!(store.commit(CommitRead::Serial).unwrap(), Some(row));
}
