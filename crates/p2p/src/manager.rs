//! All peers: the message exchange with each, what to request from which peer, what to announce to which peer.
//!
//! Bitcoin Core's `PeerManager` (net_processing.cpp). Input: opened and closed connections, messages, verdicts of the
//! engine, the time. Output: [`Action`]s, which [`crate::driver`] carries out.
//!
//! Invariants: no socket, no file, no clock; of a block only the header is read here: it is passed on as received, and
//! another thread parses it, puts a compact one together and validates it; a peer is discouraged only for what Core
//! discourages, and never if it is trusted (`noban`) or was connected manually.
//! Cost: a few microseconds per message; every query of the header tree holds its lock only for that query. It must
//! never wait for validation or for the mempool.

mod action;
mod addresses;
mod ask;
mod blocks;
mod clock;
mod connections;
mod context;
mod event;
mod figures;
mod filters;
mod headers;
mod held;
mod peer;
mod pool;
mod questions;
mod transactions;
mod violation;

pub use action::{Action, Intake, ManagerSettings, NewPeer, ReceivedBlock, StoreOutcome};
pub use addresses::SavedFile;
pub use ask::{
    AddressCounts, AddressRefusal, AddressTable, NetworkInfo, NodeCommand, NodeRefusal, Question, Reply, TrafficInfo,
};
pub use connections::{AddedNode, AttemptFailure, AttemptId, ConnectSettings, LookupId};
pub use figures::{Presync, SyncFigures};
pub use held::Held;
pub use peer::PeerId;
pub use peer::info::PeerInfo;

use crate::address_relay::Secret;
use crate::chain_view::ChainView;
use crate::filters::FilterSource;
use crate::outgoing::Outgoing;
use crate::peer::{Connection, Peer};
use crate::submission::{Decided, Submission};
use crate::time::Moment;
pub use crate::time_offsets::CLOCK_OUT_OF_SYNC;
use crate::{AddrMan, Bans, SentBlocks};
use addresses::Addresses;
use blocks::Blocks;
use clock::Clock;
use connections::Connections;
use context::Context;
use event::Event;
use filters::Filters;
use headers::Headers;
use lydian_engine::LogSwitches;
use lydian_mempool::Mempool;
use lydian_primitives::{Block, BlockHash};
use lydian_wire::{Command, Inv, InvType, Message, NetAddr};
use peer::PeerState;
use pool::TransactionPool;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use transactions::{NextItem, Transactions};
use violation::Violation;

/// All peers.
#[derive(Debug)]
pub struct PeerManager {
    context: Context,
    addresses: Addresses,
    connections: Connections,
    headers: Headers,
    blocks: Blocks,
    clock: Clock,
    transactions: Transactions,
    filters: Filters,
}

impl PeerManager {
    /// Creates a manager without peers.
    pub fn new(
        chain: Arc<impl ChainView + 'static>,
        settings: ManagerSettings,
        addrman: AddrMan,
        bans: Bans,
        mempool: Arc<Mempool>,
    ) -> PeerManager {
        let chain: Arc<dyn ChainView> = chain;
        let mut random = ChaCha20Rng::from_seed(settings.seed);
        let secret = Secret::new(&mut random);
        let (tip, height) = chain.with_tree(|tree| (tree.tip(), tree.height(tree.tip())));
        PeerManager {
            addresses: Addresses::new(addrman, bans, secret),
            connections: Connections::new(&settings.connect),
            headers: Headers::new(settings.params.chain, tip),
            blocks: Blocks::new(&settings, tip, height),
            clock: Clock::default(),
            transactions: Transactions::new(Arc::clone(&mempool), &mut random),
            filters: Filters::default(),
            context: Context {
                settings,
                now: Moment::default(),
                random,
                chain,
                pool: TransactionPool::new(mempool),
                peers: BTreeMap::new(),
                actions: Vec::new(),
                events: VecDeque::new(),
                switches: LogSwitches::default(),
                sent_blocks: Arc::default(),
            },
        }
    }

    /// Serves block filters to peers; [`crate::peer::Local`] announces the service.
    pub fn serve_filters(&mut self, source: Arc<dyn FilterSource>) {
        self.filters.source = Some(source);
    }

    /// Who sent the latest blocks, for a display that asks for it.
    pub fn sent_blocks(&self) -> &Arc<SentBlocks> {
        &self.context.sent_blocks
    }

    #[track_caller]
    fn leave(&mut self, id: PeerId, reason: impl Into<String>) {
        self.context.leave(id, reason);
        self.route();
    }

