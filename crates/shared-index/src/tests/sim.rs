//! [`SimStore`]: a store in memory for tests, which does everything that [`Store`] does not rule out.
//!
//! Input: calls of several clients, and a seed. Output: answers; some are errors although the work was done, or is done
//! later. There are three replicas. A message to a replica arrives at once, later, twice, or never; messages overtake
//! each other. Values are damaged on a replica. The commit row is linearizable: a swap without an answer is applied,
//! void, or undecided until a serial read. Everything follows from the seed.
//!
//! When a row is applied, everything that it names must be on a quorum of replicas, every part of it; a key has one
//! value for ever; and one writer writes nothing where it removed something: otherwise the test ends.

use crate::commit::Commit;
use crate::filter::{filter_key, filter_pages};
use crate::parts::{self, Directory};
use crate::seal::Sealed;
use crate::store::*;
use lydian_index::{RemoteSegment, Table};
use lydian_primitives::BlockHash;
use lydian_stdx::{SplitMix64, lock};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

const REPLICAS: usize = 3;
const QUORUM: usize = 2;

/// How often things go wrong, in thousandths.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    /// A message arrives later, or not at all.
    pub(crate) late: usize,
    pub(crate) lost: usize,
    /// A message that arrived comes again.
    pub(crate) repeated: usize,
    /// The answer of a call is lost.
    pub(crate) silent: usize,
    /// A replica that is asked for one value lacks it.
    pub(crate) stale: usize,
    /// A written value is damaged on a replica.
    pub(crate) damaged: usize,
}

/// What is wrong on purpose, to see that it is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lie {
    /// A page of scripts that is missing is taken for one without scripts.
    MissingIsEmpty,
    /// Writes are taken for acknowledged before a quorum has them.
    EarlyAcknowledgement,
    /// The parts of long lists are lost.
    LostLists,
    /// A part of each block is lost.
    LostBlocks,
    /// A swap does not compare the sequence.
    BlindSwap,
    /// A reader answers with the row of the moment instead of one for all of an answer.
    TwoRows,
}

#[derive(Clone, Debug)]
enum Message {
    Write(Key, Arc<[u8]>),
    Remove(Partition),
}

/// The values of one partition.
type Values = Vec<(Key, Arc<[u8]>)>;

#[derive(Debug, Default)]
struct Replica {
    values: HashMap<Partition, Values>,
}

impl Replica {
    fn take(&mut self, message: &Message) {
        match message {
            Message::Write(key, value) => {
                let of_partition = self.values.entry(key.partition()).or_default();
                match of_partition.iter_mut().find(|(other, _)| other == key) {
                    Some((_, old)) => {
                        // Only damage makes two values of one key differ.
                        assert_eq!(old.len(), value.len(), "{key} was written with two values");
                        *old = Arc::clone(value);
                    }
                    None => of_partition.push((*key, Arc::clone(value))),
                }
            }
            Message::Remove(partition) => drop(self.values.remove(partition)),
        }
    }

    fn get(&self, key: &Key) -> Option<&Arc<[u8]>> {
        let of_partition = self.values.get(&key.partition())?;
        of_partition.iter().find(|(other, _)| other == key).map(|(_, value)| value)
    }
}

/// What all clients share.
#[derive(Debug)]
pub(crate) struct World {
    random: SplitMix64,
    pub(crate) faults: Faults,
    pub(crate) lie: Option<Lie>,
    replicas: [Replica; REPLICAS],
    /// Messages that arrive later.
    late: Vec<(usize, Message)>,
    row: Option<StoredCommit>,
    /// The row before, which a quorum read may still see.
    before: Option<Option<StoredCommit>>,
    /// A swap that may still be applied.
    undecided: Option<(Option<u64>, StoredCommit)>,
    pub(crate) replication: u32,
    /// How often each thing happened.
    pub(crate) counts: HashMap<&'static str, u64>,
    /// Keys that were asked of one replica.
    pub(crate) reads: u64,
    /// The value of every key that a client ever wrote.
    written: HashMap<Key, Arc<[u8]>>,
    /// The blocks among them.
    blocks: HashMap<BlockHeight, Vec<BlockHash>>,
    /// What a client ever removed; writers that do not know of each other may write there.
    removed: HashSet<Partition>,
    pub(crate) has_one_writer: bool,
}

