//! Answers of the readers that servers have, while rows come: each is the embedded index's at some one block that the
//! index had between the question and the answer. And rows that a writer or a reader must not take.

use super::chain::{COMPACT, FULL, GENESIS, SHORT, SHORT_COMPACT};
use super::hooked::{Call, Hooked};
use super::seeds::{SimIndex, world_row, writer_id};
use super::sim::{Faults, SimStore, World};
use crate::fetch::Fetcher;
use crate::store::*;
use crate::writer::{KEEP_SECONDS, Step, Writer};
use crate::{Ahead, Commit, ReaderError, SharedIndex, Table, WriterId};
use lydian_engine::Tip;
use lydian_stdx::{SplitMix64, lock};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const SEEDS: u64 = 40;
const QUESTIONS: usize = 60;

/// For a thread that must do something, on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(60);

fn settle(writer: &mut Writer, now: u64) {
    while writer.step(now).unwrap() != Step::Idle {}
}

/// A writer of a story's index at a state.
fn writer_of(world: &Arc<Mutex<World>>, index: &SimIndex, id: u8) -> Writer {
    Writer::open(SimStore::new(world, usize::MAX), Box::new(index.clone()), WriterId([id; 16])).unwrap()
}

/// One seed: a reader is asked, and before each read of the store a writer may go on, and the reader take its row.
/// Returns how many answers were made while the row changed.
fn ask_while_rows_come(seed: u64) -> usize {
    let mut random = SplitMix64::new(seed);
    let stories = [&*FULL, &*COMPACT, &*SHORT, &*SHORT_COMPACT];
    let story = stories[usize::try_from(seed).unwrap() % stories.len()];
    let world = World::new(seed, Faults::default());
    let index = SimIndex::new(story, random.below(story.states.len()));
    let id = writer_id(&mut random);
    let mut writer = Writer::open(SimStore::new(&world, usize::MAX), Box::new(index.clone()), id).unwrap();
    settle(&mut writer, 0);
    let store = Hooked::new(SimStore::new(&world, usize::MAX));
    let shared = Arc::new(SharedIndex::open(store.clone(), &GENESIS).unwrap());
    let reader = shared.reader();
    let tips: Arc<Mutex<Vec<Tip>>> = Arc::default();
    let (known, weak, mut moves) = (Arc::clone(&tips), Arc::downgrade(&shared), SplitMix64::new(seed + 1_000));
    store.set(move |_| {
        if moves.below(2) == 0 {
            index.set(moves.below(story.states.len()));
            for _ in 0..moves.below(80) {
                writer.step(0).unwrap();
            }
            // A row without blocks would end the reads, and with them this.
            while writer.tip().is_none() {
                writer.step(0).unwrap();
            }
            let shared = weak.upgrade().unwrap();
            shared.refresh().unwrap();
            lock(&known).push(shared.tip().unwrap());
        }
        Ok(())
    });
    let mut moved = 0;
    for _ in 0..QUESTIONS {
        let first = shared.tip().unwrap();
        *lock(&tips) = vec![first];
        let model = &story.blocks[&first.hash].0;
        let script = model.scripts[random.below(model.scripts.len())];
        let number = u32::try_from(random.below(model.count(first.height.0) as usize)).unwrap();
        let txid = model.txids[number as usize];
        let at = |tip: &Tip| (Arc::clone(&story.blocks[&tip.hash].0), tip.height.0);
        match random.below(3) {
            0 => {
                let found = reader.outputs(&script).unwrap();
                let tip = found.tip.unwrap();
                assert!(lock(&tips).contains(&tip), "seed {seed}: {tip:?}");
                let (model, height) = at(&tip);
                assert!(found.outputs == model.outputs(&script, height), "seed {seed}: outputs at {tip:?}");
            }
            1 => {
                let numbers = [number / 2, number];
                let found = reader.txids(&numbers).unwrap();
                let is_that_of = |tip: &Tip| {
                    let (model, height) = at(tip);
                    let one = |number: &u32| (*number < model.count(height)).then(|| model.txids[*number as usize]);
                    found.as_ref().is_none_or(|found| {
                        found.iter().map(|found| found.map(|(txid, _)| txid)).eq(numbers.iter().map(one))
                    })
                };
                assert!(lock(&tips).iter().any(is_that_of), "seed {seed}: txids");
            }
            _ => {
                let found = reader.candidates(&txid).unwrap();
                let is_that_of = |tip: &Tip| {
                    let (model, height) = at(tip);
                    let of_block =
                        |number: u32| model.txids[..model.count(height) as usize].get(number as usize).copied();
                    // The short keys of others may be the same.
                    found.iter().any(|(number, _)| of_block(*number) == Some(txid)) || found.is_empty()
                };
                assert!(lock(&tips).iter().any(is_that_of), "seed {seed}: a transaction");
            }
        }
        moved += usize::from(lock(&tips).iter().any(|tip| *tip != first));
    }
    moved
}

