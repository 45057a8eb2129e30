//! Forms of values, and what is refused: damaged and foreign values, other indexes, too few copies.

use super::chain::{COMPACT, FULL, GENESIS, SHORT};
use super::seeds::{SimIndex, world_row};
use super::sim::{Faults, SimStore, World};
use crate::blocks;
use crate::filter::filter_key;
use crate::limits::{WRITE_BYTES_MAX, WRITES_MAX};
use crate::parts::{Directory, Parts, encode};
use crate::seal::Sealed;
use crate::store::*;
use crate::upload::Budget;
use crate::writer::{KEEP_SECONDS, Step, Writer, WriterError};
use crate::{BlockRun, Commit, Leftover, ReaderError, Retired, SharedIndex, WriterId};
use lydian_index::{Facts, Identity, Profile, RemoteContent, RemoteSegment, Salt, ScriptHash, SegmentFacts, Table};
use lydian_primitives::{BlockHash, Header, to_hex};
use lydian_stdx::lock;
use proptest::prelude::*;
use std::sync::{Arc, Mutex};

const PAGE: &str = include_str!("../../../../docs/formats/shared-index.md");

fn example(name: &str) -> String {
    let (_, rest) = PAGE.split_once(&format!("```hex {name}\n")).unwrap();
    rest.split_once("```").unwrap().0.split_whitespace().collect()
}

fn page_key(table: Table, page: u32, part: u32) -> Key {
    Key::Page(PageKey { bucket: Bucket { generation: 3, table, page }, part })
}

fn segment(generation: u64) -> RemoteSegment {
    let facts = |table| (table, Facts { first: 0, rows: 256, pages: 1 });
    let tables = Table::of(Profile { has_scripts: false, has_txids: false }).map(facts).collect();
    let facts = SegmentFacts { heights: 0..256, hash: BlockHash([0xaa; 32]), tables };
    RemoteSegment { generation, facts }
}

fn commit() -> Commit {
    let profile = Profile { has_scripts: false, has_txids: false };
    let content = RemoteContent { segments: vec![segment(3)], hashes: vec![BlockHash([0xbb; 32])], epoch: 1 };
    let deltas = Leftover::Deltas { series: 0, heights: 0..256 };
    Commit {
        sequence: 9,
        identity: Identity { genesis: BlockHash([1; 32]), salt: Salt::from_bytes([2; 16]), profile },
        writer: WriterId([3; 16]),
        next: 4,
        content,
        writing: Vec::new(),
        series: 0,
        delta_heights: 256..257,
        retired: vec![Retired { since: 1_700_000_000, what: deltas }],
        blocks: Vec::new(),
    }
}

/// The same with blocks from height 100 on.
fn commit_with_blocks() -> Commit {
    let mut commit = commit();
    commit.next = 6;
    commit.blocks = vec![BlockRun { series: 4, heights: 100..256 }, BlockRun { series: 5, heights: 256..257 }];
    let what = Leftover::Blocks { series: 4, heights: 256..512 };
    commit.retired.push(Retired { since: 1_700_000_100, what });
    commit
}

#[test]
fn the_values_on_the_page_are_read_and_written() {
    let mut parts = Parts::new(7);
    assert!(parts.push(b"one").is_none() && parts.push(b"three").is_none());
    let (Some((part, content)), directory) = parts.finish() else { panic!("a part") };
    let at = DeltaHeight { series: 0, height: 256 };
    let delta = Key::Delta(DeltaKey { at, hash: BlockHash([0xbb; 32]) });
    let seal = |key, content: &[u8]| to_hex(&Sealed::Value(key).seal(content));
    let stored = commit().store();
    let mut block = [0; 80];
    block[0] = 1;
    let hash = Header::parse(&block).hash();
    let block = blocks::values(BlockHeight { series: 4, height: 100 }, hash, 1_000, &block).unwrap();
    let values = [
        ("page", seal(page_key(Table::Sizes, 5, 0), b"page")),
        ("lists", seal(page_key(Table::Events, 5, part), &content)),
        ("events", seal(page_key(Table::Events, 5, 0), &encode(Table::Events, b"page", &directory))),
        ("delta", seal(delta, b"rows")),
        ("head", to_hex(&block[0].1)),
        ("block", to_hex(&block[1].1)),
        ("commit", to_hex(&stored.value)),
        ("blocks", to_hex(&commit_with_blocks().store().value)),
    ];
    assert_eq!(values.clone().map(|(name, _)| (name, example(name))), values);
    assert_eq!(Commit::read(&stored), Ok(commit()));
    assert_eq!(Commit::read(&commit_with_blocks().store()), Ok(commit_with_blocks()));
}

