//! The node under test: the shipped manager and engine in virtual time and without threads, driven as `lydian_net` and
//! `lydian` drive them.
//!
//! Input: what arrives over links, the time. Output: bytes on links, a chain. Storing and validating are sequential and
//! take virtual time, so that other events can occur in between. Invariant: every action of the manager is carried out,
//! in order.

use crate::chain::params;
use lydian_consensus::{Rejected, Rule, U256};
use lydian_disk::SimDisk;
use lydian_engine::{Cancel, Engine, InitialDownload, Layout, Settings, TIP_AGE_SECONDS_DEFAULT, Unobserved};
use lydian_p2p::manager::{Action, ConnectSettings, ManagerSettings, PeerId, PeerManager, StoreOutcome};
use lydian_p2p::memory::Charge;
use lydian_p2p::peer::Local;
use lydian_p2p::{AddrMan, Bans, Moment};
use lydian_primitives::{BlockHash, RawBlock};
use lydian_wire::message::block_size;
use lydian_wire::{Network, Services};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The node's limit for bytes of blocks in flight. It is small, so that the window matters.
pub const DOWNLOAD_BYTES: u64 = 4 << 20;

/// The node under test.
#[derive(Debug)]
pub struct Node {
    pub engine: Arc<Engine>,
    pub manager: PeerManager,
    /// Blocks to be stored.
    pub to_store: VecDeque<Delivery>,
    pub is_storing: bool,
    pub is_validating: bool,
    pub has_work: bool,
}

/// A block to be stored.
#[derive(Debug)]
pub struct Delivery {
    pub from: PeerId,
    pub hash: BlockHash,
    pub bytes: Vec<u8>,
    /// The bytes are charged to the peer until they are stored.
    pub charge: Option<Charge>,
}

impl Node {
    pub fn new(seed: u64, minimum_chain_work: U256, connect: ConnectSettings) -> Node {
        let root = PathBuf::from("node");
        let layout =
            Layout { blocks: root.join("blocks"), index: root.join("blocks/index"), coins: root.join("chainstate") };
        let settings = Settings { cache_bytes: 1 << 20, ..Settings::new(1) };
        let disk = Arc::new(SimDisk::new(seed));
        let engine = Arc::new(Engine::open(disk, &layout, params(), settings, Vec::new()).unwrap().engine);
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
                ignores_transactions: true,
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
        let manager = PeerManager::new(Arc::clone(&engine), settings, addrman, bans);
        let to_store = VecDeque::new();
        Node { engine, manager, to_store, is_storing: false, is_validating: false, has_work: false }
    }

    pub fn take_actions(&mut self) -> Vec<Action> {
        self.manager.take_actions()
    }

    /// Stores the oldest queued block, as `lydian_net`'s thread `store` does.
    pub fn store(&mut self, now: Moment) {
        let Some(Delivery { from, hash, bytes, charge: _charge }) = self.to_store.pop_front() else { return };
        let outcome = self.outcome(bytes, now);
        self.has_work |= outcome == StoreOutcome::Stored;
        self.manager.block_stored(from, &hash, &outcome, now);
    }

    /// Submits a block of the operator. It is in the active chain before the manager is notified.
    pub fn submit(&mut self, bytes: Vec<u8>, now: Moment) {
        assert_eq!(self.outcome(bytes, now), StoreOutcome::Stored);
        let advance = self.engine.advance(&Cancel::new(), &Unobserved).unwrap();
        assert!(advance.invalid.is_empty());
    }

    fn outcome(&self, mut bytes: Vec<u8>, now: Moment) -> StoreOutcome {
        match block_size(&bytes) {
            Ok(size) => bytes.truncate(size),
            Err(error) => return StoreOutcome::Malformed { reason: error.to_string() },
        }
        let block = match RawBlock::new(bytes).parse() {
            Ok(block) => block,
            Err(error) => return StoreOutcome::Malformed { reason: error.to_string() },
        };
        match self.engine.store_block(block, i64::try_from(now.unix.0).unwrap()).unwrap() {
            Ok(_) => StoreOutcome::Stored,
            Err(Rejected::Duplicate) => StoreOutcome::Known,
            Err(rejected @ Rejected::DuplicateInvalid) => StoreOutcome::KnownInvalid { reason: rejected.to_string() },
            Err(Rejected::Violation(violation)) => match violation.rule {
                Rule::TimeTooNew => StoreOutcome::TooEarly,
                rule => StoreOutcome::Invalid { reason: violation.to_string(), is_mutated: rule.is_of_the_bytes() },
            },
        }
    }

    /// Validates the stored blocks, as `lydian_net`'s thread `validate` does.
    pub fn validate(&mut self, now: Moment) {
        self.has_work = false;
        let advance = self.engine.advance(&Cancel::new(), &Unobserved).unwrap();
        for (hash, violation) in advance.invalid {
            self.manager.block_invalid(&hash, &violation.to_string(), now);
        }
        for (hash, _) in advance.unreadable {
            self.manager.block_unreadable(&hash, now);
        }
        self.manager.chain_changed(now);
    }
}
