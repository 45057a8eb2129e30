//! All peers: the conversation with each, what is asked of whom, what is told to whom. Bitcoin Core's `PeerManager` (net_processing.cpp).
//!
//! Input: connections that came and went, messages, verdicts of the engine, the time. Output: [`Action`]s, which whoever owns the sockets carries out.
//! Invariants: no socket, no file, no clock; blocks are handed out as they came and are never judged here; a peer is discouraged only for what Core
//! discourages, and never one that is trusted (`noban`) or was asked for by hand. Until there is a mempool this node speaks as Core does with
//! `-blocksonly`: it announces no transactions and asks for none. Cost: a few microseconds a message; every question to the header tree takes its lock
//! for that question only. Must never: wait for validation.

mod announce;
mod blocks;
mod branches;
mod compact;
mod connect;
mod fetch;
mod figures;
mod headers;
mod held;
mod info;
mod log;
mod memory;
mod peer;
mod serve;
mod talk;
mod target;
mod timers;

pub use connect::{AddedNode, AttemptFailure, AttemptId, ConnectSettings, LookupId, SavedFile, Target};
pub use figures::{Presync, SyncFigures};
pub use held::Held;
pub use info::{PeerInfo, Question};
pub use peer::PeerId;

use crate::address_relay::{AnswerCache, Secret};
use crate::download::{Download, DownloadPeer, DownloadSettings, RequestTime};
use crate::headers::HeadersSyncParams;
use crate::local_address::LocalAddress;
use crate::peer::{Connection, ConnectionKind, Local, Peer, Permissions, Punishment};
use crate::proxies::Proxies;
use crate::time::Moment;
pub use crate::time_offsets::CLOCK_OUT_OF_SYNC;
use crate::time_offsets::TimeOffsets;
use crate::upload::{UploadInfo, UploadLimit};
use crate::{AddrMan, Bans, PeerMemory, Traffic, TrafficTotals};
use connect::{Connector, Link};
use lydian_chain::NodeId;
use lydian_consensus::{Params, U256};
use lydian_engine::{Engine, INITIAL_DOWNLOAD_OVER, InitialDownload, LogLevel, LogLine, LogSwitches};
use lydian_primitives::{BlockHash, Height};
use lydian_wire::{BlockTransactionsRequest, Command, CompactBlock, Endpoint, Message, Network};
use peer::Known;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// What the conversation needs to know of the node.
#[derive(Clone, Debug)]
pub struct ManagerSettings {
    pub params: Params,
    /// `-minimumchainwork`.
    pub minimum_chain_work: U256,
    /// The node's only one.
    pub initial_download: Arc<InitialDownload>,
    /// `-blocksonly`: whole blocks are asked for and compact ones ignored, since there never will be transactions to make blocks of.
    pub blocks_only: bool,
    /// What this node says of itself.
    pub local: Local,
    /// Networks that can be connected to.
    pub reachable: BTreeSet<Network>,
    /// Bytes of blocks on their way, at most.
    pub download_bytes: u64,
    pub seed: [u8; 32],
    pub connect: ConnectSettings,
}

/// A connection that stands; nothing was said yet.
#[derive(Clone, Debug)]
pub struct NewPeer {
    pub id: PeerId,
    pub kind: ConnectionKind,
    pub endpoint: Endpoint,
    pub permissions: Permissions,
    /// It came through the onion service: its address says nothing.
    pub is_onion: bool,
    /// The attempt that succeeded; none for inbound peers.
    pub attempt: Option<AttemptId>,
    /// Our side of it.
    pub local: Endpoint,
    /// The transport that is tried first.
    pub v2: bool,
    /// What its bytes are counted by.
    pub traffic: Arc<Traffic>,
    /// What the memory that it takes is counted by.
    pub memory: PeerMemory,
}

