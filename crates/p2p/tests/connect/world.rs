//! [`World`]: a node without sockets, with peers that a test controls: whether they accept connections, complete the
//! handshake, answer pings.

use lydian_consensus::{Chain, Params, U256};
use lydian_disk::SimDisk;
use lydian_engine::{Engine, InitialDownload, Layout, LogLine, Settings, TIP_AGE_SECONDS_DEFAULT};
use lydian_mempool::policy::Settings as PoolSettings;
use lydian_mempool::{Clock, Mempool, Secrets};
use lydian_p2p::driver::{self, Delivery, Event, Outside};
use lydian_p2p::manager::{
    AttemptFailure, AttemptId, ConnectSettings, LookupId, ManagerSettings, NewPeer, PeerId, PeerManager, SavedFile,
};
use lydian_p2p::outgoing::Outgoing;
use lydian_p2p::peer::{ConnectionKind, Local, Permissions};
use lydian_p2p::proxies::Target;
use lydian_p2p::submission::Submission;
use lydian_p2p::{AddrMan, Bans, Moment, PeerMemory, UnixTime};
use lydian_wire::message::{PROTOCOL_VERSION, Version};
use lydian_wire::{Endpoint, Inv, InvType, Message, NetAddr, Network, Services, TimedAddress};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub(crate) const FULL: ConnectionKind = ConnectionKind::OutboundFullRelay;
pub(crate) const BLOCKS: ConnectionKind = ConnectionKind::BlockRelayOnly;
pub(crate) const FEELER: ConnectionKind = ConnectionKind::Feeler;
pub(crate) const MANUAL: ConnectionKind = ConnectionKind::Manual;
pub(crate) const FETCH: ConnectionKind = ConnectionKind::AddrFetch;

/// A connection attempt and its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tried {
    pub(crate) at: Duration,
    pub(crate) id: AttemptId,
    pub(crate) kind: ConnectionKind,
    pub(crate) target: String,
    pub(crate) v2: bool,
}

/// Which targets accept connections.
#[derive(Clone, Debug)]
pub(crate) enum Answers {
    Everybody,
    Nobody,
    Only(BTreeSet<String>),
    /// Attempts hang until the test ends them.
    Later,
}

pub(crate) struct World {
    pub(crate) manager: PeerManager,
    start: u64,
    pub(crate) elapsed: Duration,
    next_peer: u64,
    genesis: lydian_primitives::BlockHash,
    pub(crate) answers: Answers,
    pub(crate) services: Services,
    /// The answer of peers to `getaddr`.
    pub(crate) told: Vec<TimedAddress>,
    pub(crate) names: BTreeMap<String, Vec<NetAddr>>,
    pub(crate) standing: BTreeMap<PeerId, (ConnectionKind, Endpoint)>,
    pub(crate) tried: Vec<Tried>,
    /// The targets of the attempts.
    pub(crate) targets: Vec<Target>,
    pub(crate) resolved: Vec<String>,
    pub(crate) ended: Vec<(PeerId, String)>,
    pub(crate) saved: Vec<(SavedFile, Vec<u8>)>,
    pub(crate) log: Vec<String>,
}

impl World {
    pub(crate) fn new(connect: ConnectSettings) -> World {
        World::of(Chain::Regtest, 1_790_000_000, connect)
    }

    /// A node that makes automatic connections, with `count` addresses in different netgroups.
    pub(crate) fn choosing(count: u32, change: impl FnOnce(&mut ConnectSettings)) -> World {
        let mut connect = ConnectSettings { chooses_peers: true, ..settings() };
        change(&mut connect);
        let mut world = World::new(connect);
        world.know(count);
        world
    }

    /// A minute after the genesis block of regtest: the chain is synced.
    pub(crate) fn synced(count: u32) -> World {
        let genesis = 1_296_688_602;
        let mut world = World::of(Chain::Regtest, genesis + 60, ConnectSettings { chooses_peers: true, ..settings() });
        world.know(count);
        world
    }

    pub(crate) fn of(chain: Chain, start: u64, connect: ConnectSettings) -> World {
        World::reaching([Network::Ipv4, Network::Ipv6].into(), chain, start, connect)
    }

