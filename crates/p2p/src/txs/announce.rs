//! Which transactions are announced to which peer and when, and which peer may request which transaction.
//!
//! The parts of Bitcoin Core's net_processing.cpp around `Peer::TxRelay`. Input: accepted transactions, what peers
//! announced and sent, their fee filters, the time. Output: announcements.
//!
//! An accepted transaction is added to the queue of each peer that does not know it. The queue is emptied at random
//! times, 2 s apart on average for outbound peers and 5 s for inbound ones; inbound peers of one network get theirs at
//! the same times, so that connecting often does not show when a transaction arrived here. The transactions that a
//! miner takes first are announced first, parents before children; those below the peer's fee filter are not announced.
//!
//! A peer may request a transaction that was in the mempool when announcements were sent to it the last time, or that
//! is in the most recent block. Others are answered with `notfound`: requests must not show when a transaction arrived.
//!
//! Invariants: only peers that want announcements are here ([`RelayPeer::is_announced_to`]); nothing is queued for a
//! peer before the first call of [`TxAnnouncer::due`] for it; a transaction is announced to a peer once, as far as the
//! filter of known ones remembers it. Memory of a peer: 540 kB for [`KNOWN_TXS_MAX`] known transactions, from the first
//! one on, and 50 bytes for each of at most [`ANNOUNCEMENT_QUEUE_MAX`] queued ones. Cost: for each accepted transaction
//! 20 hashes per peer; for announcements linear in the queue, and logarithmic for each announced transaction.

#[cfg(test)]
mod tests;

use super::GenTxid;
use super::peer::RelayPeer;
use super::recent_block::RecentBlock;
use super::rejects::RecentSet;
use crate::draw;
use crate::limits::{ANNOUNCEMENT_QUEUE_KEPT_MAX, ANNOUNCEMENT_QUEUE_MAX, INBOUND_TIMERS_MAX, KNOWN_TXS_MAX};
use crate::peer::PeerId;
use lydian_mempool::pool::MiningRank;
use lydian_primitives::build::MutTx;
use lydian_primitives::{Amount, Transaction, Tx, Txid, Wtxid};
use lydian_wire::{Inv, InvType};
use rand_chacha::ChaCha20Rng;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;
use std::time::Duration;

/// The average time between announcements to inbound peers: Core's `INBOUND_INVENTORY_BROADCAST_INTERVAL`.
pub const INBOUND_INTERVAL: Duration = Duration::from_secs(5);
/// The average time between announcements to outbound peers: Core's `OUTBOUND_INVENTORY_BROADCAST_INTERVAL`.
pub const OUTBOUND_INTERVAL: Duration = Duration::from_secs(2);
/// The number of transactions that are announced at a time from a short queue: Core's `INVENTORY_BROADCAST_TARGET`.
pub const ANNOUNCED_AT_ONCE: usize = 70;
/// The additional number for each 1,000 transactions in the queue.
const ANNOUNCED_PER_THOUSAND: usize = 5;

/// A transaction in the mempool, as far as its announcement needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelayedTx {
    pub txid: Txid,
    /// The fee without the changes of `prioritisetransaction`.
    pub fee: Amount,
    /// The size in virtual bytes, adjusted for sigops.
    pub vsize: u64,
    /// The smallest is mined first.
    pub rank: MiningRank,
}

/// The mempool, as far as the announcements ask for it.
pub trait RelayPool {
    fn relayed(&self, wtxid: &Wtxid) -> Option<RelayedTx>;

    /// Returns all transactions, in the order of mining.
    fn all(&self) -> Vec<(Wtxid, RelayedTx)>;

    /// Returns the sequence number of the next transaction: each transaction in the mempool has a smaller one.
    fn sequence(&self) -> u64;

    /// Returns a transaction with a sequence number below `sequence`.
    fn before(&self, gtxid: &GenTxid, sequence: u64) -> Option<Arc<Transaction>>;
}

/// The answer to the request for a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Served {
    /// The peer does not relay transactions: no answer.
    Ignored,
    NotFound,
    /// Send these bytes. The peer got the transaction from us, so [`super::Unbroadcast`] can forget it.
    Found {
        txid: Txid,
        bytes: Vec<u8>,
    },
}

/// The figures of a peer for `getpeerinfo`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnnounceFigures {
    /// `last_inv_sequence`.
    pub last_sequence: u64,
    /// `inv_to_send`.
    pub queued_count: usize,
    /// `minfeefilter`, per 1,000 virtual bytes.
    pub fee_filter: Amount,
}