#[test]
fn an_answer_during_which_rows_come_is_that_of_one_row() {
    let moved: usize = (0..SEEDS).map(ask_while_rows_come).sum();
    assert!(moved > 200, "{moved} answers during which the row changed");
}

/// What the index of a data directory had at its last checkpoint does not replace what the row has since.
#[test]
fn a_row_that_is_further_is_not_taken_back_after_a_crash() {
    // The first state of each is the begin of the second; in the last two, it is in a generation of the row.
    for (before, after) in [(5, 6), (10, 11), (4, 4)] {
        let (world, index) = (World::new(1, Faults::default()), SimIndex::new(&FULL, after));
        settle(&mut writer_of(&world, &index, 1), 0);
        let row = world_row(&world);
        index.set(before);
        for is_fixed in [false, true] {
            let mut writer = writer_of(&world, &index, 2);
            writer = if is_fixed { writer.of_fixed_index() } else { writer };
            for _ in 0..3 {
                let waits = if before == after { Step::Idle } else { Step::Waits(Ahead::Further) };
                assert_eq!(writer.step(0), Ok(waits), "from {after} to {before}");
                assert_eq!((world_row(&world), writer.lag()), (row.clone(), 0));
            }
            assert_eq!(writer.tip(), row.tip());
        }
        // Once the index is as far, the row follows it, also down.
        let mut writer = writer_of(&world, &index, 3);
        let _ = writer.step(0).unwrap();
        index.set(after);
        settle(&mut writer, 0);
        index.set(before);
        settle(&mut writer, 0);
        let tip = FULL.states[before].export.tip().unwrap();
        assert_eq!(world_row(&world).tip(), Some((tip.height.0, tip.hash)));
    }
}

/// A node knows that its chain is the best; an index that stays as it is does not.
#[test]
fn a_row_on_another_branch_is_replaced_by_a_node_and_kept_by_a_loader_unless_it_is_shorter() {
    // The row at block 3,538 of one branch or 2,025, the index at 1,638 or 3,338 of another one.
    for (row_at, index_at, is_kept) in [(14, 15, true), (14, 16, true), (11, 16, false)] {
        for is_fixed in [false, true] {
            let (world, index) = (World::new(1, Faults::default()), SimIndex::new(&FULL, row_at));
            settle(&mut writer_of(&world, &index, 1), 0);
            let row = world_row(&world);
            index.set(index_at);
            let mut writer = writer_of(&world, &index, 2);
            writer = if is_fixed { writer.of_fixed_index() } else { writer };
            if is_fixed && is_kept {
                assert_eq!(writer.step(0), Ok(Step::Waits(Ahead::OtherBranch)));
                assert_eq!(world_row(&world), row);
            } else {
                settle(&mut writer, 0);
                let tip = FULL.states[index_at].export.tip().unwrap();
                assert_eq!(world_row(&world).tip(), Some((tip.height.0, tip.hash)));
            }
        }
    }
}