/// Something to be done by the owner of the sockets.
#[derive(Debug)]
pub enum Action {
    Send {
        to: PeerId,
        message: Message,
    },
    /// Send a stored block, witnesses left out or not; one that cannot be read ends the connection.
    SendBlock {
        to: PeerId,
        hash: BlockHash,
        with_witness: bool,
    },
    /// Send a stored block as a compact one; one that cannot be read ends the connection.
    SendCompact {
        to: PeerId,
        hash: BlockHash,
        nonce: u64,
    },
    /// Send transactions of a stored block. If the block has fewer, the answer is
    /// [`PeerManager::bad_transactions_request`].
    SendBlockTransactions {
        to: PeerId,
        request: BlockTransactionsRequest,
    },
    /// After what is to be sent was sent, or five seconds. The reason is for the log.
    Disconnect {
        peer: PeerId,
        reason: String,
    },
    /// A block came: it goes to the engine, whose answer comes back by [`PeerManager::block_stored`].
    Store {
        from: PeerId,
        hash: BlockHash,
        bytes: Vec<u8>,
    },
    /// Open a connection; the answer is [`PeerManager::connected`] or [`PeerManager::attempt_failed`].
    Connect {
        attempt: AttemptId,
        kind: ConnectionKind,
        target: Target,
        v2: bool,
    },
    /// Ask the system for the addresses of a name; the answer is [`PeerManager::resolved`].
    Resolve {
        lookup: LookupId,
        host: String,
        count_max: usize,
    },
    /// Replace a file by this. A failure is for the log only.
    Save {
        file: SavedFile,
        bytes: Vec<u8>,
    },
    /// For the log.
    Log(LogLine),
}

/// What became of a block that a peer sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BlockFate {
    /// It is stored; whether its scripts hold shows later.
    Stored,
    /// It was here already.
    Known,
    /// It breaks a rule. `is_mutated`: the bytes are not what the hash commits to, and the block may still come.
    Invalid { reason: String, is_mutated: bool },
    /// It is known to break a rule.
    KnownInvalid { reason: String },
    /// The bytes are no block.
    Malformed { reason: String },
    /// Its time lies too far ahead of this node's clock, or there was no room for it: it may come again.
    TooEarly,
}

/// All peers.
#[derive(Debug)]
pub struct PeerManager {
    engine: Arc<Engine>,
    settings: ManagerSettings,
    headers_params: HeadersSyncParams,
    random: ChaCha20Rng,
    now: Moment,
    peers: BTreeMap<PeerId, Known>,
    addrman: AddrMan,
    bans: Bans,
    traffic: Arc<TrafficTotals>,
    upload: UploadLimit,
    time_offsets: TimeOffsets,
    /// Of our own connections whose handshake goes on.
    own_nonces: BTreeSet<u64>,
    /// For choices that peers must not foresee.
    secret: Secret,
    answers: AnswerCache,
    download: Download,
    /// The senders of blocks that are stored and not validated: Core's `mapBlockSource`.
    sources: HashMap<BlockHash, Source>,
    /// The senders of blocks that were handed to the engine and are not reported as stored or refused, in the order of
    /// their deliveries.
    pending: HashMap<BlockHash, Vec<Source>>,
    /// Peers that were asked for blocks beside the path of the download, and when.
    aside: BTreeMap<BlockHash, Vec<(PeerId, RequestTime)>>,
    /// Who may send compact blocks unasked, the latest last: Core's `lNodesAnnouncingHeaderAndIDs`.
    announcers: Vec<PeerId>,
    actions: Vec<Action>,
    /// The tip announced to peers, and when it changed: Core's `m_last_tip_update`.
    last_tip: NodeId,
    /// The tip that was looked at for the end of the initial download.
    noted_tip: Option<NodeId>,
    last_tip_change: Option<Duration>,
    /// The compact block that was made last, for all peers: Core's `m_most_recent_compact_block`.
    recent_compact: Option<(BlockHash, CompactBlock)>,
    last_inv_that_asked: Option<BlockHash>,
    protected_peers: usize,
    /// The last block of the path that the download was told.
    path_end: NodeId,
    /// Blocks that nobody brings though their headers are here.
    withheld: target::Withheld,
    tries_extra_peer: bool,
    next_stale_check: Duration,
    connector: Connector,
    switches: LogSwitches,
    /// When the last line about headers of little work was logged.
    last_presync_line: Option<Duration>,
}

