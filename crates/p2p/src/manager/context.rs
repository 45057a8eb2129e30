//! [`Context`]: what every part of the manager works with: the time, random numbers, the chain, the peers, the actions.
//!
//! Input: the settings; the manager sets the time at each call. Output: [`Action`]s for the owner of the sockets,
//! [`Event`]s for other parts, which the manager routes. Log lines have Bitcoin Core's texts: a debug line is created
//! only if its category is logged, and addresses of peers are included only with `-logips`.
//!
//! Invariant: a part changes another part only through an event. Cost: a look at the header tree for each question
//! about the chain.

use super::peer::PeerState;
use super::pool::TransactionPool;
use super::{Action, Event, ManagerSettings, PeerId, Violation};
use crate::SentBlocks;
use crate::chain_view::ChainView;
use crate::outgoing::Outgoing;
use crate::time::{Moment, UnixTime};
use lydian_chain::HeaderId;
use lydian_consensus::U256;
use lydian_engine::{LogLevel, LogLine, LogSwitches};
use lydian_primitives::{BlockHash, Height};
use lydian_wire::Message;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::Rng;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

pub(super) const NET: &str = "net";
pub(super) const ADDRMAN: &str = "addrman";
pub(super) const VALIDATION: &str = "validation";

/// How many blocks old the tip may be for limited peers to be sufficient: Core's
/// `NODE_NETWORK_LIMITED_ALLOW_CONN_BLOCKS`.
const LIMITED_PEERS_BLOCKS: i64 = 144;

/// The surroundings of a call.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) settings: ManagerSettings,
    pub(super) now: Moment,
    pub(super) random: ChaCha20Rng,
    pub(super) chain: Arc<dyn ChainView>,
    pub(super) pool: TransactionPool,
    pub(super) peers: BTreeMap<PeerId, PeerState>,
    pub(super) actions: Vec<Action>,
    /// Events for other parts, in the order in which they happened.
    pub(super) events: VecDeque<Event>,
    pub(super) switches: LogSwitches,
    /// Who sent the latest blocks.
    pub(super) sent_blocks: Arc<SentBlocks>,
}

/// The data of a header, copied from the tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) id: HeaderId,
    pub(super) hash: BlockHash,
    pub(super) height: Height,
    pub(super) work: U256,
    pub(super) time: u32,
}

/// The log.
impl Context {
    /// Logs a line of the category `net`.
    #[track_caller]
    pub(super) fn log_debug(&mut self, text: String) {
        if self.switches.is_on(NET) {
            self.actions.push(Action::Log(LogLine::new(LogLevel::Debug(NET), text)));
        }
    }

    /// Logs a line of the category `net`. The text is created only if it is logged.
    #[track_caller]
    pub(super) fn debug(&mut self, text: impl FnOnce(&Context) -> String) {
        if self.switches.is_on(NET) {
            let line = LogLine::new(LogLevel::Debug(NET), text(self));
            self.actions.push(Action::Log(line));
        }
    }

    /// Logs a line of another category. The text is created only if it is logged.
    #[track_caller]
    pub(super) fn debug_of(&mut self, category: &'static str, text: impl FnOnce(&Context) -> String) {
        if self.switches.is_on(category) {
            let line = LogLine::new(LogLevel::Debug(category), text(self));
            self.actions.push(Action::Log(line));
        }
    }

    /// Logs a line of the default level.
    #[track_caller]
    pub(super) fn log_info(&mut self, text: String) {
        self.log_at(LogLevel::Info, text);
    }

    #[track_caller]
    pub(super) fn log_at(&mut self, level: LogLevel, text: String) {
        self.actions.push(Action::Log(LogLine::new(level, text)));
    }

    /// Core's `LogPeer`.
    pub(super) fn log_peer(&self, id: PeerId) -> String {
        match self.peers.get(&id).filter(|_| self.switches.has_ips()) {
            Some(peer) => format!("peer={id}, peeraddr={}", peer.talk.connection.endpoint),
            None => format!("peer={id}"),
        }
    }
}

