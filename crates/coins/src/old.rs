//! [`Old`]: the coins of a partition that are on disk, in a store with little memory. Input: keys, and the records of
//! segments in their order. Output: the groups of records that may have the coins of keys.
//!
//! | | bits for each coin |
//! |---|---|
//! | filter of the shard (`filter`): 21 bits of a fingerprint, and the part | 7.9 and those of a part: 14 for 64 |
//! | fence of a group of 64 records: where it begins, with which key | 1 for each record, dead or live |
//! | death of each record | 1 for each record, dead or live |
//!
//! A *part* is what one segment has of the partition. Records of a part are in the order of shard and fingerprint, so
//! the fences say which group has a key; a lookup reads the whole group, about 4.6 KB, and compares outpoints. The
//! filter names the parts to search: it has every live coin, so that a coin which exists is always found, and a part
//! that it names in vain costs one read. A record whose death is marked is never the coin of a key. Invariants: the
//! filter of a shard has one entry for each live record of the shard, and one for each in `gone`, which are the deaths
//! since the filter was built. Cost of a lookup: about 4 cache misses and one read; of a checkpoint: about 10 ns for
//! each coin of a shard that changed.

use crate::entry::{SHARDS, fingerprint_of, index, shard_of};
use crate::filter::{Filter, entry_of, part_of, prefix_of};

/// Number of records in a group, as many as a word has bits.
const GROUP_RECORDS: u32 = 64;

#[derive(Debug)]
pub(crate) struct Old {
    filters: Vec<Filter>,
    /// By the numbers that the filters contain. A number is free once no filter contains it.
    parts: Vec<Option<Part>>,
    /// The entries of the coins that died since the filters were built, each with its shard above.
    gone: Vec<u64>,
    /// The part to which records were added last.
    current: usize,
}

/// The records of one segment and partition.
#[derive(Debug)]
pub(crate) struct Part {
    /// The number of the segment.
    pub(crate) segment: u64,
    /// The units of its first record and after its last one.
    pub(crate) first: u64,
    end: u64,
    records: u64,
    groups: Vec<Group>,
    last_key: u32,
    /// Whether any group begins with the key with which the one before ends.
    has_ties: bool,
}

/// Up to 64 records.
#[derive(Clone, Copy, Debug)]
struct Group {
    /// The key of its first record.
    key: u32,
    /// Where it begins, in units from the first one of the part.
    offset: u32,
    /// A bit for each record whose coin was spent.
    dead: u64,
}

/// A group of records to be read, because it may have the coin of a key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// Its units.
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// The deaths when the key was looked up.
    pub(crate) dead: u64,
    /// Number of its records.
    pub(crate) records: u32,
    /// The position of the key.
    pub(crate) place: usize,
    part: u32,
    group: u32,
}

/// The record of a coin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot {
    pub(crate) unit: u64,
    part: u32,
    group: u32,
    bit: u32,
}

impl Wanted {
    /// The spot of a record by its number in the group.
    pub(crate) fn spot(&self, unit: u64, bit: u32) -> Spot {
        Spot { unit, part: self.part, group: self.group, bit }
    }
}

impl Old {
    pub(crate) fn new() -> Old {
        let filters = (0..SHARDS).map(|_| Filter::default()).collect();
        Old { filters, parts: Vec::new(), gone: Vec::new(), current: 0 }
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        let parts: u64 = self.parts.iter().flatten().map(Part::memory_bytes).sum();
        self.filters.iter().map(Filter::memory_bytes).sum::<u64>() + parts + self.pending_bytes()
    }

    /// Bytes that the next checkpoint frees.
    pub(crate) fn pending_bytes(&self) -> u64 {
        self.gone.len() as u64 * 8
    }