#[derive(Debug)]
struct Queue {
    peer: RelayPeer,
    /// The ids of transactions that the peer announced, sent, or was sent: wtxids or txids, as it relays.
    known: RecentSet,
    to_send: BTreeSet<Wtxid>,
    wants_mempool: bool,
    /// When announcements are sent next; `None` until the first time.
    next: Option<Duration>,
    /// The sequence number of the mempool when announcements were sent last.
    last_sequence: u64,
    fee_filter: Amount,
}

impl Queue {
    fn id_to_announce(&self, txid: &Txid, wtxid: &Wtxid) -> Inv {
        if self.peer.wtxid_relay {
            Inv { kind: InvType::WTX, hash: wtxid.0 }
        } else {
            Inv { kind: InvType::TX, hash: txid.0 }
        }
    }

    fn pays_enough(&self, tx: &RelayedTx) -> bool {
        i128::from(tx.fee.0) >= fee_at(self.fee_filter, tx.vsize)
    }
}

/// Returns the fee of a size at a fee rate per 1,000 virtual bytes, rounded up: Core's `CFeeRate::GetFee`.
fn fee_at(rate: Amount, vsize: u64) -> i128 {
    let product = i128::from(rate.0) * i128::from(vsize);
    product.div_euclid(1000) + i128::from(product.rem_euclid(1000) != 0)
}

/// The announcements to all peers.
#[derive(Debug, Default)]
pub struct TxAnnouncer {
    queues: BTreeMap<PeerId, Queue>,
    /// When announcements are sent to the inbound peers of a network next, by [`RelayPeer::network_key`].
    inbound_timers: BTreeMap<u64, Duration>,
}

impl TxAnnouncer {
    /// The handshake with a peer is complete. Does nothing if the peer gets no announcements.
    pub fn connected(&mut self, id: PeerId, peer: RelayPeer) {
        if peer.is_announced_to() {
            self.queues.entry(id).or_insert_with(|| Queue {
                peer,
                known: RecentSet::new(KNOWN_TXS_MAX),
                to_send: BTreeSet::new(),
                wants_mempool: false,
                next: None,
                last_sequence: 1,
                fee_filter: Amount(0),
            });
        }
    }

    /// A peer is gone.
    pub fn disconnected(&mut self, id: PeerId) {
        self.queues.remove(&id);
    }

    /// A peer announced or sent the transaction with this id: it needs no announcement. The id is the one by which the
    /// peer relays: Core's `AddKnownTx`.
    pub fn note_known(&mut self, id: PeerId, hash: &[u8; 32], random: &mut ChaCha20Rng) {
        if let Some(queue) = self.queues.get_mut(&id) {
            queue.known.insert(hash, random);
        }
    }

    /// A peer sent a `feefilter`. An amount out of range is ignored.
    pub fn set_fee_filter(&mut self, id: PeerId, rate: Amount) {
        if let Some(queue) = self.queues.get_mut(&id)
            && rate.is_in_money_range()
        {
            queue.fee_filter = rate;
        }
    }

    /// A peer sent `mempool`, and may: everything is announced to it when announcements are sent next.
    pub fn request_mempool(&mut self, id: PeerId) {
        if let Some(queue) = self.queues.get_mut(&id) {
            queue.wants_mempool = true;
        }
    }

    /// Queues a transaction for all peers that do not know it: Core's `InitiateTxBroadcastToAll`.
    pub fn announce(&mut self, txid: &Txid, wtxid: &Wtxid) {
        for queue in self.queues.values_mut() {
            let has_begun = queue.next.is_some();
            if has_begun
                && queue.to_send.len() < ANNOUNCEMENT_QUEUE_MAX
                && !queue.known.contains(&queue.id_to_announce(txid, wtxid).hash)
            {
                queue.to_send.insert(*wtxid);
            }
        }
    }

    /// Returns the announcements that are to be sent to a peer now, if it is time. There may be more than fit in one
    /// message only after a `mempool` message.
    pub fn due(&mut self, id: PeerId, now: Duration, pool: &dyn RelayPool, random: &mut ChaCha20Rng) -> Vec<Inv> {
        let Some(queue) = self.queues.get_mut(&id) else { return Vec::new() };
        let is_time = queue.next.is_none_or(|next| next < now);
        if is_time {
            queue.next = Some(match queue.peer.kind.is_inbound() {
                true => next_of_inbound(&mut self.inbound_timers, queue.peer.network_key, now, random),
                false => now + draw::exponential(random, OUTBOUND_INTERVAL),
            });
        }
        if !is_time && !queue.peer.is_announced_to_at_once() {
            return Vec::new();
        }
        let mut announced = Vec::new();
        if std::mem::take(&mut queue.wants_mempool) {
            queue.announce_mempool(pool, &mut announced, random);
        }
        queue.announce_queued(pool, &mut announced, random);
        queue.last_sequence = pool.sequence();
        announced
    }