    fn end_connection(&mut self, id: PeerId, reason: impl Into<String>) {
        self.context.end_connection(id, reason);
        self.route();
    }

    /// Passes the events of the parts on.
    fn route(&mut self) {
        while let Some(event) = self.context.events.pop_front() {
            match event {
                Event::Left(id) => {
                    self.blocks.forget_peer(id);
                    self.transactions.disconnected(&mut self.context, id);
                }
                Event::Headers { id, last } => self.blocks.take_announced_headers(&mut self.context, id, last),
                Event::HeaderOfCompact { id, header } => {
                    self.headers.take_headers(&mut self.context, id, &[header], true);
                }
            }
        }
    }

    /// A connection was established.
    pub fn connected(&mut self, new: NewPeer, now: Moment) {
        self.context.now = now;
        let link = self.connections.link(&mut self.context, &mut self.addresses, &new);
        self.route();
        let link = match link {
            Ok(link) => link,
            Err(reason) => {
                let item = Outgoing::End { reason: reason.to_owned() };
                self.context.actions.push(Action::Send { to: new.id, item });
                return;
            }
        };
        // A block that is older than the connection is not announced to it.
        self.note_chain();
        let nonce = self.context.new_nonce();
        let connection = Connection {
            kind: new.kind,
            endpoint: new.endpoint,
            services: link.address.services,
            permissions: new.permissions,
            is_proxied: self.context.settings.connect.proxies.is_proxy(&new.endpoint.addr),
            is_onion: new.is_onion,
            nonce,
        };
        let name = link.name.clone();
        self.context
            .peers
            .insert(new.id, PeerState::new(new.id, Peer::new(connection, now), (new.traffic, new.memory), link));
        match (new.kind.is_inbound(), self.context.switches.has_ips()) {
            (true, _) => self.context.log_debug(format!("connection from {} accepted", new.endpoint)),
            (false, true) => self.context.log_debug(format!("Added connection to {name} peer={}", new.id)),
            (false, false) => self.context.log_debug(format!("Added connection peer={}", new.id)),
        }
        if !new.kind.is_inbound() {
            self.connections.note_nonce(nonce);
        }
        self.talk(new.id, |talk, context, out| talk.begin(context, out));
        self.settle(new.id);
    }

    /// A connection was closed by either side.
    pub fn disconnected(&mut self, id: PeerId, now: Moment) {
        self.context.now = now;
        if let Some(peer) = self.context.peers.remove(&id) {
            self.connections.forget_nonce(peer.talk.connection.nonce);
            self.headers.forget(&peer.sync);
            if peer.talk.updates_addrman_at_end() {
                self.addresses.note_end(&self.context, &peer.talk.connection.endpoint);
            }
            self.blocks.forget_peer(id);
            self.transactions.disconnected(&mut self.context, id);
            self.context.log_debug(format!("Cleared nodestate for peer={id}"));
            self.connections.reconnect(&mut self.context, &mut self.addresses, id, peer.kind(), peer.link);
        }
        self.request_blocks();
    }

    /// A message was received. The caller does not call again for this peer while data queued for the peer is not sent.
    pub fn received(&mut self, id: PeerId, command: Command, payload: Vec<u8>, now: Moment) {
        self.context.now = now;
        if self.context.peers.get(&id).is_some_and(|peer| !peer.is_leaving) {
            self.receive(id, command, payload);
            self.settle(id);
        }
    }

    /// A part of a message was received: a large block on a slow link is no stall. Not every part needs to be reported.
    pub fn progressed(&mut self, id: PeerId, bytes: u64, now: Moment) {
        self.context.now = now;
        self.context.with(id, |peer| peer.talk.note_received(now));
        self.blocks.note_progress(&self.context, id, bytes);
    }

    /// Time has passed. Call this at least ten times per second.
    pub fn tick(&mut self, now: Moment) {
        self.context.now = now;
        self.addresses.follow_switches(&self.context);
        let ids: Vec<_> = self.context.peers.keys().copied().collect();
        for id in ids {
            self.look_after(id);
            self.context.note_common_block(id);
            self.settle(id);
        }
        self.blocks.tick(&mut self.context);
        self.transactions.tick(&mut self.context);
        self.route();
        if self.connections.tend(&mut self.context, &mut self.addresses) {
            self.run_scheduled();
        }
        self.route();
        self.request_blocks();
    }

    /// Runs after everything that may have changed a peer.
    fn settle(&mut self, id: PeerId) {
        Connections::settle(&mut self.context, &mut self.addresses, id);
        self.route();
    }

