//! Test before evict: which entry may replace another one in the tried table.
//!
//! Input: successful connections, the time. Output: an address to test, moves between the tables.
//!
//! Core's `Good_`, `ResolveCollisions_` and `SelectTriedCollision_`. Invariant: an entry with a success within the last
//! four hours keeps its position. At most [`TRIED_COLLISIONS_MAX`] entries wait; a further one is not moved and may try
//! again later.

use super::{AddrMan, BUCKET_SIZE, Id};
use crate::draw;
use crate::limits::TRIED_COLLISIONS_MAX;
use crate::time::UnixTime;
use lydian_wire::address::{Endpoint, TimedAddress};

/// The time in which a success or an attempt counts as recent.
const REPLACEMENT_S: i64 = 4 * 60 * 60;
/// The time that an attempt has to succeed.
const ATTEMPT_S: i64 = 60;
/// After this time, an entry is replaced even if it could not be tested.
const TEST_WINDOW_S: i64 = 40 * 60;

/// The decision about a waiting entry.
enum Verdict {
    Wait,
    /// `is_tested`: the old entry was tested.
    Move {
        is_tested: bool,
    },
    Drop,
}

impl AddrMan {
    /// Records a successful connection at `time`. Returns whether the address moved to tried; it does not if it already
    /// is there, is unknown, or must wait for its position.
    pub fn good(&mut self, endpoint: &Endpoint, time: UnixTime) -> bool {
        self.last_good = time;
        let Some(&id) = self.ids.get(endpoint) else { return false };
        let moved = self.succeeded(id, true, time);
        self.operated();
        moved
    }

    fn succeeded(&mut self, id: Id, test_before_evict: bool, time: UnixTime) -> bool {
        self.last_good = time;
        let Some(info) = self.infos.get_mut(&id) else { return false };
        info.last_success = time;
        info.last_try = time;
        info.attempts = 0;
        // The time of the address is not updated: it would reveal to others which peers we are connected to.
        if info.in_tried || info.ref_count == 0 {
            return false;
        }
        if test_before_evict && self.tried[self.tried_place(id)].is_some() {
            if self.collisions.len() < TRIED_COLLISIONS_MAX {
                self.collisions.insert(id);
            }
            self.note(|this| {
                let holder = this.tried[this.tried_place(id)].and_then(|holder| this.endpoint_of(holder));
                let holder = holder.map_or_else(|| "<unknown-addr>".to_owned(), |holder| holder.to_string());
                let moved = this.endpoint_of(id).map_or(String::new(), |moved| moved.to_string());
                let count = this.collisions.len();
                format!("Collision with {holder} while attempting to move {moved} to tried table. Collisions={count}")
            });
            return false;
        }
        self.make_tried(id);
        self.note(|this| {
            let (moved, place) = (this.endpoint_of(id), this.tried_place(id));
            let moved = moved.map_or(String::new(), |moved| moved.to_string());
            format!("Moved {moved}{} to tried[{}][{}]", "", place / BUCKET_SIZE, place % BUCKET_SIZE)
        });
        true
    }

    /// Decides about the entries that wait for a position in tried.
    pub fn resolve_collisions(&mut self, now: UnixTime) {
        for id in self.collisions.clone() {
            match self.verdict(id, now) {
                Verdict::Wait => continue,
                Verdict::Drop => {}
                Verdict::Move { is_tested } => {
                    self.note_replacement(id, is_tested);
                    self.succeeded(id, false, now);
                }
            }
            self.collisions.remove(&id);
        }
    }

    fn note_replacement(&mut self, id: Id, is_tested: bool) {
        let Some(old) = self.tried[self.tried_place(id)].and_then(|old| self.endpoint_of(old)) else { return };
        let Some(new) = self.endpoint_of(id) else { return };
        self.note(|_| match is_tested {
            true => format!("Replacing {old} with {new} in tried table"),
            false => format!("Unable to test; replacing {old} with {new} in tried table anyway"),
        });
    }

    fn endpoint_of(&self, id: Id) -> Option<Endpoint> {
        self.infos.get(&id).map(|info| info.address.endpoint)
    }

    fn verdict(&self, id: Id, now: UnixTime) -> Verdict {
        let Some(info) = self.infos.get(&id) else { return Verdict::Drop };
        if !info.address.endpoint.addr.is_valid() {
            return Verdict::Drop;
        }
        let Some(old) = self.tried[self.tried_place(id)].and_then(|old| self.infos.get(&old)) else {
            return Verdict::Move { is_tested: true };
        };
        if now.since(old.last_success) < REPLACEMENT_S {
            Verdict::Drop
        } else if now.since(old.last_try) < REPLACEMENT_S {
            if now.since(old.last_try) > ATTEMPT_S { Verdict::Move { is_tested: true } } else { Verdict::Wait }
        } else if now.since(info.last_success) > TEST_WINDOW_S {
            Verdict::Move { is_tested: false }
        } else {
            Verdict::Wait
        }
    }

    /// Returns a tried entry that another entry would replace, with the time of its last attempt, for a test by a
    /// feeler.
    pub fn select_tried_collision(&mut self) -> Option<(TimedAddress, UnixTime)> {
        let index = draw::below(&mut self.random, self.collisions.len());
        let id = *self.collisions.iter().nth(index)?;
        if !self.infos.contains_key(&id) {
            self.collisions.remove(&id);
            return None;
        }
        let old = self.infos.get(&self.tried[self.tried_place(id)]?)?;
        Some((old.address, old.last_try))
    }

    /// Returns the number of addresses that wait for a position in tried.
    pub fn collision_count(&self) -> usize {
        self.collisions.len()
    }

    fn tried_place(&self, id: Id) -> usize {
        self.infos.get(&id).map_or(0, |info| {
            let bucket = info.tried_bucket(&self.key);
            bucket * BUCKET_SIZE + info.position(&self.key, true, bucket)
        })
    }
}
