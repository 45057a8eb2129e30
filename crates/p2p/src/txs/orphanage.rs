//! Transactions whose parents are missing, with the peers that announced them.
//!
//! Bitcoin Core's `TxOrphanage` (node/txorphanage.h). Input: orphans and announcers, accepted transactions, blocks,
//! disconnected peers. Output: orphans to validate again, children of a transaction.
//!
//! An orphan is kept as long as a peer that announced it is charged for it. Each peer is charged the weight of its
//! orphans, and a latency score of one for each and one more for every ten inputs. Globally, each transaction's weight
//! and inputs count once. If the total latency score exceeds [`ORPHANAGE_LATENCY_MAX`], or the total weight exceeds
//! [`ORPHAN_WEIGHT_PER_PEER`] for each peer with orphans, announcements are evicted: from the peer that exceeds its
//! share of either by the largest factor, the oldest first, those that wait to be validated again last. So no peer can
//! evict the orphans of a peer that stays within its share.
//!
//! An orphan with a new parent in the mempool is put into the work set of one of its announcers at random: a peer
//! cannot prevent its validation by disconnecting, and the work is counted for a peer that announced it.
//!
//! Invariants: only the wtxid identifies an orphan, because a peer may malleate the witness; at most one announcement
//! of an orphan is in a work set; a transaction above [`ORPHAN_WEIGHT_MAX`] is not kept; the limits hold after each
//! call. The specification is the plain model in `orphanage/model.rs`. Memory: the limit of the weight in bytes for the
//! transactions, which have at most as many bytes as weight units, twice that for their tables and the index of
//! outputs, and 200 bytes for each of at most [`ORPHANAGE_LATENCY_MAX`] announcements. Cost: logarithmic for each
//! announcement and each input concerned; an eviction also visits each peer.

#[cfg(any(test, fuzzing))]
mod model;
#[cfg(test)]
mod tests;
#[cfg(any(test, fuzzing))]
pub mod twin;

use crate::draw;
use crate::limits::{ORPHAN_WEIGHT_MAX, ORPHAN_WEIGHT_PER_PEER, ORPHANAGE_LATENCY_MAX};
use crate::peer::PeerId;
use lydian_primitives::{OutPoint, Transaction, Txid, Wtxid};
use rand_chacha::ChaCha20Rng;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

/// The number of inputs that increase the latency score by one.
const INPUTS_PER_LATENCY: usize = 10;

/// The limits of an [`Orphanage`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrphanLimits {
    /// The maximum of the total latency score, which the peers with orphans share equally.
    pub latency_max: u64,
    /// The weight that is reserved for each peer with orphans.
    pub weight_per_peer: u64,
}

impl Default for OrphanLimits {
    fn default() -> OrphanLimits {
        OrphanLimits { latency_max: ORPHANAGE_LATENCY_MAX, weight_per_peer: ORPHAN_WEIGHT_PER_PEER }
    }
}

/// An orphan for `getorphantxs`.
#[derive(Clone, Debug)]
pub struct OrphanInfo {
    pub tx: Arc<Transaction>,
    /// The peers that announced it, in ascending order.
    pub announcers: Vec<PeerId>,
}

#[derive(Debug)]
struct Orphan {
    tx: Arc<Transaction>,
    announcement_count: usize,
    /// Whether one of its announcements is in a work set.
    is_in_work_set: bool,
}

impl Orphan {
    fn weight(&self) -> u64 {
        self.tx.view().weight() as u64
    }

    /// The latency score of its inputs, without the one for each announcement.
    fn input_score(&self) -> u64 {
        (self.tx.view().input_count() / INPUTS_PER_LATENCY) as u64
    }

    fn prevouts(&self) -> impl Iterator<Item = OutPoint> {
        self.tx.view().inputs().map(|input| input.prevout)
    }
}

#[derive(Clone, Copy, Debug)]
struct Announcement {
    sequence: u64,
    is_in_work_set: bool,
}

/// What a peer is charged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Usage {
    announcement_count: usize,
    weight: u64,
    latency: u64,
}

impl Usage {
    /// The larger of the two factors by which the peer uses its shares.
    fn score(&self, latency_share: u64, weight_share: u64) -> Score {
        let latency = Score { used: self.latency, share: latency_share };
        latency.max(Score { used: self.weight, share: weight_share })
    }
}

/// The factor by which a peer uses a share. Of equal factors, the one of the smaller share is larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Score {
    used: u64,
    share: u64,
}

impl Score {
    const ONE: Score = Score { used: 1, share: 1 };

    fn compare_ratio(&self, other: &Score) -> Ordering {
        (u128::from(self.used) * u128::from(other.share)).cmp(&(u128::from(other.used) * u128::from(self.share)))
    }
}