    /// Appends the groups that may have the coin of a hash.
    pub(crate) fn look_up(&self, hash: u64, place: usize, wanted: &mut Vec<Wanted>) {
        let (shard, fingerprint) = (shard_of(hash), fingerprint_of(hash));
        let (key, start) = (key_of(shard, fingerprint), wanted.len());
        self.filters[shard].parts(prefix_of(fingerprint), |number| {
            if wanted[start..].iter().any(|other| other.part == number) {
                return;
            }
            if let Some(Some(part)) = self.parts.get(index(number.into())) {
                part.look_up(key, |group| wanted.push(part.wanted(place, number, group)));
            }
        });
    }

    /// Marks the death of a coin. Returns whether it lived.
    pub(crate) fn kill(&mut self, hash: u64, spot: &Spot) -> bool {
        let part = self.parts.get_mut(index(spot.part.into())).and_then(Option::as_mut);
        let Some(group) = part.and_then(|part| part.groups.get_mut(index(spot.group.into()))) else { return false };
        let was_dead = group.dead >> spot.bit & 1 == 1;
        if !was_dead {
            group.dead |= 1 << spot.bit;
            let entry = entry_of(prefix_of(fingerprint_of(hash)), spot.part);
            self.gone.push((shard_of(hash) as u64) << 56 | entry);
        }
        !was_dead
    }

    /// The part of a segment.
    pub(crate) fn part_of_segment(&self, segment: u64) -> Option<&Part> {
        self.parts.iter().flatten().find(|part| part.segment == segment)
    }

    /// Adds a record after all others of its segment. Returns the filter's entry for it, or `None` if the part is too
    /// large. A segment's records are added without those of others in between.
    pub(crate) fn append(&mut self, segment: u64, record: &Added) -> Option<u64> {
        if self.parts.get(self.current).and_then(Option::as_ref).is_none_or(|part| part.segment != segment) {
            self.current = self.parts.iter().position(Option::is_none).unwrap_or(self.parts.len());
            if self.current == self.parts.len() {
                self.parts.push(None);
            }
            self.parts[self.current] = Some(Part::new(segment, record.unit));
        }
        self.parts[self.current].as_mut()?.append(record)?;
        Some(entry_of(prefix_of(record.fingerprint), u32::try_from(self.current).ok()?))
    }

    /// Prepares for [`Old::rebuild`]. No coin may die until [`Old::end_checkpoint`].
    pub(crate) fn begin_checkpoint(&mut self) {
        self.gone.sort_unstable();
    }

    /// Builds the filter of a shard of all its entries.
    pub(crate) fn set(&mut self, shard: usize, mut entries: Vec<u64>) {
        entries.sort_unstable();
        self.filters[shard] = Filter::build(&entries, self.parts.len());
    }

    /// Builds the filter of a shard again: without the coins that died and those of parts that are moved, and with the
    /// added ones.
    pub(crate) fn rebuild(&mut self, shard: usize, added: Vec<u64>, is_moved: &dyn Fn(&Part) -> bool) {
        let moved: Vec<bool> = self.parts.iter().map(|part| part.as_ref().is_some_and(is_moved)).collect();
        let start = self.gone.partition_point(|one| index(one >> 56) < shard);
        let gone = self.gone[start..].iter().take_while(|one| index(*one >> 56) == shard);
        let mut gone = gone.map(|one| one & ((1 << 56) - 1)).peekable();
        if added.is_empty() && gone.peek().is_none() && !moved.contains(&true) {
            return;
        }
        let mut entries = self.filters[shard].entries();
        entries.retain(|entry| {
            gone.next_if_eq(entry).is_none()
                && !moved.get(index(part_of(*entry).into())).is_some_and(|is_moved| *is_moved)
        });
        assert_eq!(gone.next(), None, "a coin that died was in no filter");
        entries.extend(added);
        // Two sorted sequences, which this sort merges.
        entries.sort();
        self.filters[shard] = Filter::build(&entries, self.parts.len());
    }

