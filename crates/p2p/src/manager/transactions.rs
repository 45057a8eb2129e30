//! Relay of unconfirmed transactions: what peers announce and send, what is requested of them, what is announced to
//! them. The rules are those of [`crate::txs`]; Core's net_processing.cpp calls them in this order.
//!
//! Input: messages, verdicts of the mempool, the chain, the time. Output: messages, [`Action::Submit`]. Invariants: the
//! mempool is seen as a snapshot and never waited for; no peer is punished for a transaction; a peer's transactions are
//! submitted in the order of arrival, and at most [`PEER_SUBMISSIONS_MAX`] of them at a time. Memory: what a peer sent
//! or requested and what waits for the mempool is charged to the peer; the rest is bounded by [`crate::txs`]. Cost: a
//! few microseconds per transaction.
//!
//! [`Action::Submit`]: super::Action::Submit
//! [`PEER_SUBMISSIONS_MAX`]: crate::limits::PEER_SUBMISSIONS_MAX

mod extra;
mod intake;
mod peer;
mod serve;

pub(super) use extra::ExtraTxs;
pub(super) use peer::PeerTransactions;
pub(super) use serve::NextItem;

use super::PeerId;
use super::context::Context;
use super::headers::TipChange;
use super::pool::View;
use crate::limits::GETDATA_COUNT_MAX;
use crate::peer::Permissions;
use crate::submission::Submission;
use crate::txs::announce::AnnounceFigures;
use crate::txs::download::DownloadContext;
use crate::txs::fee_filter::MinimumRates;
use crate::txs::orphanage::OrphanInfo;
use crate::txs::{FeeFilters, GenTxid, RecentBlock, RelayPeer, TxAnnouncer, TxDownload, Unbroadcast};
use lydian_hash::SipHasher;
use lydian_mempool::Mempool;
use lydian_primitives::{Amount, Block, BlockHash, Txid, Wtxid};
use lydian_wire::limits::INV_COUNT_MAX;
use lydian_wire::{Inv, InvType, Message};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// A longer `notfound` is ignored, as in Core: `MAX_PEER_TX_ANNOUNCEMENTS` and `MAX_BLOCKS_IN_TRANSIT_PER_PEER`.
const NOTFOUND_COUNT_MAX: usize = 5000 + 16;

/// The relay of transactions between all peers and the mempool.
#[derive(Debug)]
pub(super) struct Transactions {
    mempool: Arc<Mempool>,
    download: TxDownload,
    announcer: TxAnnouncer,
    fee_filters: FeeFilters,
    unbroadcast: Unbroadcast,
    /// The last block, whose transactions every peer may request.
    recent: RecentBlock,
    recent_hash: Option<BlockHash>,
    /// The last new block that a peer sent, until it is connected.
    new: Option<Arc<Block>>,
    /// What found no room in the mempool's queue, by its number. Nothing else is submitted before it.
    refused: BTreeMap<u64, Submission>,
    /// The number of the next submission.
    next_submission: u64,
    /// Peers whose requests are not answered completely.
    asking: BTreeSet<PeerId>,
    /// The key of [`RelayPeer::network_key`].
    key: (u64, u64),
}

/// Peers.
impl Transactions {
    pub(super) fn new(mempool: Arc<Mempool>, random: &mut ChaCha20Rng) -> Transactions {
        Transactions {
            mempool,
            download: TxDownload::new(random),
            announcer: TxAnnouncer::default(),
            fee_filters: FeeFilters::default(),
            unbroadcast: Unbroadcast::default(),
            recent: RecentBlock::default(),
            recent_hash: None,
            new: None,
            refused: BTreeMap::new(),
            next_submission: 0,
            asking: BTreeSet::new(),
            key: (random.next_u64(), random.next_u64()),
        }
    }

    /// The handshake with a peer is complete.
    pub(super) fn connected(&mut self, context: &Context, id: PeerId) {
        let Some(peer) = context.peers.get(&id) else { return };
        let network = SipHasher::new(self.key.0, self.key.1).write_u64(peer.link.network() as u64);
        let key = network.write(&peer.link.local.key()).finish();
        let relay = RelayPeer::new(&peer.talk, peer.is_preferred(), key);
        self.download.connected(id, relay);
        self.announcer.connected(id, relay);
        self.fee_filters.connected(id, &relay, context.settings.local.ignores_transactions);
    }

