//! Which peer is asked for which transaction, and when.
//!
//! Bitcoin Core's `TxRequestTracker` (txrequest.h). Input: announcements with the time from which on a request may be
//! sent, requests with the time of their expiry, responses, the time. Output: the transactions to request from a peer
//! now, in the order in which it announced them.
//!
//! The rules, for each hash (a txid and a wtxid with the same bytes are one hash):
//!
//! - A peer's first announcement counts; it is a candidate from its request time on.
//! - At most one request is outstanding. Only without one is a candidate selected: the one with the highest priority,
//!   which is a salted hash of peer and transaction, above which preferred peers come first. So a peer cannot predict
//!   which of several announcers is asked.
//! - A response or the expiry completes an announcement. It is kept, so that the peer is not asked again, until the
//!   hash has no candidate and no request left.
//!
//! Invariants: each announcement is in exactly the indices that its state demands; the clock may go back, which turns
//! candidates back into delayed ones. The specification is the plain model in `requests/model.rs`, against which random
//! sequences are tested. Memory: about 300 bytes per announcement, and the caller limits those of one peer
//! ([`PEER_ANNOUNCEMENTS_MAX`]). Cost: logarithmic in the number of announcements, for each announcement that changes
//! its state; linear if the clock goes back.
//!
//! [`PEER_ANNOUNCEMENTS_MAX`]: crate::limits::PEER_ANNOUNCEMENTS_MAX

#[cfg(any(test, fuzzing))]
mod model;
#[cfg(test)]
mod tests;
#[cfg(any(test, fuzzing))]
pub mod twin;

use super::GenTxid;
use crate::peer::PeerId;
use lydian_hash::SipHasher;
use lydian_primitives::{Txid, Wtxid};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

type Hash = [u8; 32];

/// The state of an announcement. The order is that of the index by hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    /// A candidate whose request time is in the future.
    Delayed,
    /// A candidate that is not selected.
    Ready,
    /// The selected candidate: only if there is no request for the hash.
    Best,
    /// The request is outstanding until the announcement's time.
    Requested,
    /// The peer responded, or the request expired.
    Completed,
}

#[derive(Clone, Copy, Debug)]
struct Announcement {
    /// For candidates the request time, for a request the expiry.
    time: Duration,
    /// The number of the announcement, in order of arrival.
    sequence: u64,
    state: State,
    is_wtxid: bool,
    is_preferred: bool,
}

/// The numbers of announcements of one peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    total: usize,
    requested: usize,
    completed: usize,
}

/// Orders the candidates of a hash; the highest priority is requested first.
#[derive(Clone, Copy)]
struct Priorities {
    key: (u64, u64),
}

impl Priorities {
    fn of(self, hash: &Hash, peer: PeerId, is_preferred: bool) -> u64 {
        let salted = SipHasher::new(self.key.0, self.key.1).write(hash).write_u64(peer.0).finish();
        salted >> 1 | u64::from(is_preferred) << 63
    }
}

/// All announced transactions that are not here yet.
pub struct TxRequests {
    priorities: Priorities,
    next_sequence: u64,
    announcements: BTreeMap<(PeerId, Hash), Announcement>,
    /// All announcements by hash. The priority is 0 unless the state is [`State::Ready`].
    by_hash: BTreeSet<(Hash, State, u64, PeerId)>,
    /// Those in [`State::Best`] by peer, in order of arrival.
    best: BTreeSet<(PeerId, u64, Hash)>,
    /// Those in [`State::Delayed`] and [`State::Requested`], by their time.
    waiting: BTreeSet<(Duration, PeerId, Hash)>,
    peers: BTreeMap<PeerId, Counts>,
    /// The last time that was reported.
    now: Duration,
}

impl std::fmt::Debug for TxRequests {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TxRequests").field("announcements", &self.announcements.len()).finish_non_exhaustive()
    }
}

impl TxRequests {
    /// Creates a tracker without announcements, with a salt from `random`.
    pub fn new(random: &mut ChaCha20Rng) -> TxRequests {
        TxRequests::with_key((random.next_u64(), random.next_u64()))
    }

    /// Core's tracker for tests has the key zero.
    pub(super) fn with_key(key: (u64, u64)) -> TxRequests {
        TxRequests {
            priorities: Priorities { key },
            next_sequence: 0,
            announcements: BTreeMap::new(),
            by_hash: BTreeSet::new(),
            best: BTreeSet::new(),
            waiting: BTreeSet::new(),
            peers: BTreeMap::new(),
            now: Duration::ZERO,
        }
    }

    /// A peer announced a transaction, which may be requested from it at `request_at` or later. Does nothing if the
    /// same announcement of the peer is still tracked.
    pub fn announced(&mut self, peer: PeerId, gtxid: &GenTxid, is_preferred: bool, request_at: Duration) {
        let key = (peer, gtxid.hash());
        if self.announcements.contains_key(&key) {
            return;
        }
        let announcement = Announcement {
            time: request_at,
            sequence: self.next_sequence,
            state: State::Delayed,
            is_wtxid: gtxid.is_wtxid(),
            is_preferred,
        };
        self.next_sequence += 1;
        self.link(key, announcement);
        self.announcements.insert(key, announcement);
    }