impl Ord for Score {
    fn cmp(&self, other: &Score) -> Ordering {
        self.compare_ratio(other).then(other.share.cmp(&self.share))
    }
}

impl PartialOrd for Score {
    fn partial_cmp(&self, other: &Score) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The orphans.
#[derive(Debug, Default)]
pub struct Orphanage {
    limits: OrphanLimits,
    next_sequence: u64,
    orphans: BTreeMap<Wtxid, Orphan>,
    announcements: BTreeMap<(Wtxid, PeerId), Announcement>,
    /// For each peer, the announcements outside its work set, then those in it, each in order of arrival.
    by_peer: BTreeSet<(PeerId, bool, u64, Wtxid)>,
    by_prevout: BTreeSet<(OutPoint, Wtxid)>,
    peers: BTreeMap<PeerId, Usage>,
    /// The weight of all orphans, each counted once.
    total_weight: u64,
    /// The latency score of the inputs of all orphans, each counted once.
    total_input_score: u64,
}

impl Orphanage {
    pub fn new(limits: OrphanLimits) -> Orphanage {
        Orphanage { limits, ..Orphanage::default() }
    }

    /// Adds an orphan, or another announcer of it. Returns whether the orphan is new.
    pub fn add(&mut self, tx: &Arc<Transaction>, peer: PeerId) -> bool {
        let (wtxid, weight) = (tx.view().wtxid(), tx.view().weight());
        if weight > ORPHAN_WEIGHT_MAX {
            return false;
        }
        let is_new = !self.orphans.contains_key(&wtxid);
        if is_new {
            let orphan = Orphan { tx: Arc::clone(tx), announcement_count: 0, is_in_work_set: false };
            self.by_prevout.extend(orphan.prevouts().map(|prevout| (prevout, wtxid)));
            self.total_weight += orphan.weight();
            self.total_input_score += orphan.input_score();
            self.orphans.insert(wtxid, orphan);
        }
        self.add_announcer(wtxid, peer) && is_new
    }

    /// Adds an announcer of an orphan. Returns false if there is no such orphan, or the peer announced it before.
    pub fn add_announcer(&mut self, wtxid: Wtxid, peer: PeerId) -> bool {
        let Some(orphan) = self.orphans.get_mut(&wtxid) else { return false };
        if self.announcements.contains_key(&(wtxid, peer)) {
            return false;
        }
        orphan.announcement_count += 1;
        let usage = self.peers.entry(peer).or_default();
        usage.announcement_count += 1;
        usage.weight += orphan.weight();
        usage.latency += 1 + orphan.input_score();
        let announcement = Announcement { sequence: self.next_sequence, is_in_work_set: false };
        self.next_sequence += 1;
        self.announcements.insert((wtxid, peer), announcement);
        self.by_peer.insert((peer, false, announcement.sequence, wtxid));
        self.evict();
        true
    }

    /// Returns an orphan by its wtxid.
    pub fn get(&self, wtxid: &Wtxid) -> Option<&Arc<Transaction>> {
        self.orphans.get(wtxid).map(|orphan| &orphan.tx)
    }

    pub fn has(&self, wtxid: &Wtxid) -> bool {
        self.orphans.contains_key(wtxid)
    }

    /// Returns whether the orphan is here and the peer announced it.
    pub fn has_from(&self, wtxid: &Wtxid, peer: PeerId) -> bool {
        self.announcements.contains_key(&(*wtxid, peer))
    }

    /// Erases an orphan with all its announcements. Returns whether it was here.
    pub fn erase(&mut self, wtxid: &Wtxid) -> bool {
        let was_here = self.erase_all(wtxid);
        // With fewer peers, the limit of the weight is lower.
        self.evict();
        was_here
    }

    /// Erases the announcements of a peer, and the orphans that no other peer announced.
    pub fn erase_for_peer(&mut self, peer: PeerId) {
        let of_peer = self.by_peer.range((peer, false, 0, Wtxid::ZERO)..=(peer, true, u64::MAX, Wtxid([0xff; 32])));
        let wtxids: Vec<_> = of_peer.map(|entry| entry.3).collect();
        wtxids.into_iter().for_each(|wtxid| self.erase_announcement(wtxid, peer));
        self.evict();
    }

    /// Erases the orphans that spend one of these outputs, which a block spent: they are in the block or in conflict
    /// with it.
    pub fn erase_for_block(&mut self, spent: impl IntoIterator<Item = OutPoint>) {
        if self.orphans.is_empty() {
            return;
        }
        let spenders: BTreeSet<_> = spent.into_iter().flat_map(|prevout| self.spenders(prevout)).collect();
        for wtxid in &spenders {
            self.erase_all(wtxid);
        }
        self.evict();
    }