/// The peers.
impl Context {
    pub(super) fn with(&mut self, id: PeerId, change: impl FnOnce(&mut PeerState)) {
        if let Some(peer) = self.peers.get_mut(&id) {
            change(peer);
        }
    }

    pub(super) fn new_nonce(&mut self) -> u64 {
        self.random.next_u64()
    }

    pub(super) fn send(&mut self, to: PeerId, message: Message) {
        let now = self.now;
        if let Some(peer) = self.peers.get_mut(&to)
            && !peer.is_leaving
        {
            peer.talk.note_sent(now);
            self.actions.push(Action::Send { to, item: Outgoing::Message(message) });
        }
    }

    /// Disconnects a peer for a reason, a sentence without its end: the log line gets the suffix of Core's
    /// `DisconnectMsg`.
    #[track_caller]
    pub(super) fn leave(&mut self, id: PeerId, reason: impl Into<String>) {
        self.leave_at(id, LogLevel::Debug(NET), reason.into());
    }

    /// Disconnects a peer like `leave`, at another log level.
    #[track_caller]
    pub(super) fn leave_at(&mut self, id: PeerId, level: LogLevel, reason: String) {
        if self.peers.get(&id).is_some_and(|peer| !peer.is_leaving) {
            if !matches!(level, LogLevel::Debug(category) if !self.switches.is_on(category)) {
                let text = format!("{reason}, disconnecting {}", self.log_peer(id));
                self.log_at(level, text);
            }
            self.end_connection(id, reason);
        }
    }

    /// Closes a connection. Nothing more is read from it.
    pub(super) fn end_connection(&mut self, id: PeerId, reason: impl Into<String>) {
        if let Some(peer) = self.peers.get_mut(&id)
            && !peer.is_leaving
        {
            peer.is_leaving = true;
            // Its requests go to other peers immediately, because its socket may take a while to close.
            peer.blocks.forget_requests();
            self.events.push_back(Event::Left(id));
            self.actions.push(Action::Send { to: id, item: Outgoing::End { reason: reason.into() } });
        }
    }

    /// Core's `Misbehaving`: takes effect after the message was processed.
    pub(super) fn misbehaving(&mut self, id: PeerId, violation: &Violation) {
        let what = violation.to_string();
        let what = if what.is_empty() { String::new() } else { format!(": {what}") };
        self.log_debug(format!("Misbehaving: peer={id}{what}"));
        self.with(id, |peer| peer.should_discourage = true);
    }
}

/// The chain.
impl Context {
    pub(super) fn place(&self, id: HeaderId) -> Place {
        self.chain.with_tree(|tree| {
            let node = tree.node(id);
            Place { id, hash: node.hash, height: node.height, work: node.chain_work, time: node.header.time }
        })
    }

    pub(super) fn tip(&self) -> Place {
        self.place(self.chain.with_tree(|tree| tree.tip()))
    }

    pub(super) fn best_header(&self) -> Place {
        self.place(self.chain.with_tree(|tree| tree.best_header()))
    }

    pub(super) fn tip_age(&self) -> i64 {
        self.now.unix.since(UnixTime::from(self.tip().time))
    }

    /// The time in seconds since 1970, as the chain takes it.
    pub(super) fn unix(&self) -> i64 {
        i64::try_from(self.now.unix.0).unwrap_or(i64::MAX)
    }

    /// Core's `CanDirectFetch`: the tip is a few hours old at most.
    pub(super) fn can_fetch_directly(&self) -> bool {
        self.tip_age() < 20 * self.settings.params.pow_target_spacing
    }

    /// Returns whether peers that have only the last blocks are sufficient.
    pub(super) fn is_near_tip(&self) -> bool {
        self.tip_age() / self.settings.params.pow_target_spacing.max(1) < LIMITED_PEERS_BLOCKS
    }

    /// Core's `IsInitialBlockDownload`.
    pub(super) fn is_initial_download(&self) -> bool {
        self.settings.initial_download.is_on()
    }

    /// Core's `LoadingBlocks`: blocks from disk are being imported and validated.
    pub(super) fn is_loading(&self) -> bool {
        self.settings.initial_download.is_loading()
    }
}