    /// Removes the parts that were moved, once all filters were built again.
    pub(crate) fn end_checkpoint(&mut self, is_moved: &dyn Fn(&Part) -> bool) {
        self.gone = Vec::new();
        for part in &mut self.parts {
            if part.as_ref().is_some_and(is_moved) {
                *part = None;
            }
            if let Some(part) = part {
                part.groups.shrink_to_fit();
            }
        }
        while self.parts.last().is_some_and(Option::is_none) {
            self.parts.pop();
        }
    }

    /// Every group, to be read in this order.
    pub(crate) fn groups(&self) -> impl Iterator<Item = Wanted> {
        (0..)
            .zip(&self.parts)
            .filter_map(|(number, part)| Some((number, part.as_ref()?)))
            .flat_map(|(number, part)| (0..part.groups.len()).map(move |group| part.wanted(0, number, group)))
    }
}

/// A record to be added.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Added {
    pub(crate) shard: usize,
    pub(crate) fingerprint: u32,
    /// Its first unit and the one after its last.
    pub(crate) unit: u64,
    pub(crate) end: u64,
    pub(crate) is_dead: bool,
}

/// The first 32 of the 37 bits by which the records of a part are ordered.
fn key_of(shard: usize, fingerprint: u32) -> u32 {
    u32::from(shard.to_le_bytes()[0]) << 24 | fingerprint >> 5
}

impl Part {
    fn new(segment: u64, first: u64) -> Part {
        Part { segment, first, end: first, records: 0, groups: Vec::new(), last_key: 0, has_ties: false }
    }

    fn memory_bytes(&self) -> u64 {
        (self.groups.capacity() * size_of::<Group>() + size_of::<Part>()) as u64
    }

    fn append(&mut self, record: &Added) -> Option<()> {
        let key = key_of(record.shard, record.fingerprint);
        let bit = self.records % u64::from(GROUP_RECORDS);
        if bit == 0 {
            self.has_ties |= self.records > 0 && key == self.last_key;
            let offset = u32::try_from(record.unit - self.first).ok()?;
            if self.groups.len() == self.groups.capacity() {
                // Less is unused than if it were doubled.
                self.groups.reserve_exact(self.groups.len() / 8 + 4);
            }
            self.groups.push(Group { key, offset, dead: 0 });
        }
        self.groups.last_mut()?.dead |= u64::from(record.is_dead) << bit;
        (self.last_key, self.end) = (key, record.end);
        self.records += 1;
        Some(())
    }

    /// Whether a record is dead; `None` if there is no such record.
    pub(crate) fn is_dead(&self, record: u64) -> Option<bool> {
        let group = self.groups.get(index(record / u64::from(GROUP_RECORDS)))?;
        Some(group.dead >> (record % u64::from(GROUP_RECORDS)) & 1 == 1)
    }

    /// Visits the groups that may have records with this key.
    fn look_up(&self, key: u32, visit: impl FnMut(usize)) {
        let end = self.groups.partition_point(|group| group.key <= key);
        let before = if self.has_ties { self.groups.partition_point(|group| group.key < key) } else { end };
        (before.saturating_sub(1)..end).for_each(visit);
    }