impl World {
    pub(crate) fn new(seed: u64, faults: Faults) -> Arc<Mutex<World>> {
        Arc::new(Mutex::new(World {
            random: SplitMix64::new(seed),
            faults,
            lie: None,
            replicas: Default::default(),
            late: Vec::new(),
            row: None,
            before: None,
            undecided: None,
            replication: 3,
            counts: HashMap::new(),
            reads: 0,
            written: HashMap::new(),
            blocks: HashMap::new(),
            removed: HashSet::new(),
            has_one_writer: true,
        }))
    }

    fn chance(&mut self, thousandths: usize, what: &'static str) -> bool {
        let is_so = thousandths > 0 && self.random.below(1_000) < thousandths;
        if is_so {
            *self.counts.entry(what).or_default() += 1;
        }
        is_so
    }

    /// Sends a message to all replicas. Returns how many took it at once.
    fn send(&mut self, message: &Message) -> usize {
        let mut taken = 0;
        for replica in 0..REPLICAS {
            let Faults { late, lost, repeated, damaged, .. } = self.faults;
            if self.chance(lost, "a message was lost") {
                continue;
            }
            let is_late = self.chance(late, "a message was late");
            if is_late || self.chance(repeated, "a message was repeated") {
                self.late.push((replica, message.clone()));
            }
            if is_late {
                continue;
            }
            self.replicas[replica].take(message);
            taken += 1;
            if let Message::Write(key, value) = message
                && self.chance(damaged, "a value was damaged")
            {
                let mut value = value.to_vec();
                let at = self.random.below(value.len());
                value[at] ^= 1 << self.random.below(8);
                self.replicas[replica].take(&Message::Write(*key, value.into()));
            }
        }
        taken
    }

    /// Lets some of what is late arrive, in any order.
    fn pass(&mut self) {
        let count = self.late.len();
        for _ in 0..self.random.below(count + 1).min(20) {
            let at = self.random.below(self.late.len());
            let (replica, message) = self.late.swap_remove(at);
            self.replicas[replica].take(&message);
        }
        if self.undecided.is_some() && self.chance(100, "a swap was applied late") {
            self.decide(true);
        }
    }

    /// What is under way arrives, or is void; what is damaged is copied from another replica.
    pub(crate) fn heal(&mut self) {
        self.faults = Faults::default();
        for (replica, message) in std::mem::take(&mut self.late) {
            self.replicas[replica].take(&message);
        }
        let is_applied = self.random.below(2) == 0;
        self.decide(is_applied);
        self.before = None;
        let has_damage = self.counts.contains_key("a value was damaged");
        for replica in (0..REPLICAS).filter(|_| has_damage) {
            let values = self.replicas[replica].values.values().flatten();
            let is_damaged = |(key, value): &&(Key, Arc<[u8]>)| Sealed::Value(*key).open(value).is_err();
            let damaged: Vec<Key> = values.filter(is_damaged).map(|(key, _)| *key).collect();
            for key in damaged {
                let copies = self.replicas.iter().filter_map(|other| other.get(&key));
                let copy = copies.map(|copy| copy.to_vec()).find(|value| Sealed::Value(key).open(value).is_ok());
                self.spoil(&key, &[replica], |value| *value = copy.clone());
            }
        }
    }

    fn decide(&mut self, is_applied: bool) {
        if let Some((expected, new)) = self.undecided.take()
            && is_applied
            && self.row.as_ref().map(|row| row.sequence) == expected
        {
            self.apply(new);
        }
    }

    fn apply(&mut self, new: StoredCommit) {
        let old = self.row.as_ref().map(|row| Commit::read(row).unwrap());
        let commit = Commit::read(&new).unwrap();
        let before = old.as_ref().map_or(0, |old| old.sequence);
        assert_eq!(commit.sequence, before + 1, "a row with a sequence that does not follow");
        self.check_named(&commit, old.as_ref());
        self.before = Some(self.row.replace(new));
    }

