//! Crashes on a simulated disk: the process or the power ends at the n-th disk operation, or an operation fails. The
//! engine, opened again, has the chain and the coins of a checkpoint, brings the followers there, continues, and ends
//! where an undisturbed run ends.
//!
//! `LYDIAN_CRASH_RUNS`: the number of crashes in each test, instead of as many as fit into a few seconds (`make
//! crash`).

use crate::expected::{Answer, Expected, Order, State, parse, state_of};
use crate::lydian::{How, Lydian, Place};
use crate::seeds::{for_seeds, setting};
use crate::story::{NOW, Shape, Story};
use lydian_chains::rng::Random;
use lydian_consensus::{PlainValidator, Violation};
use lydian_disk::{Fault, SimDisk};
use lydian_engine::{Cancel, EngineError, Event, Observer};
use lydian_primitives::{BlockHash, Height};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Mutex;

/// A step of a run.
#[derive(Clone, Copy, Debug)]
enum Step {
    Accept(usize),
    Store(usize),
    Advance,
    Checkpoint,
}

/// The events of a run.
#[derive(Debug, Default)]
struct Seen {
    tip: Option<BlockHash>,
    /// The tip of the last checkpoint, and all tips since.
    durable: Option<BlockHash>,
    since: Vec<BlockHash>,
    invalid: Vec<(BlockHash, Violation)>,
}

#[derive(Debug, Default)]
struct Listener(Mutex<Seen>);

impl Observer for Listener {
    fn event(&self, event: &Event<'_>) {
        let mut seen = self.0.lock().unwrap();
        match event {
            Event::UpdateTip(update) => {
                seen.tip = Some(update.hash);
                seen.since.push(update.hash);
            }
            Event::Checkpoint { .. } => {
                seen.durable = seen.tip;
                seen.since.clear();
            }
            Event::InvalidBlock { hash, violation, .. } => seen.invalid.push((*hash, **violation)),
            _ => {}
        }
    }
}

/// A small story, a disk on which its trunk is validated and durable, and the steps from there.
struct World {
    story: Story,
    expected: Expected,
    how: How,
    base: SimDisk,
    steps: Vec<Step>,
    /// A block on the last tip, so that no tie is left.
    decider: Vec<u8>,
    end: State,
    bytes: HashMap<BlockHash, usize>,
}

impl World {
    fn new(seed: u64) -> World {
        let mut random = Random::new(seed, "crash");
        let shape = Shape { blocks: 6 + random.index(14), repeats: false, ..Shape::random(&mut random) };
        let story = Story::with_shape(seed, shape);
        let expected = Expected::new(&story, Order::File, &mut random);
        let how = How {
            is_real: false,
            followers: random.index(4),
            pending_bytes_max: [300, 1_500, 6_000, 1 << 30][random.index(4)],
            ..How::random(&mut random)
        };
        let place = Place::on(SimDisk::new(seed));
        let lydian = Lydian::open(&place, &story.params, &how).unwrap();
        for fed in &expected.fed[..story.trunk] {
            lydian.engine.store_block(parse(&fed.block), i64::from(NOW)).unwrap().unwrap();
        }
        lydian.advance().unwrap();
        lydian.engine.checkpoint(&lydian_engine::Unobserved).unwrap();
        drop(lydian);
        let steps = steps(story.trunk..expected.fed.len(), &mut random);
        let decider = story.block_on(expected.end.hash, expected.end.height.0);
        let mut plain = PlainValidator::new(story.params.clone());
        for block in expected.fed.iter().map(|fed| &fed.block).chain([&decider]) {
            let _ = plain.accept_block(parse(block), NOW);
        }
        let end = state_of(&plain);
        assert_eq!(end.height.0, expected.end.height.0 + 1, "the decider is valid");
        let bytes = expected.fed.iter().enumerate().filter(|(_, fed)| fed.answer.is_ok());
        let bytes = bytes.map(|(index, fed)| (parse(&fed.block).hash(), index)).collect();
        World { base: place.sim.unwrap().kill(), story, expected, how, steps, decider, end, bytes }
    }

