//! Blocks in the store: what a row says of them, after reorganisations, after the end of a writer, beside pruning; and
//! parts that are missing or damaged.

use super::chain::{FULL, GENESIS};
use super::hooked::{Call, Hooked};
use super::seeds::{SimIndex, world_row};
use super::sim::{Faults, SimStore, World};
use crate::limits::BLOCKS_PER_COMMIT_MAX;
use crate::store::*;
use crate::writer::{KEEP_SECONDS, Step, Writer};
use crate::{BlockSource, Leftover, SharedIndex, WriterId, stored_bytes};
use lydian_index::Place;
use lydian_primitives::{BlockHash, Height};
use lydian_stdx::lock;
use std::sync::{Arc, Mutex};

fn writer_on(store: Arc<dyn Store>, index: &SimIndex, id: u8) -> Writer {
    let writer = Writer::open(store, Box::new(index.clone()), WriterId([id; 16])).unwrap();
    writer.with_blocks(Box::new(index.clone()))
}

fn settle(writer: &mut Writer, now: u64) {
    while writer.step(now).unwrap() != Step::Idle {}
}

/// A store with the blocks of a state.
fn stored(state: usize) -> (Arc<Mutex<World>>, Arc<SimStore>, SimIndex) {
    let world = World::new(1, Faults::default());
    let (store, index) = (SimStore::new(&world, usize::MAX), SimIndex::new(&FULL, state));
    settle(&mut writer_on(store.clone(), &index, 7), 0);
    (world, store, index)
}

/// Blocks that the row names and that are those of the state; the others of the chain.
fn found(shared: &SharedIndex, state: usize) -> (u32, u32) {
    let (mut here, mut missing) = (0, 0);
    for (height, hash) in (0..).zip(&FULL.states[state].model.hashes) {
        assert_eq!(shared.height_of(hash), Some(height));
        match shared.stored_block(height, hash).unwrap() {
            Some(bytes) => {
                assert!(bytes == FULL.raw[hash].as_bytes(), "block {hash}");
                here += 1;
            }
            None => missing += 1,
        }
    }
    (here, missing)
}

#[test]
fn a_store_has_the_blocks_of_the_chain_through_reorganisations_and_drops_the_others() {
    let world = World::new(1, Faults::default());
    let (store, index) = (SimStore::new(&world, usize::MAX), SimIndex::new(&FULL, 0));
    let mut writer = writer_on(store.clone(), &index, 7);
    let (mut now, mut shared, mut series) = (1_700_000_000, None, 0);
    for (at, state) in FULL.states.iter().enumerate() {
        index.set(at);
        now += 600;
        settle(&mut writer, now);
        let shared = shared.get_or_insert_with(|| SharedIndex::open(store.clone(), &GENESIS).unwrap());
        shared.refresh().unwrap();
        let count = u32::try_from(state.model.hashes.len()).unwrap();
        assert_eq!(found(shared, at), (count, 0), "state {at}");
        let commit = world_row(&world);
        let bytes = state.model.hashes.iter().map(|hash| FULL.raw[hash].as_bytes().len() as u64).sum::<u64>();
        let of_store = stored_bytes(&(store.clone() as Arc<dyn Store>), &commit).unwrap();
        assert_eq!((commit.stored_blocks(), of_store), (count, bytes));
        series = series.max(commit.blocks.len());
    }
    assert!(series > 3, "reorganisations begin other series: {series}");
    settle(&mut writer, now + KEEP_SECONDS);
    let commit = world_row(&world);
    assert!(!commit.retired.iter().any(|retired| matches!(retired.what, Leftover::Blocks { .. })));
    let is_named =
        |at: &BlockHeight| commit.blocks.iter().any(|run| run.series == at.series && run.heights.contains(&at.height));
    let left = lock(&world).partitions();
    let blocks: Vec<&BlockHeight> =
        left.iter().filter_map(|one| if let Partition::Blocks(at) = one { Some(at) } else { None }).collect();
    assert!(blocks.iter().all(|at| is_named(at)), "orphaned blocks are left");
    assert_eq!(blocks.len(), commit.stored_blocks() as usize);
}