/// Who brought a block, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Source {
    peer: PeerId,
    /// As a compact block: then it need not have been validated before it was passed on.
    is_compact: bool,
    /// Validation found the block invalid before the engine reported it as stored.
    is_judged: bool,
}

/// A header and what it weighs, taken out of the tree.
#[derive(Clone, Copy, Debug)]
struct Place {
    id: NodeId,
    hash: BlockHash,
    height: Height,
    work: U256,
    time: u32,
}

impl PeerManager {
    pub fn new(engine: Arc<Engine>, settings: ManagerSettings, addrman: AddrMan, bans: Bans) -> PeerManager {
        let mut random = ChaCha20Rng::from_seed(settings.seed);
        let secret = Secret::new(&mut random);
        let (last_tip, height) = engine.with_tree(|tree| (tree.tip(), tree.height(tree.tip())));
        let connector = Connector::new(settings.connect.clone());
        let download = DownloadSettings { window_bytes: settings.download_bytes };
        PeerManager {
            headers_params: HeadersSyncParams::of(settings.params.chain),
            random,
            addrman,
            bans,
            traffic: Arc::default(),
            upload: UploadLimit::new(settings.connect.upload_target),
            time_offsets: TimeOffsets::default(),
            own_nonces: BTreeSet::new(),
            secret,
            answers: AnswerCache::default(),
            download: Download::new(download, height),
            engine,
            settings,
            now: Moment::default(),
            peers: BTreeMap::new(),
            sources: HashMap::new(),
            pending: HashMap::new(),
            aside: BTreeMap::new(),
            announcers: Vec::new(),
            actions: Vec::new(),
            last_tip,
            noted_tip: None,
            last_tip_change: None,
            recent_compact: None,
            last_inv_that_asked: None,
            protected_peers: 0,
            path_end: last_tip,
            withheld: target::Withheld::default(),
            tries_extra_peer: false,
            next_stale_check: Duration::ZERO,
            connector,
            switches: LogSwitches::default(),
            last_presync_line: None,
        }
    }

    /// What is to be done since the last call.
    pub fn take_actions(&mut self) -> Vec<Action> {
        for line in self.addrman.take_lines() {
            self.say(LogLevel::Debug(log::ADDRMAN), line);
        }
        std::mem::take(&mut self.actions)
    }

    /// What time it is, for what a person does in between.
    pub fn set_time(&mut self, now: Moment) {
        self.now = now;
    }

    /// Banned and discouraged addresses.
    pub fn bans(&self) -> &Bans {
        &self.bans
    }

    /// Our own addresses, as far as they are known.
    pub fn local_addresses(&self) -> Vec<LocalAddress> {
        self.settings.local.own.list()
    }

    /// What `-maxuploadtarget` leaves.
    pub fn upload_info(&mut self) -> UploadInfo {
        self.upload.note(self.traffic.sent(), self.now.unix);
        self.upload.info(self.now.unix)
    }

    /// Through which proxies peers are reached.
    pub fn proxies(&self) -> &Proxies {
        &self.settings.connect.proxies
    }

    /// A connection stands.
    pub fn connected(&mut self, new: NewPeer, now: Moment) {
        self.now = now;
        let link = match self.link(&new) {
            Ok(link) => link,
            Err(reason) => {
                self.actions.push(Action::Disconnect { peer: new.id, reason: reason.to_owned() });
                return;
            }
        };
        // A block that is older than the connection is not announced to it.
        self.note_chain();
        let nonce = self.new_nonce();
        let connection = Connection {
            kind: new.kind,
            endpoint: new.endpoint,
            services: link.address.services,
            permissions: new.permissions,
            is_proxied: self.settings.connect.proxies.is_proxy(&new.endpoint.addr),
            is_onion: new.is_onion,
            nonce,
        };
        let name = link.name.clone();
        self.peers.insert(new.id, Known::new(new.id, Peer::new(connection, now), (new.traffic, new.memory), link));
        match (new.kind.is_inbound(), self.switches.has_ips()) {
            (true, _) => self.log(format!("connection from {} accepted", new.endpoint)),
            (false, true) => self.log(format!("Added connection to {name} peer={}", new.id)),
            (false, false) => self.log(format!("Added connection peer={}", new.id)),
        }
        if !new.kind.is_inbound() {
            self.own_nonces.insert(nonce);
        }
        self.talk(new.id, |talk, context, out| talk.begin(context, out));
        self.settle(new.id);
    }