    /// A transaction was accepted: puts its children into work sets. Returns the children that were not in one, with
    /// the chosen peers.
    pub fn add_children_to_work_set(&mut self, tx: &Transaction, random: &mut ChaCha20Rng) -> Vec<(Wtxid, PeerId)> {
        let view = tx.view();
        let outputs = (0_u32..).take(view.output_count()).map(|vout| OutPoint { txid: view.txid(), vout });
        let children: Vec<_> = outputs.flat_map(|prevout| self.spenders(prevout)).collect();
        let mut added = Vec::new();
        for wtxid in children {
            let Some(orphan) = self.orphans.get_mut(&wtxid) else { continue };
            if orphan.is_in_work_set {
                continue;
            }
            let chosen = draw::below(random, orphan.announcement_count);
            let announcers = (wtxid, PeerId(0))..=(wtxid, PeerId(u64::MAX));
            let Some(((_, peer), announcement)) = self.announcements.range_mut(announcers).nth(chosen) else {
                continue;
            };
            orphan.is_in_work_set = true;
            announcement.is_in_work_set = true;
            self.by_peer.remove(&(*peer, false, announcement.sequence, wtxid));
            self.by_peer.insert((*peer, true, announcement.sequence, wtxid));
            added.push((wtxid, *peer));
        }
        added
    }

    /// Returns whether the work set of a peer has an orphan.
    pub fn has_work(&self, peer: PeerId) -> bool {
        self.work_entry(peer).is_some()
    }

    /// Returns the oldest orphan in the work set of a peer.
    pub fn first_of_work_set(&self, peer: PeerId) -> Option<Wtxid> {
        self.work_entry(peer).map(|entry| entry.3)
    }

    /// Takes the oldest orphan out of the work set of a peer. It stays in the orphanage until its verdict is known.
    pub fn next_of_work_set(&mut self, peer: PeerId) -> Option<Arc<Transaction>> {
        let entry = self.work_entry(peer)?;
        let (_, _, sequence, wtxid) = entry;
        self.by_peer.remove(&entry);
        self.by_peer.insert((peer, false, sequence, wtxid));
        if let Some(announcement) = self.announcements.get_mut(&(wtxid, peer)) {
            announcement.is_in_work_set = false;
        }
        let orphan = self.orphans.get_mut(&wtxid)?;
        orphan.is_in_work_set = false;
        Some(Arc::clone(&orphan.tx))
    }

    /// Returns the orphans of a peer that spend outputs of the parent: those in its work set first, then the others,
    /// each from the newest to the oldest.
    pub fn children_from(&self, parent: Txid, peer: PeerId) -> Vec<Arc<Transaction>> {
        let outputs = (OutPoint { txid: parent, vout: 0 }, Wtxid::ZERO)
            ..=(OutPoint { txid: parent, vout: u32::MAX }, Wtxid([0xff; 32]));
        let children: BTreeSet<_> = self.by_prevout.range(outputs).map(|(_, wtxid)| *wtxid).collect();
        let announced = |wtxid: Wtxid| self.announcements.get(&(wtxid, peer)).map(|one| (one, wtxid));
        let mut found: Vec<_> = children.into_iter().filter_map(announced).collect();
        found.sort_unstable_by_key(|(one, _)| (one.is_in_work_set, one.sequence));
        found.iter().rev().filter_map(|(_, wtxid)| self.get(wtxid).cloned()).collect()
    }

    /// Returns all orphans in the order of their wtxids.
    pub fn orphans(&self) -> Vec<OrphanInfo> {
        let announcers = |wtxid: Wtxid| self.announcements.range((wtxid, PeerId(0))..=(wtxid, PeerId(u64::MAX)));
        let info = |(wtxid, orphan): (&Wtxid, &Orphan)| OrphanInfo {
            tx: Arc::clone(&orphan.tx),
            announcers: announcers(*wtxid).map(|((_, peer), _)| *peer).collect(),
        };
        self.orphans.iter().map(info).collect()
    }

    /// Returns the number of orphans.
    pub fn len(&self) -> usize {
        self.orphans.len()
    }

    pub fn is_empty(&self) -> bool {
        self.orphans.is_empty()
    }

    /// Returns the number of announcements of all orphans.
    pub fn announcement_count(&self) -> usize {
        self.announcements.len()
    }

    /// Returns the number of orphans that a peer announced.
    pub fn announcement_count_of(&self, peer: PeerId) -> usize {
        self.peers.get(&peer).map_or(0, |usage| usage.announcement_count)
    }

    /// Returns the weight of all orphans, each counted once.
    pub fn total_weight(&self) -> u64 {
        self.total_weight
    }

