//! Blocks in files of Core's framing, in any order and over several files, with garbage between them: read in place or
//! copied. The result is the plain validator's for the blocks in file order, parents first.

use crate::expected::{Expected, parse, shuffle, state_of};
use crate::lydian::{How, Lydian, Place, layout};
use crate::seeds::for_seeds;
use crate::story::{NOW, Story};
use lydian_chain::{BlockFile, Obfuscation};
use lydian_chains::presets::maker::Maker;
use lydian_chains::rng::Random;
use lydian_consensus::{Chain, Params, PlainValidator};
use lydian_disk::{Disk, Fault, SimDisk};
use lydian_engine::limits::LEAVE_BLOCKS_MAX;
use lydian_engine::{EngineError, ImportFiles, Wipe, wipe};
use lydian_primitives::build::MutBlock;
use lydian_primitives::{BlockHash, Height};
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// Writes blocks to one to three files; returns the files.
fn write_files(disk: &dyn Disk, blocks: &[&Vec<u8>], magic: [u8; 4], random: &mut Random) -> Vec<BlockFile> {
    let folder = Path::new("elsewhere");
    disk.create_dir(folder).unwrap();
    let key = if random.chance(500) { [0; 8] } else { random.next_u64().to_le_bytes() };
    let per_file = blocks.len().div_ceil(1 + random.index(3)).max(1);
    let files = blocks.chunks(per_file).enumerate().map(|(number, blocks)| {
        let mut content = Vec::new();
        for block in blocks {
            if random.chance(50) {
                content.resize(content.len() + random.index(40), 0);
            }
            content.extend_from_slice(&magic);
            content.extend_from_slice(&u32::try_from(block.len()).unwrap().to_le_bytes());
            content.extend_from_slice(block);
        }
        content.iter_mut().zip(key.iter().cycle()).for_each(|(byte, key)| *byte ^= key);
        let path = folder.join(format!("blk{number:05}.dat"));
        disk.write_whole(&path, &content).unwrap();
        BlockFile { path, key: Obfuscation::new(key) }
    });
    files.collect()
}

/// The order in which blocks of files are accepted: a block without its parent waits for it.
fn parents_first(story: &Story, blocks: &[&Vec<u8>]) -> Vec<Vec<u8>> {
    let mut known = HashSet::from([story.params.genesis_hash]);
    let mut waiting: HashMap<BlockHash, Vec<&Vec<u8>>> = HashMap::new();
    let mut taken = Vec::new();
    for block in blocks {
        let mut ready = vec![*block];
        while let Some(bytes) = ready.pop() {
            let block = parse(bytes);
            if !known.contains(&block.header().prev_block) {
                waiting.entry(block.header().prev_block).or_default().push(bytes);
                continue;
            }
            known.insert(block.hash());
            taken.push(bytes.clone());
            ready.extend(waiting.remove(&block.hash()).into_iter().flatten().rev());
        }
    }
    taken
}

#[test]
fn files_in_any_order() {
    for_seeds("import::files_in_any_order", 40, |seed| {
        let mut random = Random::new(seed, "import");
        let story = Story::new(seed);
        // For one hash, a file has the bytes that come first; Core's files hold no others.
        let mut seen = HashSet::new();
        let made = story.blocks.iter().rev().filter(|made| seen.insert(parse(&made.bytes).hash()));
        let mut blocks: Vec<&Vec<u8>> = made.map(|made| &made.bytes).collect();
        blocks.reverse();
        if random.chance(700) {
            shuffle(&mut blocks, &mut random);
        }
        let taken = parents_first(&story, &blocks);
        let expected = Expected::of(&story.params, taken.into_iter().map(|bytes| (bytes, String::new(), NOW)));
        let how = How { is_real: false, ..How::random(&mut random) };
        let place = Place::new(&how, "");
        let files = write_files(place.disk.as_ref(), &blocks, story.params.magic, &mut random);
        let is_copied = random.chance(400);
        let when = format!("copied: {is_copied}, under {how:?}");
        let before: Vec<Vec<u8>> = files.iter().map(|file| content(place.disk.as_ref(), &file.path)).collect();
        for round in 0..2 {
            let lydian = Lydian::open(&place, &story.params, &how).unwrap();
            let files = ImportFiles { files: files.clone(), is_copied };
            let import = lydian.engine.import(files, i64::from(NOW), &mut |_, _| {}).unwrap();
            assert_eq!(import.blocks, blocks.len() as u64, "{when}");
            if round == 1 && !is_copied {
                assert_eq!(import.new_blocks, 0, "everything is known: {when}");
            }
            let advance = lydian.advance().unwrap();
            for (hash, violation) in &advance.invalid {
                assert_eq!(expected.violation_of(hash), Some(*violation), "{hash} {when}");
            }
            for (hash, reason) in &advance.unreadable {
                assert!(expected.mutated.contains_key(hash), "{hash}: {reason} {when}");
            }
            lydian.assert_state(&expected.end, &when);
        }
        let after: Vec<Vec<u8>> = files.iter().map(|file| content(place.disk.as_ref(), &file.path)).collect();
        assert!(before == after, "files of others are only read");
    });
}