    /// Runs the steps; returns the number of steps done, and the error that ended them.
    fn run(&self, disk: &SimDisk, how: &How, listener: &Listener) -> (usize, Option<EngineError>) {
        let place = Place::on(disk.clone());
        let lydian = match Lydian::open(&place, &self.story.params, how) {
            Ok(lydian) => lydian,
            Err(error) => return (0, Some(error)),
        };
        let tip = lydian.engine.tip().hash;
        *listener.0.lock().unwrap() = Seen { tip: Some(tip), durable: Some(tip), ..Seen::default() };
        for (done, step) in self.steps.iter().enumerate() {
            let block = |index: usize| parse(&self.expected.fed[index].block);
            let result = match *step {
                Step::Accept(index) => lydian.engine.accept_block(block(index), i64::from(NOW), listener).map(|_| ()),
                Step::Store(index) => lydian.engine.store_block(block(index), i64::from(NOW)).map(|_| ()),
                Step::Advance => lydian.engine.advance(&Cancel::new(), listener).map(|_| ()),
                Step::Checkpoint => lydian.engine.checkpoint(listener),
            };
            if let Err(error) = result {
                let again = lydian.engine.advance(&Cancel::new(), listener);
                assert!(matches!(again, Err(EngineError::Poisoned { .. })), "nothing works after an error: {again:?}");
                return (done, Some(error));
            }
        }
        (self.steps.len(), None)
    }

    /// The plain validator's answer to a block of the tree, and its state then, if it gets that branch alone.
    fn alone(&self, hash: BlockHash) -> (Answer, State) {
        let mut path = Vec::new();
        let mut at = hash;
        while at != self.story.params.genesis_hash {
            let block = parse(&self.expected.fed[self.bytes[&at]].block);
            at = block.header().prev_block;
            path.push(block);
        }
        let mut plain = PlainValidator::new(self.story.params.clone());
        let answers = path.into_iter().rev().map(|block| plain.accept_block(block, NOW));
        (answers.last().unwrap(), state_of(&plain))
    }

    /// The state at a block that is valid with all its ancestors.
    fn state_at(&self, hash: BlockHash) -> State {
        let (answer, state) = self.alone(hash);
        assert!(answer.is_ok() && state.hash == hash, "{answer:?}");
        state
    }

    /// Asserts that blocks are invalid for the plain validator's reason. It may not have tried a block that was tried
    /// after a loss of data.
    fn assert_reasons(&self, invalid: &[(BlockHash, Violation)], when: &str) {
        for (hash, violation) in invalid {
            let known = self.expected.violations.get(hash).copied();
            let expected = known.map_or_else(|| self.alone(*hash).0, |violation| Err(violation.into()));
            assert_eq!(expected, Err((*violation).into()), "{when}: {hash} is called invalid");
        }
    }

    /// Opens the files after a crash and checks the state.
    fn reopen(&self, place: &Place, how: &How, listener: &Listener, when: &str) -> Lydian {
        let lydian = Lydian::open(place, &self.story.params, how);
        let lydian = lydian.unwrap_or_else(|error| panic!("{when}: not opened: {error}"));
        let tip = lydian.engine.tip();
        let seen = listener.0.lock().unwrap();
        if let Some(durable) = seen.durable {
            let is_known = durable == tip.hash || seen.since.contains(&tip.hash);
            assert!(is_known, "{when}: at {tip:?}, neither the last checkpoint {durable} nor later");
        }
        lydian.assert_state(&self.state_at(tip.hash), when);
        // A follower ahead of the coins might stand at a block that was lost.
        assert_eq!(lydian.cleared(), 0, "{when}: a follower had to begin anew");
        lydian
    }

    /// Submits every block again and ends where the undisturbed run ends.
    fn go_on(&self, lydian: &Lydian, when: &str) {
        let advance = lydian.advance().unwrap();
        self.assert_reasons(&advance.invalid, when);
        assert!(advance.unreadable.is_empty(), "{when}: {advance:?}");
        for block in self.expected.fed.iter().map(|fed| &fed.block).chain([&self.decider]) {
            if let Ok(accepted) = lydian.accept(block).unwrap() {
                self.assert_reasons(&accepted.invalid, when);
            }
        }
        lydian.assert_state(&self.end, when);
        let height = self.end.height.0;
        let checked = lydian.engine.check_last_blocks(height, 4);
        assert_eq!(checked.unwrap_or_else(|error| panic!("{when}: {error}")), height);
    }
}

/// Submits blocks one at a time, or stores several before an advance, with occasional checkpoints.
fn steps(blocks: std::ops::Range<usize>, random: &mut Random) -> Vec<Step> {
    let mut steps = Vec::new();
    for index in blocks {
        if random.chance(500) {
            steps.push(Step::Accept(index));
        } else {
            steps.push(Step::Store(index));
            if random.chance(300) {
                steps.push(Step::Advance);
            }
        }
        if random.chance(60) {
            steps.push(Step::Checkpoint);
        }
    }
    steps.push(Step::Advance);
    steps
}

