//! The specification of [`super::Orphanage`] as one list, with every rule in plain words and every query a scan.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::{OrphanLimits, PeerId};
use crate::draw;
use lydian_primitives::{OutPoint, Transaction, Txid, Wtxid};
use rand_chacha::ChaCha20Rng;
use std::collections::BTreeSet;
use std::sync::Arc;

#[derive(Clone)]
pub(super) struct Announcement {
    pub(super) tx: Arc<Transaction>,
    pub(super) peer: PeerId,
    is_in_work_set: bool,
}

impl Announcement {
    fn wtxid(&self) -> Wtxid {
        self.tx.view().wtxid()
    }

    fn input_score(&self) -> u64 {
        self.tx.view().input_count() as u64 / 10
    }

    fn spends(&self, prevout: OutPoint) -> bool {
        self.tx.view().inputs().any(|input| input.prevout == prevout)
    }
}

/// The announcements in order of arrival.
pub(super) struct Model {
    limits: OrphanLimits,
    pub(super) announcements: Vec<Announcement>,
}

impl Model {
    pub(super) fn new(limits: OrphanLimits) -> Model {
        Model { limits, announcements: Vec::new() }
    }

    pub(super) fn add(&mut self, tx: &Arc<Transaction>, peer: PeerId) -> bool {
        let wtxid = tx.view().wtxid();
        if tx.view().weight() > 400_000 || self.has_from(wtxid, peer) {
            return false;
        }
        let is_new = !self.has(wtxid);
        self.announcements.push(Announcement { tx: Arc::clone(tx), peer, is_in_work_set: false });
        self.evict();
        is_new
    }

    pub(super) fn add_announcer(&mut self, wtxid: Wtxid, peer: PeerId) -> bool {
        let known = self.announcements.iter().find(|one| one.wtxid() == wtxid).map(|one| Arc::clone(&one.tx));
        let Some(tx) = known.filter(|_| !self.has_from(wtxid, peer)) else { return false };
        self.add(&tx, peer);
        true
    }

    pub(super) fn has(&self, wtxid: Wtxid) -> bool {
        self.announcements.iter().any(|one| one.wtxid() == wtxid)
    }

    pub(super) fn has_from(&self, wtxid: Wtxid, peer: PeerId) -> bool {
        self.announcements.iter().any(|one| one.wtxid() == wtxid && one.peer == peer)
    }

    pub(super) fn erase(&mut self, wtxid: Wtxid) -> bool {
        let was_here = self.has(wtxid);
        self.announcements.retain(|one| one.wtxid() != wtxid);
        self.evict();
        was_here
    }

    pub(super) fn erase_for_peer(&mut self, peer: PeerId) {
        self.announcements.retain(|one| one.peer != peer);
        self.evict();
    }

    pub(super) fn erase_for_block(&mut self, spent: &[OutPoint]) {
        self.announcements.retain(|one| !spent.iter().any(|prevout| one.spends(*prevout)));
        self.evict();
    }

    /// The order of the children is by output, then by wtxid; the announcers are numbered by peer.
    pub(super) fn add_children_to_work_set(
        &mut self,
        tx: &Transaction,
        random: &mut ChaCha20Rng,
    ) -> Vec<(Wtxid, PeerId)> {
        let mut added = Vec::new();
        for vout in 0..u32::try_from(tx.view().output_count()).unwrap() {
            let prevout = OutPoint { txid: tx.view().txid(), vout };
            let spenders = self.announcements.iter().filter(|one| one.spends(prevout));
            for wtxid in spenders.map(Announcement::wtxid).collect::<BTreeSet<_>>() {
                let mut own: Vec<_> = self.announcements.iter_mut().filter(|one| one.wtxid() == wtxid).collect();
                if own.iter().any(|one| one.is_in_work_set) {
                    continue;
                }
                own.sort_by_key(|one| one.peer);
                let chosen = draw::below(random, own.len());
                own[chosen].is_in_work_set = true;
                added.push((wtxid, own[chosen].peer));
            }
        }
        added
    }

    pub(super) fn next_of_work_set(&mut self, peer: PeerId) -> Option<Wtxid> {
        let next = self.announcements.iter_mut().find(|one| one.peer == peer && one.is_in_work_set)?;
        next.is_in_work_set = false;
        Some(next.wtxid())
    }

    pub(super) fn has_work(&self, peer: PeerId) -> bool {
        self.announcements.iter().any(|one| one.peer == peer && one.is_in_work_set)
    }

    pub(super) fn children_from(&self, parent: Txid, peer: PeerId) -> Vec<Wtxid> {
        let is_child =
            |one: &&Announcement| one.peer == peer && one.tx.view().inputs().any(|input| input.prevout.txid == parent);
        let newest_first: Vec<_> = self.announcements.iter().rev().filter(is_child).collect();
        let (work, others): (Vec<_>, Vec<_>) = newest_first.into_iter().partition(|one| one.is_in_work_set);
        work.into_iter().chain(others).map(Announcement::wtxid).collect()
    }

    fn unique(&self) -> Vec<&Announcement> {
        let mut seen = BTreeSet::new();
        self.announcements.iter().filter(|one| seen.insert(one.wtxid())).collect()
    }

    pub(super) fn peers(&self) -> BTreeSet<PeerId> {
        self.announcements.iter().map(|one| one.peer).collect()
    }

    pub(super) fn total_weight(&self) -> u64 {
        self.unique().iter().map(|one| one.tx.view().weight() as u64).sum()
    }

    pub(super) fn total_latency(&self) -> u64 {
        self.announcements.len() as u64 + self.unique().iter().map(|one| one.input_score()).sum::<u64>()
    }

    pub(super) fn weight_of(&self, peer: PeerId) -> u64 {
        let own = self.announcements.iter().filter(|one| one.peer == peer);
        own.map(|one| one.tx.view().weight() as u64).sum()
    }

    pub(super) fn latency_of(&self, peer: PeerId) -> u64 {
        self.announcements.iter().filter(|one| one.peer == peer).map(|one| 1 + one.input_score()).sum()
    }

    pub(super) fn exceeds_limits(&self) -> bool {
        self.total_latency() > self.limits.latency_max
            || self.total_weight() > self.limits.weight_per_peer * self.peers().len().max(1) as u64
    }

    /// While a limit is exceeded, the peer with the largest use of its share loses its oldest announcement outside its
    /// work set, or the oldest in it. Uses are compared as fractions; of equal ones the use of the smaller share counts
    /// as larger, then the newer peer.
    fn evict(&mut self) {
        let latency_share = self.limits.latency_max / self.peers().len().max(1) as u64;
        let weight_share = self.limits.weight_per_peer;
        while self.exceeds_limits() {
            // The uses of both shares over a common denominator, and the share.
            let score = |peer: &PeerId| {
                let latency = u128::from(self.latency_of(*peer)) * u128::from(weight_share);
                let weight = u128::from(self.weight_of(*peer)) * u128::from(latency_share);
                let both = [(latency, u64::MAX - latency_share), (weight, u64::MAX - weight_share)];
                (both[0].max(both[1]), *peer)
            };
            let worst = self.peers().into_iter().max_by_key(score).unwrap();
            let first = |in_work_set| {
                self.announcements.iter().position(|one| one.peer == worst && one.is_in_work_set == in_work_set)
            };
            let oldest = first(false).or(first(true)).unwrap();
            self.announcements.remove(oldest);
        }
    }
}