fn content(disk: &dyn Disk, path: &Path) -> Vec<u8> {
    lydian_disk::read_whole(disk, path, 1 << 30).unwrap()
}

/// An import is interrupted anywhere, by a kill or a loss of power, and started again.
/// checklist: 86
#[test]
fn an_import_that_is_interrupted() {
    for_seeds("import::an_import_that_is_interrupted", 40, |seed| {
        let mut random = Random::new(seed, "cut");
        let story = Story::new(seed);
        let mut seen = HashSet::new();
        let made = story.blocks.iter().rev().filter(|made| seen.insert(parse(&made.bytes).hash()));
        let mut blocks: Vec<&Vec<u8>> = made.map(|made| &made.bytes).collect();
        blocks.reverse();
        let brought = blocks.iter().map(|bytes| ((*bytes).clone(), String::new(), NOW));
        let expected = Expected::of(&story.params, brought);
        let decider = story.block_on(expected.end.hash, expected.end.height.0);
        let mut plain = PlainValidator::new(story.params.clone());
        for block in blocks.iter().copied().chain([&decider]) {
            let _ = plain.accept_block(parse(block), NOW);
        }
        let end = state_of(&plain);
        blocks.push(&decider);
        let how = How { is_real: false, ..How::random(&mut random) };
        let mut disk = SimDisk::new(seed);
        let files = write_files(&disk, &blocks, story.params.magic, &mut random);
        let is_copied = random.chance(600);
        let mut when = format!("copied: {is_copied}, under {how:?}");
        let work = |disk: &SimDisk| -> Result<Lydian, EngineError> {
            let lydian = Lydian::open(&Place::on(disk.clone()), &story.params, &how)?;
            let files = ImportFiles { files: files.clone(), is_copied };
            lydian.engine.import(files, i64::from(NOW), &mut |_, _| {})?;
            let advance = lydian.advance()?;
            for (hash, violation) in &advance.invalid {
                assert_eq!(expected.violation_of(hash), Some(*violation), "{hash}");
            }
            lydian.engine.checkpoint(&lydian_engine::Unobserved)?;
            Ok(lydian)
        };
        for _ in 0..=random.index(4) {
            let operation = random.below(450);
            let fault = [Fault::CrashBefore, Fault::CrashInside, Fault::CrashAfter][random.index(3)];
            when.push_str(&format!(", {fault:?} at {operation}"));
            disk.fail_at(operation, fault);
            let _ = work(&disk);
            disk = if random.chance(400) { disk.kill() } else { disk.power_loss(random.next_u64()) };
        }
        let lydian = work(&disk).unwrap_or_else(|error| panic!("{when}: {error}"));
        lydian.assert_state(&end, &when);
    });
}

/// After a reindex no block is known any more, and after `-reindex-chainstate` the chain begins anew: a follower that
/// stands above begins anew as well, and is fed by the run that connects the blocks again.
#[test]
fn followers_of_a_wiped_chain_begin_anew() {
    for (what, cleared) in [(Wipe::Index, 2), (Wipe::Coins, 0)] {
        let story = Story::new(1);
        let how = How { is_real: false, followers: 3, fails_at: None, ..How::random(&mut Random::new(1, "anew")) };
        let place = Place::new(&how, "");
        let lydian = Lydian::open(&place, &story.params, &how).unwrap();
        for made in &story.blocks {
            let _ = lydian.accept(&made.bytes).unwrap();
        }
        lydian.engine.checkpoint(&lydian_engine::Unobserved).unwrap();
        let before = lydian.state();
        drop(lydian);
        wipe(place.disk.as_ref(), &layout(Path::new("node")), what).unwrap();
        let lydian = Lydian::open(&place, &story.params, &how).unwrap();
        lydian.advance().unwrap();
        lydian.assert_state(&before, "after it was made again");
        assert_eq!(lydian.cleared(), cleared, "{what:?}: undo data is there unless it was wiped");
    }
}

