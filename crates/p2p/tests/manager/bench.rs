//! [`Bench`]: a node without sockets. Its actions are executed immediately: blocks are stored and validated as by the
//! threads of a node, unless a test delays that.

use crate::chain::{Made, block_on};
use lydian_consensus::{Chain, Params, U256};
use lydian_disk::SimDisk;
use lydian_engine::{Cancel, Engine, InitialDownload, Layout, LogLine, Settings, TIP_AGE_SECONDS_DEFAULT, Unobserved};
use lydian_mempool::policy::Settings as PoolSettings;
use lydian_mempool::{Clock, Mempool, Secrets};
use lydian_p2p::driver::{self, Delivery, Event, Outside};
use lydian_p2p::filters::FilterRequest;
use lydian_p2p::manager::{
    AttemptId, ConnectSettings, LookupId, ManagerSettings, NewPeer, PeerId, PeerManager, Question, Reply, SavedFile,
};
use lydian_p2p::outgoing::{Outgoing, Ready};
use lydian_p2p::peer::{ConnectionKind, Local, Permissions};
use lydian_p2p::proxies::Target;
use lydian_p2p::submission::Submission;
use lydian_p2p::{AddrMan, Bans, Moment, PeerMemory, UnixTime};
use lydian_primitives::{BlockHash, Header};
use lydian_wire::message::{CMPCTBLOCKS_VERSION, PROTOCOL_VERSION, SendCmpct, Version};
use lydian_wire::{Endpoint, Inv, InvType, Message, NetAddr, Network, Services};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

pub(crate) const START: u32 = 1_790_000_000;

/// The clock of the mempool, which the bench sets.
#[derive(Debug)]
struct PoolClock(AtomicI64);