/// A row without blocks is that of releases which do not know them; they refuse one with blocks.
#[test]
fn a_row_has_the_newer_format_if_it_names_blocks_or_removes_some() {
    let format = |commit: &Commit| commit.store().value[16];
    assert_eq!((format(&commit()), format(&commit_with_blocks())), (1, 2));
    let mut commit = commit_with_blocks();
    commit.blocks.clear();
    assert_eq!((format(&commit), Commit::read(&commit.store()).as_ref()), (2, Ok(&commit)));
    commit.retired.pop();
    assert_eq!(format(&commit), 1);
}

#[test]
fn every_damaged_byte_of_a_value_is_noticed() {
    let stored = commit_with_blocks().store();
    for at in 0..stored.value.len() {
        let mut value = stored.value.clone();
        value[at] ^= 1;
        let error = Commit::read(&StoredCommit { value, ..stored }).unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "{at}: {error}");
        let value = stored.value[..at].to_vec();
        assert!(Commit::read(&StoredCommit { value, ..stored }).is_err());
    }
    // That of another sequence, and one that is followed by something.
    assert!(Commit::read(&StoredCommit { sequence: 8, ..stored.clone() }).is_err());
    let value = [&stored.value[..], &[0]].concat();
    assert!(Commit::read(&StoredCommit { value, ..stored }).is_err());
    // A value under another key, and one of another kind.
    let value = Sealed::Value(page_key(Table::Sizes, 5, 0)).seal(b"page");
    assert_eq!(Sealed::Value(page_key(Table::Sizes, 5, 0)).open(&value), Ok(&b"page"[..]));
    for key in [page_key(Table::Sizes, 6, 0), page_key(Table::Sizes, 5, 1), page_key(Table::Blocks, 5, 0)] {
        assert!(matches!(Sealed::Value(key).open(&value), Err(StoreError::Damaged { .. })));
    }
    assert!(Sealed::Commit(5).open(&value).is_err());
}

#[test]
fn a_row_whose_parts_do_not_fit_together_is_damaged() {
    let good = commit_with_blocks();
    let with = |change: fn(&mut Commit)| {
        let mut commit = good.clone();
        change(&mut commit);
        Commit::read(&commit.store())
    };
    assert!(with(|_| ()).is_ok());
    let bad: [fn(&mut Commit); 8] = [
        |commit| commit.next = 3,
        |commit| commit.next = 5,
        |commit| commit.blocks[1].heights.start = 255,
        |commit| commit.series = 6,
        |commit| commit.delta_heights = 257..258,
        |commit| commit.delta_heights = 0..256,
        |commit| commit.content.segments[0].facts.heights = 0..255,
        |commit| commit.content.segments.push(segment(2)),
    ];
    for change in bad {
        assert!(matches!(with(change), Err(StoreError::Damaged { .. })));
    }
}

#[test]
fn a_newer_format_is_refused() {
    let mut payload = b"LyCm\x03\x00".to_vec();
    payload.extend_from_slice(&9_u64.to_le_bytes());
    let mut value = Vec::new();
    lydian_disk::record::encode_record(&payload, 0, &mut value);
    let error = Commit::read(&StoredCommit { sequence: 9, value }).unwrap_err();
    let text = "the store of the index is refused: commit row 9 has format 3; this release reads format 2";
    assert_eq!(error.to_string(), text);
}

