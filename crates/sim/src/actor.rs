//! A peer of the world.
//!
//! It consists of the behaviour that all peers share (handshake, pings, serving what it has) and a [`Nature`] that
//! makes it honest or not. Input: messages, the time. Output: [`Deed`]s, which the world carries out.

use crate::chain::{Chain, Made};
use crate::ground::{Ground, ground};
use lydian_chains::rng::Random;
use lydian_p2p::peer::{ConnectionKind, Permissions};
use lydian_primitives::{BlockHash, RawBlock};
use lydian_wire::message::{CMPCTBLOCKS_VERSION, PROTOCOL_VERSION, SendCmpct, Version};
use lydian_wire::{
    BlockTransactions, Command, CompactBlock, Endpoint, Inv, InvType, Locator, Message, Services, TimedAddress,
};
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of headers in one response.
const HEADERS_MAX: usize = 2_000;

/// How the node must treat a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It did nothing wrong: it must be neither disconnected nor discouraged.
    Honest,
    /// It must not be discouraged, because Core would not; it may be disconnected.
    Spared,
    /// It broke a rule for which Core disconnects it.
    Dropped,
    /// It broke a rule for which Core discourages it.
    Discouraged,
}

/// An action of a peer.
#[derive(Debug)]
pub enum Deed {
    Send(Message),
    /// A message with exactly this payload.
    Payload(Command, Vec<u8>),
    /// Raw bytes that bypass the transport.
    Raw(Vec<u8>),
    /// Calls [`Nature::woken`] after a delay.
    Wake(Duration, u32),
    Close,
    Connect(Duration),
    /// Stops reading.
    Deafen,
    /// Sets the verdict that the peer deserves from now on.
    Deserve(Verdict),
}

/// The peer's view of the world, which also collects its deeds.
#[derive(Debug)]
pub struct Stage<'a> {
    pub now: Duration,
    pub unix: u64,
    pub random: &'a mut Random,
    pub ground: &'static Ground,
    /// Bytes from this peer that its wire has not taken yet.
    pub backlog: usize,
    pub deeds: Vec<Deed>,
}

impl Stage<'_> {
    pub fn send(&mut self, message: Message) {
        self.deeds.push(Deed::Send(message));
    }

    pub fn wake(&mut self, after: Duration, what: u32) {
        self.deeds.push(Deed::Wake(after, what));
    }

    pub fn deserve(&mut self, verdict: Verdict) {
        self.deeds.push(Deed::Deserve(verdict));
    }
}

/// The part of a chain that a peer shows.
#[derive(Clone, Debug)]
pub struct Shown {
    pub chain: Arc<Chain>,
    pub height: u32,
}

impl Shown {
    pub fn all(chain: &Arc<Chain>) -> Shown {
        Shown { height: chain.height(), chain: Arc::clone(chain) }
    }

    pub fn find(&self, hash: &BlockHash) -> Option<&Made> {
        self.chain.find(hash).filter(|made| made.height <= self.height)
    }

    pub fn tip(&self) -> &Made {
        self.chain.at(self.height)
    }

    pub fn answer(&self, locator: &Locator) -> Message {
        let first = self.chain.fork_height(locator, self.height) + 1;
        let headers = (first..=self.height).take(HEADERS_MAX).map(|height| self.chain.at(height).header);
        Message::Headers(headers.collect())
    }
}

/// The behaviour that distinguishes a peer from the others.
pub trait Nature: std::fmt::Debug {
    /// Called when the peer has been added and is not connected yet.
    fn begin(&mut self, _body: &mut Body, _stage: &mut Stage<'_>) {}

    /// Called when the handshake is complete.
    fn ready(&mut self, _body: &mut Body, _stage: &mut Stage<'_>) {}

    /// Called for a message from the node. Returns whether it was handled; if not, the peer responds as an honest one.
    fn message(&mut self, _message: &Message, _body: &mut Body, _stage: &mut Stage<'_>) -> bool {
        false
    }

    /// Called at a time that the nature asked for.
    fn woken(&mut self, _what: u32, _body: &mut Body, _stage: &mut Stage<'_>) {}

    /// Called when the connection has ended.
    fn closed(&mut self, _body: &mut Body, _stage: &mut Stage<'_>) {}

    /// Whether the nature has nothing left to do.
    fn is_done(&self) -> bool {
        true
    }
}

/// The state that every peer has.
#[derive(Debug)]
pub struct Body {
    pub name: &'static str,
    pub endpoint: Endpoint,
    /// The kind of the connection, as the node sees it.
    pub kind: ConnectionKind,
    pub permissions: Permissions,
    pub services: Services,
    pub shown: Shown,
    /// The addresses it sends in response to `getaddr`.
    pub addresses: Vec<TimedAddress>,
    pub verdict: Verdict,
    /// It wants announcements of transactions.
    pub relays: bool,
    /// Whether it does not understand v2.
    pub knows_v1_only: bool,
    pub is_ready: bool,
    wants_headers: bool,
    is_version_sent: bool,
}

/// A peer.
pub struct Actor {
    pub body: Body,
    nature: Box<dyn Nature>,
}

impl std::fmt::Debug for Actor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?} ({:?})", self.body.name, self.nature, self.body.kind)
    }
}

impl Body {
    /// The verdict that applies in the end: a peer that is trusted or was added manually is not discouraged.
    pub fn due(&self) -> Verdict {
        let is_spared = self.kind == ConnectionKind::Manual || self.permissions.contains(Permissions::NO_BAN);
        if is_spared && self.verdict == Verdict::Discouraged { Verdict::Spared } else { self.verdict }
    }