    fn wanted(&self, place: usize, part: u32, group: usize) -> Wanted {
        let Group { offset, dead, .. } = self.groups[group];
        let end = self.groups.get(group + 1).map_or(self.end, |next| self.first + u64::from(next.offset));
        let start = self.first + u64::from(offset);
        let left = self.records - group as u64 * u64::from(GROUP_RECORDS);
        let records = u32::try_from(left).map_or(GROUP_RECORDS, |left| left.min(GROUP_RECORDS));
        Wanted { start, end, dead, records, place, part, group: u32::try_from(group).unwrap_or(u32::MAX) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A record, and whether it lives.
    #[derive(Clone, Debug)]
    struct Known {
        hash: u64,
        segment: u64,
        unit: u64,
        is_live: bool,
    }

    fn hash_of(shard: usize, fingerprint: u32) -> u64 {
        (shard as u64) << 52 | u64::from(fingerprint) << 23
    }

    /// Adds a segment of records with these fingerprints, all in shard 3.
    fn add(old: &mut Old, known: &mut Vec<Known>, segment: u64, mut fingerprints: Vec<u32>) -> Vec<u64> {
        fingerprints.sort_unstable();
        let mut entries = Vec::new();
        for (unit, fingerprint) in (segment * 100_000 + 5..).step_by(3).zip(fingerprints) {
            let record = Added { shard: 3, fingerprint, unit, end: unit + 3, is_dead: false };
            entries.push(old.append(segment, &record).unwrap());
            known.push(Known { hash: hash_of(3, fingerprint), segment, unit, is_live: true });
        }
        entries
    }

    /// The spot of a record, in the only group that has it.
    fn find(old: &Old, one: &Known) -> Option<(Spot, bool)> {
        let mut wanted = Vec::new();
        old.look_up(one.hash, 9, &mut wanted);
        let groups: Vec<_> = wanted.iter().filter(|group| (group.start..group.end).contains(&one.unit)).collect();
        assert!(groups.len() < 2 && wanted.iter().all(|group| group.place == 9));
        let group = groups.first()?;
        let bit = u32::try_from((one.unit - group.start) / 3).unwrap();
        Some((group.spot(one.unit, bit), group.dead >> bit & 1 == 1))
    }

    /// A live record is always in a group that is read; a dead one is marked if its group is.
    fn check(old: &Old, known: &[Known]) {
        for one in known {
            match find(old, one) {
                Some((_, is_dead)) => assert_eq!(is_dead, !one.is_live, "{one:?}"),
                None => assert!(!one.is_live, "{one:?} is not found"),
            }
        }
    }

    proptest! {
        /// Few fingerprints, so that groups and prefixes have many equal ones; deaths, and a checkpoint that moves one
        /// segment to a new one.
        #[test]
        fn live_records_are_found_and_dead_ones_marked(
            is_narrow: bool,
            fingerprints in proptest::collection::vec(proptest::collection::vec(0u32..1 << FINGERPRINT, 0..300), 1..5),
            deaths in proptest::collection::vec(any::<prop::sample::Index>(), 0..200),
        ) {
            let narrow = |fingerprint: u32| if is_narrow { fingerprint & 7 | fingerprint & 1 << 28 } else { fingerprint };
            let (mut old, mut known, mut entries) = (Old::new(), Vec::new(), Vec::new());
            for (segment, list) in (1..).zip(&fingerprints) {
                let list = list.iter().map(|one| narrow(*one)).collect();
                entries.extend(add(&mut old, &mut known, segment, list));
            }
            old.set(3, entries);
            check(&old, &known);
            let deaths = if known.is_empty() { &[] } else { &deaths[..] };
            for death in deaths {
                let place = death.index(known.len());
                if let Some((spot, _)) = find(&old, &known[place]) {
                    prop_assert_eq!(old.kill(known[place].hash, &spot), known[place].is_live);
                    known[place].is_live = false;
                }
            }
            check(&old, &known);
            // Segment 1 is moved, with its live records only.
            let moved: Vec<u32> =
                known.iter().filter(|one| one.segment == 1 && one.is_live).map(|one| fingerprint_of(one.hash)).collect();
            known.retain(|one| one.segment != 1);
            old.begin_checkpoint();
            let added = add(&mut old, &mut known, 9, moved);
            old.rebuild(3, added, &|part| part.segment == 1);
            check(&old, &known);
            old.end_checkpoint(&|part| part.segment == 1);
            check(&old, &known);
            prop_assert!(old.part_of_segment(1).is_none());
            let live = known.iter().filter(|one| one.is_live).count();
            prop_assert_eq!(old.filters[3].entries().len(), live);
        }
    }

    const FINGERPRINT: u32 = crate::entry::FINGERPRINT_BITS;
}
