//! Writers and readers under a thousand seeds: whatever the store does, and wherever a writer ends, a reader answers as
//! the embedded index did at the block of the commit row, or not at all.
//!
//! `LYDIAN_STORE_SEED=N` runs one seed, `LYDIAN_STORE_SEEDS=N` so many.

use super::chain::{COMPACT, FULL, GENESIS, Model, SHORT, SHORT_COMPACT, Story};
use super::sim::{Faults, Lie, SimStore, World};
use crate::plan::Plan;
use crate::store::*;
use crate::writer::{KEEP_SECONDS, Source, Step, Writer, WriterError};
use crate::{BlockRun, BlockSource, Commit, Leftover, ReaderError, SharedIndex, WriterId};
use lydian_index::{Export, Identity, Place, Table, TxIndexReader};
use lydian_primitives::{BlockHash, Height};
use lydian_stdx::{SplitMix64, lock};
use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex};

const SEEDS: u64 = 1_000;

/// Seeds in which something that is wrong on purpose must be noticed.
const LYING_SEEDS: u64 = 40;

/// Where the embedded index of a simulated node is in the story.
#[derive(Clone, Debug)]
pub(super) struct SimIndex {
    story: &'static Story,
    at: Arc<Mutex<usize>>,
    /// The height below which the node has pruned its blocks.
    pruned: Arc<Mutex<u32>>,
}

impl SimIndex {
    pub(super) fn new(story: &'static Story, at: usize) -> SimIndex {
        SimIndex { story, at: Arc::new(Mutex::new(at)), pruned: Arc::default() }
    }

    pub(super) fn prune(&self, height: u32) {
        *lock(&self.pruned) = height;
    }

    pub(super) fn set(&self, at: usize) {
        *lock(&self.at) = at;
    }

    fn at(&self) -> usize {
        *lock(&self.at)
    }
}

impl Source for SimIndex {
    fn identity(&self) -> Identity {
        self.story.identity
    }

    fn export(&self) -> Option<Export> {
        Some(self.story.states[self.at()].export.clone())
    }
}

impl BlockSource for SimIndex {
    fn first_from(&self, height: u32) -> Option<u32> {
        let tip = self.export()?.tip()?.height.0;
        Some(height.max(*lock(&self.pruned))).filter(|height| *height <= tip)
    }

    fn block(&self, height: u32, hash: &BlockHash) -> Result<Option<Vec<u8>>, String> {
        let is_here = height >= *lock(&self.pruned);
        Ok(is_here.then(|| self.story.raw[hash].as_bytes().to_vec()))
    }
}

/// A node that writes: its process may end at any call.
#[derive(Debug)]
struct Node {
    index: SimIndex,
    store: Arc<SimStore>,
    writer: Option<Writer>,
    is_replaced: bool,
}

/// A simulated cluster with its nodes and front ends.
struct Case {
    random: SplitMix64,
    story: &'static Story,
    world: Arc<Mutex<World>>,
    nodes: Vec<Node>,
    readers: Vec<SharedIndex>,
    now: u64,
    /// What every error of an answer must say; `None`: the store may fail in any way.
    allowed: Option<&'static str>,
    /// Two nodes may leave values of each other.
    is_single: bool,
    /// The nodes write their blocks too.
    has_blocks: bool,
    counts: BTreeMap<&'static str, u64>,
}

pub(super) fn writer_id(random: &mut SplitMix64) -> WriterId {
    let mut id = [0; 16];
    id.fill_with(|| random.byte());
    WriterId(id)
}