    /// A peer is gone, or is being disconnected.
    pub(super) fn disconnected(&mut self, context: &mut Context, id: PeerId) {
        self.download.disconnected(id);
        self.announcer.disconnected(id);
        self.fee_filters.disconnected(id);
        self.asking.remove(&id);
        context.with(id, |peer| peer.txs = PeerTransactions::new(&peer.memory));
    }

    /// Returns the figures of a peer for `getpeerinfo`.
    pub(super) fn figures(&self, id: PeerId) -> AnnounceFigures {
        self.announcer.figures(id).unwrap_or_default()
    }

    /// Returns all orphans with their announcers.
    pub(super) fn orphans(&self) -> Vec<OrphanInfo> {
        self.download.orphans()
    }

    /// Returns the relay's parts, for their sizes.
    pub(super) fn download(&self) -> &TxDownload {
        &self.download
    }

    /// Returns the number of submissions that wait for room in the mempool's queue.
    pub(super) fn refused_count(&self) -> usize {
        self.refused.len()
    }
}

/// Announcements.
impl Transactions {
    /// Queues a transaction of the mempool for all peers that do not know it: Core's `InitiateTxBroadcastToAll`.
    pub(super) fn announce(&mut self, txid: &Txid, wtxid: &Wtxid) {
        self.announcer.announce(txid, wtxid);
    }

    /// Core's `ReattemptInitialBroadcast`.
    fn announce_again(&mut self, context: &mut Context) {
        if !self.unbroadcast.is_due(context.now.elapsed, &mut context.random) {
            return;
        }
        let view = View::of(&self.mempool);
        for txid in view.snapshot().unbroadcast().txids() {
            if let Some(member) = view.snapshot().get(&txid) {
                self.announcer.announce(&txid, member.wtxid());
            }
        }
    }

    /// Makes the next announcement of unbroadcast transactions due earlier: `mockscheduler`.
    pub(super) fn mock_forward(&mut self, context: &mut Context, delta: Duration) {
        self.unbroadcast.mock_forward(delta);
        self.announce_again(context);
    }

    /// A peer announced a transaction. Returns false if the rest of the message must be ignored.
    pub(super) fn take_announcement(&mut self, context: &mut Context, id: PeerId, item: &Inv, view: &View) -> bool {
        let Some(peer) = context.peers.get(&id) else { return false };
        let Some(gtxid) = GenTxid::from_inv(item) else {
            context.log_debug(format!("Unknown inv type \"{item}\" received from peer={id}"));
            return true;
        };
        if peer.talk.rejects_transactions(&context.settings.local) {
            // Our `version` message said that we accept none.
            let hash = BlockHash(item.hash);
            context.leave(id, format!("transaction ({hash}) inv sent in violation of protocol"));
            return false;
        }
        self.announcer.note_known(id, &item.hash, &mut context.random);
        if !context.is_initial_download() {
            let now = context.now.mockable;
            let random = &mut context.random;
            let is_here = self.download.announced(id, &gtxid, &DownloadContext { pool: view, now, random });
            context.debug(|_| format!("got inv: {item} {} peer={id}", if is_here { "have" } else { "new" }));
        }
        true
    }

    /// Returns a view of the mempool for [`Transactions::take_announcement`].
    pub(super) fn view(&self) -> View {
        View::of(&self.mempool)
    }

    pub(super) fn take_notfound(&mut self, id: PeerId, inventory: &[Inv]) {
        if inventory.len() <= NOTFOUND_COUNT_MAX {
            self.download.not_found(id, inventory.iter().filter_map(GenTxid::from_inv));
        }
    }

    pub(super) fn take_fee_filter(&mut self, context: &mut Context, id: PeerId, rate: Amount) {
        self.announcer.set_fee_filter(id, rate);
        if rate.is_in_money_range() {
            context.debug(|_| {
                format!(
                    "received: feefilter of {}.{:08} BTC/kvB from peer={id}",
                    rate.0 / 100_000_000,
                    rate.0 % 100_000_000
                )
            });
        }
    }

    /// A peer asked for the mempool; without the permission it was disconnected or is ignored.
    pub(super) fn take_mempool_request(&mut self, context: &Context, id: PeerId) {
        if context.peers.get(&id).is_some_and(|peer| peer.may(Permissions::MEMPOOL)) {
            self.announcer.request_mempool(id);
        }
    }
}