    /// What the row names and the one before did not is on a quorum of replicas.
    fn check_named(&self, commit: &Commit, old: Option<&Commit>) {
        let is_new = |segment: &&RemoteSegment| old.is_none_or(|old| !old.content.segments.contains(segment));
        for key in commit.content.segments.iter().filter(is_new).flat_map(keys_of).flat_map(|key| self.with_parts(key))
        {
            assert!(self.copies(&key) >= QUORUM, "commit row {} names {key}", commit.sequence);
        }
        for (height, hash) in (commit.written()..).zip(&commit.content.hashes) {
            let key = Key::Delta(DeltaKey { at: DeltaHeight { series: commit.series, height }, hash: *hash });
            assert!(self.copies(&key) >= QUORUM, "commit row {} names {key}", commit.sequence);
        }
        self.check_blocks(commit, old);
    }

    /// Every height of a run has a block whose parts are all on a quorum of replicas.
    fn check_blocks(&self, commit: &Commit, old: Option<&Commit>) {
        let is_old = |series, height: u32| {
            let mut runs = old.into_iter().flat_map(|old| &old.blocks);
            runs.any(|run| run.series == series && run.heights.contains(&height))
        };
        for run in &commit.blocks {
            for height in run.heights.clone().filter(|height| !is_old(run.series, *height)) {
                let at = BlockHeight { series: run.series, height };
                let hashes = self.blocks.get(&at).map(Vec::as_slice).unwrap_or_default();
                let is_whole = |hash: &BlockHash| {
                    let key = |part| Key::Block(BlockKey { at, hash: *hash, part });
                    let head = &self.written[&key(0)];
                    let size = u32::from_le_bytes(Sealed::Value(key(0)).open(head).unwrap()[8..12].try_into().unwrap());
                    let parts = size.div_ceil(16 << 10);
                    (0..=parts).all(|part| self.copies(&key(part)) >= QUORUM)
                };
                assert!(hashes.iter().any(is_whole), "commit row {} names block {at:?}", commit.sequence);
            }
        }
    }

    /// A key, and those of the lists that its value says it has.
    fn with_parts(&self, key: Key) -> Vec<Key> {
        let mut keys = vec![key];
        if let Key::Page(page @ PageKey { bucket: Bucket { table: Table::Events, .. }, part: 0 }) = key
            && let Some(value) = self.written.get(&key)
        {
            let content = Sealed::Value(key).open(value).unwrap();
            let parts = u32::from_le_bytes(content[..4].try_into().unwrap());
            keys.extend((1..=parts).map(|part| Key::Page(PageKey { part, ..page })));
        }
        keys
    }

    /// A client writes: the same value as ever, and nothing that was removed.
    fn check_written(&mut self, key: &Key, value: &[u8]) {
        if let Key::Block(BlockKey { at, hash, part: 0 }) = key
            && !self.written.contains_key(key)
        {
            self.blocks.entry(*at).or_default().push(*hash);
        }
        let first = self.written.entry(*key).or_insert_with(|| value.into());
        assert!(**first == *value, "{key} was written with two values");
        let is_removed = self.has_one_writer && self.removed.contains(&key.partition());
        assert!(!is_removed, "{key} was written after it was removed");
    }

    fn copies(&self, key: &Key) -> usize {
        self.replicas.iter().filter(|replica| replica.get(key).is_some()).count()
    }

    /// The partitions that some replica has.
    pub(crate) fn partitions(&self) -> HashSet<Partition> {
        self.replicas.iter().flat_map(|replica| replica.values.keys().copied()).collect()
    }

    /// Number of values on one replica.
    pub(crate) fn values_count(&self) -> usize {
        self.replicas[0].values.values().map(Vec::len).sum()
    }