/// At any call, also between the last write and the row.
#[test]
fn a_writer_that_ended_is_continued_from_the_row() {
    let (state, whole) = (8, Arc::<Mutex<usize>>::default());
    for fuel in 1..60 {
        let world = World::new(fuel as u64, Faults::default());
        let index = SimIndex::new(&FULL, state);
        let cut_off = SimStore::new(&world, fuel);
        if let Ok(writer) = Writer::open(cut_off.clone(), Box::new(index.clone()), WriterId([7; 16])) {
            let mut writer = writer.with_blocks(Box::new(index.clone()));
            while writer.step(0).is_ok_and(|step| step != Step::Idle) {}
        }
        if !cut_off.is_cut_off() {
            break;
        }
        // A swap that is under way is applied or void.
        drop(SimStore::new(&world, usize::MAX).commit(CommitRead::Serial).unwrap());
        let before = lock(&world).row().map_or(0, |row| row.stored_blocks());
        let store = Hooked::new(SimStore::new(&world, usize::MAX));
        let written = Arc::<Mutex<usize>>::default();
        let counted = Arc::clone(&written);
        store.set(move |call| {
            let is_head = |(key, _): &&(Key, Vec<u8>)| matches!(key, Key::Block(BlockKey { part: 0, .. }));
            if let Call::Write(values) = call {
                *lock(&counted) += values.iter().filter(is_head).count();
            }
            Ok(())
        });
        settle(&mut writer_on(store, &index, 8), 0);
        let count = FULL.states[state].model.hashes.len();
        assert_eq!(*lock(&written), count - before as usize, "what the row names is not written again");
        let shared = SharedIndex::open(SimStore::new(&world, usize::MAX), &GENESIS).unwrap();
        assert_eq!(found(&shared, state), (u32::try_from(count).unwrap(), 0));
        *lock(&whole) += usize::from(before > 0);
    }
    assert!(*lock(&whole) > 5, "writers that ended while blocks were written: {whole:?}");
}

#[test]
fn a_node_that_prunes_writes_what_it_has_and_another_one_the_rest() {
    let world = World::new(1, Faults::default());
    let (store, index) = (SimStore::new(&world, usize::MAX), SimIndex::new(&FULL, 6));
    index.prune(200);
    settle(&mut writer_on(store.clone(), &index, 7), 0);
    let shared = SharedIndex::open(store.clone(), &GENESIS).unwrap();
    let count = u32::try_from(FULL.states[6].model.hashes.len()).unwrap();
    assert_eq!(found(&shared, 6), (count - 200, 200));
    assert!(!shared.has_block(199) && shared.has_block(200));
    // It was away, and the next blocks are gone too.
    let next = u32::try_from(FULL.states[8].model.hashes.len()).unwrap();
    index.set(8);
    index.prune(next - 30);
    settle(&mut writer_on(store.clone(), &index, 8), 0);
    shared.refresh().unwrap();
    let (here, missing) = found(&shared, 8);
    // The last blocks of the state before left the chain.
    assert!((count - 300 + 30..=count - 200 + 30).contains(&here), "{here}");
    assert_eq!(here + missing, next);
    // Without `-storeblocks`, what is there stays.
    let mut writer = Writer::open(store.clone(), Box::new(index.clone()), WriterId([9; 16])).unwrap();
    settle(&mut writer, 0);
    assert_eq!(found(&shared, 8), (here, missing));
    index.prune(0);
    settle(&mut writer_on(store, &index, 10), 0);
    shared.refresh().unwrap();
    assert_eq!(found(&shared, 8), (next, 0));
    assert!(crate::runs::are_in_order(&world_row(&world).blocks));
}

/// A source whose blocks are others from a height on.
#[derive(Debug)]
struct Damaged(SimIndex, u32);

impl BlockSource for Damaged {
    fn first_from(&self, height: u32) -> Option<u32> {
        self.0.first_from(height)
    }

    fn block(&self, height: u32, hash: &BlockHash) -> Result<Option<Vec<u8>>, String> {
        let mut bytes = self.0.block(height, hash)?.unwrap();
        bytes[0] ^= u8::from(height >= self.1);
        Ok(Some(bytes))
    }
}

