//! [`Partition`]: the coins of one part of the keys. Input: keys and coins. Output: the bytes of coins in memory, the
//! locations of those on disk.
//!
//! A partition has an index of 256 [`Table`]s, an [`Arena`] with the coins in memory, and the deaths of coins on disk
//! since the last checkpoint. A record in the arena is `[unit on disk: 5 bytes, once assigned][outpoint 36][coin]`.
//! Batches are processed in groups: first all index slots are read, then all records, and then the operations are done,
//! so the cache misses of a group overlap. Cost: two such misses per key and about 20 ns of work. The caller reads from
//! disk; a creation needs a read only if another key has the same 41 bits.

use crate::arena::Arena;
use crate::coin::{Parsed, parse_coin, write_coin};
use crate::entry::{AGE_MAX, Entry, Place, SHARDS, fingerprint_of, shard_of};
use crate::error::CoinsError;
use crate::key::Key;
use crate::old::{Old, Spot, Wanted};
use crate::record::OUTPOINT_BYTES;
use crate::table::Table;
use lydian_consensus::CoinRef;
use lydian_disk::MemoryBlocks;
use lydian_primitives::OutPoint;
use std::hint::black_box;

/// Memory of a table from which index and coins are in huge pages: with smaller ones, of less than 25 million coins in
/// the store, they gain nothing.
const LARGE_BYTES: u64 = 64 << 10;
/// Number of keys in a group.
pub(crate) const GROUP: usize = 32;
const UNIT_FIELD: usize = 5;
const COIN_START: usize = UNIT_FIELD + OUTPOINT_BYTES;

#[derive(Debug)]
pub(crate) struct Partition {
    pub(crate) tables: Vec<Table>,
    pub(crate) arena: Arena,
    /// The units of records on disk that were spent since the last checkpoint.
    pub(crate) deaths: Vec<u64>,
    /// Bytes of the arena's used slots, by age.
    pub(crate) bytes_by_age: [u64; AGE_MAX + 1],
    /// Number of coins in memory and on disk.
    pub(crate) len: u64,
    /// With little memory: the coins on disk, which then have no entries in the tables. All coins in memory are new.
    pub(crate) old: Option<Box<Old>>,
    scratch: Vec<u8>,
}

/// What may have the coins of keys on disk.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    /// The unit of a record, and the position of a key.
    pub(crate) records: Vec<(u64, usize)>,
    /// With little memory.
    pub(crate) groups: Vec<Wanted>,
}

/// Reads the outpoint of the record at a unit.
pub(crate) type ReadOutpoint<'a> = &'a dyn Fn(u64) -> Result<OutPoint, CoinsError>;

impl Partition {
    pub(crate) fn new() -> Partition {
        Partition {
            tables: (0..SHARDS).map(|_| Table::default()).collect(),
            arena: Arena::default(),
            deaths: Vec::new(),
            bytes_by_age: [0; AGE_MAX + 1],
            len: 0,
            old: None,
            scratch: Vec::new(),
        }
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        let tables: u64 = self.tables.iter().map(Table::memory_bytes).sum();
        let old = self.old.as_ref().map_or(0, |old| old.memory_bytes());
        tables + self.arena.memory_bytes() + self.deaths.capacity() as u64 * 8 + old
    }

    /// Adds the memory that huge pages make faster: index and coins, if the index is large.
    pub(crate) fn add_large_blocks(&self, blocks: &mut MemoryBlocks) {
        if self.tables.first().is_some_and(|table| table.memory_bytes() >= LARGE_BYTES) {
            self.tables.iter().for_each(|table| table.add_block(blocks));
            self.arena.add_blocks(blocks);
        }
    }

    /// Approximate number of bytes that the next checkpoint will write.
    pub(crate) fn pending_bytes(&self) -> u64 {
        self.bytes_by_age[0] + self.deaths.len() as u64 * 8 + self.old.as_ref().map_or(0, |old| old.pending_bytes())
    }

    /// Counts the bytes of each age as one checkpoint older. The entries themselves must be, too.
    pub(crate) fn grow_older(&mut self) {
        let bytes = &mut self.bytes_by_age;
        bytes[AGE_MAX] += bytes[AGE_MAX - 1];
        bytes.copy_within(0..AGE_MAX - 1, 1);
        bytes[0] = 0;
    }