    /// A connection ended, whoever ended it.
    pub fn disconnected(&mut self, id: PeerId, now: Moment) {
        self.now = now;
        if let Some(peer) = self.peers.remove(&id) {
            self.own_nonces.remove(&peer.talk.connection.nonce);
            self.protected_peers -= usize::from(peer.chain_sync.is_protected);
            if peer.talk.updates_addrman_at_end() {
                self.addrman.connected(&peer.talk.connection.endpoint, now.unix);
            }
            self.forget_downloads(id);
            self.log(format!("Cleared nodestate for peer={id}"));
            self.reconnect(id, peer.kind(), peer.link);
        }
        self.request_blocks();
    }

    /// A message came. Whoever calls does not call again for this peer while what it has to be sent does not go out.
    pub fn received(&mut self, id: PeerId, command: Command, payload: Vec<u8>, now: Moment) {
        self.now = now;
        if self.peers.get(&id).is_some_and(|peer| !peer.is_leaving) {
            self.receive(id, command, payload);
            self.settle(id);
        }
    }

    /// Some bytes of a message came, and more are to come: a block that is large on a link that is slow is no stall. May be told now and then only.
    pub fn progressed(&mut self, id: PeerId, bytes: u64, now: Moment) {
        self.now = now;
        self.with(id, |peer| peer.talk.note_received(now));
        if self.peers.get(&id).is_some_and(|peer| !peer.in_flight.is_empty()) {
            self.download.progress(DownloadPeer(id.0), bytes, now.elapsed);
        }
    }

    /// Time passed: at least ten times a second.
    pub fn tick(&mut self, now: Moment) {
        self.now = now;
        self.addrman.set_logged(self.switches.is_on(log::ADDRMAN));
        let ids: Vec<_> = self.peers.keys().copied().collect();
        for id in ids {
            self.look_after(id);
            self.note_common_block(id);
            self.settle(id);
        }
        self.charge_peers();
        self.judge_requests_aside();
        self.upload.note(self.traffic.sent(), now.unix);
        self.tend_connections();
        self.request_blocks();
    }