proptest! {
    #[test]
    fn any_bytes_are_a_row_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let value = Sealed::Commit(1).seal(&bytes);
        drop(Commit::read(&StoredCommit { sequence: 1, value }));
        drop(Commit::read(&StoredCommit { sequence: 1, value: bytes }));
    }
}

/// A store that has the index of a story at a state.
fn written() -> (Arc<Mutex<World>>, Arc<SimStore>) {
    written_at(5)
}

fn written_at(state: usize) -> (Arc<Mutex<World>>, Arc<SimStore>) {
    let world = World::new(1, Faults::default());
    let store = SimStore::new(&world, usize::MAX);
    let index = SimIndex::new(&FULL, state);
    let mut writer = Writer::open(store.clone(), Box::new(index), WriterId([7; 16])).unwrap();
    while writer.step(0).unwrap() != Step::Idle {}
    (world, store)
}

fn opened(store: &Arc<SimStore>, story: &'static super::chain::Story) -> Result<Writer, WriterError> {
    Writer::open(store.clone(), Box::new(SimIndex::new(story, 5)), WriterId([8; 16]))
}

#[test]
fn a_keyspace_of_another_index_is_refused() {
    let (world, store) = written();
    assert!(opened(&store, &FULL).is_ok());
    let error = opened(&store, &COMPACT).unwrap_err();
    assert!(error.to_string().ends_with("sim has other tables than the index of this node: use another keyspace"));
    let row = world_row(&world);
    let mut other = row.clone();
    other.identity.salt = Salt::from_bytes([9; 16]);
    lock(&world).set_row(Some(other.store()));
    let error = opened(&store, &FULL).unwrap_err();
    assert!(error.to_string().contains("another salt"), "{error}");
    assert!(!error.may_pass());
    let mut other = row;
    other.identity.genesis = BlockHash([4; 32]);
    lock(&world).set_row(Some(other.store()));
    let text = opened(&store, &FULL).unwrap_err().to_string();
    assert!(text.contains(&format!("genesis block {}, not of {GENESIS}", BlockHash([4; 32]))), "{text}");
    let text = SharedIndex::open(store.clone(), &GENESIS).unwrap_err().to_string();
    assert!(text.contains("not of"), "{text}");
    lock(&world).set_row(None);
    let error = SharedIndex::open(store.clone(), &GENESIS).unwrap_err();
    assert_eq!(error, ReaderError::NoIndex { keyspace: "sim".to_owned() });
    lock(&world).replication = 1;
    let text = opened(&store, &FULL).unwrap_err().to_string();
    assert!(text.contains("sim has replication 1"), "{text}");
}

#[test]
fn a_reader_refuses_the_row_of_another_index_while_it_runs() {
    let (world, store) = written();
    let shared = SharedIndex::open(store, &GENESIS).unwrap();
    let tip = shared.tip();
    let mut other = world_row(&world);
    other.sequence += 1;
    other.identity.salt = Salt::from_bytes([9; 16]);
    lock(&world).set_row(Some(other.store()));
    let error = shared.refresh().unwrap_err();
    assert!(matches!(error, ReaderError::Store(StoreError::Refused { .. })), "{error}");
    assert_eq!(shared.tip(), tip);
}

