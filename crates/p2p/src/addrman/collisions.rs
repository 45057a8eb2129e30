//! Test before evict: who may displace whom in the tried table. Input: successes, the time. Output: an address that should be tested, moves.
//!
//! Core's `Good_`, `ResolveCollisions_` and `SelectTriedCollision_`. Invariant: an entry that answered within the last four hours keeps its place. At most
//! [`TRIED_COLLISIONS_MAX`] wait; who comes then is not moved and may come again.

use super::{AddrMan, BUCKET_SIZE, Id};
use crate::draw;
use crate::limits::TRIED_COLLISIONS_MAX;
use crate::time::UnixTime;
use lydian_wire::address::{Endpoint, TimedAddress};

/// Who answered, or was tried, so recently.
const REPLACEMENT_S: i64 = 4 * 60 * 60;
/// What an attempt gets to succeed.
const ATTEMPT_S: i64 = 60;
/// How long it may be impossible to test the old entry.
const TEST_WINDOW_S: i64 = 40 * 60;

/// What becomes of an entry that waits.
enum Verdict {
    Wait,
    /// Whether the old entry was tested.
    Move {
        is_tested: bool,
    },
    Drop,
}

impl AddrMan {
    /// A connection that succeeded at `time`. Says whether the address moved to tried; it did not if it was there, is unknown, or has to wait for its place.
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
        // The address's own time stays as it is: it would tell others who is connected.
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

    /// Decides about the entries that wait for a place in tried.
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

    /// An entry of tried whose place another waits for, and when it was last tried: to be tested by a feeler.
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

    /// Addresses that wait for a place in tried.
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