impl Clock for PoolClock {
    fn unix_seconds(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

pub(crate) struct Bench {
    pub(crate) engine: Arc<Engine>,
    pub(crate) manager: PeerManager,
    pub(crate) mempool: Arc<Mempool>,
    clock: Arc<PoolClock>,
    pub(crate) elapsed: Duration,
    /// The time set by `setmocktime`, in seconds since 1970.
    pub(crate) mocked: Option<u64>,
    sent: BTreeMap<PeerId, Vec<Message>>,
    /// Blocks to be sent, with or without witnesses.
    pub(crate) served: Vec<(PeerId, BlockHash, bool)>,
    pub(crate) served_compact: Vec<(PeerId, BlockHash)>,
    /// Requests for block filters that are answered.
    pub(crate) filters: Vec<(PeerId, FilterRequest)>,
    pub(crate) ended: BTreeMap<PeerId, String>,
    /// Files to be written.
    pub(crate) saved: Vec<SavedFile>,
    pub(crate) log: Vec<String>,
    /// Blocks are not stored until [`Bench::store`] is called.
    pub(crate) holds_back: bool,
    pub(crate) deliveries: Vec<Delivery>,
    /// The maximum number of blocks that wait to be stored.
    pub(crate) deliveries_max: usize,
    /// Transactions are not decided until [`Bench::decide`] is called.
    pub(crate) holds_verdicts: bool,
    pub(crate) submissions: VecDeque<Submission>,
    /// The maximum number of submissions that wait.
    pub(crate) submissions_max: usize,
    /// Peers whose send queues are full.
    pub(crate) full: BTreeSet<PeerId>,
    pub(crate) chain: Vec<Made>,
    peers: u64,
}

impl Bench {
    pub(crate) fn new() -> Bench {
        Bench::with(|_| {})
    }

    /// A regtest node with only the genesis block.
    pub(crate) fn with(change: impl FnOnce(&mut ManagerSettings)) -> Bench {
        let params = Params::new(Chain::Regtest);
        let root = Path::new("node");
        let layout = Layout {
            blocks: root.join("blocks"),
            index: root.join("blocks").join("index"),
            coins: root.join("chainstate"),
        };
        let disk = Arc::new(SimDisk::new(1));
        let clock = Arc::new(PoolClock(AtomicI64::new(i64::from(START))));
        let secrets = Secrets { salt: [1; 32], seed: 1 };
        let policy = PoolSettings { require_standard: false, ..PoolSettings::default() };
        let mempool = Arc::new(Mempool::new(policy, Arc::<PoolClock>::clone(&clock), secrets));
        let opened = Engine::open(disk, &layout, params.clone(), Settings::new(1), vec![mempool.follower()]).unwrap();
        let engine = Arc::new(opened.engine);
        let mut settings = ManagerSettings {
            params,
            minimum_chain_work: U256::ZERO,
            initial_download: Arc::new(InitialDownload::new(U256::ZERO, TIP_AGE_SECONDS_DEFAULT)),
            blocks_only: false,
            local: Local {
                services: Services::NETWORK | Services::WITNESS | Services::NETWORK_LIMITED,
                user_agent: b"/Satoshi:31.0.0/Lydian:0.1.0/".to_vec(),
                ignores_transactions: true,
                peer_timeout: Duration::from_secs(60),
                own: lydian_p2p::local_address::LocalAddresses::default(),
            },
            reachable: [Network::Ipv4, Network::Ipv6].into(),
            download_bytes: 64 << 20,
            seed: [7; 32],
            connect: ConnectSettings::default(),
        };
        change(&mut settings);
        let mut random = ChaCha20Rng::seed_from_u64(1);
        let (addrman, bans) = (AddrMan::new(&mut random), Bans::new(24 * 60 * 60, &mut random));
        Bench {
            manager: PeerManager::new(Arc::clone(&engine), settings, addrman, bans, Arc::clone(&mempool)),
            mempool,
            clock,
            engine,
            elapsed: Duration::from_secs(1),
            mocked: None,
            sent: BTreeMap::new(),
            served: Vec::new(),
            served_compact: Vec::new(),
            filters: Vec::new(),
            ended: BTreeMap::new(),
            saved: Vec::new(),
            log: Vec::new(),
            holds_back: false,
            deliveries: Vec::new(),
            deliveries_max: usize::MAX,
            holds_verdicts: false,
            submissions: VecDeque::new(),
            submissions_max: usize::MAX,
            full: BTreeSet::new(),
            chain: Vec::new(),
            peers: 0,
        }
    }

    /// A node with a recent chain.
    pub(crate) fn synced(blocks: u32) -> Bench {
        let mut bench = Bench::new();
        bench.grow(blocks);
        bench
    }

    pub(crate) fn now(&self) -> Moment {
        match self.mocked {
            None => Moment::new(self.elapsed, UnixTime(u64::from(START) + self.elapsed.as_secs())),
            Some(unix) => Moment { elapsed: self.elapsed, mockable: Duration::from_secs(unix), unix: UnixTime(unix) },
        }
    }

    fn unix(&self) -> i64 {
        i64::try_from(self.now().unix.0).unwrap()
    }

    /// Returns hash, height and time for a block on top of the tip.
    pub(crate) fn tip(&self) -> (BlockHash, u32, u32) {
        let tip = self.engine.tip_info();
        (tip.node.hash, tip.node.height.0, tip.node.header.time + 1)
    }

    pub(crate) fn tip_hash(&self) -> BlockHash {
        self.tip().0
    }

    /// Adds blocks that no peer sent, the last of them a minute old.
    pub(crate) fn grow(&mut self, blocks: u32) {
        for left in (0..blocks).rev() {
            let (hash, height, _) = self.tip();
            let made = block_on((hash, height, START - 60 - left * 2), 0, Vec::new());
            self.engine.store_block(made.parsed(), self.unix()).unwrap().unwrap();
            self.engine.advance(&Cancel::new(), &Unobserved).unwrap();
            self.chain.push(made);
        }
        self.drive(Event::ChainChanged);
    }

    /// Connects a peer that supports compact blocks, with a completed handshake.
    pub(crate) fn connect(&mut self, kind: ConnectionKind) -> PeerId {
        self.connect_with(kind, Permissions::NONE, Some(false))
    }

    pub(crate) fn connect_with(
        &mut self,
        kind: ConnectionKind,
        permissions: Permissions,
        high_bandwidth: Option<bool>,
    ) -> PeerId {
        let id = self.greet(kind, permissions, |_| {});
        if let Some(high_bandwidth) = high_bandwidth {
            self.send(id, Message::SendCmpct(SendCmpct { high_bandwidth, version: CMPCTBLOCKS_VERSION }));
        }
        id
    }

    /// Connects a peer whose `version` message the test changes.
    pub(crate) fn connect_with_version(&mut self, kind: ConnectionKind, change: impl FnOnce(&mut Version)) -> PeerId {
        self.greet(kind, Permissions::NONE, change)
    }

    /// Connects a peer whose clock is ahead.
    pub(crate) fn connect_at(&mut self, kind: ConnectionKind, ahead_s: i64) -> PeerId {
        let id = self.greet(kind, Permissions::NONE, |version| version.time += ahead_s);
        self.send(id, Message::SendCmpct(SendCmpct { high_bandwidth: false, version: CMPCTBLOCKS_VERSION }));
        id
    }

    fn greet(&mut self, kind: ConnectionKind, permissions: Permissions, change: impl FnOnce(&mut Version)) -> PeerId {
        let id = self.open(kind, permissions);
        self.shake_hands(id, change);
        id
    }

    /// Opens a connection without a handshake.
    pub(crate) fn open(&mut self, kind: ConnectionKind, permissions: Permissions) -> PeerId {
        let id = PeerId(self.peers);
        self.peers += 1;
        let byte = u8::try_from(self.peers).unwrap();
        let endpoint = Endpoint::new(NetAddr::Ipv4([byte, 2, 3, 4].into()), 8333);
        let (attempt, local, v2) = (None, Endpoint::default(), false);
        let (is_onion, traffic, memory) = (false, Arc::default(), PeerMemory::default());
        let new = NewPeer { id, kind, endpoint, permissions, is_onion, attempt, local, v2, traffic, memory };
        self.drive(Event::Connected(new));
        id
    }

    pub(crate) fn shake_hands(&mut self, id: PeerId, change: impl FnOnce(&mut Version)) {
        let mut version = Version {
            version: PROTOCOL_VERSION,
            services: Services::NETWORK | Services::WITNESS | Services::NETWORK_LIMITED,
            time: self.unix(),
            receiver_services: Services::NONE,
            receiver: Endpoint::new(NetAddr::Ipv4([8, 8, 8, 8].into()), 8333),
            nonce: 1_000 + id.0,
            user_agent: b"/peer/".to_vec(),
            start_height: 0,
            relay: true,
        };
        change(&mut version);
        self.send(id, Message::Version(Box::new(version)));
        self.send(id, Message::WtxidRelay);
        self.send(id, Message::Verack);
    }

    /// Connects a peer like `connect`, which then announces our chain.
    pub(crate) fn connect_synced(&mut self, kind: ConnectionKind) -> PeerId {
        let id = self.connect(kind);
        let tip = self.engine.tip_info().node.header;
        self.send(id, Message::Headers(vec![tip]));
        self.take_sent(id);
        id
    }

    /// Receives a message from a peer and executes the resulting actions.
    pub(crate) fn send(&mut self, from: PeerId, message: Message) {
        self.drive(received(from, &message));
    }

    pub(crate) fn announce(&mut self, from: PeerId, headers: &[Header]) {
        self.send(from, Message::Headers(headers.to_vec()));
    }

    /// Advances the time in steps of 100 ms.
    pub(crate) fn wait(&mut self, time: Duration) {
        let end = self.elapsed + time;
        while self.elapsed < end {
            self.elapsed += Duration::from_millis(100);
            self.drive(Event::Tick);
        }
    }

    /// Advances the time by minutes, in which peers only answer pings.
    pub(crate) fn idle(&mut self, peers: &[PeerId], minutes: u64) {
        for _ in 0..minutes {
            self.elapsed += Duration::from_secs(60);
            self.wait(Duration::from_millis(100));
            for peer in peers {
                for message in self.take_sent(*peer) {
                    if let Message::Ping(nonce) = message {
                        self.send(*peer, Message::Pong(nonce));
                    }
                }
            }
        }
    }

    /// Asks the manager as an RPC method does.
    pub(crate) fn ask<T>(&mut self, question: impl FnOnce(Reply<T>) -> Question) -> T {
        let (reply, answer) = Reply::pair();
        self.drive(Event::Ask(question(reply)));
        answer.try_recv().unwrap()
    }

    /// Passes an event to the manager, and executes the resulting actions.
    pub(crate) fn drive(&mut self, event: Event) {
        driver::take(self, event);
        self.act();
    }

    pub(crate) fn act(&mut self) {
        driver::act(self);
        if !self.holds_back {
            self.store();
        }
        while !self.holds_verdicts && !self.submissions.is_empty() {
            self.decide();
        }
    }

    /// Lets the mempool decide on the first submission.
    pub(crate) fn decide(&mut self) {
        let Some(submission) = self.submissions.pop_front() else { return };
        self.clock.0.store(self.unix(), Ordering::Relaxed);
        let answer = submission.decide(&self.mempool);
        driver::drive(self, answer.into());
    }

    /// A node that relays transactions, with a chain of this many blocks.
    pub(crate) fn relaying(blocks: u32) -> Bench {
        Bench::relaying_with(blocks, |_| {})
    }

    pub(crate) fn relaying_with(blocks: u32, change: impl FnOnce(&mut ManagerSettings)) -> Bench {
        let mut bench = Bench::with(|settings| {
            settings.local.ignores_transactions = false;
            change(settings);
        });
        bench.mempool.start(Arc::clone(&bench.engine), 1).unwrap();
        bench.grow(blocks);
        bench
    }

    /// Stores and validates the delivered blocks.
    pub(crate) fn store(&mut self) {
        while !self.deliveries.is_empty() {
            for mut delivery in std::mem::take(&mut self.deliveries) {
                let stored = delivery.store(&self.engine, self.now()).unwrap();
                driver::drive(self, stored);
                let advance = self.engine.advance(&Cancel::new(), &Unobserved).unwrap();
                driver::validated(advance).for_each(|event| driver::drive(self, event));
            }
            if self.holds_back {
                return;
            }
        }
    }

    /// Returns the messages sent to a peer since the last call.
    pub(crate) fn take_sent(&mut self, to: PeerId) -> Vec<Message> {
        self.sent.remove(&to).unwrap_or_default()
    }

    /// Returns the blocks requested from it since the last call.
    pub(crate) fn take_asked(&mut self, to: PeerId) -> Vec<(InvType, BlockHash)> {
        let sent = self.take_sent(to);
        let asked = sent.into_iter().filter_map(|message| match message {
            Message::GetData(inventory) => Some(inventory),
            _ => None,
        });
        asked.flatten().map(|Inv { kind, hash }| (kind, BlockHash(hash))).collect()
    }

    pub(crate) fn is_discouraged(&self, id: PeerId) -> bool {
        self.ended.get(&id).is_some_and(|reason| reason.contains("discouraged"))
    }

    pub(crate) fn has_logged(&self, words: &str) -> bool {
        self.log.iter().any(|line| line.contains(words))
    }
}

impl Outside for Bench {
    fn manager(&mut self) -> &mut PeerManager {
        &mut self.manager
    }

    fn now(&self) -> Moment {
        Bench::now(self)
    }

    fn push(&mut self, to: PeerId, item: Outgoing) {
        match item {
            Outgoing::Message(message) => self.sent.entry(to).or_default().push(message),
            Outgoing::Block { hash, with_witness } => self.served.push((to, hash, with_witness)),
            Outgoing::Compact { hash, .. } => self.served_compact.push((to, hash)),
            Outgoing::Transactions(request) => match Outgoing::Transactions(request).ready(&self.engine) {
                Ready::Message { command, payload } => {
                    let answer = Message::decode_owned(&command, payload).unwrap();
                    self.sent.entry(to).or_default().push(answer);
                }
                Ready::BadTransactionsRequest => driver::take(self, Event::BadTransactionsRequest { from: to }),
                other => panic!("{other:?}"),
            },
            Outgoing::Filters(answer) => self.filters.push((to, answer.request)),
            Outgoing::End { reason } => {
                self.ended.insert(to, reason);
                driver::take(self, Event::Disconnected { peer: to, wants_v1: false });
            }
        }
    }

    fn dial(&mut self, _: AttemptId, _: ConnectionKind, _: Target, _: bool) {}

    fn resolve(&mut self, _: LookupId, _: String, _: usize) {}

    fn save(&mut self, file: SavedFile, _: Vec<u8>) {
        self.saved.push(file);
    }

    fn log(&mut self, line: LogLine) {
        self.log.push(line.text);
    }

    fn submit(&mut self, submission: Submission) -> Result<(), Submission> {
        if self.submissions.len() >= self.submissions_max {
            return Err(submission);
        }
        self.submissions.push_back(submission);
        Ok(())
    }

    fn queued_bytes(&self, to: PeerId) -> Option<usize> {
        (!self.full.contains(&to)).then_some(0)
    }

    fn queue_block(&mut self, block: Delivery) -> Result<(), Delivery> {
        if self.deliveries.len() >= self.deliveries_max {
            return Err(block);
        }
        self.deliveries.push(block);
        Ok(())
    }
}

/// A message from a peer, as an event.
pub(crate) fn received(from: PeerId, message: &Message) -> Event {
    let charge = PeerMemory::default().charge_received(0);
    Event::Message { from, command: message.command(), payload: message.payload(), charge }
}