#[test]
fn a_page_that_one_replica_lacks_is_read_from_a_quorum_and_one_that_all_lack_is_an_error() {
    let (world, store) = written();
    let shared = SharedIndex::open(store, &GENESIS).unwrap();
    let model = &FULL.states[5].model;
    let tip = shared.tip().unwrap().height.0;
    let generation = world_row(&world).content.segments[0].generation;
    let facts = FULL.states[5].export.facts(0..1).unwrap().unwrap();
    let pages = facts.tables.iter().find(|(table, _)| *table == Table::Events).unwrap().1.pages;
    let keys: Vec<Key> = (0..pages)
        .map(|page| Key::Page(PageKey { bucket: Bucket { generation, table: Table::Events, page }, part: 0 }))
        .collect();
    let ask = || {
        model.scripts.iter().take(50).all(|script| {
            shared.reader().outputs(script).is_ok_and(|found| found.outputs == model.outputs(script, tip))
        })
    };
    // Damaged on one replica, gone from it, and gone from two of three.
    keys.iter().for_each(|key| lock(&world).spoil(key, &[1], |value| value.as_mut().unwrap()[20] ^= 4));
    assert!(ask());
    keys.iter().for_each(|key| lock(&world).spoil(key, &[1], |value| *value = None));
    assert!(ask());
    keys.iter().for_each(|key| lock(&world).spoil(key, &[0, 2], |value| *value = None));
    let error = shared.reader().outputs(&model.scripts[0]).unwrap_err().to_string();
    let part = format!("of the table Events of generation {generation}");
    assert!(error.contains("lacks part 0 of page") && error.contains(&part), "{error}");
}

/// A wallet of 3,000 scripts, of which one in ten was used.
#[test]
fn filters_save_the_reads_of_scripts_that_were_never_used() {
    let last = FULL.states.len() - 1;
    let (world, store) = written_at(last);
    let opened = || SharedIndex::open(store.clone(), &GENESIS).unwrap();
    let shared = opened();
    let (model, tip) = (&FULL.states[last].model, shared.tip().unwrap().height.0);
    let unused = (0..2_700_u32).map(|number| ScriptHash::of(&number.to_le_bytes()));
    // Those with long lists need them in any case.
    let used = model.scripts.iter().skip(20).take(300).copied();
    let wallet: Vec<ScriptHash> = unused.chain(used).collect();
    let reads = |shared: &SharedIndex| {
        let before = lock(&world).reads;
        for script in &wallet {
            assert_eq!(shared.reader().outputs(script).unwrap().outputs, model.outputs(script, tip));
        }
        usize::try_from(lock(&world).reads - before).unwrap()
    };
    let generations = world_row(&world).content.segments.len();
    let none = reads(&shared);
    // Some are of other tables: spends in the deltas name outputs of generations.
    assert!(generations == 3 && (3 * wallet.len()..3 * wallet.len() + 100).contains(&none), "{none}");
    // The smallest generations first, and no more than fits.
    let room = 4_000;
    while shared.load_filters(room).unwrap() {}
    assert!((1..=room).contains(&shared.filter_bytes()));
    let some = reads(&shared);
    assert!(some < 3 * wallet.len(), "{some}");
    let shared = opened();
    while shared.load_filters(usize::MAX).unwrap() {}
    let all = reads(&shared);
    assert!(all < some && all * 10 < 3 * wallet.len(), "{all}");
}

#[test]
fn a_filter_that_is_damaged_or_missing_is_an_error_and_is_not_used() {
    let (world, store) = written();
    let shared = SharedIndex::open(store, &GENESIS).unwrap();
    let key = filter_key(world_row(&world).content.segments[0].generation, 0);
    lock(&world).spoil(&key, &[0, 1, 2], |value| value.as_mut().unwrap()[40] ^= 1);
    assert!(matches!(shared.load_filters(usize::MAX), Err(ReaderError::Store(StoreError::Damaged { .. }))));
    lock(&world).spoil(&key, &[0, 1, 2], |value| *value = None);
    assert!(matches!(shared.load_filters(usize::MAX), Err(ReaderError::Store(StoreError::Missing { .. }))));
    let (model, tip) = (&FULL.states[5].model, shared.tip().unwrap().height.0);
    let found = shared.reader().outputs(&model.scripts[1]).unwrap().outputs;
    assert_eq!((shared.filter_bytes(), found), (0, model.outputs(&model.scripts[1], tip)));
}