    /// The tasks of Core's scheduler.
    fn run_scheduled(&mut self) {
        self.connections.check_for_stale_tip_and_evict_peers(&mut self.context);
        self.addresses.save_when_due(&mut self.context);
        self.route();
    }

    /// The result of an [`Action::Store`].
    pub fn block_stored(
        &mut self,
        from: PeerId,
        hash: &BlockHash,
        intake: Intake,
        outcome: &StoreOutcome,
        now: Moment,
    ) {
        self.context.now = now;
        self.blocks.take_outcome(&mut self.context, from, hash, intake, outcome);
        self.settle(from);
        self.request_blocks();
    }

    /// The result of an [`Action::Store`] of an ordered block, which is not stored.
    pub(crate) fn block_ordered(
        &mut self,
        from: PeerId,
        hash: &BlockHash,
        outcome: &StoreOutcome,
        block: Option<Arc<Block>>,
        now: Moment,
    ) {
        self.context.now = now;
        self.blocks.take_order_outcome(&mut self.context, (from, hash), outcome, block);
        self.settle(from);
    }

    /// A peer sent a block that extends the tip, and it is stored: it is announced before it is validated.
    pub(crate) fn block_extends_tip(&mut self, block: &Arc<Block>) {
        self.transactions.note_new_block(block);
        self.headers.announce_new(&mut self.context, block);
        self.route();
    }

    /// The mempool has decided on an [`Action::Submit`].
    pub fn decided(&mut self, decided: Decided, now: Moment) {
        self.context.now = now;
        self.transactions.decided(&mut self.context, decided);
    }

    /// The mempool's queue has no room for an [`Action::Submit`].
    pub(crate) fn refused(&mut self, submission: Submission) {
        self.transactions.note_refused(submission);
    }

    /// Returns the peers whose requests are not answered completely.
    pub(crate) fn asking(&self) -> Vec<PeerId> {
        self.transactions.asking()
    }

    /// Answers requests of a peer: blocks until the next transaction, and that one if there is room.
    pub(crate) fn serve(&mut self, id: PeerId, has_room: bool) {
        while let NextItem::Block(item) = self.transactions.serve_next(&mut self.context, id, has_room) {
            if self.headers.is_being_validated(&self.context, &item) {
                return;
            }
            self.transactions.drop_request(&mut self.context, id);
            self.blocks.serve_block(&mut self.context, id, item);
        }
        self.route();
    }

    pub(crate) fn has_actions(&self) -> bool {
        !self.context.actions.is_empty()
    }

    /// Validation found that a stored block breaks a rule.
    pub fn block_invalid(&mut self, hash: &BlockHash, now: Moment) {
        self.context.now = now;
        if let Some(sender) = self.blocks.take_invalid(&mut self.context, hash) {
            self.settle(sender);
        }
        self.request_blocks();
    }

    /// The stored bytes of a block turned out to be unusable.
    pub fn block_unreadable(&mut self, hash: &BlockHash, now: Moment) {
        self.context.now = now;
        self.blocks.take_unreadable(hash);
        self.request_blocks();
    }

    /// The peer requested transactions that the block does not have.
    pub fn bad_transactions_request(&mut self, id: PeerId, now: Moment) {
        self.context.now = now;
        self.context.misbehaving(id, &Violation::TransactionsOutOfBounds);
        self.settle(id);
    }

    fn request_blocks(&mut self) {
        self.blocks.request_blocks(&mut self.context);
        self.route();
    }

    /// A connection attempt failed.
    pub fn attempt_failed(&mut self, id: AttemptId, failure: &AttemptFailure, now: Moment) {
        self.context.now = now;
        self.connections.attempt_failed(&mut self.context, &mut self.addresses, id, failure);
    }

    /// A name was resolved to these addresses; the list is empty if that failed.
    pub fn resolved(&mut self, lookup: LookupId, found: &[NetAddr], now: Moment) {
        self.context.now = now;
        self.connections.resolved(&mut self.context, &mut self.addresses, lookup, found);
    }

    /// The other side of an outbound connection closed it before sending anything: after it is closed, it is retried
    /// with v1. Core's `ShouldReconnectV1`.
    pub fn retry_with_v1(&mut self, id: PeerId) {
        Connections::retry_with_v1(&mut self.context, id);
    }