    pub(crate) fn reaching(reachable: BTreeSet<Network>, chain: Chain, start: u64, connect: ConnectSettings) -> World {
        let params = Params::new(chain);
        let root = Path::new("node");
        let layout =
            Layout { blocks: root.join("blocks"), index: root.join("blocks/index"), coins: root.join("chainstate") };
        let disk = Arc::new(SimDisk::new(1));
        let engine = Engine::open(disk, &layout, params.clone(), Settings::new(1), Vec::new()).unwrap().engine;
        let settings = ManagerSettings {
            params,
            minimum_chain_work: U256::ZERO,
            initial_download: Arc::new(InitialDownload::new(U256::ZERO, TIP_AGE_SECONDS_DEFAULT)),
            blocks_only: false,
            local: Local {
                services: Services::NETWORK | Services::WITNESS,
                user_agent: b"/Lydian/".to_vec(),
                ignores_transactions: true,
                peer_timeout: Duration::from_secs(60),
                own: lydian_p2p::local_address::LocalAddresses::default(),
            },
            reachable,
            download_bytes: 1 << 20,
            seed: [3; 32],
            connect,
        };
        let mut random = ChaCha20Rng::seed_from_u64(1);
        let (addrman, bans) = (AddrMan::new(&mut random), Bans::new(24 * 60 * 60, &mut random));
        let genesis = engine.tip().hash;
        World {
            manager: PeerManager::new(Arc::new(engine), settings, addrman, bans, mempool()),
            start,
            elapsed: Duration::from_secs(1),
            next_peer: 0,
            genesis,
            answers: Answers::Everybody,
            services: Services::NETWORK | Services::WITNESS,
            told: Vec::new(),
            names: BTreeMap::new(),
            standing: BTreeMap::new(),
            tried: Vec::new(),
            targets: Vec::new(),
            resolved: Vec::new(),
            ended: Vec::new(),
            saved: Vec::new(),
            log: Vec::new(),
        }
    }

    pub(crate) fn now(&self) -> Moment {
        Moment::new(self.elapsed, UnixTime(self.start + self.elapsed.as_secs()))
    }

    pub(crate) fn know(&mut self, count: u32) {
        let now = self.now().unix;
        for number in 0..count {
            let address = address(number, now);
            self.manager.addrman_mut().add(&[address], &address.endpoint.addr, 0, now);
        }
    }

    /// Advances the time in steps of 100 ms.
    pub(crate) fn run(&mut self, seconds: u64) {
        for _ in 0..seconds * 10 {
            self.elapsed += Duration::from_millis(100);
            driver::drive(self, Event::Tick);
        }
    }

    /// Executes the manager's actions.
    pub(crate) fn act(&mut self) {
        driver::act(self);
    }

    pub(crate) fn fail(&mut self, attempt: AttemptId) {
        let failure = AttemptFailure::Target { reason: "refused".to_owned() };
        driver::take(self, Event::AttemptFailed { attempt, failure });
    }

    /// The target of an attempt accepts the connection.
    pub(crate) fn succeed(&mut self, tried: &Tried) {
        let endpoint = Endpoint::parse(&tried.target, 8333).unwrap();
        self.connected(tried.kind, endpoint, Permissions::NONE, Some(tried.id));
    }

    /// The target accepts the connection at an address that is not in its text.
    pub(crate) fn answer_at(&mut self, tried: &Tried, endpoint: Endpoint) {
        self.connected(tried.kind, endpoint, Permissions::NONE, Some(tried.id));
        self.act();
    }

    /// A peer connects to the node.
    pub(crate) fn come(&mut self, endpoint: &str, permissions: Permissions) -> PeerId {
        let endpoint = Endpoint::parse(endpoint, 5555).unwrap();
        let id = self.connected(ConnectionKind::Inbound, endpoint, permissions, None);
        self.send_message(id, &self.version());
        self.act();
        id
    }

    fn connected(
        &mut self,
        kind: ConnectionKind,
        endpoint: Endpoint,
        permissions: Permissions,
        attempt: Option<AttemptId>,
    ) -> PeerId {
        let id = PeerId(self.next_peer);
        self.next_peer += 1;
        self.standing.insert(id, (kind, endpoint));
        let local = Endpoint::new(NetAddr::Ipv4([127, 0, 0, 1].into()), 8333);
        let new = NewPeer {
            id,
            kind,
            endpoint,
            permissions,
            is_onion: false,
            attempt,
            local,
            v2: true,
            traffic: Arc::default(),
            memory: PeerMemory::default(),
        };
        driver::take(self, Event::Connected(new));
        id
    }

    pub(crate) fn end(&mut self, peer: PeerId) {
        if self.standing.remove(&peer).is_some() {
            driver::take(self, Event::Disconnected { peer, wants_v1: false });
        }
    }

    fn version(&self) -> Message {
        Message::Version(Box::new(Version {
            version: PROTOCOL_VERSION,
            services: self.services,
            time: i64::try_from(self.now().unix.0).unwrap(),
            receiver_services: Services::NONE,
            receiver: Endpoint::default(),
            nonce: 77,
            user_agent: b"/peer/".to_vec(),
            start_height: 0,
            relay: true,
        }))
    }