/// After `-reindex-chainstate` a follower stands above the chain. It leaves a number of blocks one by one; more than
/// that, and it begins anew.
/// limit: LEAVE_BLOCKS_MAX at
/// limit: LEAVE_BLOCKS_MAX above
#[test]
fn a_follower_leaves_some_blocks_and_not_more() {
    let how = How { is_real: false, followers: 2, fails_at: None, ..How::random(&mut Random::new(1, "leaves")) };
    let how = How { cache_bytes: 1 << 30, pending_bytes_max: 1 << 30, window_bytes: 40 << 20, ..how };
    let params = Params::new(Chain::Regtest);
    for (more, cleared) in [(0, 0), (1, 2)] {
        let place = Place::new(&how, "");
        let lydian = Lydian::open(&place, &params, &how).unwrap();
        let store = |_: &Maker, block: &MutBlock| -> std::io::Result<()> {
            lydian.engine.store_block(parse(&block.encode()), i64::from(u32::MAX)).unwrap().unwrap();
            Ok(())
        };
        Maker::new().grow(LEAVE_BLOCKS_MAX + more, store).unwrap();
        lydian.advance().unwrap();
        lydian.engine.checkpoint(&lydian_engine::Unobserved).unwrap();
        drop(lydian);
        wipe(place.disk.as_ref(), &layout(Path::new("node")), Wipe::Coins).unwrap();
        let lydian = Lydian::open(&place, &params, &how).unwrap();
        lydian.engine.finish_catch_up();
        assert_eq!((lydian.engine.tip().height, lydian.cleared()), (Height(0), cleared), "{more} more");
        lydian.assert_followers(&lydian.state(), "at the genesis block");
    }
}

/// A wipe, or the rebuild after it, is interrupted at any moment by a kill or a loss of power. The block files are not
/// touched, and in the end everything is rebuilt.
/// checklist: 86, 91
#[test]
fn a_wipe_that_is_interrupted() {
    for_seeds("import::a_wipe_that_is_interrupted", 60, |seed| {
        let mut random = Random::new(seed, "wipe");
        let story = Story::new(seed);
        let expected =
            Expected::of(&story.params, story.blocks.iter().map(|made| (made.bytes.clone(), String::new(), NOW)));
        let what = [Wipe::Coins, Wipe::Index][random.index(2)];
        let how = How { is_real: false, followers: random.index(4), ..How::random(&mut random) };
        let place = Place::new(&how, "");
        let lydian = Lydian::open(&place, &story.params, &how).unwrap();
        let decider = lydian.accept_all(&story, &expected);
        drop(lydian);
        let mut plain = PlainValidator::new(story.params.clone());
        for block in expected.fed.iter().map(|fed| &fed.block).chain([&decider]) {
            let _ = plain.accept_block(parse(block), NOW);
        }
        let end = state_of(&plain);
        let blocks = Path::new("node/blocks/blk00000.dat");
        let before = content(place.disk.as_ref(), blocks);
        let base = place.sim.unwrap();
        for _ in 0..6 {
            let mut disk = base.kill();
            let mut when = format!("{what:?} under {how:?}");
            for _ in 0..=random.index(3) {
                let (operation, fault) =
                    (random.below(60), [Fault::CrashBefore, Fault::CrashInside, Fault::CrashAfter][random.index(3)]);
                when.push_str(&format!(", {fault:?} at {operation}"));
                disk.fail_at(operation, fault);
                let _ = wipe_and_open(&disk, &story, &how, what);
                disk = if random.chance(500) { disk.kill() } else { disk.power_loss(random.next_u64()) };
            }
            let lydian = wipe_or_not(&disk, &story, &how, what, random.chance(500));
            lydian.advance().unwrap();
            lydian.assert_state(&end, &when);
            let checked = lydian.engine.check_last_blocks(end.height.0, 3);
            assert_eq!(checked.unwrap_or_else(|error| panic!("{when}: {error}")), end.height.0);
            // Data not known to be safe may have been copied to another file.
            let after = content(&disk, blocks);
            assert!(before.starts_with(&after), "block files are not touched: {when}");
        }
    });
}

fn wipe_and_open(disk: &SimDisk, story: &Story, how: &How, what: Wipe) -> Result<(), EngineError> {
    wipe(disk, &layout(Path::new("node")), what)?;
    Lydian::open(&Place::on(disk.clone()), &story.params, how)?.advance()?;
    Ok(())
}

/// The next process wipes again, or just starts.
fn wipe_or_not(disk: &SimDisk, story: &Story, how: &How, what: Wipe, is_again: bool) -> Lydian {
    if is_again {
        wipe(disk, &layout(Path::new("node")), what).unwrap();
    }
    Lydian::open(&Place::on(disk.clone()), &story.params, how).unwrap()
}
