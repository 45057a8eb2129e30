//! Changes of the tables.
//!
//! Input: ids and positions. Output: none; the counts are updated.
//!
//! Invariant: between two calls from outside, every entry has a position. Entries are created and deleted only here.
//! Cost: constant, except for `make_tried`, which searches the positions of the entry in new.

use super::{AddrInfo, AddrMan, BUCKET_SIZE, Counts, Id, NEW_BUCKET_COUNT};
use lydian_wire::address::{NetAddr, TimedAddress};

impl AddrMan {
    /// Creates an entry without a position.
    pub(super) fn create(&mut self, address: TimedAddress, source: NetAddr) -> Id {
        let mut info = AddrInfo::new(address, source);
        info.random_index = self.list.len();
        let id = self.id_next;
        self.id_next += 1;
        self.ids.insert(address.endpoint, id);
        self.infos.insert(id, info);
        self.list.push(id);
        self.counts_of(&address.endpoint.addr).new += 1;
        id
    }

    pub(super) fn counts_of(&mut self, addr: &NetAddr) -> &mut Counts {
        self.counts.entry(addr.network()).or_default()
    }

    /// Deletes an entry that has no position.
    pub(super) fn delete(&mut self, id: Id) {
        let Some(info) = self.infos.remove(&id) else { return };
        debug_assert!(!info.in_tried && info.ref_count == 0, "an entry with a place is deleted");
        let counts = self.counts_of(&info.address.endpoint.addr);
        counts.new = counts.new.saturating_sub(1);
        self.ids.remove(&info.address.endpoint);
        self.list.swap_remove(info.random_index);
        if let Some(moved) = self.list.get(info.random_index)
            && let Some(moved) = self.infos.get_mut(moved)
        {
            moved.random_index = info.random_index;
        }
    }

    /// Swaps two entries of the list.
    pub(super) fn swap(&mut self, one: usize, other: usize) {
        self.list.swap(one, other);
        for index in [one, other] {
            if let Some(info) = self.infos.get_mut(&self.list[index]) {
                info.random_index = index;
            }
        }
    }

    /// Frees a position in new and deletes its entry if it has no other position.
    pub(super) fn clear_new(&mut self, place: usize) {
        let Some(id) = self.new.take(place) else { return };
        if let Some(info) = self.infos.get_mut(&id) {
            info.ref_count = info.ref_count.saturating_sub(1);
            let (endpoint, is_gone) = (info.address.endpoint, info.ref_count == 0);
            let (bucket, position) = (place / BUCKET_SIZE, place % BUCKET_SIZE);
            self.note(|_| format!("Removed {endpoint} from new[{bucket}][{position}]"));
            if is_gone {
                self.delete(id);
            }
        }
    }

    /// Moves an entry from new to tried. An entry at its position in tried goes back to new and replaces the entry at
    /// its position there.
    pub(super) fn make_tried(&mut self, id: Id) {
        let Some(mut info) = self.infos.remove(&id) else { return };
        let start = info.new_bucket(&self.key, &info.source);
        for step in 0..NEW_BUCKET_COUNT {
            let bucket = (start + step) % NEW_BUCKET_COUNT;
            let place = bucket * BUCKET_SIZE + info.position(&self.key, false, bucket);
            if self.new[place] == Some(id) {
                self.new.take(place);
                info.ref_count = info.ref_count.saturating_sub(1);
                if info.ref_count == 0 {
                    break;
                }
            }
        }
        let network = info.address.endpoint.addr.network();
        let counts = self.counts_of(&info.address.endpoint.addr);
        counts.new = counts.new.saturating_sub(1);
        counts.tried += 1;
        let bucket = info.tried_bucket(&self.key);
        let place = bucket * BUCKET_SIZE + info.position(&self.key, true, bucket);
        info.in_tried = true;
        self.infos.insert(id, info);
        if let Some(old) = self.tried.put(place, id, network) {
            self.back_to_new(old, place);
        }
    }

    /// Gives an entry that lost its position in tried one in new.
    fn back_to_new(&mut self, id: Id, tried: usize) {
        let Some(info) = self.infos.get(&id) else { return };
        let (endpoint, addr) = (info.address.endpoint, info.address.endpoint.addr);
        let bucket = info.new_bucket(&self.key, &info.source);
        let place = bucket * BUCKET_SIZE + info.position(&self.key, false, bucket);
        self.clear_new(place);
        self.new.put(place, id, addr.network());
        if let Some(info) = self.infos.get_mut(&id) {
            info.in_tried = false;
            info.ref_count = 1;
        }
        let counts = self.counts_of(&addr);
        counts.tried = counts.tried.saturating_sub(1);
        counts.new += 1;
        let (tried_bucket, tried_position) = (tried / BUCKET_SIZE, tried % BUCKET_SIZE);
        let position = place % BUCKET_SIZE;
        self.note(|_| {
            format!("Moved {endpoint} from tried[{tried_bucket}][{tried_position}] to new[{bucket}][{position}] to make space")
        });
    }
}
