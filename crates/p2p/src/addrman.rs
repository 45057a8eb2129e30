//! The address manager: selects addresses to connect to.
//!
//! Input: addresses from peers, our connection attempts and successes, the time. Output: an address to connect to,
//! addresses for other peers, the file `peers.dat`.
//!
//! This is Bitcoin Core's address manager, bucket for bucket. It has two tables, with positions chosen by hashes with a
//! secret key:
//!
//! - **new**, 1,024 buckets of 64: received from peers, never connected. The bucket depends on the netgroups of the
//!   address and of its source; one address has up to 8 positions. A new entry replaces only an entry that is terrible
//!   or has other positions.
//! - **tried**, 256 buckets of 64: connected at least once. The bucket depends on the address and its netgroup. A new
//!   entry that collides with an old one waits until the old one was tested again ([`AddrMan::select_tried_collision`],
//!   [`AddrMan::resolve_collisions`]): an address that still works is not replaced.
//!
//! An attacker with few netgroups thus reaches few positions, however many addresses it sends. Invariants (checked by
//! [`AddrMan::check`]): each entry is in exactly one table, once in tried or as often as its reference count says in
//! new; every position is the one given by the hashes. There are at most 81,920 entries of about 200 bytes each. Ids
//! have 64 bits and are never reused, so that a flood of addresses cannot cause two entries with one id.
//!
//! Cost: a few hashes for `add` and `good`; one word for each bucket and network for `select`. The address manager must
//! never resolve a name, read a clock, or be iterated in an order that differs between two runs with the same seed.

mod check;
mod collisions;
mod file;
mod info;
mod log;
mod places;
mod select;
mod tables;

pub use check::Inconsistency;
pub use file::{PEERS_FORMAT, PeersError};
pub use info::{
    AddrInfo, BUCKET_SIZE, Key, NEW_BUCKET_COUNT, NEW_BUCKETS_PER_SOURCE_GROUP, TRIED_BUCKET_COUNT,
    TRIED_BUCKETS_PER_GROUP,
};

use crate::draw;
use crate::limits::NEW_BUCKETS_PER_ADDRESS_MAX;
use crate::time::UnixTime;
use lydian_wire::address::{Endpoint, NetAddr, Network, Services, TimedAddress};
use places::Places;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The id of an entry; never reused.
type Id = u64;

/// The address manager.
#[derive(Clone)]
pub struct AddrMan {
    key: Key,
    random: ChaCha20Rng,
    id_next: Id,
    infos: BTreeMap<Id, AddrInfo>,
    /// Used for lookups only and never iterated: its order is not deterministic.
    ids: HashMap<Endpoint, Id>,
    /// All ids, partly shuffled, for drawing random addresses.
    list: Vec<Id>,
    tried: Places,
    new: Places,
    counts: BTreeMap<Network, Counts>,
    /// The time of the last call of [`AddrMan::good`]; initially 1, so that "never" is earlier.
    last_good: UnixTime,
    /// Entries that wait for a position in tried that is taken.
    collisions: BTreeSet<Id>,
    /// `-checkaddrman`: the tables are checked each time after this number of operations; 0 means never.
    check_every: u32,
    operations: u32,
    lines: log::Lines,
}

/// The number of entries of one network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub new: usize,
    pub tried: usize,
}

/// The position of an entry: Core's `AddressPosition`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    pub tried: bool,
    /// The number of positions it has.
    pub multiplicity: usize,
    pub bucket: usize,
    pub position: usize,
}

/// An address that was last seen longer ago than this counts as offline when its time is updated.
const ONLINE_S: i64 = 24 * 60 * 60;
/// How much newer the time must be for an update of an address that seems online ...
const UPDATE_ONLINE_S: i64 = 60 * 60;
/// ... and of any other address.
const UPDATE_OFFLINE_S: i64 = 24 * 60 * 60;
/// The minimum age of the time of a connected peer before it is updated.
const UPDATE_CONNECTED_S: i64 = 20 * 60;

impl AddrMan {
    /// Creates an empty address manager with a key drawn from `random`, which must be seeded by the operating system
    /// outside of tests.
    pub fn new(random: &mut ChaCha20Rng) -> Self {
        let mut key = Key::default();
        random.fill_bytes(&mut key);
        Self::with_key(key, random)
    }