/// The row of a keyspace that was dropped, and into which a node has written again.
#[test]
fn a_keyspace_that_was_made_anew_is_refused() {
    let (world, index) = (World::new(1, Faults::default()), SimIndex::new(&FULL, 8));
    let (store, mut writer) = (SimStore::new(&world, usize::MAX), writer_of(&world, &index, 1));
    settle(&mut writer, 0);
    index.set(9);
    let before = world_row(&world);
    while world_row(&world).sequence == before.sequence {
        writer.step(0).unwrap();
    }
    let mut row = world_row(&world);
    row.content.epoch = 5;
    let with = |change: &dyn Fn(&mut Commit)| {
        let mut commit = row.clone();
        change(&mut commit);
        Some(commit.store())
    };
    let anew = "so the keyspace was made anew; start again";
    let cases: [(Option<StoredCommit>, &str); 7] = [
        (None, anew),
        (with(&|row| row.sequence = 1), anew),
        (with(&|row| row.writer = WriterId([9; 16])), anew),
        (with(&|row| (row.sequence, row.next) = (row.sequence - 1, row.next + 1)), anew),
        (with(&|row| (row.sequence, row.content.epoch) = (row.sequence + 40, 4)), anew),
        (
            with(&|row| {
                row.sequence += 40;
                row.next += 9;
                row.content.segments.iter_mut().for_each(|segment| segment.facts.hash.0[0] ^= 1);
            }),
            anew,
        ),
        (with(&|row| (row.sequence, row.identity.genesis.0[0]) = (1, 0)), "is that of another index; start again"),
    ];
    for (number, (stored, text)) in cases.into_iter().enumerate() {
        lock(&world).set_row(Some(row.store()));
        let shared = SharedIndex::open(store.clone(), &GENESIS).unwrap();
        assert_eq!(shared.refresh(), Ok(false));
        // The row before may be read again, from a replica that is behind.
        lock(&world).set_row(Some(before.store()));
        assert_eq!(shared.refresh(), Ok(false));
        lock(&world).set_row(stored);
        let error = shared.refresh().unwrap_err();
        assert!(matches!(error, ReaderError::Store(StoreError::Refused { .. })), "{number}: {error}");
        assert!(error.to_string().ends_with(text), "{number}: {error}");
        // Also when its row gets as far, and seems to follow.
        lock(&world).set_row(with(&|row| row.sequence += 1));
        assert_eq!((shared.refresh(), shared.sequence()), (Err(error), row.sequence));
    }
}

/// The first read of a new row hangs: nothing else waits for it.
#[test]
fn no_question_waits_for_a_row_that_is_being_read() {
    let (world, index) = (World::new(1, Faults::default()), SimIndex::new(&SHORT, 3));
    let mut writer = writer_of(&world, &index, 1);
    settle(&mut writer, 0);
    let store = Hooked::new(SimStore::new(&world, usize::MAX));
    let shared = SharedIndex::open(store.clone(), &GENESIS).unwrap();
    let (sequence, tip) = (shared.sequence(), shared.tip());
    index.set(4);
    settle(&mut writer, 0);
    let ((begun, begins), (end, ends)) = (sync_channel(1), sync_channel::<()>(1));
    store.set(move |call| {
        assert!(matches!(call, Call::Read));
        begun.send(()).unwrap();
        ends.recv_timeout(PATIENCE).unwrap();
        Ok(())
    });
    std::thread::scope(|scope| {
        let refresh = scope.spawn(|| shared.refresh());
        begins.recv_timeout(PATIENCE).unwrap();
        let (sender, answers) = sync_channel(1);
        let shared = &shared;
        // The hook is taken: this thread's reads go through.
        scope.spawn(move || {
            while shared.load_filters(usize::MAX).unwrap() {}
            sender.send((shared.sequence(), shared.tip(), shared.filter_bytes())).unwrap();
        });
        let (found, at, bytes) = answers.recv_timeout(PATIENCE).unwrap();
        assert_eq!((found, at), (sequence, tip));
        assert!(bytes > 0);
        // Whatever else is read.
        end.send(()).unwrap();
        drop(end);
        assert_eq!(refresh.join().unwrap(), Ok(true));
    });
    assert!(shared.sequence() > sequence);
}