    fn process(&mut self, id: PeerId, message: Message) {
        if self.context.is_loading() && self.is_ignored_while_loading(id, &message) {
            return;
        }
        match message {
            Message::Headers(headers) => self.headers.take_headers(&mut self.context, id, &headers, false),
            Message::Block(bytes) => self.blocks.take_block(&mut self.context, id, bytes),
            Message::CmpctBlock(compact) => self.blocks.take_compact(&mut self.context, id, &compact),
            Message::BlockTxn(answer) => self.blocks.take_block_transactions(&mut self.context, id, answer),
            Message::Inv(inventory) => {
                let wanted = self.take_inventory(id, &inventory);
                if let Some(hash) = wanted {
                    self.headers.ask_about(&mut self.context, id, hash);
                }
            }
            Message::NotFound(inventory) => {
                self.transactions.take_notfound(id, &inventory);
                self.blocks.take_notfound(&mut self.context, id, &inventory);
                self.transactions.request(&mut self.context, id);
            }
            Message::GetHeaders(request) => Headers::serve_headers(&mut self.context, id, &request),
            Message::GetBlocks(request) => Blocks::serve_inv(&mut self.context, id, &request),
            Message::GetData(inventory) => {
                Blocks::log_getdata(&mut self.context, id, &inventory);
                self.transactions.take_requests(&mut self.context, id, inventory);
            }
            Message::GetBlockTxn(request) => Blocks::serve_block_transactions(&mut self.context, id, request),
            Message::FeeFilter(rate) => self.transactions.take_fee_filter(&mut self.context, id, rate),
            Message::MemPool => self.transactions.take_mempool_request(&self.context, id),
            Message::Tx(bytes) => {
                self.transactions.take(&mut self.context, id, bytes);
                self.transactions.request(&mut self.context, id);
            }
            Message::GetCFilters(request) => self.filters.serve_filters(&mut self.context, id, &request),
            Message::GetCFHeaders(request) => self.filters.serve_headers(&mut self.context, id, &request),
            Message::GetCFCheckpt(request) => self.filters.serve_checkpoints(&mut self.context, id, &request),
            // Bloom filters.
            _ => {}
        }
        self.route();
    }

    /// Announcements by hash. Returns the last unknown block, if headers up to it may be asked for.
    fn take_inventory(&mut self, id: PeerId, inventory: &[Inv]) -> Option<BlockHash> {
        let mut unknown = None;
        let other_kind = transactions::ignored_kind(&self.context, id)?;
        let view = self.transactions.view();
        for item in inventory.iter().filter(|item| item.kind != other_kind) {
            if item.kind == InvType::BLOCK {
                let hash = BlockHash(item.hash);
                let is_here = self.headers.note_announced(&mut self.context, id, item);
                if !is_here && !self.context.is_loading() && !self.blocks.is_requested(&hash) {
                    unknown = Some(hash);
                }
            } else if !self.transactions.take_announcement(&mut self.context, id, item, &view) {
                return None;
            }
        }
        self.transactions.request(&mut self.context, id);
        unknown
    }

    /// Announces the new blocks of the active chain to the connected peers.
    fn note_chain(&mut self) {
        let Some(change) = self.headers.note_chain(&mut self.context) else { return };
        self.blocks.choose_announcers(&mut self.context, &change);
        self.connections.note_tip_change(&self.context);
        self.blocks.forget_sources(&mut self.context);
        self.transactions.note_chain(&mut self.context, &change);
        self.headers.announce(&mut self.context, &change);
    }

    /// Validation made progress, and the active chain may have a new tip.
    pub fn chain_changed(&mut self, now: Moment) {
        self.context.now = now;
        self.note_chain();
        self.request_blocks();
    }

    /// Core's checks of `LoadingBlocks` in `ProcessMessage`, with its log texts. Unlike in Core, a request for headers
    /// gets the empty answer: Core asks again only after an answer or two minutes, and would miss the blocks announced
    /// until then.
    fn is_ignored_while_loading(&mut self, id: PeerId, message: &Message) -> bool {
        let text = match message {
            Message::GetHeaders(_) => format!("Ignoring getheaders from peer={id} while importing/reindexing"),
            Message::CmpctBlock(_) => {
                format!("peer={id} sent us a compact block even though we are still loading blocks!")
            }
            Message::BlockTxn(_) => format!("Unexpected blocktxn message received from peer {id}"),
            Message::Headers(_) => format!("Unexpected headers message received from peer {id}"),
            Message::Block(_) => format!("Unexpected block message received from peer {id}"),
            _ => return false,
        };
        self.context.log_debug(text);
        if matches!(message, Message::GetHeaders(_)) {
            self.context.send(id, Message::Headers(Vec::new()));
        }
        true
    }
}