impl Case {
    fn new(seed: u64) -> Case {
        let mut random = SplitMix64::new(seed);
        let story = match seed % 24 {
            0 => &*COMPACT,
            8 | 16 => &*FULL,
            other if other % 4 == 0 => &*SHORT_COMPACT,
            _ => &*SHORT,
        };
        // One seed in five has a store without faults.
        let most = [0, 2, 10, 40, 120][random.below(5)];
        let mut often = || if most == 0 { 0 } else { random.below(most) };
        let faults = Faults {
            late: often() / 4,
            lost: often() / 8,
            repeated: often(),
            silent: often() * 2,
            stale: often(),
            damaged: often() / 40,
        };
        let world = World::new(random.next_u64(), faults);
        let at = random.below(story.states.len());
        let mut case = Case {
            random,
            story,
            world,
            nodes: Vec::new(),
            readers: Vec::new(),
            now: 1_700_000_000,
            allowed: None,
            is_single: true,
            has_blocks: seed % 3 == 1,
            counts: BTreeMap::new(),
        };
        let nodes = if case.random.below(4) == 0 { 2 } else { 1 };
        case.is_single = nodes == 1;
        lock(&case.world).has_one_writer = case.is_single;
        for _ in 0..nodes {
            let store = case.client();
            let index = SimIndex::new(story, at);
            case.nodes.push(Node { index, store, writer: None, is_replaced: false });
        }
        case
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    /// A client whose process ends after some calls.
    fn client(&mut self) -> Arc<SimStore> {
        let fuel = if self.random.below(3) == 0 { 1 + self.random.below(60) } else { usize::MAX };
        SimStore::new(&self.world, fuel)
    }

    /// One step of a node's writer. False if there was nothing to do.
    fn step(&mut self, node: usize) -> bool {
        let (store, is_new) = {
            let node = &self.nodes[node];
            (Arc::clone(&node.store), node.writer.is_none())
        };
        if store.is_cut_off() {
            self.count("a writer ended");
            self.nodes[node].store = self.client();
            self.nodes[node].writer = None;
            return true;
        }
        if is_new {
            let id = writer_id(&mut self.random);
            let index = Box::new(self.nodes[node].index.clone());
            match Writer::open(store, index, id) {
                Ok(writer) => {
                    let blocks = Box::new(self.nodes[node].index.clone());
                    let writer = if self.has_blocks { writer.with_blocks(blocks) } else { writer };
                    self.nodes[node].writer = Some(writer);
                }
                Err(error) => assert!(error.may_pass(), "{error}"),
            }
            return true;
        }
        let now = self.now;
        let Some(writer) = self.nodes[node].writer.as_mut() else { return true };
        match writer.step(now) {
            Ok(Step::Idle) => {
                assert_eq!(writer.lag(), 0);
                false
            }
            Ok(Step::Waits(_)) => {
                // With two nodes, the row may be another one by now.
                if self.nodes.len() == 1 {
                    let own = self.nodes[node].index.export().unwrap().tip().unwrap();
                    let row = world_row(&self.world).tip().unwrap();
                    let (model, height) = &self.story.blocks[&row.1];
                    let is_below = own.height.0 < *height && model.hashes[own.height.0 as usize] == own.hash;
                    assert!(is_below, "the row at {row:?} is not ahead of {own:?}");
                }
                self.count("a writer waited");
                false
            }
            Ok(step) => {
                self.count(match step {
                    Step::Committed(_) => "committed",
                    Step::Reserved => "reserved",
                    Step::Wrote(_) => "wrote",
                    Step::Stored(_) => "wrote blocks",
                    Step::Removed => "removed",
                    Step::Adopted => "an earlier swap was adopted",
                    Step::Idle | Step::Waits(_) => unreachable!(),
                });
                true
            }
            Err(error @ WriterError::Replaced { .. }) => {
                assert!(self.nodes.len() > 1, "there is no other writer: {error}");
                self.count("a writer was replaced");
                self.nodes[node].is_replaced = true;
                false
            }
            Err(error) => {
                assert!(error.may_pass(), "{error}");
                self.count("a step failed");
                true
            }
        }
    }

    /// Steps of all nodes that write.
    fn work(&mut self, steps: usize) {
        for _ in 0..steps {
            let node = self.random.below(self.nodes.len());
            if self.nodes[node].is_replaced {
                // Started again by hand.
                if self.random.below(30) == 0 {
                    self.nodes[node].is_replaced = false;
                    self.nodes[node].writer = None;
                }
                continue;
            }
            if !self.step(node) && self.nodes.len() == 1 {
                break;
            }
        }
    }

    /// A front end starts, or takes the row as it is now; then it is asked.
    fn read(&mut self) {
        let client = SimStore::new(&self.world, usize::MAX);
        let at = self.random.below(3);
        if at >= self.readers.len() {
            match SharedIndex::open(client, &GENESIS) {
                Ok(reader) => self.readers.push(reader),
                Err(error) => return self.failed(&error),
            }
        } else {
            let before = self.readers[at].sequence();
            if let Err(error) = self.readers[at].refresh() {
                self.failed(&error);
            }
            assert!(self.readers[at].sequence() >= before);
        }
        let at = at.min(self.readers.len() - 1);
        if self.random.below(3) == 0 {
            match self.readers[at].load_filters(1 << self.random.below(30)) {
                Ok(_) => self.count("filters were loaded"),
                // Those of an old row may have been removed.
                Err(error) => self.unanswered(&error.to_string()),
            }
        }
        let has_two_rows = lock(&self.world).lie == Some(Lie::TwoRows);
        let reader = if has_two_rows { self.readers[at].reader() } else { self.readers[at].snapshot() };
        self.ask(&reader, 6);
        self.ask_blocks(at, 4);
    }

    /// Asks a reader for blocks, which are those of the chain, or errors, or nothing.
    fn ask_blocks(&mut self, at: usize, questions: usize) {
        // The other seeds go as they did without blocks.
        let Some(tip) = self.readers[at].tip().filter(|_| self.has_blocks) else { return };
        for _ in 0..questions {
            let height = u32::try_from(self.random.below(tip.height.0 as usize + 1)).unwrap();
            let Some(hash) = self.readers[at].hashes(height, 1).pop() else { continue };
            let expected = self.story.raw[&hash].as_bytes();
            let place = self.random.below(expected.len());
            let size = 1 + self.random.below(expected.len() - place);
            let number = |value: usize| u32::try_from(value).unwrap();
            let range = Place { height: Height(height), offset: number(place), size: number(size) };
            let part = self.readers[at].stored_transactions(&[(range, hash)]);
            let part = part.map(|found| found.map(|mut found| found.pop().unwrap() == expected[place..place + size]));
            let whole = self.readers[at].stored_block(height, &hash).map(|found| found.map(|found| found == expected));
            for found in [part, whole] {
                match found {
                    Ok(Some(is_equal)) => {
                        assert!(is_equal, "block {hash} at {height}");
                        self.count("a block was read");
                    }
                    Ok(None) => self.count("a block was not in the store"),
                    Err(error) => self.unanswered(&error.to_string()),
                }
            }
        }
    }

    fn failed(&mut self, error: &ReaderError) {
        let is_index = matches!(error, ReaderError::NoIndex { .. } | ReaderError::Index(_));
        let may_pass = matches!(error, ReaderError::Store(error) if error.may_pass());
        assert!(is_index || may_pass, "{error}");
        self.count("a reader failed");
    }

    /// Asks a reader, whose answers are those of the model at its block; or errors, if the store fails.
    fn ask(&mut self, reader: &TxIndexReader, questions: usize) {
        let Some(tip) = reader.tip() else { return };
        if lock(&self.world).lie == Some(Lie::TwoRows) {
            self.work(20);
            self.readers.iter().for_each(|reader| drop(reader.refresh()));
        }
        let (model, height) = self.story.blocks[&tip.hash].clone();
        assert_eq!(height, tip.height.0);
        for _ in 0..questions {
            let among = if self.random.below(4) == 0 { 12 } else { model.scripts.len() };
            let script = model.scripts[self.random.below(among)];
            match reader.outputs(&script) {
                Ok(found) => {
                    assert_eq!(found.tip, Some(tip), "one row, one tip");
                    assert!(found.outputs == model.outputs(&script, height), "the outputs of a script at {height}");
                    self.count("answered");
                }
                Err(error) => self.unanswered(&error.to_string()),
            }
        }
        self.ask_some(reader, &model, height);
        self.ask_transaction(reader, &model, height);
    }

    fn unanswered(&mut self, error: &str) {
        assert!(self.allowed.is_none_or(|allowed| error.contains(allowed)), "{error}");
        self.count("not answered");
    }

    /// Some outputs of a script that has many.
    fn ask_some(&mut self, reader: &TxIndexReader, model: &Model, height: u32) {
        let script = model.scripts[0];
        let every = 1 + self.random.below(500);
        let expected: Vec<_> = model.outputs(&script, height).into_iter().step_by(every).collect();
        let wanted: Vec<(u32, u32)> = expected.iter().map(|output| (output.number, output.vout)).collect();
        if self.random.below(16) == 0 {
            match reader.some_outputs(&script, &wanted) {
                Ok(found) => assert!(found.outputs == expected, "some outputs at {height}"),
                Err(error) => self.unanswered(&error.to_string()),
            }
        }
    }

    fn ask_transaction(&mut self, reader: &TxIndexReader, model: &Model, height: u32) {
        let number = u32::try_from(self.random.below(model.count(height) as usize)).unwrap();
        let txid = model.txids[number as usize];
        match reader.candidates(&txid) {
            Ok(found) => assert!(found.iter().any(|(other, _)| *other == number), "a transaction at {height}"),
            Err(error) => self.unanswered(&error.to_string()),
        }
        assert_eq!(reader.height_of(number).map(|height| height.0), Some(model.height_of(number)));
        match reader.txids(&[number, u32::MAX]) {
            Ok(found) => assert_eq!(found.is_some(), reader.profile().has_txids),
            Err(error) => self.unanswered(&error.to_string()),
        }
    }

    fn run(&mut self) {
        for _ in 0..3 + self.random.below(4) {
            // Two nodes need not be at the same block.
            for node in 0..self.nodes.len() {
                let at = self.nodes[node].index.at();
                let next = if self.random.below(4) == 0 { self.random.below(self.story.states.len()) } else { at + 1 };
                self.nodes[node].index.set(next.min(self.story.states.len() - 1));
                if self.has_blocks && self.random.below(8) == 0 {
                    let height = self.random.below(300);
                    self.nodes[node].index.prune(u32::try_from(height).unwrap());
                }
            }
            for _ in 0..1 + self.random.below(4) {
                let steps = self.random.below(40);
                self.work(steps);
                self.now += self.random.below(4_000) as u64;
                self.read();
            }
        }
        self.finish();
    }

    /// The faults end, one node goes on: then all is there, and nothing else.
    fn finish(&mut self) {
        let is_clean = lock(&self.world).counts.is_empty();
        lock(&self.world).heal();
        self.allowed = Some("nothing is allowed to fail");
        let last = self.story.states.len() - 1;
        self.nodes.truncate(1);
        let index = self.nodes[0].index.clone();
        index.set(last);
        let store = SimStore::new(&self.world, usize::MAX);
        let id = writer_id(&mut self.random);
        let mut writer = Writer::open(store.clone(), Box::new(index.clone()), id).unwrap();
        if self.has_blocks {
            writer = writer.with_blocks(Box::new(index.clone()));
        }
        // A reader of the last row keeps its answers for an hour.
        let old = self.readers.last().map(SharedIndex::snapshot);
        let settle = |writer: &mut Writer, now: u64| while writer.step(now).unwrap() != Step::Idle {};
        settle(&mut writer, self.now);
        for reader in &self.readers {
            reader.refresh().unwrap();
        }
        let reader = SharedIndex::open(store, &GENESIS).unwrap();
        let state = &self.story.states[last];
        assert_eq!(reader.tip(), state.export.tip());
        self.readers.push(reader);
        for at in 0..self.readers.len() {
            assert_eq!(self.readers[at].tip(), state.export.tip());
            let snapshot = self.readers[at].snapshot();
            self.ask(&snapshot, 5);
            self.ask_blocks(at, 3);
            let tip = state.export.tip().unwrap().height.0;
            let first = if self.has_blocks { *lock(&index.pruned) } else { tip + 1 };
            assert!((first..=tip).all(|height| self.readers[at].has_block(height)), "blocks from {first} on");
        }
        if let Some(old) = old {
            // What it needs may have been removed.
            self.allowed = Some("which its commit row names, on a quorum of replicas");
            self.ask(&old, 2);
            self.allowed = Some("nothing is allowed to fail");
        }
        self.now += KEEP_SECONDS;
        settle(&mut writer, self.now);
        let snapshot = self.readers[0].snapshot();
        self.ask(&snapshot, 5);
        if is_clean && self.is_single && !self.counts.contains_key("a writer ended") {
            self.check_left();
        }
    }

    /// The store has what the row names, and the deltas that a reorganisation may need again.
    fn check_left(&mut self) {
        let world = lock(&self.world);
        let commit = world.row().unwrap();
        assert_eq!((&commit.writing[..], &commit.retired[..]), (&[][..], &[][..]));
        let named: HashSet<u64> = commit.content.segments.iter().map(|segment| segment.generation).collect();
        for partition in world.partitions() {
            match partition {
                Partition::Bucket(Bucket { generation, .. }) => assert!(named.contains(&generation), "{partition:?}"),
                Partition::Deltas(DeltaHeight { series, height }) => {
                    assert!(series == commit.series && commit.delta_heights.contains(&height), "{partition:?}");
                }
                Partition::Blocks(BlockHeight { series, height }) => {
                    let is_named = |run: &BlockRun| run.series == series && run.heights.contains(&height);
                    assert!(commit.blocks.iter().any(is_named), "{partition:?}");
                }
            }
        }
        drop(world);
        self.count("a store without leftovers");
    }
}

fn tell(seed: u64) -> BTreeMap<&'static str, u64> {
    let mut case = Case::new(seed);
    case.run();
    let mut counts = case.counts;
    for (what, count) in &lock(&case.world).counts {
        *counts.entry(what).or_default() += count;
    }
    counts
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}: a number")))
}