    /// What is remembered of a new connection, or why it must not be.
    fn link(&mut self, new: &NewPeer) -> Result<Link, &'static str> {
        let mut link = match new.attempt {
            Some(attempt) => self.take_attempt(attempt, new.endpoint).ok_or("it is not wanted any more")?,
            None if new.kind.is_inbound() => self.admit(new)?,
            // Made by somebody else.
            None => Link::unnamed(new.endpoint),
        };
        (link.local, link.is_onion) = (new.local, new.is_onion);
        link.keyed_netgroup = self.secret.keyed_netgroup(&new.endpoint.addr);
        Ok(link)
    }

    /// Ends a connection. Nothing of it is read any more.
    fn end_connection(&mut self, id: PeerId, reason: impl Into<String>) {
        if let Some(peer) = self.peers.get_mut(&id)
            && !peer.is_leaving
        {
            peer.is_leaving = true;
            // What it was asked for is asked of others at once: its socket may take a while to close.
            (peer.in_flight, peer.partials) = Default::default();
            self.forget_downloads(id);
            self.actions.push(Action::Disconnect { peer: id, reason: reason.into() });
        }
    }

    /// Core's `Misbehaving`: takes effect once the message is dealt with.
    fn misbehaving(&mut self, id: PeerId, what: &str) {
        let what = if what.is_empty() { String::new() } else { format!(": {what}") };
        self.log(format!("Misbehaving: peer={id}{what}"));
        self.with(id, |peer| peer.should_discourage = true);
    }

    /// After everything that may have changed a peer: Core's `MaybeDiscourageAndDisconnect`.
    fn settle(&mut self, id: PeerId) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        if !std::mem::take(&mut peer.should_discourage) {
            return;
        }
        let (punishment, endpoint) = (peer.talk.punishment(), peer.talk.connection.endpoint);
        let (is_noban, is_onion) = (peer.may(Permissions::NO_BAN), peer.talk.connection.is_onion);
        match punishment {
            Punishment::None if is_noban => self.say(LogLevel::Warning, format!("Not punishing noban peer {id}!")),
            Punishment::None => self.say(LogLevel::Warning, format!("Not punishing manually connected peer {id}!")),
            Punishment::Disconnect => {
                let kind = if is_onion { "inbound onion" } else { "local" };
                self.log(format!("Warning: disconnecting but not discouraging {kind} peer {id}!"));
                self.end_connection(id, "misbehaving");
            }
            Punishment::DisconnectAndDiscourage => {
                self.log(format!("Disconnecting and discouraging peer {id}!"));
                self.bans.discourage(&endpoint.addr);
                self.end_connection(id, "misbehaving, discouraged");
            }
        }
    }

    fn process(&mut self, id: PeerId, message: Message) {
        if self.is_loading() && self.is_ignored_while_loading(id, &message) {
            return;
        }
        match message {
            Message::Headers(headers) => self.take_headers(id, &headers),
            Message::Block(bytes) => self.take_block(id, bytes),
            Message::CmpctBlock(compact) => self.take_compact(id, &compact),
            Message::BlockTxn(answer) => self.take_block_transactions(id, &answer),
            Message::Inv(inventory) => self.take_inv(id, &inventory),
            Message::NotFound(inventory) => self.take_notfound(id, &inventory),
            Message::GetHeaders(request) => self.serve_headers(id, &request),
            Message::GetBlocks(request) => self.serve_inv(id, &request),
            Message::GetData(inventory) => self.serve_data(id, inventory),
            Message::GetBlockTxn(request) => self.serve_block_transactions(id, request),
            Message::FeeFilter(fee) => self.take_fee_filter(id, fee),
            // Filters and what else comes with a mempool or an index.
            _ => {}
        }
    }

    fn with(&mut self, id: PeerId, change: impl FnOnce(&mut Known)) {
        if let Some(peer) = self.peers.get_mut(&id) {
            change(peer);
        }
    }

    fn place(&self, id: NodeId) -> Place {
        self.engine.with_tree(|tree| {
            let node = tree.node(id);
            Place { id, hash: node.hash, height: node.height, work: node.chain_work, time: node.header.time }
        })
    }

    fn tip(&self) -> Place {
        self.place(self.engine.with_tree(|tree| tree.tip()))
    }

    fn best_header(&self) -> Place {
        self.place(self.engine.with_tree(|tree| tree.best_header()))
    }

    /// Core's `CanDirectFetch`: the tip is of the last hours.
    fn can_fetch_directly(&self) -> bool {
        self.tip_age() < 20 * self.settings.params.pow_target_spacing
    }

    /// Core's `IsInitialBlockDownload`.
    fn is_initial_download(&self) -> bool {
        self.settings.initial_download.is_on()
    }

    /// Core's `LoadingBlocks`: blocks of the disk are being imported and validated.
    fn is_loading(&self) -> bool {
        self.settings.initial_download.is_loading()
    }

    /// Core's checks of `LoadingBlocks` in `ProcessMessage`, with its words.
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
        self.log(text);
        true
    }

    /// Core's `UpdateIBDStatus`: once for each tip. A time that is set back does not make an old tip a recent one.
    fn note_tip(&mut self, tip: NodeId) {
        if self.is_loading() || self.noted_tip == Some(tip) {
            return;
        }
        self.noted_tip = Some(tip);
        let (tip, now) = (self.place(tip), i64::try_from(self.now.unix.0).unwrap_or(i64::MAX));
        if self.settings.initial_download.note_tip(tip.time, tip.work, now) {
            self.tell(INITIAL_DOWNLOAD_OVER.to_owned());
        }
    }
}
