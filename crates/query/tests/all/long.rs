//! A chain long enough for segments: single ones, merged ones, and blocks that are not sealed. It is left below what is
//! sealed, and comes back.

use crate::compare::{Asked, Extent};
use crate::draft::{Maker, Shape};
use crate::stories::setting;
use crate::world::{COMPACT, FULL, World};
use lydian_index::{Profile, UNSEALED_BLOCKS};
use std::time::Duration;

/// Blocks of a group, of which a segment is made.
const GROUP: usize = 256;

/// Sealed groups whose segments are merged.
const FAN: usize = 8;

/// Sealed groups by default.
const GROUPS: u64 = 2;

/// A part of the scripts and transactions; another one each time.
const PART: Extent = Extent { scripts: 16, txids: 61 };

fn grown(world: &mut World, maker: &mut Maker, fork: usize, count: usize) {
    let mut chain = world.chain[..=fork].to_vec();
    for _ in 0..count {
        let block = maker.block(&chain, &world.pool, 30);
        chain.push(block);
    }
    world.connect_all(fork, chain.split_off(fork + 1));
}

fn submit(world: &mut World, maker: &mut Maker) {
    for _ in 0..12 {
        if let Some(tx) = maker.unconfirmed(&world.chain, &world.pool) {
            world.submit(tx);
        }
    }
}

/// The segments on disk, by the heights in their names.
fn segments(world: &World) -> Vec<String> {
    let files = world.files();
    files.iter().filter_map(|name| name.strip_prefix("tables/")?.strip_suffix(".events")).map(str::to_owned).collect()
}

/// Those of a chain after a checkpoint: eight sealed groups are one, and each group that is not sealed is one.
fn expected_segments(blocks: usize) -> Vec<String> {
    let sealed = (blocks - UNSEALED_BLOCKS as usize) / GROUP;
    let singles = sealed / FAN * FAN..blocks / GROUP;
    let name = |from: usize, to: usize| format!("{:07}-{:07}", from * GROUP, to * GROUP);
    let merged = (0..sealed / FAN).map(|number| name(number * FAN, (number + 1) * FAN));
    merged.chain(singles.map(|number| name(number, number + 1))).collect()
}

/// Stops the node after a checkpoint, starts it, and waits for its segments.
fn seal(world: &mut World) {
    world.restart(false);
    let expected = expected_segments(world.chain.len());
    for _ in 0..30_000 {
        if segments(world) == expected {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(segments(world), expected);
}

fn tell(seed: u64, profile: Profile) {
    let groups = usize::try_from(setting("LYDIAN_QUERY_GROUPS").unwrap_or(GROUPS)).unwrap();
    let shape = Shape { txs: 2, fresh_percent: 15, fan_percent: 1, has_witness: true };
    let mut world = World::new(seed, profile);
    let mut maker = Maker::new(seed, shape, world.params.clone());
    let mut asked = Asked::new(seed);
    let count = UNSEALED_BLOCKS as usize + groups * GROUP + 100;
    grown(&mut world, &mut maker, 0, count);
    submit(&mut world, &mut maker);
    asked.compare(&world, PART);
    seal(&mut world);
    submit(&mut world, &mut maker);
    asked.compare(&world, PART);

    // A branch from below the end of the last sealed group, longer than the chain.
    let before = world.chain.len();
    let fork = groups * GROUP - 156;
    grown(&mut world, &mut maker, fork, before - fork + 5);
    asked.compare(&world, PART);
    seal(&mut world);
    asked.compare(&world, PART);
    // Into the first segment: everything is built anew.
    let left = world.invalidate(120);
    asked.compare(&world, PART);
    submit(&mut world, &mut maker);
    world.reconsider(left);
    asked.compare(&world, PART);
    seal(&mut world);
    world.restart(true);
    asked.compare(&world, PART);
    eprintln!("{} blocks: {:?}", world.chain.len(), world.counts);
}

#[test]
fn sealed_blocks_answer_as_others_and_may_be_left() {
    tell(7, COMPACT);
}

#[test]
fn sealed_blocks_with_txids_answer_as_others_and_may_be_left() {
    tell(8, FULL);
}
