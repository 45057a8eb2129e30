//! The specification of [`super::TxRequests`] as one list, with every rule in plain words and every query a scan.

use super::{GenTxid, Hash, PeerId, Priorities};
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Candidate,
    Requested,
    Completed,
}

#[derive(Clone, Copy, Debug)]
struct Announcement {
    peer: PeerId,
    gtxid: GenTxid,
    is_preferred: bool,
    time: Duration,
    state: State,
}

impl Announcement {
    fn is(&self, peer: PeerId, hash: &Hash) -> bool {
        self.peer == peer && self.gtxid.hash() == *hash
    }
}

/// The announcements in order of arrival.
pub(super) struct Model {
    priorities: Priorities,
    announcements: Vec<Announcement>,
}

impl Model {
    pub(super) fn new(priorities: Priorities) -> Model {
        Model { priorities, announcements: Vec::new() }
    }

    pub(super) fn announced(&mut self, peer: PeerId, gtxid: GenTxid, is_preferred: bool, time: Duration) {
        if !self.announcements.iter().any(|one| one.is(peer, &gtxid.hash())) {
            self.announcements.push(Announcement { peer, gtxid, is_preferred, time, state: State::Candidate });
        }
    }

    pub(super) fn requestable(&mut self, peer: PeerId, now: Duration) -> (Vec<GenTxid>, Vec<(PeerId, GenTxid)>) {
        let mut expired = Vec::new();
        for one in self.announcements.iter_mut().filter(|one| one.state == State::Requested && one.time <= now) {
            one.state = State::Completed;
            expired.push((one.peer, one.gtxid));
        }
        self.drop_finished();
        let is_wanted = |one: &&Announcement| one.peer == peer && self.is_selected(one, now);
        (self.announcements.iter().filter(is_wanted).map(|one| one.gtxid).collect(), expired)
    }

    /// It may be requested now, nothing is requested for the hash, and no other candidate has a higher priority.
    fn is_selected(&self, one: &Announcement, now: Duration) -> bool {
        let is_ready = |other: &Announcement| other.state == State::Candidate && other.time <= now;
        let priority = |other: &Announcement| self.priorities.of(&other.gtxid.hash(), other.peer, other.is_preferred);
        let mut of_hash = self.announcements.iter().filter(|other| other.gtxid.hash() == one.gtxid.hash());
        is_ready(one)
            && of_hash
                .all(|other| other.state != State::Requested && !(is_ready(other) && priority(other) > priority(one)))
    }

    pub(super) fn requested(&mut self, peer: PeerId, hash: &Hash, expires_at: Duration) {
        if !self.announcements.iter().any(|one| one.is(peer, hash) && one.state == State::Candidate) {
            return;
        }
        for one in self.announcements.iter_mut().filter(|one| one.gtxid.hash() == *hash) {
            if one.peer == peer {
                (one.state, one.time) = (State::Requested, expires_at);
            } else if one.state == State::Requested {
                one.state = State::Completed;
            }
        }
    }

    pub(super) fn responded(&mut self, peer: PeerId, hash: &Hash) {
        self.announcements.iter_mut().filter(|one| one.is(peer, hash)).for_each(|one| one.state = State::Completed);
        self.drop_finished();
    }

    pub(super) fn forget(&mut self, hash: &Hash) {
        self.announcements.retain(|one| one.gtxid.hash() != *hash);
    }

    pub(super) fn disconnected(&mut self, peer: PeerId) {
        self.announcements.retain(|one| one.peer != peer);
        self.drop_finished();
    }

    /// A hash with neither a candidate nor a request is forgotten.
    fn drop_finished(&mut self) {
        let all = self.announcements.clone();
        let is_open = |hash: Hash| all.iter().any(|one| one.gtxid.hash() == hash && one.state != State::Completed);
        self.announcements.retain(|one| is_open(one.gtxid.hash()));
    }

    pub(super) fn candidates(&self, hash: &Hash) -> Vec<PeerId> {
        let open = |one: &&Announcement| one.gtxid.hash() == *hash && one.state != State::Completed;
        self.announcements.iter().filter(open).map(|one| one.peer).collect()
    }

    /// The numbers of all announcements, candidates and requests of a peer.
    pub(super) fn counts(&self, peer: PeerId) -> (usize, usize, usize) {
        let count = |is: &dyn Fn(State) -> bool| {
            self.announcements.iter().filter(|one| one.peer == peer && is(one.state)).count()
        };
        (count(&|_| true), count(&|state| state == State::Candidate), count(&|state| state == State::Requested))
    }
}