    /// Creates an empty address manager with this key: for tests, and Core's `-test=addrman` (the number 1,
    /// little-endian).
    pub fn with_key(key: Key, random: &mut ChaCha20Rng) -> Self {
        let mut seed = [0; 32];
        random.fill_bytes(&mut seed);
        AddrMan {
            key,
            random: ChaCha20Rng::from_seed(seed),
            id_next: 0,
            infos: BTreeMap::new(),
            ids: HashMap::new(),
            list: Vec::new(),
            tried: Places::new(TRIED_BUCKET_COUNT),
            new: Places::new(NEW_BUCKET_COUNT),
            counts: BTreeMap::new(),
            last_good: UnixTime(1),
            collisions: BTreeSet::new(),
            lines: log::Lines::default(),
            check_every: 0,
            operations: 0,
        }
    }

    /// Creates an empty address manager with the key of Core's `-test=addrman`, so that addresses get the positions
    /// that its tests expect.
    pub fn deterministic(random: &mut ChaCha20Rng) -> Self {
        let mut key = Key::default();
        key[0] = 1;
        Self::with_key(key, random)
    }

    /// Sets after how many operations the tables are checked: Core's `-checkaddrman`.
    pub fn set_check_every(&mut self, operations: u32) {
        self.check_every = operations;
    }

    /// Ends an operation. Like in Core, a failed check terminates the program, because the tables cannot be trusted.
    fn operated(&mut self) {
        if self.check_every > 0 {
            self.operations = self.operations.wrapping_add(1);
            if self.operations.is_multiple_of(self.check_every) {
                let found = self.check();
                assert_eq!(found, Ok(()), "ADDRMAN CONSISTENCY CHECK FAILED!!!");
            }
        }
    }

    /// Adds addresses received from `source` and returns how many got a position. `penalty_s` is subtracted from their
    /// times, except from that of the source's own address.
    pub fn add(&mut self, addresses: &[TimedAddress], source: &NetAddr, penalty_s: u64, now: UnixTime) -> usize {
        let added = addresses.iter().filter(|address| self.add_one(address, source, penalty_s, now)).count();
        if added > 0 {
            self.note(|this| {
                format!(
                    "Added {added} addresses (of {}) from {source}: {} tried, {} new",
                    addresses.len(),
                    this.size(None, Some(false)),
                    this.size(None, Some(true))
                )
            });
        }
        self.operated();
        added
    }

    fn add_one(&mut self, address: &TimedAddress, source: &NetAddr, penalty_s: u64, now: UnixTime) -> bool {
        let endpoint = address.endpoint;
        if !endpoint.addr.is_routable() {
            return false;
        }
        let penalty_s = if endpoint.addr == *source { 0 } else { penalty_s };
        let id = match self.ids.get(&endpoint) {
            Some(&id) => {
                if !self.update_known(id, address, penalty_s, now) {
                    return false;
                }
                id
            }
            None => {
                let time = UnixTime::from(address.time).minus(penalty_s).to_u32();
                self.create(TimedAddress { time, ..*address }, *source)
            }
        };
        self.place_in_new(id, source, now)
    }

    /// Updates a known entry that was received again. Returns whether it may have another position.
    fn update_known(&mut self, id: Id, address: &TimedAddress, penalty_s: u64, now: UnixTime) -> bool {
        let Some(info) = self.infos.get_mut(&id) else { return false };
        let received_time = UnixTime::from(address.time);
        let interval = if now.since(received_time) < ONLINE_S { UPDATE_ONLINE_S } else { UPDATE_OFFLINE_S };
        let penalty = i64::try_from(penalty_s).unwrap_or(i64::MAX);
        if i64::from(info.address.time) < received_time.signed().saturating_sub(interval).saturating_sub(penalty) {
            info.address.time = received_time.minus(penalty_s).to_u32();
        }
        info.address.services = info.address.services | address.services;
        if address.time <= info.address.time || info.in_tried || info.ref_count >= NEW_BUCKETS_PER_ADDRESS_MAX {
            return false;
        }
        // Each further position is half as likely as the previous one.
        let places = info.ref_count;
        places == 0 || draw::below(&mut self.random, 1 << places) == 0
    }