    /// Announces a new tip.
    pub fn announce(&self, stage: &mut Stage<'_>) {
        if !self.is_ready {
            return;
        }
        let tip = self.shown.tip();
        stage.send(if self.wants_headers {
            let first = tip.height.saturating_sub(7).max(1);
            Message::Headers((first..=tip.height).map(|height| self.shown.chain.at(height).header).collect())
        } else {
            Message::Inv(vec![Inv::block(InvType::BLOCK, tip.hash)])
        });
    }

    fn send_version(&mut self, stage: &mut Stage<'_>) {
        self.is_version_sent = true;
        let nonce = stage.random.next_u64();
        stage.send(Message::Version(Box::new(Version {
            version: PROTOCOL_VERSION,
            services: self.services,
            time: i64::try_from(stage.unix).unwrap(),
            receiver_services: Services::NONE,
            receiver: Endpoint::default(),
            nonce,
            user_agent: b"/peer:1/".to_vec(),
            start_height: i32::try_from(self.shown.height).unwrap(),
            relay: self.relays,
        })));
    }

    /// Responds to a message as an honest peer does.
    fn answer(&mut self, message: &Message, stage: &mut Stage<'_>) {
        match message {
            Message::Ping(nonce) => stage.send(Message::Pong(*nonce)),
            Message::SendHeaders => self.wants_headers = true,
            Message::GetHeaders(locator) => stage.send(self.shown.answer(locator)),
            Message::GetData(inventory) => inventory.iter().for_each(|item| self.give(item, stage)),
            Message::GetBlockTxn(request) => {
                let Some(made) = self.shown.find(&request.block_hash) else { return };
                let block = RawBlock::new(made.bytes.clone()).parse().unwrap();
                stage.send(Message::BlockTxn(BlockTransactions::new(&block, request).unwrap()));
            }
            Message::GetAddr if !self.addresses.is_empty() => stage.send(Message::AddrV2(self.addresses.clone())),
            _ => {}
        }
    }

    /// Sends a block that was requested.
    pub fn give(&self, item: &Inv, stage: &mut Stage<'_>) {
        let Some(made) = self.shown.find(&BlockHash(item.hash)) else { return };
        match item.kind {
            InvType::WITNESS_BLOCK => stage.send(Message::Block(made.bytes.clone())),
            InvType::BLOCK => stage.send(Message::Block(RawBlock::new(made.bytes.clone()).parse().unwrap().stripped())),
            InvType::CMPCT_BLOCK => {
                let block = RawBlock::new(made.bytes.clone()).parse().unwrap();
                let nonce = stage.random.next_u64();
                stage.send(Message::CmpctBlock(Box::new(CompactBlock::new(&block, nonce))));
            }
            _ => {}
        }
    }
}

impl Actor {
    pub fn new(name: &'static str, endpoint: Endpoint, kind: ConnectionKind, nature: Box<dyn Nature>) -> Actor {
        let body = Body {
            name,
            endpoint,
            kind,
            permissions: Permissions::NONE,
            services: Services::NETWORK | Services::NETWORK_LIMITED | Services::WITNESS,
            shown: Shown::all(&ground().honest),
            addresses: Vec::new(),
            verdict: Verdict::Spared,
            relays: false,
            knows_v1_only: false,
            is_ready: false,
            wants_headers: false,
            is_version_sent: false,
        };
        Actor { body, nature }
    }

    pub fn begin(&mut self, stage: &mut Stage<'_>) {
        self.nature.begin(&mut self.body, stage);
    }

    /// Called when the connection is established.
    pub fn connected(&mut self, stage: &mut Stage<'_>) {
        (self.body.is_ready, self.body.wants_headers, self.body.is_version_sent) = (false, false, false);
        if self.body.kind.is_inbound() {
            self.body.send_version(stage);
        }
    }

    pub fn message(&mut self, message: &Message, stage: &mut Stage<'_>) {
        match message {
            Message::Version(_) => {
                if !self.body.is_version_sent {
                    self.body.send_version(stage);
                }
                stage.send(Message::WtxidRelay);
                stage.send(Message::SendAddrV2);
                stage.send(Message::Verack);
            }
            Message::Verack => {
                self.body.is_ready = true;
                stage.send(Message::SendCmpct(SendCmpct { high_bandwidth: false, version: CMPCTBLOCKS_VERSION }));
                self.nature.ready(&mut self.body, stage);
            }
            message => {
                if !self.nature.message(message, &mut self.body, stage) {
                    self.body.answer(message, stage);
                }
            }
        }
    }

    pub fn woken(&mut self, what: u32, stage: &mut Stage<'_>) {
        self.nature.woken(what, &mut self.body, stage);
    }

    pub fn closed(&mut self, stage: &mut Stage<'_>) {
        self.body.is_ready = false;
        self.nature.closed(&mut self.body, stage);
    }

    pub fn is_done(&self) -> bool {
        self.nature.is_done()
    }
}