    /// Looks up keys. Calls `found` with the position in `keys` and the coin of each key in memory, and appends what
    /// may have the others on disk.
    pub(crate) fn look_up<'p>(
        &'p self,
        keys: &[Key],
        candidates: &mut Candidates,
        found: &mut dyn FnMut(usize, &'p [u8]),
    ) {
        let Candidates { records: on_disk, groups } = candidates;
        if let Some(old) = &self.old {
            for (key, place) in keys.iter().zip(0..) {
                match self.find_in_memory(key) {
                    Some((_, address)) => found(place, &self.arena.bytes(address)[COIN_START..]),
                    None => old.look_up(key.hash, place, groups),
                }
            }
            return;
        }
        let mut in_memory: Vec<(usize, u32)> = Vec::with_capacity(GROUP);
        for (group, start) in keys.chunks(GROUP).zip((0..).step_by(GROUP)) {
            self.touch_homes(group.iter());
            let first_on_disk = on_disk.len();
            in_memory.clear();
            for (key, place) in group.iter().zip(start..) {
                self.each_entry(key, |_, entry| match entry.place() {
                    Place::Memory { address, .. } => in_memory.push((place, address)),
                    Place::Disk { unit } => on_disk.push((unit, place)),
                });
            }
            self.touch_records(in_memory.iter().map(|(_, address)| *address));
            for (place, address) in &in_memory {
                let bytes = self.arena.bytes(*address);
                if is_of(bytes, &keys[*place].outpoint) {
                    found(*place, &bytes[COIN_START..]);
                    if on_disk.len() > first_on_disk {
                        // The entry on disk with the same 41 bits belongs to another coin.
                        let others: Vec<_> = on_disk.drain(first_on_disk..).filter(|(_, one)| one != place).collect();
                        on_disk.extend(others);
                    }
                }
            }
        }
    }

    /// Removes the coins of keys, all of which must exist.
    pub(crate) fn spend(&mut self, keys: &[Key], read: ReadOutpoint<'_>) -> Result<(), CoinsError> {
        self.touch_homes(keys.iter());
        self.touch_coins(keys.iter());
        for key in keys {
            let slot = self.find(key, false, read)?.ok_or(CoinsError::Missing { outpoint: key.outpoint })?;
            self.remove(key, slot);
        }
        Ok(())
    }

    /// Adds coins, replacing existing ones. Returns `None` if the arena has no addresses left.
    pub(crate) fn create(
        &mut self,
        coins: &[(Key, CoinRef<'_>)],
        read: ReadOutpoint<'_>,
    ) -> Result<Option<()>, CoinsError> {
        self.touch_homes(coins.iter().map(|(key, _)| key));
        for (key, coin) in coins {
            if let Some(slot) = self.find(key, true, read)? {
                self.remove(key, slot);
            }
            if self.add(key, *coin).is_none() {
                return Ok(None);
            }
        }
        Ok(Some(()))
    }

    /// Removes the coin of a key, which must exist, in a store with little memory. `spot` is where it is on disk, if it
    /// is there.
    pub(crate) fn spend_spot(&mut self, key: &Key, spot: Option<&Spot>) -> Result<(), CoinsError> {
        let Some((slot, _)) = self.find_in_memory(key) else {
            let is_killed = spot.is_some_and(|spot| self.kill(key, spot));
            return if is_killed { Ok(()) } else { Err(CoinsError::Missing { outpoint: key.outpoint }) };
        };
        self.remove(key, slot);
        Ok(())
    }

    /// Adds a coin in a store with little memory, replacing an existing one. Returns `None` if the arena has no
    /// addresses left.
    pub(crate) fn create_at(&mut self, key: &Key, coin: CoinRef<'_>, spot: Option<&Spot>) -> Option<()> {
        if let Some((slot, _)) = self.find_in_memory(key) {
            self.remove(key, slot);
        }
        if let Some(spot) = spot {
            self.kill(key, spot);
        }
        self.add(key, coin)
    }

    /// Marks the death of a coin on disk. Returns whether it lived.
    fn kill(&mut self, key: &Key, spot: &Spot) -> bool {
        let is_killed = self.old.as_mut().is_some_and(|old| old.kill(key.hash, spot));
        if is_killed {
            self.deaths.push(spot.unit);
            self.len -= 1;
        }
        is_killed
    }

    /// The slot and address of a coin in memory.
    fn find_in_memory(&self, key: &Key) -> Option<(usize, u32)> {
        let mut found = None;
        self.each_entry(key, |slot, entry| {
            if let Place::Memory { address, .. } = entry.place()
                && is_of(self.arena.bytes(address), &key.outpoint)
            {
                found = Some((slot, address));
            }
        });
        found
    }

    fn add(&mut self, key: &Key, coin: CoinRef<'_>) -> Option<()> {
        self.scratch.clear();
        write_coin(coin, &mut self.scratch);
        let address = self.arena.allocate(COIN_START + self.scratch.len())?;
        let bytes = self.arena.bytes_mut(address);
        bytes[UNIT_FIELD..UNIT_FIELD + 32].copy_from_slice(&key.outpoint.txid.0);
        bytes[UNIT_FIELD + 32..COIN_START].copy_from_slice(&key.outpoint.vout.to_le_bytes());
        bytes[COIN_START..COIN_START + self.scratch.len()].copy_from_slice(&self.scratch);
        self.bytes_by_age[0] += self.arena.slot_bytes(address);
        self.tables[shard_of(key.hash)].insert(Entry::memory(fingerprint_of(key.hash), address, 0));
        self.len += 1;
        Some(())
    }

    /// The slot of a key's entry. Unless `is_certain` is set, a single entry on disk is assumed to be the key's without
    /// reading it, because the caller knows that the coin exists.
    fn find(&self, key: &Key, is_certain: bool, read: ReadOutpoint<'_>) -> Result<Option<usize>, CoinsError> {
        let (mut in_memory, mut on_disk, mut others) = (None, None, Vec::new());
        self.each_entry(key, |slot, entry| match entry.place() {
            Place::Memory { address, .. } if is_of(self.arena.bytes(address), &key.outpoint) => in_memory = Some(slot),
            Place::Memory { .. } => {}
            Place::Disk { unit } if on_disk.is_none() => on_disk = Some((slot, unit)),
            Place::Disk { unit } => others.push((slot, unit)),
        });
        if in_memory.is_some() {
            return Ok(in_memory);
        }
        let Some(first) = on_disk else { return Ok(None) };
        if others.is_empty() && !is_certain {
            return Ok(Some(first.0));
        }
        others.push(first);
        for (slot, unit) in others {
            if read(unit)? == key.outpoint {
                return Ok(Some(slot));
            }
        }
        Ok(None)
    }

    fn remove(&mut self, key: &Key, slot: usize) {
        let table = &mut self.tables[shard_of(key.hash)];
        match table.slots()[slot].place() {
            Place::Disk { unit } => self.deaths.push(unit),
            Place::Memory { address, age } => {
                if age > 0 {
                    self.deaths.push(unit_of(self.arena.bytes(address)));
                }
                self.bytes_by_age[age] -= self.arena.slot_bytes(address);
                self.arena.release(address);
            }
        }
        table.remove(slot);
        self.len -= 1;
    }

    #[inline]
    fn each_entry(&self, key: &Key, mut visit: impl FnMut(usize, Entry)) {
        let (table, fingerprint) = (&self.tables[shard_of(key.hash)], fingerprint_of(key.hash));
        let mut slot = table.first(fingerprint);
        while let Some(entry) = table.at(slot, fingerprint) {
            visit(slot, entry);
            slot += 1;
        }
    }

    fn touch_homes<'k>(&self, keys: impl Iterator<Item = &'k Key>) {
        let touch = |key: &Key| self.tables[shard_of(key.hash)].touch(fingerprint_of(key.hash));
        black_box(keys.map(touch).fold(0, |sum, bits| sum ^ bits));
    }

    fn touch_coins<'k>(&self, keys: impl Iterator<Item = &'k Key>) {
        let mut sum = 0;
        for key in keys {
            self.each_entry(key, |_, entry| {
                if let Place::Memory { address, .. } = entry.place() {
                    sum ^= self.arena.touch(address);
                }
            });
        }
        black_box(sum);
    }