/// What is sent to peers from time to time: the parts of Core's `SendMessages` about transactions.
impl Transactions {
    /// Time has passed.
    pub(super) fn tick(&mut self, context: &mut Context) {
        self.announce_again(context);
        self.submit_refused(context, crate::limits::PEER_SUBMISSIONS_MAX);
    }

    /// Sends a peer what is due.
    pub(super) fn look_after(&mut self, context: &mut Context, id: PeerId) {
        self.submit_waiting(context, id);
        let now = context.now.mockable;
        let view = View::of(&self.mempool);
        let announced = self.announcer.due(id, now, &view, &mut context.random);
        for items in announced.chunks(INV_COUNT_MAX) {
            context.send(id, Message::Inv(items.to_vec()));
        }
        self.request(context, id);
        let rates = MinimumRates {
            mempool: Amount(self.mempool.min_fee_at_once().fee_per_kvb()),
            relay: Amount(self.mempool.settings().min_relay_fee.fee_per_kvb()),
            is_initial_download: context.is_initial_download(),
        };
        if let Some(rate) = self.fee_filters.due(id, &rates, now, &mut context.random) {
            context.send(id, Message::FeeFilter(rate));
        }
    }

    /// Requests what is to be requested from a peer now.
    pub(super) fn request(&mut self, context: &mut Context, id: PeerId) {
        let Some(peer) = context.peers.get(&id).filter(|peer| peer.is_ready()) else { return };
        let serves_witnesses = peer.serves_witnesses();
        let (view, now) = (View::of(&self.mempool), context.now.mockable);
        let random = &mut context.random;
        let requests = self.download.requests_to_send(id, &DownloadContext { pool: &view, now, random });
        for (peer, gtxid) in requests.expired {
            context.debug(|_| {
                let (kind, hash) = (if gtxid.is_wtxid() { "wtx" } else { "tx" }, Txid(gtxid.hash()));
                format!("timeout of inflight {kind} {hash} from peer={peer}")
            });
        }
        for wanted in requests.wanted.chunks(GETDATA_COUNT_MAX) {
            let items = wanted.iter().map(|gtxid| gtxid.to_getdata(serves_witnesses)).collect();
            context.send(id, Message::GetData(items));
        }
    }
}

/// The chain.
impl Transactions {
    /// A peer sent the next block. Its transactions may be requested from now on, before it is validated.
    pub(super) fn note_new_block(&mut self, block: &Arc<Block>) {
        (self.recent, self.recent_hash) = (RecentBlock::new(Arc::clone(block)), Some(block.hash()));
        self.new = Some(Arc::clone(block));
    }

    /// The active chain has a new tip: Core's `BlockConnected`, `BlockDisconnected` and `ActiveTipChange`.
    pub(super) fn note_chain(&mut self, context: &mut Context, change: &TipChange) {
        if change.is_reorganisation {
            self.download.block_disconnected(&mut context.random);
        }
        if change.is_initial {
            return;
        }
        self.download.tip_changed(&mut context.random);
        for id in &change.fresh {
            let hash = context.place(*id).hash;
            let Some(block) = self.block(context, &hash) else { continue };
            self.download.block_connected(&block, &mut context.random);
            if self.recent_hash != Some(hash) {
                (self.recent, self.recent_hash) = (RecentBlock::new(block), Some(hash));
            }
        }
        self.new = None;
    }

    /// Returns a block of the active chain: the one that a peer just sent, or one that is read from disk.
    fn block(&self, context: &mut Context, hash: &BlockHash) -> Option<Arc<Block>> {
        if let Some(new) = self.new.as_ref().filter(|new| new.hash() == *hash) {
            return Some(Arc::clone(new));
        }
        let info = context.chain.header_info(hash)?;
        match context.chain.block(&info) {
            Ok(block) => block.map(Arc::new),
            Err(error) => {
                context.log_info(format!("Cannot read block {hash}: {error}"));
                None
            }
        }
    }
}

/// Returns the kind of announcement that is ignored, because the peer agreed on the other one. `None`: the peer is
/// gone.
pub(super) fn ignored_kind(context: &Context, id: PeerId) -> Option<InvType> {
    let peer = context.peers.get(&id)?;
    Some(if peer.talk.wtxid_relay { InvType::TX } else { InvType::WTX })
}