    fn send_message(&mut self, from: PeerId, message: &Message) {
        let charge = PeerMemory::default().charge_received(0);
        let (command, payload) = (message.command(), message.payload());
        driver::take(self, Event::Message { from, command, payload, charge });
    }

    fn answer(&mut self, to: PeerId, message: &Message) {
        let Some((kind, _)) = self.standing.get(&to).copied() else { return };
        match message {
            Message::Version(_) if !kind.is_inbound() => {
                let version = self.version();
                self.send_message(to, &version);
            }
            Message::Verack => {
                self.send_message(to, &Message::SendAddrV2);
                self.send_message(to, &Message::Verack);
                // So that it is not treated as a peer with too little work.
                let genesis = Inv::block(InvType::BLOCK, self.genesis);
                self.send_message(to, &Message::Inv(vec![genesis]));
            }
            Message::Ping(nonce) => self.send_message(to, &Message::Pong(*nonce)),
            Message::GetAddr if !self.told.is_empty() => {
                let told = self.told.clone();
                self.send_message(to, &Message::AddrV2(told));
            }
            _ => {}
        }
    }

    pub(crate) fn count(&self, kind: ConnectionKind) -> usize {
        self.standing.values().filter(|(other, _)| *other == kind).count()
    }

    pub(crate) fn tried_of(&self, kind: ConnectionKind) -> Vec<String> {
        self.tried.iter().filter(|tried| tried.kind == kind).map(|tried| tried.target.clone()).collect()
    }

    /// Returns the times of the attempts in seconds, the first one at 0.
    pub(crate) fn seconds(&self) -> Vec<f64> {
        let first = self.tried.first().map_or(Duration::ZERO, |tried| tried.at);
        self.tried.iter().map(|tried| (tried.at - first).as_secs_f64()).collect()
    }
}

impl Outside for World {
    fn manager(&mut self) -> &mut PeerManager {
        &mut self.manager
    }

    fn now(&self) -> Moment {
        World::now(self)
    }

    fn push(&mut self, to: PeerId, item: Outgoing) {
        match item {
            Outgoing::Message(message) => self.answer(to, &message),
            Outgoing::End { reason } => {
                self.ended.push((to, reason));
                self.end(to);
            }
            Outgoing::Block { .. } | Outgoing::Compact { .. } | Outgoing::Transactions(_) | Outgoing::Filters(_) => {}
        }
    }

    fn dial(&mut self, attempt: AttemptId, kind: ConnectionKind, target: Target, v2: bool) {
        let tried = Tried { at: self.elapsed, id: attempt, kind, target: target.to_string(), v2 };
        self.tried.push(tried.clone());
        self.targets.push(target.clone());
        match &self.answers {
            Answers::Everybody => self.succeed(&tried),
            Answers::Only(some) if some.contains(&tried.target) => self.succeed(&tried),
            Answers::Later => {}
            Answers::Nobody | Answers::Only(_) => self.fail(attempt),
        }
        assert!(matches!(target, Target::Endpoint(_)) || self.ended.is_empty());
    }

    fn resolve(&mut self, lookup: LookupId, host: String, count_max: usize) {
        let mut addresses = self.names.get(&host).cloned().unwrap_or_default();
        addresses.truncate(count_max);
        self.resolved.push(host);
        driver::take(self, Event::Resolved { lookup, addresses });
    }

    fn save(&mut self, file: SavedFile, bytes: Vec<u8>) {
        self.saved.push((file, bytes));
    }

    fn log(&mut self, line: LogLine) {
        self.log.push(line.text);
    }

    fn submit(&mut self, submission: Submission) -> Result<(), Submission> {
        Err(submission)
    }

    fn queued_bytes(&self, _: PeerId) -> Option<usize> {
        Some(0)
    }

    fn queue_block(&mut self, _: Delivery) -> Result<(), Delivery> {
        // No peer of these tests sends blocks.
        Ok(())
    }
}

/// Settings without automatic connections.
pub(crate) fn settings() -> ConnectSettings {
    ConnectSettings { default_port: 8333, ..ConnectSettings::default() }
}

/// Each address is in its own netgroup.
pub(crate) fn address(number: u32, now: UnixTime) -> TimedAddress {
    let endpoint = Endpoint::new(NetAddr::Ipv4((0x0b00_0007 + (number << 16)).into()), 8333);
    let services = Services::NETWORK | Services::WITNESS | Services::P2P_V2;
    TimedAddress { time: now.to_u32(), services, endpoint }
}

/// A mempool that is not started.
fn mempool() -> Arc<Mempool> {
    #[derive(Debug)]
    struct Still;

    impl Clock for Still {
        fn unix_seconds(&self) -> i64 {
            0
        }
    }
    Arc::new(Mempool::new(PoolSettings::default(), Arc::new(Still), Secrets { salt: [1; 32], seed: 1 }))
}