    /// Returns the answer to the request of a peer for a transaction: Core's `FindTxForGetData`.
    pub fn serve(&self, id: PeerId, item: &Inv, pool: &dyn RelayPool, recent: &RecentBlock) -> Served {
        let Some(queue) = self.queues.get(&id) else { return Served::Ignored };
        let Some(gtxid) = GenTxid::from_inv(item) else { return Served::NotFound };
        let with_witness = item.kind != InvType::TX;
        let found = |tx: Tx<'_>| Served::Found { txid: tx.txid(), bytes: encode(tx, with_witness) };
        if let Some(tx) = pool.before(&gtxid, queue.last_sequence) {
            return found(tx.view());
        }
        recent.get(&gtxid).map_or(Served::NotFound, found)
    }

    /// Returns the figures of a peer; `None` if it gets no announcements.
    pub fn figures(&self, id: PeerId) -> Option<AnnounceFigures> {
        self.queues.get(&id).map(|queue| AnnounceFigures {
            last_sequence: queue.last_sequence,
            queued_count: queue.to_send.len(),
            fee_filter: queue.fee_filter,
        })
    }
}

/// Core's `NextInvToInbounds`.
fn next_of_inbound(
    timers: &mut BTreeMap<u64, Duration>,
    network_key: u64,
    now: Duration,
    random: &mut ChaCha20Rng,
) -> Duration {
    let is_full = timers.len() >= INBOUND_TIMERS_MAX && !timers.contains_key(&network_key);
    let shared = timers.keys().next().copied().unwrap_or(network_key);
    let timer = timers.entry(if is_full { shared } else { network_key }).or_default();
    if *timer < now {
        *timer = now + draw::exponential(random, INBOUND_INTERVAL);
    }
    *timer
}

fn encode(tx: Tx<'_>, with_witness: bool) -> Vec<u8> {
    if with_witness || !tx.has_witness() { tx.bytes().to_vec() } else { MutTx::from(tx).encode_stripped() }
}

impl Queue {
    /// Announces the whole mempool, as far as it pays enough: the answer to a `mempool` message (BIP-0035).
    fn announce_mempool(&mut self, pool: &dyn RelayPool, announced: &mut Vec<Inv>, random: &mut ChaCha20Rng) {
        for (wtxid, tx) in pool.all() {
            self.to_send.remove(&wtxid);
            if self.pays_enough(&tx) {
                self.tell(self.id_to_announce(&tx.txid, &wtxid), announced, random);
            }
        }
    }

    /// Announces the best queued transactions.
    fn announce_queued(&mut self, pool: &dyn RelayPool, announced: &mut Vec<Inv>, random: &mut ChaCha20Rng) {
        // Core's maximum of 1,000 would need a longer queue.
        let mut left = ANNOUNCED_AT_ONCE + self.to_send.len() / 1000 * ANNOUNCED_PER_THOUSAND;
        // Those that left the mempool are dropped.
        let ranked = |wtxid| Some((Reverse(pool.relayed(&wtxid)?.rank), wtxid));
        let mut best_first: BinaryHeap<_> = std::mem::take(&mut self.to_send).into_iter().filter_map(ranked).collect();
        while left > 0
            && let Some((_, wtxid)) = best_first.pop()
        {
            let Some(tx) = pool.relayed(&wtxid) else { continue };
            let item = self.id_to_announce(&tx.txid, &wtxid);
            if !self.known.contains(&item.hash) && self.pays_enough(&tx) {
                self.tell(item, announced, random);
                left -= 1;
            }
        }
        let mut rest = best_first.into_vec();
        if rest.len() > ANNOUNCEMENT_QUEUE_KEPT_MAX {
            rest.select_nth_unstable_by(ANNOUNCEMENT_QUEUE_KEPT_MAX, |a, b| b.cmp(a));
            rest.truncate(ANNOUNCEMENT_QUEUE_KEPT_MAX);
        }
        self.to_send = rest.into_iter().map(|(_, wtxid)| wtxid).collect();
    }

    fn tell(&mut self, item: Inv, announced: &mut Vec<Inv>, random: &mut ChaCha20Rng) {
        self.known.insert(&item.hash, random);
        announced.push(item);
    }
}