/// Runs `test` with a world and the operation of the fault, for a share of the time or as often as the environment
/// variable says. A world is used for several faults.
fn for_faults(name: &str, share: u64, mut test: impl FnMut(&World, u64, &mut Random)) {
    let mut left = setting("LYDIAN_CRASH_RUNS").unwrap_or(u64::MAX);
    let is_timed = left == u64::MAX;
    let per_world = 24.min(left);
    let mut run = |seed: u64| {
        let world = World::new(seed);
        let counted = world.base.kill();
        let (_, error) = world.run(&counted, &world.how, &Listener::default());
        assert!(error.is_none(), "undisturbed: {error:?}");
        let operations = counted.operation_count();
        let mut random = Random::new(seed, "faults");
        for _ in 0..per_world {
            let operation = random.below(operations + 1);
            test(&world, operation, &mut random);
        }
        left = left.saturating_sub(per_world);
    };
    if is_timed {
        for_seeds(name, share, run);
        return;
    }
    let first = setting("LYDIAN_ENGINE_FIRST_SEED").unwrap_or(0);
    let worlds = setting("LYDIAN_CRASH_RUNS").unwrap_or(0).div_ceil(per_world.max(1));
    for seed in first..first + worlds {
        eprintln!("{name}: seed {seed}");
        run(seed);
    }
}

fn random_crash(random: &mut Random) -> Fault {
    [Fault::CrashBefore, Fault::CrashInside, Fault::CrashAfter][random.index(3)]
}

/// The process is killed: the system keeps what was written. Every accepted block is still stored.
/// checklist: 86, 88
#[test]
fn killed_at_any_operation() {
    for_faults("crash::killed_at_any_operation", 60, |world, operation, random| {
        let disk = world.base.kill();
        let fault = random_crash(random);
        disk.fail_at(operation, fault);
        let how = How { follower_delay: random.index(4), ..world.how };
        let listener = Listener::default();
        let (done, _) = world.run(&disk, &how, &listener);
        let when = format!("{fault:?} at {operation} in step {done} of {:?} under {how:?}", world.steps);
        let place = Place::on(disk.kill());
        let lydian = world.reopen(&place, &how, &listener, &when);
        let advance = lydian.advance().unwrap();
        assert!(advance.unreadable.is_empty(), "{when}: {advance:?}");
        // The block in progress is either stored or not.
        let fed = |count: usize| {
            let index = world.steps[..count].iter().rev().find_map(|step| match step {
                Step::Accept(index) | Step::Store(index) => Some(*index),
                _ => None,
            });
            world.expected.fed[index.unwrap_or(world.story.trunk - 1)].tip
        };
        let tip = lydian.engine.tip();
        let possible = [fed(done), fed((done + 1).min(world.steps.len()))];
        assert!(possible.contains(&(tip.height, tip.hash)), "{when}: at {tip:?} and not at one of {possible:?}");
        world.go_on(&lydian, &when);
    });
}

/// The power is lost: any part of the unsynced data is gone or torn. It may be lost again while the engine recovers.
/// checklist: 86
#[test]
fn power_lost_at_any_operation() {
    for_faults("crash::power_lost_at_any_operation", 100, |world, operation, random| {
        let disk = world.base.kill();
        let fault = random_crash(random);
        disk.fail_at(operation, fault);
        let listener = Listener::default();
        let (done, _) = world.run(&disk, &world.how, &listener);
        let mut when = format!("{fault:?} at {operation} in step {done} of {:?} under {:?}", world.steps, world.how);
        let mut lost = disk.power_loss(random.next_u64());
        while random.chance(400) {
            let again = random.below(25);
            when.push_str(&format!(", again at {again}"));
            lost.fail_at(again, random_crash(random));
            let again = Lydian::open(&Place::on(lost.clone()), &world.story.params, &world.how).map(|lydian| {
                let _ = lydian.advance();
            });
            drop(again);
            lost = lost.power_loss(random.next_u64());
        }
        let lydian = world.reopen(&Place::on(lost), &world.how, &listener, &when);
        world.go_on(&lydian, &when);
    });
}