    /// Returns the transactions to request from the peer now. The caller reports each that it requests with
    /// [`TxRequests::requested`]. Requests that expired, of any peer, are added to `expired`.
    pub fn requestable(&mut self, peer: PeerId, now: Duration, expired: &mut Vec<(PeerId, GenTxid)>) -> Vec<GenTxid> {
        self.set_time(now, expired);
        let of_peer = self.best.range((peer, 0, [0; 32])..=(peer, u64::MAX, [0xff; 32]));
        of_peer.filter_map(|&(peer, _, hash)| self.gtxid(&(peer, hash))).collect()
    }

    /// A transaction was requested from the peer; the request expires at `expires_at`. Ends another outstanding request
    /// for the hash.
    pub fn requested(&mut self, peer: PeerId, hash: &Hash, expires_at: Duration) {
        let key = (peer, *hash);
        let Some(announcement) = self.announcements.get(&key).copied() else { return };
        match announcement.state {
            State::Requested | State::Completed => return,
            State::Best => {}
            State::Delayed | State::Ready => {
                if let Some((old, state)) = self.selected(hash) {
                    let next = if state == State::Best { State::Ready } else { State::Completed };
                    self.change(old, |other| other.state = next);
                }
            }
        }
        self.change(key, |own| (own.state, own.time) = (State::Requested, expires_at));
    }

    /// The peer answered a request, with the transaction or with `notfound`.
    pub fn responded(&mut self, peer: PeerId, hash: &Hash) {
        self.complete((peer, *hash));
    }

    /// The hash is not needed any more: drops all its announcements.
    pub fn forget(&mut self, hash: &Hash) {
        for key in self.announcers(hash) {
            self.drop_announcement(key);
        }
    }

    /// The peer is gone: drops all its announcements.
    pub fn disconnected(&mut self, peer: PeerId) {
        let of_peer = self.announcements.range((peer, [0; 32])..=(peer, [0xff; 32]));
        let keys: Vec<_> = of_peer.map(|(key, _)| *key).collect();
        for key in keys {
            // Completing selects the next candidate, or drops the last announcements of the hash.
            if self.complete(key) {
                self.drop_announcement(key);
            }
        }
    }

    /// Returns the peers that may still be asked for the hash, and the one that is being asked.
    pub fn candidates(&self, hash: &Hash) -> Vec<PeerId> {
        self.of_hash(hash).take_while(|(_, state, _, _)| *state != State::Completed).map(|entry| entry.3).collect()
    }

    /// Returns the number of outstanding requests of a peer.
    pub fn in_flight_count(&self, peer: PeerId) -> usize {
        self.peers.get(&peer).map_or(0, |counts| counts.requested)
    }

    /// Returns the number of announcements of a peer that are neither requested nor completed.
    pub fn candidate_count(&self, peer: PeerId) -> usize {
        self.peers.get(&peer).map_or(0, |counts| counts.total - counts.requested - counts.completed)
    }

    /// Returns the number of tracked announcements of a peer.
    pub fn count(&self, peer: PeerId) -> usize {
        self.peers.get(&peer).map_or(0, |counts| counts.total)
    }

    /// Returns the number of tracked announcements of all peers.
    pub fn len(&self) -> usize {
        self.announcements.len()
    }

    pub fn is_empty(&self) -> bool {
        self.announcements.is_empty()
    }
}

/// Changes of states.
impl TxRequests {
    /// Moves to this time: requests expire, delayed candidates become selectable, and, if the clock went back,
    /// selectable ones delayed.
    fn set_time(&mut self, now: Duration, expired: &mut Vec<(PeerId, GenTxid)>) {
        while let Some(&(time, peer, hash)) = self.waiting.first()
            && time <= now
        {
            let key = (peer, hash);
            match self.announcements.get(&key).map(|announcement| announcement.state) {
                Some(State::Delayed) => self.promote(key),
                _ => {
                    expired.extend(self.gtxid(&key).map(|gtxid| (peer, gtxid)));
                    self.complete(key);
                }
            }
        }
        // The clock goes back only if the operator sets it, so no index is kept for this.
        if now < self.now {
            let is_early = |one: &Announcement| matches!(one.state, State::Ready | State::Best) && one.time > now;
            let early = self.announcements.iter().filter(|(_, one)| is_early(one)).map(|(key, _)| *key);
            early.collect::<Vec<_>>().into_iter().for_each(|key| self.deselect(key, State::Delayed));
        }
        self.now = now;
    }

    /// Makes a delayed candidate selectable, and selects it if it is the best one and nothing is requested.
    fn promote(&mut self, key: (PeerId, Hash)) {
        let Some(own) = self.announcements.get(&key).copied() else { return };
        let selected = self.selected(&key.1);
        let is_better = match selected {
            None => true,
            Some((_, State::Requested)) => false,
            Some((other, _)) => self.priority(&key, &own) > self.announced_priority(&other),
        };
        if let Some((other, State::Best)) = selected
            && is_better
        {
            self.change(other, |other| other.state = State::Ready);
        }
        self.change(key, |own| own.state = if is_better { State::Best } else { State::Ready });
    }