/// What must happen under so many seeds.
const KINDS: [&str; 25] = [
    "a block was not in the store",
    "a block was read",
    "a call that succeeded timed out",
    "a message was late",
    "a message was lost",
    "a message was repeated",
    "a read of the row timed out",
    "a read of the row was stale",
    "a read timed out",
    "a reader failed",
    "a replica lacked a value",
    "a step failed",
    "a store without leftovers",
    "a swap was applied late",
    "a swap was not answered",
    "a value was damaged",
    "a writer ended",
    "a writer waited",
    "a writer was replaced",
    "answered",
    "filters were loaded",
    "committed",
    "removed",
    "reserved",
    "wrote blocks",
];

#[test]
#[allow(clippy::print_stderr, reason = "a failure names its seed")]
fn every_answer_is_that_of_the_embedded_index() {
    let (first, count) = match setting("LYDIAN_STORE_SEED") {
        Some(seed) => (seed, 1),
        None => (0, setting("LYDIAN_STORE_SEEDS").unwrap_or(SEEDS)),
    };
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get() as u64);
    let total: Mutex<BTreeMap<&'static str, u64>> = Mutex::default();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let total = &total;
            scope.spawn(move || {
                for seed in (first + thread..first + count).step_by(usize::try_from(threads).unwrap()) {
                    let counts = std::panic::catch_unwind(|| tell(seed)).unwrap_or_else(|panic| {
                        eprintln!("failed: LYDIAN_STORE_SEED={seed} cargo test -p lydian-shared-index embedded_index");
                        std::panic::resume_unwind(panic);
                    });
                    let mut total = lock(total);
                    counts.into_iter().for_each(|(what, count)| *total.entry(what).or_default() += count);
                }
            });
        }
    });
    let total = lock(&total).clone();
    eprintln!("{count} seeds from {first}: {total:?}");
    if count >= SEEDS {
        KINDS.iter().for_each(|kind| assert!(total.contains_key(kind), "no seed has: {kind}"));
    }
}

