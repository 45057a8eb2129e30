//! The address manager: which addresses to try next. Input: addresses that peers tell of, attempts and successes of ours, the time. Output: an address to
//! connect to, addresses to tell others, the file `peers.dat`.
//!
//! Bitcoin Core's, bucket for bucket. Two tables of places, chosen by hashes under a secret key:
//!
//! * **new**, 1,024 buckets of 64: told of, never reached. The bucket depends on the groups of the address and of who told; one address has up to 8
//!   places. A newcomer displaces only what is terrible, or has other places.
//! * **tried**, 256 buckets of 64: reached once. The bucket depends on the address and its group. Who would displace another waits until that one was tested
//!   again ([`AddrMan::select_tried_collision`], [`AddrMan::resolve_collisions`]): what still answers is not displaced.
//!
//! So someone with few groups of addresses reaches few places, however many addresses he tells of. Invariants (checked by [`AddrMan::check`]): each entry is
//! in exactly one table; in tried once, in new as often as its count says; every place is the one its hash names. At most 81,920 entries, about 200 bytes
//! each. Ids are 64 bits and never used again, so that a flood cannot make two entries one. Cost: `add` and `good` a
//! few hashes; `select` a word for each bucket and network. It must never resolve a name, read a clock, or be iterated
//! in an order that differs between two runs of one seed.

mod check;
mod collisions;
mod file;
mod info;
mod log;
mod places;
mod select;
mod tables;

pub use check::Inconsistency;
pub use file::PeersError;
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

/// Name of an entry; never used twice.
type Id = u64;

/// The address manager.
#[derive(Clone)]
pub struct AddrMan {
    key: Key,
    random: ChaCha20Rng,
    id_next: Id,
    infos: BTreeMap<Id, AddrInfo>,
    /// Looked up only, never walked: its order is nobody's.
    ids: HashMap<Endpoint, Id>,
    /// All ids, partly shuffled: where random addresses are taken from.
    list: Vec<Id>,
    tried: Places,
    new: Places,
    counts: BTreeMap<Network, Counts>,
    /// The last time [`AddrMan::good`] was called; 1 at first, so that "never" is before it.
    last_good: UnixTime,
    /// Entries that wait for a place in tried which is taken.
    collisions: BTreeSet<Id>,
    /// `-checkaddrman`: everything is checked after every so many operations; 0: never.
    check_every: u32,
    operations: u32,
    lines: log::Lines,
}

/// Entries of one network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub new: usize,
    pub tried: usize,
}

/// Where an entry is: Core's `AddressPosition`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    pub tried: bool,
    /// Places it has.
    pub multiplicity: usize,
    pub bucket: usize,
    pub position: usize,
}

/// An address with more than this age counts as offline when its time is updated.
const ONLINE_S: i64 = 24 * 60 * 60;
/// How much newer a time must be, for an address that seems online ...
const UPDATE_ONLINE_S: i64 = 60 * 60;
/// ... and for any other.
const UPDATE_OFFLINE_S: i64 = 24 * 60 * 60;
/// How much later a peer that is connected must be for its time to be updated.
const UPDATE_CONNECTED_S: i64 = 20 * 60;

impl AddrMan {
    /// Empty, with a key drawn from `random`, which must come from the operating system where peers are real.
    pub fn new(random: &mut ChaCha20Rng) -> Self {
        let mut key = Key::default();
        random.fill_bytes(&mut key);
        Self::with_key(key, random)
    }

    /// Empty, with this key: for tests, and Core's `-test=addrman` (the number 1, little endian).
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

    /// Empty, with the key of Core's `-test=addrman`, so that addresses get the places that its tests expect.
    pub fn deterministic(random: &mut ChaCha20Rng) -> Self {
        let mut key = Key::default();
        key[0] = 1;
        Self::with_key(key, random)
    }

    /// From now on everything is checked after every so many operations: Core's `-checkaddrman`.
    pub fn set_check_every(&mut self, operations: u32) {
        self.check_every = operations;
    }

    /// An operation is over. Like Core's, the check ends the program where it fails: what the tables say is not to be
    /// used.
    fn operated(&mut self) {
        if self.check_every > 0 {
            self.operations = self.operations.wrapping_add(1);
            if self.operations.is_multiple_of(self.check_every) {
                let found = self.check();
                assert_eq!(found, Ok(()), "ADDRMAN CONSISTENCY CHECK FAILED!!!");
            }
        }
    }

    /// Takes addresses that `source` told of; their times count as `penalty_s` older, but for what it says of itself. Says how many got a place.
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
                if !self.told_again(id, address, penalty_s, now) {
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

    /// Updates an entry that a peer tells of again; whether it may have one more place.
    fn told_again(&mut self, id: Id, address: &TimedAddress, penalty_s: u64, now: UnixTime) -> bool {
        let Some(info) = self.infos.get_mut(&id) else { return false };
        let told = UnixTime::from(address.time);
        let interval = if now.since(told) < ONLINE_S { UPDATE_ONLINE_S } else { UPDATE_OFFLINE_S };
        let penalty = i64::try_from(penalty_s).unwrap_or(i64::MAX);
        if i64::from(info.address.time) < told.signed().saturating_sub(interval).saturating_sub(penalty) {
            info.address.time = told.minus(penalty_s).to_u32();
        }
        info.address.services = info.address.services | address.services;
        if address.time <= info.address.time || info.in_tried || info.ref_count >= NEW_BUCKETS_PER_ADDRESS_MAX {
            return false;
        }
        // Each further place is twice as hard to get as the one before.
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

    /// An attempt to connect that is now made; it counts as failed unless a success follows, once between two successes with anyone.
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

    /// A connection that was open until now: its time is taken from it, at most every 20 minutes.
    pub fn connected(&mut self, endpoint: &Endpoint, now: UnixTime) {
        if let Some(info) = self.find_mut(endpoint)
            && now.since(UnixTime::from(info.address.time)) > UPDATE_CONNECTED_S
        {
            info.address.time = now.to_u32();
        }
    }

    /// What the peer itself said that it serves.
    pub fn set_services(&mut self, endpoint: &Endpoint, services: Services) {
        if let Some(info) = self.find_mut(endpoint) {
            info.address.services = services;
        }
    }

    /// Entries: of one network or of all, of one table or of both.
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

    /// The entry of an address.
    pub fn get(&self, endpoint: &Endpoint) -> Option<&AddrInfo> {
        self.ids.get(endpoint).and_then(|id| self.infos.get(id))
    }

    /// Where an address is; of its places in new, the one that its first source gave it.
    pub fn find(&self, endpoint: &Endpoint) -> Option<Position> {
        let info = self.get(endpoint)?;
        let (tried, multiplicity, bucket) = match info.in_tried {
            true => (true, 1, info.tried_bucket(&self.key)),
            false => (false, info.ref_count, info.new_bucket(&self.key, &info.source)),
        };
        Some(Position { tried, multiplicity, bucket, position: info.position(&self.key, tried, bucket) })
    }

    /// All places of one table that are taken, in order.
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
