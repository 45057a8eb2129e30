//! [`Bench`]: a node without sockets. Its actions are executed immediately: blocks are stored and validated as by the
//! threads of a node, unless a test delays that.

use crate::chain::{Made, block_on};
use lydian_consensus::{Chain, Params, Rejected, Rule, U256};
use lydian_disk::SimDisk;
use lydian_engine::{Cancel, Engine, InitialDownload, Layout, Settings, TIP_AGE_SECONDS_DEFAULT, Unobserved};
use lydian_p2p::manager::{
    Action, ConnectSettings, ManagerSettings, NewPeer, PeerId, PeerManager, SavedFile, StoreOutcome,
};
use lydian_p2p::peer::{ConnectionKind, Local, Permissions};
use lydian_p2p::{AddrMan, Bans, Moment, UnixTime};
use lydian_primitives::{BlockHash, Header, RawBlock};
use lydian_wire::message::{CMPCTBLOCKS_VERSION, PROTOCOL_VERSION, SendCmpct, Version, block_size};
use lydian_wire::{BlockTransactions, Endpoint, Inv, InvType, Message, NetAddr, Network, Services};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub(crate) const START: u32 = 1_790_000_000;

/// A block to be stored.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) from: PeerId,
    pub(crate) hash: BlockHash,
    pub(crate) bytes: Vec<u8>,
}

pub(crate) struct Bench {
    pub(crate) engine: Arc<Engine>,
    pub(crate) manager: PeerManager,
    pub(crate) elapsed: Duration,
    /// The time set by `setmocktime`, in seconds since 1970.
    pub(crate) mocked: Option<u64>,
    sent: BTreeMap<PeerId, Vec<Message>>,
    /// Blocks to be sent, with or without witnesses.
    pub(crate) served: Vec<(PeerId, BlockHash, bool)>,
    pub(crate) served_compact: Vec<(PeerId, BlockHash)>,
    pub(crate) ended: BTreeMap<PeerId, String>,
    /// Files to be written.
    pub(crate) saved: Vec<SavedFile>,
    pub(crate) log: Vec<String>,
    /// Blocks are not stored until [`Bench::store`] is called.
    pub(crate) holds_back: bool,
    pub(crate) deliveries: Vec<Delivery>,
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
        let opened = Engine::open(disk, &layout, params.clone(), Settings::new(1), Vec::new()).unwrap();
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
            manager: PeerManager::new(Arc::clone(&engine), settings, addrman, bans),
            engine,
            elapsed: Duration::from_secs(1),
            mocked: None,
            sent: BTreeMap::new(),
            served: Vec::new(),
            served_compact: Vec::new(),
            ended: BTreeMap::new(),
            saved: Vec::new(),
            log: Vec::new(),
            holds_back: false,
            deliveries: Vec::new(),
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
        self.manager.chain_changed(self.now());
        self.act();
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
        let (is_onion, traffic, memory) = (false, Arc::default(), lydian_p2p::PeerMemory::default());
        let new = NewPeer { id, kind, endpoint, permissions, is_onion, attempt, local, v2, traffic, memory };
        self.manager.connected(new, self.now());
        self.act();
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
        self.manager.received(from, message.command(), message.payload(), self.now());
        self.act();
    }

    pub(crate) fn announce(&mut self, from: PeerId, headers: &[Header]) {
        self.send(from, Message::Headers(headers.to_vec()));
    }

    /// Advances the time in steps of 100 ms.
    pub(crate) fn wait(&mut self, time: Duration) {
        let end = self.elapsed + time;
        while self.elapsed < end {
            self.elapsed += Duration::from_millis(100);
            self.manager.chain_changed(self.now());
            self.manager.tick(self.now());
            self.act();
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

    /// Calls the manager as an RPC method does.
    pub(crate) fn ask(&mut self, question: impl FnOnce(&mut PeerManager, Moment)) {
        let now = self.now();
        question(&mut self.manager, now);
        self.act();
    }

    pub(crate) fn act(&mut self) {
        loop {
            let actions = self.manager.take_actions();
            if actions.is_empty() {
                return;
            }
            actions.into_iter().for_each(|action| self.carry_out(action));
            if !self.holds_back {
                self.store();
            }
        }
    }

    fn carry_out(&mut self, action: Action) {
        match action {
            Action::Send { to, message } => self.sent.entry(to).or_default().push(message),
            Action::SendBlock { to, hash, with_witness } => self.served.push((to, hash, with_witness)),
            Action::SendCompact { to, hash, .. } => self.served_compact.push((to, hash)),
            Action::SendBlockTransactions { to, request } => {
                let info = self.engine.header_info(&request.block_hash).unwrap();
                let block = self.engine.block(&info).unwrap().unwrap();
                match BlockTransactions::new(&block, &request) {
                    Some(answer) => self.sent.entry(to).or_default().push(Message::BlockTxn(answer)),
                    None => self.manager.bad_transactions_request(to, self.now()),
                }
            }
            Action::Disconnect { peer, reason } => {
                self.ended.insert(peer, reason);
                self.manager.disconnected(peer, self.now());
            }
            Action::Store { from, hash, bytes } => self.deliveries.push(Delivery { from, hash, bytes }),
            Action::Log(line) => self.log.push(line.text),
            Action::Save { file, .. } => self.saved.push(file),
            Action::Connect { .. } | Action::Resolve { .. } => {}
        }
    }

    /// Stores and validates the delivered blocks.
    pub(crate) fn store(&mut self) {
        for Delivery { from, hash, bytes } in std::mem::take(&mut self.deliveries) {
            let outcome = self.outcome(bytes);
            self.manager.block_stored(from, &hash, &outcome, self.now());
            let advance = self.engine.advance(&Cancel::new(), &Unobserved).unwrap();
            for (hash, violation) in advance.invalid {
                self.manager.block_invalid(&hash, &violation.to_string(), self.now());
            }
            self.manager.chain_changed(self.now());
        }
        let is_held = std::mem::replace(&mut self.holds_back, true);
        self.act();
        self.holds_back = is_held;
        if !self.deliveries.is_empty() && !is_held {
            self.store();
        }
    }

    pub(crate) fn outcome(&self, mut bytes: Vec<u8>) -> StoreOutcome {
        match block_size(&bytes) {
            Ok(size) => bytes.truncate(size),
            Err(error) => return StoreOutcome::Malformed { reason: error.to_string() },
        }
        let block = match RawBlock::new(bytes).parse() {
            Ok(block) => block,
            Err(error) => return StoreOutcome::Malformed { reason: error.to_string() },
        };
        match self.engine.store_block(block, self.unix()).unwrap() {
            Ok(_) => StoreOutcome::Stored,
            Err(Rejected::Duplicate) => StoreOutcome::Known,
            Err(Rejected::DuplicateInvalid) => StoreOutcome::KnownInvalid { reason: "duplicate-invalid".to_owned() },
            Err(Rejected::Violation(violation)) => match violation.rule {
                Rule::TimeTooNew => StoreOutcome::TooEarly,
                rule => StoreOutcome::Invalid { reason: violation.to_string(), is_mutated: rule.is_of_the_bytes() },
            },
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