#[test]
fn a_source_that_has_another_block_ends_the_writing_of_blocks_and_not_that_of_the_index() {
    let world = World::new(1, Faults::default());
    let (store, index) = (SimStore::new(&world, usize::MAX), SimIndex::new(&FULL, 3));
    let writer = Writer::open(store.clone(), Box::new(index.clone()), WriterId([7; 16])).unwrap();
    let mut writer = writer.with_blocks(Box::new(Damaged(index.clone(), 40)));
    settle(&mut writer, 0);
    let hash = FULL.states[3].model.hashes[40];
    let text = format!("what the node has of block {hash} at height 40 is another block");
    assert_eq!((writer.block_fault(), writer.stored_blocks()), (Some(text.as_str()), 40));
    index.set(4);
    settle(&mut writer, 0);
    assert_eq!((writer.lag(), writer.stored_blocks()), (0, 40));
}

#[test]
fn a_part_that_a_replica_lacks_is_read_from_a_quorum_and_one_that_all_lack_is_an_error() {
    let (world, store, _) = stored(8);
    let shared = SharedIndex::open(store, &GENESIS).unwrap();
    // With 2,000 outputs: several parts.
    let is_large = |hash: &BlockHash| FULL.raw[hash].as_bytes().len() > (16 << 10) + 100;
    let height = u32::try_from(FULL.states[8].model.hashes.iter().position(is_large).unwrap()).unwrap();
    let hash = FULL.states[8].model.hashes[height as usize];
    let block = FULL.raw[&hash].as_bytes();
    let series = world_row(&world).blocks.iter().find(|run| run.heights.contains(&height)).unwrap().series;
    let key = |part| Key::Block(BlockKey { at: BlockHeight { series, height }, hash, part });
    let whole = || shared.stored_block(height, &hash);
    let range = |offset: usize, size: usize| {
        let (offset, size) = (u32::try_from(offset).unwrap(), u32::try_from(size).unwrap());
        shared.stored_transactions(&[(Place { height: Height(height), offset, size }, hash)])
    };
    for part in 0..=2 {
        lock(&world).spoil(&key(part), &[1], |value| match part {
            1 => *value = None,
            _ => value.as_mut().unwrap()[80] ^= 4,
        });
    }
    for _ in 0..20 {
        assert_eq!(whole().unwrap().as_deref(), Some(block));
    }
    let before = lock(&world).reads;
    assert_eq!(range((16 << 10) - 5, 10).unwrap().unwrap(), [block[(16 << 10) - 5..(16 << 10) + 5].to_vec()]);
    assert_eq!(lock(&world).reads - before, 2, "the parts that cover the range");
    let end = range(block.len() - 1, 2).unwrap_err();
    assert!(end.to_string().contains("the block ends before a transaction that it should have"), "{end}");
    // A part that is missing everywhere does not matter to others.
    lock(&world).spoil(&key(2), &[0, 1, 2], |value| *value = None);
    let text = format!("lacks part 2 of block {hash} at height {height} of series {series}");
    for error in [whole().unwrap_err(), range(16 << 10, 1).unwrap_err()] {
        assert!(matches!(error, StoreError::Missing { .. }) && error.to_string().contains(&text), "{error}");
    }
    assert_eq!(range(0, 10).unwrap().unwrap(), [block[..10].to_vec()]);
    lock(&world).spoil(&key(1), &[0, 1, 2], |value| *value = Some(vec![1; 40]));
    assert!(matches!(range(0, 10), Err(StoreError::Damaged { .. })));
    let headers = shared.stored_headers(&[(height, hash)]).unwrap().unwrap();
    assert_eq!(headers[0].hash(), hash);
}

/// limit: BLOCKS_PER_COMMIT_MAX at
/// limit: BLOCKS_PER_COMMIT_MAX above
#[test]
fn a_row_names_new_blocks_after_so_many_at_most() {
    let world = World::new(1, Faults::default());
    let (store, index) = (SimStore::new(&world, usize::MAX), SimIndex::new(&FULL, 8));
    let mut writer = writer_on(store, &index, 7);
    let (mut named, mut most) = (0, 0);
    while writer.step(0).unwrap() != Step::Idle {
        let blocks = world_row(&world).stored_blocks();
        most = most.max(blocks - named);
        named = blocks;
    }
    // More are written before the row says so, and a batch has fewer.
    assert_eq!(most, BLOCKS_PER_COMMIT_MAX);
    assert!(named > 4 * BLOCKS_PER_COMMIT_MAX);
}