    /// Damages or removes a value on some replicas.
    pub(crate) fn spoil(&mut self, key: &Key, replicas: &[usize], change: impl Fn(&mut Option<Vec<u8>>)) {
        for replica in replicas {
            let of_partition = self.replicas[*replica].values.entry(key.partition()).or_default();
            let place = of_partition.iter().position(|(other, _)| other == key);
            let mut value = place.map(|place| of_partition.swap_remove(place).1.to_vec());
            change(&mut value);
            of_partition.extend(value.map(|value| (*key, value.into())));
        }
    }

    pub(crate) fn row(&self) -> Option<Commit> {
        self.row.as_ref().map(|row| Commit::read(row).unwrap())
    }

    pub(crate) fn set_row(&mut self, row: Option<StoredCommit>) {
        (self.row, self.before) = (row, None);
    }
}

/// The first part of every bucket of a generation, and the filters.
fn keys_of(segment: &RemoteSegment) -> impl Iterator<Item = Key> {
    let tables = segment.facts.tables.iter().filter(|(table, _)| *table != Table::Lists);
    let generation = segment.generation;
    let filters = filter_pages(segment).map(move |page| filter_key(generation, page));
    let pages = tables.flat_map(move |(table, facts)| {
        let bucket = move |page| Bucket { generation, table: *table, page };
        (0..facts.pages).map(move |page| Key::Page(PageKey { bucket: bucket(page), part: 0 }))
    });
    pages.chain(filters)
}

/// A client of the store. It may be cut off, as if its process had ended.
#[derive(Debug)]
pub(crate) struct SimStore {
    pub(crate) world: Arc<Mutex<World>>,
    /// The calls that are left until it is cut off.
    fuel: Mutex<usize>,
}

impl SimStore {
    pub(crate) fn new(world: &Arc<Mutex<World>>, fuel: usize) -> Arc<SimStore> {
        Arc::new(SimStore { world: Arc::clone(world), fuel: Mutex::new(fuel) })
    }

    pub(crate) fn is_cut_off(&self) -> bool {
        *lock(&self.fuel) == 0
    }

    /// An error if the client is cut off.
    fn begin(&self) -> Result<(), StoreError> {
        let mut fuel = lock(&self.fuel);
        *fuel = fuel.saturating_sub(1);
        if *fuel == 0 { Err(StoreError::Unavailable { reason: "the process has ended".to_owned() }) } else { Ok(()) }
    }

    /// Sends messages; the client may be cut off when it has sent some of them.
    fn send_all(&self, messages: Vec<Message>) -> Result<(), StoreError> {
        let is_last = self.begin();
        let mut world = lock(&self.world);
        world.pass();
        let count = messages.len();
        let sent = if is_last.is_err() { world.random.below(count + 1) } else { count };
        let mut are_taken = true;
        for message in messages.iter().take(sent) {
            are_taken &= world.send(message) >= QUORUM;
        }
        is_last?;
        if world.lie == Some(Lie::EarlyAcknowledgement) {
            return Ok(());
        }
        let silent = world.faults.silent;
        if !are_taken || world.chance(silent, "a call that succeeded timed out") {
            return Err(timed_out());
        }
        Ok(())
    }
}

/// A page of scripts without scripts, as if it had been written.
fn empty_page(key: &Key) -> Option<Vec<u8>> {
    let Key::Page(PageKey { bucket: Bucket { table: Table::Events, .. }, part: 0 }) = key else { return None };
    let content = parts::encode(Table::Events, &[0; 4], &Directory::default());
    Some(Sealed::Value(*key).seal(&content))
}

fn timed_out() -> StoreError {
    StoreError::TimedOut { reason: "simulated".to_owned() }
}

impl Store for SimStore {
    fn keyspace(&self) -> Result<Keyspace, StoreError> {
        self.begin()?;
        Ok(Keyspace { name: "sim".to_owned(), replication: lock(&self.world).replication })
    }