/// One operation fails: no space, or an I/O error. The engine stops with an error that names a file; no block is
/// invalid because of it; opened again, the engine continues.
/// checklist: 93
#[test]
fn every_operation_may_fail() {
    for_faults("crash::every_operation_may_fail", 60, |world, operation, random| {
        let disk = world.base.kill();
        let is_read = random.chance(300);
        let fault = [Fault::NoSpace, Fault::Io][random.index(2)];
        if is_read {
            disk.fail_read_at(operation);
        } else {
            disk.fail_at(operation, fault);
        }
        after_an_error(world, &disk, &format!("{fault:?} at {operation} (read: {is_read})"), random);
    });
}

fn after_an_error(world: &World, disk: &SimDisk, fault: &str, random: &mut Random) {
    let listener = Listener::default();
    let (done, error) = world.run(disk, &world.how, &listener);
    let when = format!("{fault} in step {done} of {:?} under {:?}: {error:?}", world.steps, world.how);
    if let Some(error) = &error {
        let text = error.to_string();
        assert!((text.contains("node") || text.starts_with(".:")) && !text.contains('\n'), "{when}: {text}");
    }
    world.assert_reasons(&listener.0.lock().unwrap().invalid, &when);
    disk.set_capacity(u64::MAX);
    let disk = if random.chance(500) { disk.kill() } else { disk.power_loss(random.next_u64()) };
    let lydian = world.reopen(&Place::on(disk), &world.how, &listener, &when);
    world.go_on(&lydian, &when);
}

/// The disk fills up at any point and stays full until space is freed.
/// checklist: 93
#[test]
fn a_full_disk() {
    for_faults("crash::a_full_disk", 30, |world, _, random| {
        let disk = world.base.kill();
        let used = u64::MAX - lydian_disk::Disk::free_bytes(&disk, Path::new("node")).unwrap();
        let more = random.below(30_000);
        disk.set_capacity(used + more);
        after_an_error(world, &disk, &format!("{more} bytes left"), random);
    });
}

/// Bit rot in a file: it is found and named, or repaired; the engine's answers are right, or an error.
/// checklist: 94
#[test]
fn a_flipped_bit_is_never_believed() {
    for_faults("crash::a_flipped_bit_is_never_believed", 40, |world, _, random| {
        let disk = world.base.kill();
        let listener = Listener::default();
        let (_, error) = world.run(&disk, &world.how, &listener);
        assert!(error.is_none());
        let disk = disk.kill();
        let files: Vec<_> = ["node/blocks", "node/blocks/index", "node/chainstate"]
            .iter()
            .flat_map(|folder| lydian_disk::Disk::list(&disk, Path::new(folder)).unwrap())
            .filter(|(_, kind)| *kind == lydian_disk::PathKind::File)
            .collect();
        let (path, _) = &files[random.index(files.len())];
        let size = lydian_disk::Disk::open(&disk, path).unwrap().size();
        if size == 0 {
            return;
        }
        let (offset, mask) = (random.below(size), 1 << random.below(8));
        disk.flip(path, offset, mask).unwrap();
        let when = format!("{} at {offset} of {size} by {mask} under {:?}", path.display(), world.how);
        if let Err(error) = believe(world, disk, &when) {
            assert!(error.to_string().contains("node") || error.to_string().contains("-reindex"), "{when}: {error}");
        }
    });
}

/// Continues after bit rot until there is an error.
fn believe(world: &World, disk: SimDisk, when: &str) -> Result<(), EngineError> {
    // A follower that is behind needs the damaged block.
    let how = How { followers: 0, falls_every: None, ..world.how };
    let lydian = Lydian::open(&Place::on(disk), &world.story.params, &how)?;
    let advance = lydian.advance()?;
    world.assert_reasons(&advance.invalid, when);
    for block in world.expected.fed.iter().map(|fed| &fed.block).chain([&world.decider]) {
        if let Ok(accepted) = lydian.accept(block)? {
            world.assert_reasons(&accepted.invalid, when);
        }
    }
    let mut coins = 0_u64;
    let _: ControlFlow<()> = lydian.engine.coins().each(&mut |_, _| {
        coins += 1;
        ControlFlow::Continue(())
    })?;
    let tip = lydian.engine.tip();
    assert_eq!((tip.height, tip.hash), tip_of(&world.end), "{when}");
    lydian.assert_state(&world.end, when);
    Ok(())
}

fn tip_of(state: &State) -> (Height, BlockHash) {
    (state.height, state.hash)
}