    fn place_in_new(&mut self, id: Id, source: &NetAddr, now: UnixTime) -> bool {
        let Some(info) = self.infos.get(&id) else { return false };
        let bucket = info.new_bucket(&self.key, source);
        let place = bucket * BUCKET_SIZE + info.position(&self.key, false, bucket);
        let (is_first, network) = (info.ref_count == 0, info.address.endpoint.addr.network());
        let holder = self.new[place];
        if holder == Some(id) {
            return false;
        }
        let is_free = match holder.and_then(|holder| self.infos.get(&holder)) {
            None => true,
            Some(holder) => holder.is_terrible(now) || (holder.ref_count > 1 && is_first),
        };
        if is_free {
            self.clear_new(place);
            self.new.put(place, id, network);
            if let Some(info) = self.infos.get_mut(&id) {
                info.ref_count += 1;
                let endpoint = info.address.endpoint;
                self.note(|_| format!("Added {endpoint}{} to new[{bucket}][{}]", "", place % BUCKET_SIZE));
            }
        } else if is_first {
            self.delete(id);
        }
        is_free
    }

    /// Records a connection attempt. With `count_failure` it counts as a failure until a success follows, but only once
    /// between two successful connections to any address.
    pub fn attempt(&mut self, endpoint: &Endpoint, count_failure: bool, now: UnixTime) {
        let last_good = self.last_good;
        if let Some(info) = self.find_mut(endpoint) {
            info.last_try = now;
            if count_failure && info.last_count_attempt < last_good {
                info.last_count_attempt = now;
                info.attempts = info.attempts.saturating_add(1);
            }
        }
        self.operated();
    }

    /// Records that a connection was open until now: updates the time of the address if it is more than 20 minutes old.
    pub fn connected(&mut self, endpoint: &Endpoint, now: UnixTime) {
        if let Some(info) = self.find_mut(endpoint)
            && now.since(UnixTime::from(info.address.time)) > UPDATE_CONNECTED_S
        {
            info.address.time = now.to_u32();
        }
    }

    /// Sets the services that the peer itself announced.
    pub fn set_services(&mut self, endpoint: &Endpoint, services: Services) {
        if let Some(info) = self.find_mut(endpoint) {
            info.address.services = services;
        }
    }

    /// Returns the number of entries, optionally of one network or one table.
    pub fn size(&self, network: Option<Network>, in_new: Option<bool>) -> usize {
        let of = |counts: &Counts| match in_new {
            Some(true) => counts.new,
            Some(false) => counts.tried,
            None => counts.new + counts.tried,
        };
        match network {
            Some(network) => self.counts.get(&network).map_or(0, of),
            None => self.counts.values().map(of).sum(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the entry of an address.
    pub fn get(&self, endpoint: &Endpoint) -> Option<&AddrInfo> {
        self.ids.get(endpoint).and_then(|id| self.infos.get(id))
    }

    /// Returns the position of an address; in new, it is the one for its first source.
    pub fn find(&self, endpoint: &Endpoint) -> Option<Position> {
        let info = self.get(endpoint)?;
        let (tried, multiplicity, bucket) = match info.in_tried {
            true => (true, 1, info.tried_bucket(&self.key)),
            false => (false, info.ref_count, info.new_bucket(&self.key, &info.source)),
        };
        Some(Position { tried, multiplicity, bucket, position: info.position(&self.key, tried, bucket) })
    }

    /// Returns all taken positions of one table in order.
    pub fn entries(&self, tried: bool) -> impl Iterator<Item = (&AddrInfo, Position)> {
        let table = if tried { &self.tried } else { &self.new };
        table.iter().enumerate().filter_map(move |(place, id)| {
            let info = self.infos.get(id.as_ref()?)?;
            let multiplicity = if tried { 1 } else { info.ref_count };
            let position = Position { tried, multiplicity, bucket: place / BUCKET_SIZE, position: place % BUCKET_SIZE };
            Some((info, position))
        })
    }

    fn find_mut(&mut self, endpoint: &Endpoint) -> Option<&mut AddrInfo> {
        self.infos.get_mut(self.ids.get(endpoint)?)
    }
}

impl std::fmt::Debug for AddrMan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AddrMan").field("counts", &self.counts).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