#[test]
fn deltas_that_were_acknowledged_are_not_written_again() {
    let (world, index) = (World::new(1, Faults::default()), SimIndex::new(&FULL, 1));
    let store = Hooked::new(SimStore::new(&world, usize::MAX));
    let mut writer = Writer::open(store.clone(), Box::new(index), WriterId([7; 16])).unwrap();
    assert_eq!(writer.step(0), Ok(Step::Reserved));
    let written: Arc<Mutex<Vec<Vec<Key>>>> = Arc::default();
    let (known, slow) = (Arc::clone(&written), || StoreError::TimedOut { reason: "slow".to_owned() });
    store.set(move |call| {
        let Call::Write(values) = call else { return Ok(()) };
        let mut known = lock(&known);
        // Until 16 at a time are allowed; then, every third batch fails.
        let is_late = values.len() > 16 || known.len() % 3 == 2;
        known.push(if is_late { Vec::new() } else { values.iter().map(|(key, _)| *key).collect() });
        if is_late { Err(slow()) } else { Ok(()) }
    });
    let mut failures = 0;
    loop {
        match writer.step(0) {
            Ok(step) => {
                assert_eq!(step, Step::Committed(Some(92)));
                break;
            }
            Err(error) => assert!(error.may_pass(), "{error}"),
        }
        failures += 1;
        assert!(failures < 100, "no progress");
    }
    let written = lock(&written);
    let mut keys: Vec<Key> = written.iter().flatten().copied().collect();
    keys.sort_unstable();
    let count = keys.len();
    keys.dedup();
    assert!(failures > 5, "{failures}");
    assert_eq!((count, keys.len()), (93, 93), "each delta was acknowledged once");
}

/// A generation takes hours: what is due meanwhile is removed between its batches.
#[test]
fn removals_go_on_while_a_generation_is_written() {
    let (world, index) = (World::new(1, Faults::default()), SimIndex::new(&FULL, 8));
    let mut writer = writer_of(&world, &index, 1);
    settle(&mut writer, 0);
    index.set(11);
    settle(&mut writer, 0);
    let due = world_row(&world).retired;
    assert!(!due.is_empty());
    index.set(12);
    let mut steps = Vec::new();
    loop {
        match writer.step(KEEP_SECONDS).unwrap() {
            Step::Idle => break,
            step => steps.push(step),
        }
    }
    let is_write = |step: &Step| matches!(step, Step::Wrote(_));
    let first = steps.iter().position(is_write).unwrap();
    let last = steps.iter().rposition(is_write).unwrap();
    let removed = steps[first..last].iter().filter(|step| **step == Step::Removed).count();
    let written = steps.iter().filter(|step| is_write(step)).count();
    assert!(written > 3 && removed >= due.len().min(written - 1), "{steps:?}");
    assert!(!world_row(&world).retired.iter().any(|retired| due.contains(retired)));
}

/// The sim itself: one key has one value, and a part of a list that a row names is there.
#[test]
fn the_store_of_the_tests_notices_a_second_value_and_a_write_after_a_removal() {
    let world = World::new(1, Faults::default());
    let store = SimStore::new(&world, usize::MAX);
    let bucket = Bucket { generation: 3, table: Table::Events, page: 1 };
    let key = |part| Key::Page(PageKey { bucket, part });
    let write = |part, value: &[u8]| {
        let values = [(key(part), value.to_vec())];
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| store.write(&values).unwrap())).is_ok()
    };
    assert!(write(0, b"one") && write(0, b"one") && write(2, b"two"));
    assert!(!write(2, b"owt") && write(2, b"two"));
    store.remove(&[Partition::Bucket(bucket)]).unwrap();
    assert!(!write(2, b"two") && !write(3, b"new"));
    lock(&world).has_one_writer = false;
    assert!(write(2, b"two"));
}

/// Threads that look for the place of the same lists may all read it, and it may be forgotten when they have it: each
/// gets its lists.
#[test]
fn threads_that_read_the_same_lists_all_get_them() {
    let (world, index) = (World::new(1, Faults::default()), SimIndex::new(&FULL, 8));
    settle(&mut writer_of(&world, &index, 1), 0);
    let segment = world_row(&world).content.segments[0].clone();
    let fetcher = Fetcher::new(SimStore::new(&world, usize::MAX));
    let pages = segment.facts.tables.iter().find(|(table, _)| *table == Table::Events).unwrap().1.pages;
    let lists = |page| fetcher.read_list_pages(segment.generation, page, &[0]);
    let (page, expected) = (0..pages).find_map(|page| Some((page, lists(page).ok()?))).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                fetcher.retain(&[]);
            }
        });
        let readers = [(); 2].map(|()| scope.spawn(|| (0..4_000).all(|_| lists(page).as_ref() == Ok(&expected))));
        let found = readers.map(|reader| reader.join().unwrap());
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(found, [true, true]);
    });
}