/// What is wrong on purpose is noticed within a few seeds, with the message of what it breaks.
#[test]
fn a_store_and_a_reader_that_lie_are_noticed() {
    let lies = [
        (Lie::MissingIsEmpty, "outputs"),
        (Lie::EarlyAcknowledgement, "commit row"),
        (Lie::LostLists, "names part 1 of page"),
        (Lie::LostBlocks, "names block"),
        (Lie::BlindSwap, "a sequence that does not follow"),
        (Lie::TwoRows, "one row, one tip"),
    ];
    for (lie, text) in lies {
        let message = (0..LYING_SEEDS).find_map(|seed| {
            let mut case = Case::new(seed);
            lock(&case.world).lie = Some(lie);
            let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| case.run())).err()?;
            let formatted = panic.downcast_ref::<String>().cloned();
            Some((seed, formatted.or(panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap()))
        });
        let (seed, message) = message.unwrap_or_else(|| panic!("{lie:?} was not noticed in {LYING_SEEDS} seeds"));
        assert!(message.contains(text), "{lie:?}: seed {seed}: {message}");
    }
}

/// A store without faults, through the whole story: what the design says happens, does.
#[test]
fn a_writer_follows_the_index_through_reorganisations_and_merges() {
    for story in [&*FULL, &*COMPACT] {
        let world = World::new(1, Faults::default());
        let index = SimIndex::new(story, 0);
        let store = SimStore::new(&world, usize::MAX);
        let mut writer = Writer::open(store.clone(), Box::new(index.clone()), WriterId([7; 16])).unwrap();
        let (mut now, mut reader, mut epochs, mut most) = (1_700_000_000, None, HashSet::new(), 0);
        for (at, state) in story.states.iter().enumerate() {
            index.set(at);
            now += 600;
            while writer.step(now).unwrap() != Step::Idle {}
            let reader = reader.get_or_insert_with(|| SharedIndex::open(store.clone(), &GENESIS).unwrap());
            reader.refresh().unwrap();
            assert_eq!(reader.tip(), state.export.tip());
            epochs.insert(reader.reader().epoch());
            let tip = reader.tip().unwrap().height.0;
            assert_eq!(reader.hashes(0, usize::MAX), state.model.hashes);
            assert_eq!(reader.hashes(tip - 1, 5).len(), 2);
            for script in state.model.scripts.iter().take(200) {
                assert_eq!(reader.reader().outputs(script).unwrap().outputs, state.model.outputs(script, tip));
            }
            let commit = world_row(&world);
            assert_eq!(commit.written(), state.export.written());
            assert!(commit.delta_heights.start <= commit.written());
            let facts = commit.content.segments.iter().map(|segment| segment.facts.clone());
            let plan = Plan::new(state.export.clone(), None).unwrap();
            assert!(facts.eq(plan.targets.into_iter().map(|target| target.facts)));
            // Segments of 2,048 blocks, those of 256, and the last one of these.
            assert!(commit.content.segments.len() <= 3, "{:?}", commit.content.segments);
            most = most.max(state.export.heights().count());
        }
        assert!(most > 5, "segments of the embedded index: {most}");
        assert!(epochs.len() > 5, "reorganisations: {epochs:?}");
        let commit = world_row(&world);
        assert!(commit.series > 0, "the deep reorganisation began another series");
        assert!(commit.retired.iter().any(|retired| matches!(retired.what, Leftover::Generation(_))));
        let fat = |key: &Partition| matches!(key, Partition::Bucket(Bucket { table: Table::Lists, .. }));
        assert!(!lock(&world).partitions().iter().any(fat), "lists are parts of the pages of their keys");
    }
}

pub(super) fn world_row(world: &Mutex<World>) -> Commit {
    lock(world).row().unwrap()
}
