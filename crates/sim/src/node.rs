//! The node under test: the shipped manager and engine in virtual time and without threads, driven as `lydian_net` and
//! `lydian` drive them.
//!
//! Input: what arrives over links, the time. Output: bytes on links, a chain. Storing and validating are sequential and
//! take virtual time, so that other events can occur in between.

use crate::chain::params;
use lydian_consensus::U256;
use lydian_disk::SimDisk;
use lydian_engine::{Cancel, Engine, InitialDownload, Layout, Settings, TIP_AGE_SECONDS_DEFAULT, Unobserved};
use lydian_mempool::policy::Settings as PoolSettings;
use lydian_mempool::{Clock, Mempool, Secrets};
use lydian_p2p::driver::{self, Delivery, Event};
use lydian_p2p::manager::{ConnectSettings, ManagerSettings, PeerManager, StoreOutcome};
use lydian_p2p::peer::Local;
use lydian_p2p::submission::{Answer, Submission};
use lydian_p2p::{AddrMan, Bans, Moment};
use lydian_wire::{Network, Services};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// The node's limit for bytes of blocks in flight. It is small, so that the window matters.
pub const DOWNLOAD_BYTES: u64 = 4 << 20;

/// A clock that the world sets, in seconds since 1970.
#[derive(Debug, Default)]
pub struct PoolClock(pub AtomicI64);

impl Clock for PoolClock {
    fn unix_seconds(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The node under test.
#[derive(Debug)]
pub struct Node {
    pub engine: Arc<Engine>,
    pub manager: PeerManager,
    pub mempool: Arc<Mempool>,
    /// The clock of the mempool, which the world sets.
    pub clock: Arc<PoolClock>,
    /// Blocks to be stored.
    pub to_store: VecDeque<Delivery>,
    /// Transactions for the mempool.
    pub to_decide: VecDeque<Submission>,
    pub is_deciding: bool,
    pub is_storing: bool,
    pub is_validating: bool,
    pub has_work: bool,
}

impl Node {
    pub fn new(seed: u64, minimum_chain_work: U256, connect: ConnectSettings) -> Node {
        Node::with(seed, minimum_chain_work, connect, true)
    }

    fn with(seed: u64, minimum_chain_work: U256, connect: ConnectSettings, ignores_transactions: bool) -> Node {
        let root = PathBuf::from("node");
        let layout =
            Layout { blocks: root.join("blocks"), index: root.join("blocks/index"), coins: root.join("chainstate") };
        let clock = Arc::<PoolClock>::default();
        let secrets = Secrets { salt: [7; 32], seed };
        let mempool = Arc::new(Mempool::new(PoolSettings::default(), Arc::<PoolClock>::clone(&clock), secrets));
        let settings =
            Settings { cache_bytes: 1 << 20, known_scripts: Some(mempool.known_scripts()), ..Settings::new(1) };
        let disk = Arc::new(SimDisk::new(seed));
        let followers = vec![mempool.follower()];
        let engine = Arc::new(Engine::open(disk, &layout, params(), settings, followers).unwrap().engine);
        let mut bytes = [7; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let mut random = ChaCha20Rng::from_seed(bytes);
        random.set_stream(1);
        let settings = ManagerSettings {
            params: params(),
            minimum_chain_work,
            initial_download: Arc::new(InitialDownload::new(minimum_chain_work, TIP_AGE_SECONDS_DEFAULT)),
            blocks_only: false,
            local: Local {
                services: Services::NETWORK | Services::NETWORK_LIMITED | Services::WITNESS | Services::P2P_V2,
                user_agent: b"/Lydian/".to_vec(),
                ignores_transactions,
                peer_timeout: Duration::from_secs(60),
                own: lydian_p2p::local_address::LocalAddresses::default(),
            },
            reachable: [Network::Ipv4, Network::Ipv6].into(),
            download_bytes: DOWNLOAD_BYTES,
            seed: bytes,
            connect,
        };
        let addrman = AddrMan::new(&mut random);
        let bans = Bans::new(lydian_p2p::bans::DEFAULT_BAN_TIME_S, &mut random);
        let manager = PeerManager::new(Arc::clone(&engine), settings, addrman, bans, Arc::clone(&mempool));
        let to_store = VecDeque::new();
        Node {
            engine,
            manager,
            mempool,
            clock,
            to_store,
            to_decide: VecDeque::new(),
            is_deciding: false,
            is_storing: false,
            is_validating: false,
            has_work: false,
        }
    }

    /// Stores the oldest queued block, as `lydian_net`'s thread `store` does, and returns it with the result for the
    /// manager.
    pub fn store(&mut self, now: Moment) -> Option<(Delivery, Event)> {
        let mut delivery = self.to_store.pop_front()?;
        let event = delivery.store(&self.engine, now).unwrap();
        self.has_work |= matches!(event, Event::Stored { outcome: StoreOutcome::Stored, .. });
        Some((delivery, event))
    }

    /// A node that relays transactions.
    pub fn relaying(seed: u64, minimum_chain_work: U256, connect: ConnectSettings) -> Node {
        let node = Node::with(seed, minimum_chain_work, connect, false);
        node.mempool.start(Arc::clone(&node.engine), 1).unwrap();
        node
    }

    /// Lets the mempool decide on the oldest submission.
    pub fn decide(&mut self, now: Moment) -> Option<Answer> {
        let submission = self.to_decide.pop_front()?;
        self.clock.0.store(i64::try_from(now.unix.0).unwrap(), Ordering::Relaxed);
        Some(submission.decide(&self.mempool))
    }

    /// Submits a block of the operator. It is in the active chain before the manager is notified.
    pub fn submit(&mut self, bytes: Vec<u8>, now: Moment) {
        assert_eq!(driver::store_block(&self.engine, bytes, now).unwrap(), StoreOutcome::Stored);
        let advance = self.engine.advance(&Cancel::new(), &Unobserved).unwrap();
        assert!(advance.invalid.is_empty());
    }

    /// Validates the stored blocks, as `lydian_net`'s thread `validate` does, and returns the results for the manager.
    pub fn validate(&mut self) -> impl Iterator<Item = Event> + use<> {
        self.has_work = false;
        driver::validated(self.engine.advance(&Cancel::new(), &Unobserved).unwrap())
    }
}