    fn read(&self, keys: &[Key], replicas: Replicas) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        self.begin()?;
        let mut world = lock(&self.world);
        world.pass();
        let Faults { silent, stale, .. } = world.faults;
        if world.chance(silent / 4, "a read timed out") {
            return Err(timed_out());
        }
        let mut values = Vec::new();
        for key in keys {
            let first = world.random.below(REPLICAS);
            values.push(match replicas {
                Replicas::One => {
                    world.reads += 1;
                    let is_stale = world.chance(stale, "a replica lacked a value");
                    let found = world.replicas[first].get(key).filter(|_| !is_stale).map(|value| value.to_vec());
                    found.or_else(|| empty_page(key).filter(|_| world.lie == Some(Lie::MissingIsEmpty)))
                }
                Replicas::Quorum => {
                    let both = [first, (first + 1) % REPLICAS]
                        .map(|at| world.replicas[at].get(key).map(|value| value.to_vec()));
                    let both: Vec<Vec<u8>> = both.into_iter().flatten().collect();
                    // The copies differ, and the replica with the damaged one notices.
                    let intact = both.iter().find(|value| Sealed::Value(*key).open(value).is_ok());
                    intact.or(both.first()).cloned()
                }
            });
        }
        Ok(values)
    }

    fn write(&self, values: &[(Key, Vec<u8>)]) -> Result<(), StoreError> {
        use crate::limits::{WRITE_BYTES_MAX, WRITES_MAX};
        let bytes: usize = values.iter().map(|(_, value)| value.len()).sum();
        assert!(values.len() <= WRITES_MAX && (bytes <= WRITE_BYTES_MAX || values.len() == 1));
        let mut world = lock(&self.world);
        values.iter().for_each(|(key, value)| world.check_written(key, value));
        let lie = world.lie;
        drop(world);
        let is_lost = |key: &Key| match key {
            Key::Page(PageKey { part: 1..1_000, .. }) => lie == Some(Lie::LostLists),
            Key::Block(BlockKey { part: 1, .. }) => lie == Some(Lie::LostBlocks),
            _ => false,
        };
        let kept = values.iter().filter(|(key, _)| !is_lost(key));
        self.send_all(kept.map(|(key, value)| Message::Write(*key, value.as_slice().into())).collect())
    }

    fn remove(&self, partitions: &[Partition]) -> Result<(), StoreError> {
        lock(&self.world).removed.extend(partitions);
        self.send_all(partitions.iter().copied().map(Message::Remove).collect())
    }

    fn commit(&self, read: CommitRead) -> Result<Option<StoredCommit>, StoreError> {
        self.begin()?;
        let mut world = lock(&self.world);
        world.pass();
        let silent = world.faults.silent;
        if world.chance(silent / 4, "a read of the row timed out") {
            return Err(timed_out());
        }
        if read == CommitRead::Serial {
            let is_applied = world.random.below(2) == 0;
            world.decide(is_applied);
            world.before = None;
            return Ok(world.row.clone());
        }
        let sees_before = world.before.is_some() && world.chance(700, "a read of the row was stale");
        let before = world.before.clone().filter(|_| sees_before);
        Ok(before.unwrap_or_else(|| world.row.clone()))
    }

    fn swap(&self, expected: Option<u64>, new: &StoredCommit) -> Result<Swap, StoreError> {
        let is_last = self.begin();
        let mut world = lock(&self.world);
        world.pass();
        let Faults { silent, .. } = world.faults;
        if is_last.is_err() || world.chance(silent, "a swap was not answered") {
            // A later round of the protocol decides what is undecided.
            world.decide(false);
            match world.random.below(3) {
                0 => world.undecided = Some((expected, new.clone())),
                1 if world.row.as_ref().map(|row| row.sequence) == expected => world.apply(new.clone()),
                _ => {}
            }
            is_last?;
            return if world.random.below(2) == 0 { Ok(Swap::Unknown) } else { Err(timed_out()) };
        }
        let is_applied = world.random.below(2) == 0;
        world.decide(is_applied);
        let is_expected = world.row.as_ref().map(|row| row.sequence) == expected;
        if !is_expected && world.lie != Some(Lie::BlindSwap) {
            world.before = None;
            return Ok(Swap::Lost(world.row.clone()));
        }
        world.apply(new.clone());
        // Every read sees what was applied.
        world.before = None;
        Ok(Swap::Applied)
    }
}