    fn touch_records(&self, addresses: impl Iterator<Item = u32>) {
        black_box(addresses.map(|address| self.arena.touch(address)).fold(0, |sum, bits| sum ^ bits));
    }
}

/// The parts of a record in the arena.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InMemory<'a> {
    pub(crate) outpoint: &'a [u8; OUTPOINT_BYTES],
    pub(crate) coin_bytes: &'a [u8],
}

/// Parses a slot of the arena. The bytes are our own, so a failure is a bug.
pub(crate) fn in_memory(slot: &[u8]) -> InMemory<'_> {
    let (outpoint, coin) = match slot[UNIT_FIELD..].split_first_chunk() {
        Some(parts) => parts,
        None => unreachable!("a slot of {} bytes", slot.len()),
    };
    let parsed = parse_in_memory(coin);
    InMemory { outpoint, coin_bytes: &coin[..parsed.size] }
}

/// Decodes a coin found by [`Partition::look_up`].
pub(crate) fn parse_in_memory(bytes: &[u8]) -> Parsed<'_> {
    match parse_coin(bytes) {
        Ok(coin) => coin,
        Err(error) => unreachable!("a coin in memory cannot be read: {error:?}"),
    }
}

/// The unit on disk of a coin in memory, which must have been written by a checkpoint.
pub(crate) fn unit_of(slot: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    bytes[..UNIT_FIELD].copy_from_slice(&slot[..UNIT_FIELD]);
    u64::from_le_bytes(bytes)
}

pub(crate) fn set_unit(slot: &mut [u8], unit: u64) {
    slot[..UNIT_FIELD].copy_from_slice(&unit.to_le_bytes()[..UNIT_FIELD]);
}

fn is_of(slot: &[u8], outpoint: &OutPoint) -> bool {
    slot[UNIT_FIELD..UNIT_FIELD + 32] == outpoint.txid.0
        && slot[UNIT_FIELD + 32..COIN_START] == outpoint.vout.to_le_bytes()
}