/// limit: WRITES_MAX at
/// limit: WRITES_MAX above
/// limit: WRITE_BYTES_MAX at
/// limit: WRITE_BYTES_MAX above
#[test]
fn a_batch_ends_at_its_limits() {
    let budget = Budget { writes: WRITES_MAX, bytes: WRITE_BYTES_MAX };
    let values = |count: usize, size: usize| vec![(page_key(Table::Sizes, 0, 0), vec![0; size]); count];
    assert_eq!(budget.take(values(WRITES_MAX, 1).iter()), WRITES_MAX);
    assert_eq!(budget.take(values(WRITES_MAX + 1, 1).iter()), WRITES_MAX);
    assert_eq!(budget.take(values(2, WRITE_BYTES_MAX / 2).iter()), 2);
    assert_eq!(budget.take(values(2, WRITE_BYTES_MAX / 2 + 1).iter()), 1);
    assert_eq!(budget.take(values(1, WRITE_BYTES_MAX + 1).iter()), 1);
}

#[test]
fn a_store_that_is_too_slow_gets_half_as_much_each_time() {
    let world = World::new(1, Faults::default());
    let store = SimStore::new(&world, usize::MAX);
    let mut writer = Writer::open(store, Box::new(SimIndex::new(&FULL, 9)), WriterId([7; 16])).unwrap();
    while !matches!(writer.step(0).unwrap(), Step::Wrote(_)) {}
    let whole = writer.budget();
    assert_eq!(whole, Budget { writes: WRITES_MAX, bytes: WRITE_BYTES_MAX });
    lock(&world).faults.silent = 1_000;
    for halves in 1..12 {
        assert!(writer.step(0).unwrap_err().may_pass());
        assert_eq!(writer.budget().writes, (WRITES_MAX >> halves).max(1));
    }
    lock(&world).faults.silent = 0;
    while writer.step(0).unwrap() != Step::Idle {}
    assert!(writer.budget().writes > 1);
    assert_eq!(writer.lag(), 0);
}

/// A process that takes over, and whose first change of the row has no answer and no effect, goes on.
#[test]
fn a_first_change_that_was_void_is_not_taken_for_another_writer() {
    for seed in 0..20 {
        let world = World::new(seed, Faults::default());
        let store = SimStore::new(&world, usize::MAX);
        let index = SimIndex::new(&SHORT, 3);
        let mut writer = Writer::open(store.clone(), Box::new(index.clone()), WriterId([7; 16])).unwrap();
        while writer.step(0).unwrap() != Step::Idle {}
        index.set(7);
        let mut writer = Writer::open(store, Box::new(index), WriterId([8; 16])).unwrap();
        lock(&world).faults.silent = 1_000;
        let error = writer.step(0).unwrap_err();
        assert!(error.may_pass(), "seed {seed}: {error}");
        lock(&world).faults.silent = 0;
        while writer.step(0).unwrap() != Step::Idle {}
        assert_eq!((writer.lag(), world_row(&world).writer), (0, WriterId([8; 16])));
    }
}

/// What was retired by a clock that was ahead is not kept for ever.
#[test]
fn a_clock_that_was_ahead_delays_a_removal_by_an_hour_at_most() {
    let world = World::new(1, Faults::default());
    let store = SimStore::new(&world, usize::MAX);
    let index = SimIndex::new(&FULL, 2);
    let mut writer = Writer::open(store, Box::new(index.clone()), WriterId([7; 16])).unwrap();
    let mut settle = |at: usize, now: u64| {
        index.set(at);
        while writer.step(now).unwrap() != Step::Idle {}
        world_row(&world).retired.len()
    };
    settle(2, 1_000_000);
    assert!(settle(3, 9_000_000) > 0);
    assert!(settle(4, 1_000_000) > 0);
    assert_eq!(settle(4, 1_000_000 + KEEP_SECONDS), 0);
}

#[test]
fn a_directory_without_lists_is_short() {
    assert_eq!(encode(Table::Events, b"", &Directory::default()).len(), 8);
}