    /// Moves an announcement to a state that is not selected. If it was selected, the next best candidate is.
    fn deselect(&mut self, key: (PeerId, Hash), state: State) {
        let Some(own) = self.announcements.get(&key).copied() else { return };
        if matches!(own.state, State::Best | State::Requested) {
            let ready = (key.1, State::Ready, 0, PeerId(0))..=(key.1, State::Ready, u64::MAX, PeerId(u64::MAX));
            if let Some(&(hash, _, _, peer)) = self.by_hash.range(ready).next_back() {
                self.change((peer, hash), |next| next.state = State::Best);
            }
        }
        self.change(key, |own| own.state = state);
    }

    /// Completes an announcement, or drops all of its hash if no other one can be requested. Returns whether the
    /// announcement still exists.
    fn complete(&mut self, key: (PeerId, Hash)) -> bool {
        let Some(own) = self.announcements.get(&key) else { return false };
        if own.state == State::Completed {
            return true;
        }
        let is_open = |entry: &&(Hash, State, u64, PeerId)| entry.1 != State::Completed;
        let has_others = self.of_hash(&key.1).take_while(is_open).nth(1).is_some();
        if !has_others {
            self.forget(&key.1);
            return false;
        }
        self.deselect(key, State::Completed);
        true
    }
}

/// The indices.
impl TxRequests {
    fn priority(&self, key: &(PeerId, Hash), announcement: &Announcement) -> u64 {
        self.priorities.of(&key.1, key.0, announcement.is_preferred)
    }

    fn announced_priority(&self, key: &(PeerId, Hash)) -> u64 {
        self.announcements.get(key).map_or(0, |announcement| self.priority(key, announcement))
    }

    fn gtxid(&self, key: &(PeerId, Hash)) -> Option<GenTxid> {
        let announcement = self.announcements.get(key)?;
        Some(if announcement.is_wtxid { GenTxid::Wtxid(Wtxid(key.1)) } else { GenTxid::Txid(Txid(key.1)) })
    }

    fn of_hash(&self, hash: &Hash) -> impl Iterator<Item = &(Hash, State, u64, PeerId)> {
        let first = (*hash, State::Delayed, 0, PeerId(0));
        self.by_hash.range(first..=(*hash, State::Completed, u64::MAX, PeerId(u64::MAX)))
    }

    fn announcers(&self, hash: &Hash) -> Vec<(PeerId, Hash)> {
        self.of_hash(hash).map(|entry| (entry.3, entry.0)).collect()
    }

    /// Returns the best candidate of a hash or its request; there is at most one of both.
    fn selected(&self, hash: &Hash) -> Option<((PeerId, Hash), State)> {
        let selected = (*hash, State::Best, 0, PeerId(0))..=(*hash, State::Requested, u64::MAX, PeerId(u64::MAX));
        self.by_hash.range(selected).next().map(|&(hash, state, _, peer)| ((peer, hash), state))
    }

    fn change(&mut self, key: (PeerId, Hash), change: impl FnOnce(&mut Announcement)) {
        let Some(announcement) = self.announcements.get_mut(&key) else { return };
        let before = *announcement;
        change(announcement);
        let after = *announcement;
        self.unlink(key, before);
        self.link(key, after);
    }

    fn drop_announcement(&mut self, key: (PeerId, Hash)) {
        if let Some(announcement) = self.announcements.remove(&key) {
            self.unlink(key, announcement);
        }
    }

    fn link(&mut self, key: (PeerId, Hash), announcement: Announcement) {
        let (peer, hash) = key;
        self.by_hash.insert(self.hash_entry(key, announcement));
        if matches!(announcement.state, State::Delayed | State::Requested) {
            self.waiting.insert((announcement.time, peer, hash));
        }
        if announcement.state == State::Best {
            self.best.insert((peer, announcement.sequence, hash));
        }
        let counts = self.peers.entry(peer).or_default();
        counts.total += 1;
        counts.requested += usize::from(announcement.state == State::Requested);
        counts.completed += usize::from(announcement.state == State::Completed);
    }

    fn unlink(&mut self, key: (PeerId, Hash), announcement: Announcement) {
        let (peer, hash) = key;
        self.by_hash.remove(&self.hash_entry(key, announcement));
        if matches!(announcement.state, State::Delayed | State::Requested) {
            self.waiting.remove(&(announcement.time, peer, hash));
        }
        if announcement.state == State::Best {
            self.best.remove(&(peer, announcement.sequence, hash));
        }
        if let Some(counts) = self.peers.get_mut(&peer) {
            counts.total -= 1;
            counts.requested -= usize::from(announcement.state == State::Requested);
            counts.completed -= usize::from(announcement.state == State::Completed);
            if counts.total == 0 {
                self.peers.remove(&peer);
            }
        }
    }

    fn hash_entry(&self, key: (PeerId, Hash), announcement: Announcement) -> (Hash, State, u64, PeerId) {
        let priority = if announcement.state == State::Ready { self.priority(&key, &announcement) } else { 0 };
        (key.1, announcement.state, priority, key.0)
    }
}