    /// Returns the weight that a peer is charged.
    pub fn weight_of(&self, peer: PeerId) -> u64 {
        self.peers.get(&peer).map_or(0, |usage| usage.weight)
    }

    /// Returns the latency score of all orphans.
    pub fn total_latency(&self) -> u64 {
        self.total_input_score + self.announcements.len() as u64
    }

    /// Returns the latency score that a peer is charged.
    pub fn latency_of(&self, peer: PeerId) -> u64 {
        self.peers.get(&peer).map_or(0, |usage| usage.latency)
    }
}

/// Erasing and evicting.
impl Orphanage {
    fn spenders(&self, prevout: OutPoint) -> impl Iterator<Item = Wtxid> {
        self.by_prevout.range((prevout, Wtxid::ZERO)..=(prevout, Wtxid([0xff; 32]))).map(|(_, wtxid)| *wtxid)
    }

    fn work_entry(&self, peer: PeerId) -> Option<(PeerId, bool, u64, Wtxid)> {
        self.by_peer.range((peer, true, 0, Wtxid::ZERO)..=(peer, true, u64::MAX, Wtxid([0xff; 32]))).next().copied()
    }

    fn erase_all(&mut self, wtxid: &Wtxid) -> bool {
        let announcers = self.announcements.range((*wtxid, PeerId(0))..=(*wtxid, PeerId(u64::MAX)));
        let peers: Vec<_> = announcers.map(|((_, peer), _)| *peer).collect();
        peers.iter().for_each(|peer| self.erase_announcement(*wtxid, *peer));
        !peers.is_empty()
    }

    fn erase_announcement(&mut self, wtxid: Wtxid, peer: PeerId) {
        let Some(announcement) = self.announcements.remove(&(wtxid, peer)) else { return };
        self.by_peer.remove(&(peer, announcement.is_in_work_set, announcement.sequence, wtxid));
        let Some(orphan) = self.orphans.get_mut(&wtxid) else { return };
        orphan.announcement_count -= 1;
        orphan.is_in_work_set &= !announcement.is_in_work_set;
        if let Some(usage) = self.peers.get_mut(&peer) {
            usage.announcement_count -= 1;
            usage.weight -= orphan.weight();
            usage.latency -= 1 + orphan.input_score();
            if usage.announcement_count == 0 {
                self.peers.remove(&peer);
            }
        }
        if orphan.announcement_count == 0
            && let Some(orphan) = self.orphans.remove(&wtxid)
        {
            self.total_weight -= orphan.weight();
            self.total_input_score -= orphan.input_score();
            for prevout in orphan.prevouts() {
                self.by_prevout.remove(&(prevout, wtxid));
            }
        }
    }

    fn exceeds_limits(&self) -> bool {
        let peer_count = self.peers.len().max(1) as u64;
        self.total_latency() > self.limits.latency_max
            || self.total_weight > self.limits.weight_per_peer.saturating_mul(peer_count)
    }

    /// Core's `LimitOrphans`. The shares are those at the start, even if the number of peers changes meanwhile.
    fn evict(&mut self) {
        if !self.exceeds_limits() {
            return;
        }
        // With more peers than the limit of the latency score, which no connection limit allows, the share is zero,
        // and every peer exceeds it.
        let latency_share = self.limits.latency_max / self.peers.len().max(1) as u64;
        let weight_share = self.limits.weight_per_peer;
        let scored = |(peer, usage): (&PeerId, &Usage)| (usage.score(latency_share, weight_share), *peer);
        let exceeds_share = |(score, _): &(Score, PeerId)| score.compare_ratio(&Score::ONE).is_gt();
        // Of equal scores, the newest peer is the worst.
        let mut worst_first: BinaryHeap<_> = self.peers.iter().map(scored).filter(exceeds_share).collect();
        while let Some((_, worst)) = worst_first.pop() {
            let next = worst_first.peek().map_or(Score::ONE, |(score, _)| *score);
            let left = loop {
                let Some(wtxid) = self.oldest_of(worst) else { break None };
                self.erase_announcement(wtxid, worst);
                let left = self.peers.get(&worst).map(|usage| usage.score(latency_share, weight_share));
                if !self.exceeds_limits() || left.is_none_or(|score| score <= next) {
                    break left;
                }
            };
            if !self.exceeds_limits() {
                break;
            }
            worst_first.extend(left.map(|score| (score, worst)));
        }
    }

    /// Returns the announcement of a peer that is evicted first.
    fn oldest_of(&self, peer: PeerId) -> Option<Wtxid> {
        let of_peer = (peer, false, 0, Wtxid::ZERO)..=(peer, true, u64::MAX, Wtxid([0xff; 32]));
        self.by_peer.range(of_peer).next().map(|entry| entry.3)
    }
}
